"""What the offline model makes of a check that failed: whose fault it can't mend, and what a summary says of it."""

import pytest

from offline_model.words import rank
from tests.offline_support import called, reply, said, summary_messages, user
from tests.test_offline_summary import HEADINGS, sections, summary

PRINTED = f"""\
{"one more word of the many that a program prints " * 40}
FAIL: test_sum (test_own.T.test_sum)
  File "/mnt/workspace/own.py", line 4, in test_sum
AssertionError: 1 != 2
Ran 1 test in 0.000s
FAILED (failures=1)"""
SENT = {
    "en": "The check failed, so this is not done yet. The command `make check` ended with exit code 1. What it printed"
    f" stands between the tags.\n<check_output>\n{PRINTED}\n</check_output>\nLook for the cause. (Sent back 1/3)",
    "zh": "检查没有通过，所以这件事还没做完。命令 `make check` 的退出码是 1。它打印的内容在标签之间。\n"
    f"<check_output>\n{PRINTED}\n</check_output>\n请找出问题出在哪里。（第 1/3 次退回）",
}
CANT = {"en": "The check failed, and I can't mend", "zh": "检查没有通过，而它查出的问题我改不了"}
AGAIN = {"en": "The check still fails.", "zh": "检查还是没有通过。"}
TASK = {"en": "Make the sum right.", "zh": "把求和改对。"}
CHECKED = {
    "en": "The check `make check` failed and sent the work back: ",
    "zh": "检查 `make check` 没有通过，退回重做：",
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_check_that_it_cannot_mend_is_said_once_in_plain_words(language: str) -> None:
    before = [user(TASK[language]), said("Done.")]
    first = reply(*before, user(SENT[language]))
    assert first.text.startswith(CANT[language]) and "DEEPSEEK_API_KEY" in first.text and not first.calls
    assert not any(word in first.text for word in ("0.000s", "own.py", "check_output", "test_sum"))
    second = reply(*before, user(SENT[language]), said(first.text), user(SENT[language]))
    assert second.text.startswith(AGAIN[language]) and "DEEPSEEK" not in second.text and not second.calls
    third = reply(*before, user(SENT[language]), said(first.text), user(SENT[language]), said(second.text))
    assert third.text


def test_the_ways_to_a_real_model_are_named_once_where_the_task_could_not_be_served_either() -> None:
    asked = user("Rename every function.")
    first = reply(asked).text
    assert "DEEPSEEK_API_KEY" in first
    assert "DEEPSEEK_API_KEY" not in reply(asked, said(first), user(SENT["en"])).text


def test_a_check_of_the_sample_is_mended_as_before() -> None:
    sent = SENT["en"].replace("test_sum", "test_group_of_ten_gets_a_discount")
    assert [call.name for call in reply(user("-"), said("Done."), user(sent)).calls] == ["read"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_summary_tells_each_change_once_and_that_the_check_failed_between(language: str) -> None:
    echo = "### What I did\n\n- `read` `a.py`: 2 lines\n- `edit` `a.py`: `{0} = 1` → `{0} = 2`"
    parts = [f"[task 1 · user]\n{TASK[language]}"]
    for name, then in (("x", f"[task 1 · harness]\n{SENT[language]}"), ("y", "")):
        call = f'calls edit with {{"path": "a.py", "old": "{name} = 1", "new": "{name} = 2"}}'
        parts += [f"[task 1 · assistant]\n{call}", "[task 1 · result of edit]\nEdited `a.py` at line 1."]
        parts += [f"[task 1 · assistant]\n{echo.format(name)}", then]
    text = summary("\n\n".join(part for part in parts if part), language=language)
    changes = sections(text)[HEADINGS[language][4]]
    told = f"{CHECKED[language]}FAIL: test_sum · AssertionError: 1 != 2 · FAILED (failures=1)"
    assert changes == ["`edit` `a.py`: `x = 1` → `x = 2`", told, "`edit` `a.py`: `y = 1` → `y = 2`"]
    later = sections(summary("[task 2 · user]\nHello.", language=language, earlier=text))[HEADINGS[language][4]]
    assert sorted(later) == sorted(changes), "and an update keeps it"
    assert summary_messages("x", language=language)


@pytest.mark.parametrize(
    "question",
    ["备用屏幕要去哪里找？", "去哪儿能找到备用屏幕？", "请问备用屏幕在哪间屋子？", "备用屏幕是什么时候放的呢？"],
)
def test_what_only_asks_has_no_part_in_how_well_a_chinese_statement_fits(question: str) -> None:
    texts = ["备用屏幕放在 K-207 室。", "潮汐牌的新版本由伊内丝统一发布。", "钟坏了。"]
    best = rank(question, texts)[0]
    assert best.index == 0 and best.covered >= 0.4


def test_what_stands_in_two_places_is_one_point_with_two_sources() -> None:
    told = user("Please remember that the ferry leaves at six. Thanks.")
    read = called("read", {"path": "times.md"}, "# Times\n\nThe ferry leaves at six.\n")
    text = reply(told, said("Good."), user("Read times.md. When does the ferry leave?"), *read).text
    assert text.count("erry leaves at six") == 1, text
    assert "what `read times.md` returned" in text and "your own message" in text


@pytest.mark.parametrize("task", ["Let the purser count the coins in the box.", "请让 purser 数一数盒子里的硬币。"])
def test_what_wants_something_done_is_no_question_and_names_the_ways(task: str) -> None:
    read = called("read", {"path": "cash.md"}, "There are 40 coins in the box. 盒子里有 40 枚硬币。")
    text = reply(user("Read other.md."), *read[:1], {**read[1], "content": "The box."}, said("Read."), user(task)).text
    assert "DEEPSEEK_API_KEY" in text


@pytest.mark.parametrize(
    "task", ["Read cash.md.", "Read cash.md and say what it says.", "读一下 cash.md，说说写了什么。"]
)
def test_a_file_that_is_only_to_be_read_is_told(task: str) -> None:
    text = reply(user(task), *called("read", {"path": "cash.md"}, "There are 40 coins in the box.")).text
    assert "There are 40 coins in the box." in text and "DEEPSEEK_API_KEY" not in text
    summary = user("[Background: a summary.]\n\n## Done\n- earlier: read other.md")
    later = [summary, said("Good."), user("Read cash.md."), *called("read", {"path": "cash.md"}, "There are 40 coins.")]
    assert "other.md" not in reply(*later).text, "a name that looks alike is no answer"
    changed = reply(user("Rename all in cash.md."), *called("read", {"path": "cash.md"}, "There are 40 coins.")).text
    assert "DEEPSEEK_API_KEY" in changed
