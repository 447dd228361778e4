"""Facts of a text: what is taken, in English and Chinese, and that it stands there word for word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.facts import Fact, facts_in

# Pieces that, put together at random, make more facts than random letters do.
PIECES = st.sampled_from(
    [
        *"src/app.py ./run.sh log.md k-19 E-217 tg-5c91 postage_for() os.path.join camelCase 4 % 30 s 08:03".split(),
        *"2026-11-02 1,500 字符 v2.1 503 https://example.org/a `gate_log` must 不要 只 只能 don't 错误：".split(),
        *"exit code 。 . ! ； , ， “ ” ( ) * ** - > # é 退出码 3 ``` ```bash $ git push".split(),
        *(" ", "\n", "\n\n", "\t", "\x00", "\u2028", "64 of 64", "Error: no", "`gatectl replay --ticket 88213`"),
    ]
)
TEXTS = st.text() | st.lists(PIECES | st.text(max_size=3), max_size=30).map("".join)
TEXTS |= st.lists(PIECES, max_size=30).map(" ".join)


def of(kind: str, text: str, *, of_user: bool = True) -> list[str]:
    return [fact.text for fact in facts_in(text, of_user=of_user) if fact.kind == kind]


@pytest.mark.parametrize(
    ("text", "kind", "facts"),
    [
        ("See signer/keys.toml:27, ./run.sh and ~/a.md.", "path", ["signer/keys.toml:27", "./run.sh", "~/a.md"]),
        ("读一读incident-log.zh.md，别动 src/ 和Makefile。", "path", ["incident-log.zh.md", "src/", "Makefile"]),
        ("`报表/五月.csv` and/or read/write", "path", ["报表/五月.csv"]),
        (r"C:\logs\gate.log tests/test_a.py::test_b", "path", [r"C:\logs\gate.log", "tests/test_a.py::test_b"]),
        ("**src/app.py** </div> 1/2 TCP/IP s/old_a/new_b/g", "path", ["src/app.py"]),
        ("gate_log, maxChars and os.path.join", "identifier", ["gate_log", "maxChars", "os.path.join"]),
        ("`postage_for()` calls postage_for; e.g. that", "identifier", ["postage_for()"]),
        ("code E-217, request id `tg-5c91`, commit c176039", "identifier", ["E-217", "tg-5c91", "c176039"]),
        ("返回代码E-217，请求编号tg-5c91，系统：`ticket-gate`", "identifier", ["E-217", "tg-5c91", "ticket-gate"]),
        ("ENOENT from 0x7f in HTTPError at _GATES", "identifier", ["ENOENT", "0x7f", "HTTPError", "_GATES"]),
        ("GitHub speaks JavaScript", "identifier", []),
        ("11 % of 64 of 64 at 08:03, 100/100, 503", "number", ["11 %", "64 of 64", "08:03", "100/100", "503"]),
        ("等了 6.8 秒，共 1,500 字符、418 名乘客，4 号闸机", "number", ["6.8 秒", "1,500 字符", "418 名", "4 号"]),
        ("2031 年 5 月 6 日，版本 5.2.0，退出码 3", "number", ["2031 年 5 月 6 日", "5.2.0", "退出码 3"]),
        ("2026-11-02 v2.1 30 s -0.5 $12.50 exit code 3", "number",
         ["2026-11-02", "v2.1", "30 s", "-0.5", "$12.50", "exit code 3"]),
        ("1. one\n  12\tcode\n@@ -1,4 +10,6 @@\n3: x", "number", []),
        ("$ pytest -q\n1 passed", "command", ["pytest -q"]),
        ("run `gatectl replay --ticket 8`, then `git push`", "command", ["gatectl replay --ticket 8", "git push"]),
        ("```bash\n# first\nuv run server.py --lab 07\n```\n```\ncd src\nnot a command\n```", "command",
         ["uv run server.py --lab 07", "cd src"]),
        ("用 `git status` 看一眼\n$ git \\\n  push", "command", ["git status", "git \\\n  push"]),
        ("Traceback (most recent call last):\n  x\nValueError: bad ticket\n", "error",
         ["Traceback (most recent call last):", "ValueError: bad ticket"]),
        ("FAILED tests/a.py::b - no\nok\ncat: a: No such file or directory", "error",
         ["FAILED tests/a.py::b - no", "cat: a: No such file or directory"]),
        ("错误：找不到文件\n一切正常", "error", ["错误：找不到文件"]),
        ('raise ValueError("bad")\nexcept KeyError:', "error", []),
        ("See https://a.example/b?c=1. 见https://a.example/二。", "url", ["https://a.example/b?c=1", "https://a.example/二"]),
    ],
)  # fmt: skip
def test_what_is_taken(text: str, kind: str, facts: list[str]) -> None:
    assert of(kind, text) == facts


@pytest.mark.parametrize(
    ("text", "demand"),
    [
        ("Read the log. Don't change any file. Thanks.", "Don't change any file."),
        ("- Do not push!\n- Sort it", "Do not push!"),
        ("Change only the README", "Change only the README"),
        ("Sort it; you must never touch tests/", "you must never touch tests/"),
        ("Say it “without guessing”.", "Say it “without guessing”."),
        ("Please don’t rename\nany public name.", "Please don’t rename\nany public name."),
        ("归类一下。不要改动任何文件。谢谢", "不要改动任何文件。"),
        ("只改 README，改完告诉我", "只改 README，改完告诉我"),
        ("复盘之前，任何人不得删除记录。", "复盘之前，任何人不得删除记录。"),
        ("这次不重新读文件。", "这次不重新读文件。"),
        ("别动测试；看看日志", "别动测试；"),
        ("只有主管可以重启闸机。", "只有主管可以重启闸机。"),
        ("最多写三句话", "最多写三句话"),
        ("改动必须经过测试，禁止直接上线", "改动必须经过测试，禁止直接上线"),
        *(
            (text, text)
            for text in (
                "Could you never delete a row?",
                "Would you leave the tests alone?",
                "Why don't you keep the names?",
                "Can you fix a.py, which must not be renamed?",
                "What is it, only one word please?",
                "What happened, without reading it again?",
                "What does it do and don't change any file?",
                "Is it ok to never delete rows?",
                "When you answer do not guess, ok?",
                "Do only the first part, ok?",
                "Nothing may be deleted.",
                "能不能不要删除记录？",
                "可以只改 README 吗？",
                "只看日志，哪些已确认？",
                "请修好，什么都不要动，好吗？",
                "不重新读文件，K-207 是什么？",
            )
        ),
    ],
)
def test_a_demand_of_a_user_is_never_missed(text: str, demand: str) -> None:
    assert of("constraint", text) == [demand]


@pytest.mark.parametrize(
    "text",
    [
        "只有三台闸机在线。", "他只是怀疑。", "三只猫和一只鸟", "3 只猫", "两只手", "船只靠岸", "只好等着",
        "要不要重启？", "他们分别到了", "是不是坏了？", "哪些只是怀疑，哪些已排除？",
        "It is not running.", "These are only suspected.",
        # A question that only asks demands nothing.
        "What does the crew need to know today?", "Does it need to run here?", "Are there no tests?",
        "Which have a cause, and which must be checked?", "From what you have: which should be left alone?",
        "What must never be named?", "船员今天必须知道什么？", "哪些东西不能改？", "为什么不能删？",
        # What only fills an empty place, or tells what happened.
        "none", "- none", "`none`", "无", "`bash rm x` was not allowed, so I stop here.",
    ],
)  # fmt: skip
def test_a_description_is_no_demand(text: str) -> None:
    assert of("constraint", text) == []


def test_what_a_file_says_is_a_demand_only_where_it_forbids_or_commands() -> None:
    assert of("constraint", "Nobody may delete rows.\nIt ran without a fault.", of_user=False) == [
        "Nobody may delete rows."
    ]
    assert of("constraint", "任何人不得删除。\n当时闸机还不查验签名。", of_user=False) == ["任何人不得删除。"]
    assert of("constraint", "We do not know why. Do not ask.", of_user=False) == ["Do not ask."]
    assert of("constraint", 'raise ValueError("must be absolute")', of_user=False) == []


@pytest.mark.parametrize(
    ("kind", "one", "other", "same"),
    [
        ("number", "4 %", "4%", True), ("number", "4 %", "40 %", False), ("number", "30 s", "30 min", False),
        ("identifier", "postage_for()", "postage_for", True), ("identifier", "E-217", "e-217", False),
        ("path", "./src/a.py", "src/a.py", True), ("path", "src/a.py", "/src/a.py", False),
        ("path", "src/a.py:2", "src/a.py:27", False),
        ("constraint", "Don't change a.md.", "“don’t  change a.md”", True),
        ("constraint", "Don't change a.md.", "Don't change A.md.", False),
        ("constraint", "不要改动文件。", "不要改动文件", True),
        ("command", '`echo "a  b"`', '`echo "a b"`', False),
        ("error", "ValueError: bad", "ValueError:  bad", True), ("error", "ValueError: bad", "ValueError: Bad", False),
    ],
)  # fmt: skip
def test_keys_are_the_same_only_where_nothing_differs(kind: str, one: str, other: str, same: bool) -> None:
    keys = [next(fact.key for fact in facts_in(text) if fact.kind == kind) for text in (one, other)]
    assert (keys[0] == keys[1]) is same


@given(TEXTS, st.booleans())
def test_every_fact_stands_where_it_says_once_and_in_order(text: str, of_user: bool) -> None:
    facts = facts_in(text, of_user=of_user)
    for fact in facts:
        assert fact.text and fact.text.strip() == fact.text
        assert text[fact.start :].startswith(fact.text)
    keys = [(fact.kind, fact.key) for fact in facts]
    assert len(keys) == len(set(keys))
    assert [fact.start for fact in facts] == sorted(fact.start for fact in facts)


@given(TEXTS)
def test_a_demand_in_the_narrow_sense_is_one_in_the_wide_sense_too(text: str) -> None:
    if "\n" not in text:
        assert set(of("constraint", text, of_user=False)) <= set(of("constraint", text))


# Work that grew with the square of the length would not end before the time that every test has.
@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "1",
        "`",
        "```\n",
        "a.",
        "a-",
        "a_",
        "a/",
        "aB",
        "111,",
        "1.",
        "1:",
        "$ a\n",
        "must ",
        "不",
        "Error:\n",
        "::a",
        "'",
        "能",
        "what, ",
    ],
)
def test_a_hostile_text_comes_through(unit: str) -> None:
    for end in ("", "!9_", "1111", "must?"):
        for fact in facts_in(unit * (600_000 // len(unit)) + end):
            assert isinstance(fact, Fact)
