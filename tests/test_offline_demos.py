"""The two long tasks, of labs 08 and 10, run over the wire and compacted in their middle; and their demo projects."""

import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from offline_model.cues import kind_of
from offline_model.history import LONGEST_GOAL
from offline_model.server import OfflineServer
from offline_model.sources import rules
from offline_model.statements import sentences, split
from tests.offline_support import ROOT, SCRIPTS, LongTalk

DEMOS = ROOT / "demo_workspace"
LANGUAGES = ["en", "zh"]
REPORT = {
    "en": "Find out why the monthly report is wrong, and mend it: read the README and the four logs, run the tests"
    " before and after. Only change report.py. You must keep the signature of `monthly_total` as it is.",
    "zh": "查清月报为什么算错，并把它改好：先读 README 和四份日志，改之前和改之后各跑一遍测试。"
    "只改 report.py，不要动别的文件。必须保持 `monthly_total` 的签名不变。",
}
ORDERS = {
    "en": "Go through all thirty daily order files, one after another, from day-01.csv to day-30.csv. Only read them,"
    " and never delete or change anything. At the end, list what is confirmed about failed orders and what is still"
    " open.",
    "zh": "逐个看完三十份每日订单文件，从 day-01.zh.csv 到 day-30.zh.csv。只读，不要删除或改动任何东西。"
    "最后列出失败订单里哪些已确认、还有哪些没查清。",
}
FAILED = {"04": 1, "07": 2, "11": 1, "19": 1, "23": 2, "28": 1}


@pytest.fixture(scope="module")
def server() -> Iterator[OfflineServer]:
    with OfflineServer(SCRIPTS, delay=0) as running:
        yield running


def names(language: str) -> list[str]:
    return [f"day-{n:02}{'.zh' if language == 'zh' else ''}.csv" for n in range(1, 31)]


def paths(talk: LongTalk) -> list[str]:
    return [arguments.get("path") or arguments["command"] for _, arguments in talk.calls]


@pytest.mark.parametrize("task", [*REPORT.values(), *ORDERS.values()])
def test_a_tasks_first_sentence_is_a_goal_and_its_limits_are_seen(task: str) -> None:
    first = sentences(task)[0]
    assert kind_of(first) == "plain" and len(first) <= LONGEST_GOAL
    assert 1 <= len(rules(task)) <= 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_long_report_task(server: OfflineServer, tmp_path: Path, language: str) -> None:
    talk = LongTalk(server.address, tmp_path, "slow-report", language, "08", most=9_500)
    text = talk.ask(REPORT[language])
    z = ".zh" if language == "zh" else ""
    test = "python3 -m unittest"
    logs = [f"log-{n}{z}.md" for n in range(1, 5)]
    assert paths(talk) == [f"README{z}.md", test, *logs, "report.py", "report.py", test], "nothing is done twice"
    assert len(talk.summaries) >= 1
    assert text.startswith("The tests pass" if language == "en" else "最后一次运行，测试全部通过")
    assert "`booked`" in text and '`if row["sold"].startswith(month):`' in text and "log-1" in text
    changed = [path.name for path in talk.folder.glob("*.*") if path.read_bytes() != original(path)]
    assert changed == ["report.py"]
    calls = len(talk.calls)
    asked = {
        "en": "What happened at 06:12, and what was the job's number? Answer from what you have, without reading a file"
        " again.",
        "zh": "06:12 发生了什么，作业编号是多少？就凭你现在掌握的内容回答，这次不重新读文件。",
    }[language]
    lost = talk.ask(asked)
    assert "06:12" in lost and "ex-2207" not in lost
    limits = talk.ask({"en": "Which limits did I set for your work?", "zh": "我给你定过哪些限制？"}[language])
    assert all(f"- {rule}" in limits for rule in rules(REPORT[language]))
    assert len(talk.calls) == calls
    talk.close()


def original(path: Path) -> bytes:
    return (DEMOS / "slow-report" / path.name).read_bytes()


@pytest.mark.parametrize("language", LANGUAGES)
def test_in_one_piece_the_report_task_knows_the_detail(server: OfflineServer, tmp_path: Path, language: str) -> None:
    talk = LongTalk(server.address, tmp_path, "slow-report", language, "08", most=10**9)
    talk.ask(REPORT[language])
    assert not talk.summaries
    found = talk.ask({"en": "What happened at 06:12?", "zh": "06:12 发生了什么？"}[language])
    assert "ex-2207" in found
    talk.close()


@pytest.mark.parametrize("role", ["user", "system"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_thirty_order_files(server: OfflineServer, tmp_path: Path, language: str, role: str) -> None:
    talk = LongTalk(server.address, tmp_path, "orders", language, "10", most=5_000, limit=900, keep=6, role=role)
    text = talk.ask(ORDERS[language])
    assert paths(talk) == names(language), "each once, in order"
    assert len(talk.summaries) >= 4 and all(len(summary) <= 900 for summary in talk.summaries)
    assert f"{names(language)[0]} … " in talk.summaries[-1]
    for order in ("O-0403", "O-0703", "O-0711", "O-1108", "O-1905", "O-2302", "O-2309", "O-2806", "O-1204", "O-2507"):
        assert order in text
    assert "O-0101" not in text
    rejected = talk.ask({"en": "Which way of matching was rejected?", "zh": "否决过哪些对账办法？"}[language])
    assert "O-0205" in rejected and len(talk.calls) == 30
    talk.close()


def test_a_summary_that_forgets_makes_it_read_again(server: OfflineServer, tmp_path: Path) -> None:
    talk = LongTalk(server.address, tmp_path, "orders", "en", "10", most=5_000, limit=900, keep=6)
    cut = talk.cut

    def forgetful() -> None:
        cut()
        if len(talk.summaries) == 2:
            talk.summary = re.sub(r"^- read .*\n?", "", talk.summary, flags=re.MULTILINE)

    talk.cut = forgetful  # type: ignore[method-assign]
    talk.ask(ORDERS["en"])
    talk.close()
    assert len(talk.calls) > 30 and set(paths(talk)) == set(names("en"))
    assert paths(talk).count("day-01.csv") == 2


@pytest.mark.parametrize("stop", [0, 3, 6, 13, 29])
def test_a_task_goes_on_after_a_break(server: OfflineServer, tmp_path: Path, stop: int) -> None:
    talk = LongTalk(server.address, tmp_path, "orders", "en", "10", most=5_000, limit=900, keep=6, role="system")
    with pytest.raises(ConnectionAbortedError):
        break_after(talk, stop)
        talk.ask(ORDERS["en"])
    task = talk.tasks.pop()
    whole = [message for message in task if message["role"] != "assistant" or answered(message, task)]
    talk.folder.rename(tmp_path / "kept")
    again = LongTalk(server.address, tmp_path, "orders", "en", "10", most=5_000, limit=900, keep=6, role="system")
    again.summary, again.tasks = talk.summary, [whole]
    for _ in range(40):
        choice = again._post({"messages": again.context(), "tools": tools()})["choices"][0]["message"]
        if not choice.get("tool_calls"):
            break
        call = choice["tool_calls"][0]
        again.calls.append(("read", json.loads(call["function"]["arguments"])))
        again.tasks[-1] += [{"role": "assistant", "content": "", "tool_calls": [call]}]
        result = again._run("read", again.calls[-1][1])
        again.tasks[-1].append({"role": "tool", "tool_call_id": call["id"], "content": result})
    assert paths(again) == names("en")[stop:]
    assert "O-0403" in choice["content"] and "O-2806" in choice["content"]
    talk.close()
    again.close()


def break_after(talk: LongTalk, stop: int) -> None:
    run = talk._run

    def breaking(name: str, arguments: dict) -> str:
        if len(talk.calls) > stop:
            raise ConnectionAbortedError
        return run(name, arguments)

    talk._run = breaking  # type: ignore[method-assign]


def answered(message: dict, task: list[dict]) -> bool:
    results = {each.get("tool_call_id") for each in task}
    return all(call["id"] in results for call in message.get("tool_calls", []))


def tools() -> list[dict]:
    return [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_order_files_hold_what_their_remarks_say(language: str) -> None:
    folder = DEMOS / "orders"
    remarks: list[str] = []
    for name in names(language):
        lines = (folder / name).read_text("utf-8").splitlines()
        marks = [line for line in lines if line.startswith("#")]
        remarks += marks
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
        assert list(rows[0]) == ["order_id", "user_id", "amount", "status"]
        assert {row["status"] for row in rows} <= {"paid", "pending", "refunded", "failed"}
        assert 12 <= len(rows) <= 20 or name.startswith("day-16")
        failed = {row["order_id"] for row in rows if row["status"] == "failed"}
        told = {each for mark in marks if kind_of(mark) == "confirmed" for each in re.findall(r"O-\d+", mark)}
        assert failed == told and len(failed) == FAILED.get(name[4:6], 0)
        for mark in (mark for mark in marks if kind_of(mark) == "open"):
            assert {row["status"] for row in rows if row["order_id"] in mark} == {"pending"}
    kinds = [kind_of(mark.lstrip("# ")) for mark in remarks]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"confirmed": 6, "open": 2, "change": 1, "rejected": 1}
    twice = [row.split(",") for row in (folder / names(language)[1]).read_text("utf-8").splitlines() if "O-02" in row]
    assert len({tuple(row[1:3]) for row in twice[1:] if row[0] in ("O-0205", "O-0209")}) == 1


def test_the_order_files_are_the_same_in_both_languages_and_small() -> None:
    folder = DEMOS / "orders"
    for english, chinese in zip(names("en"), names("zh"), strict=True):
        one, other = (
            [line for line in (folder / name).read_text("utf-8").splitlines() if line[0] != "#"]
            for name in (english, chinese)
        )
        assert one == other
    assert sum(path.stat().st_size for path in folder.iterdir()) < 60_000


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_log_has_its_size_and_its_mix(language: str) -> None:
    z = ".zh" if language == "zh" else ""
    kinds: list[str] = []
    for number in range(1, 5):
        path = DEMOS / "slow-report" / f"log-{number}{z}.md"
        assert 1_800 <= path.stat().st_size <= 4_000
        kinds += [statement.kind for statement in split(path.read_text("utf-8"))]
    for kind, least in {"confirmed": 6, "unverified": 6, "rejected": 6, "open": 4, "change": 2, "plain": 20}.items():
        assert kinds.count(kind) >= least, kind
    assert "rule" not in kinds


def test_the_report_fails_one_test_as_it_should() -> None:
    command = [sys.executable, "-B", "-m", "unittest"]
    run = subprocess.run(command, cwd=DEMOS / "slow-report", capture_output=True, text=True)
    assert run.returncode == 1 and "FAILED (failures=1)" in run.stderr and "5250 != 8550" in run.stderr


def test_the_script_holds_no_fact_of_the_orders_or_the_logs() -> None:
    sources = [*sorted((ROOT / "offline_model").glob("*.py")), *SCRIPTS]
    own = "\n".join(path.read_text("utf-8") for path in sources)
    for path in (*(DEMOS / "orders").glob("day-*"), *(DEMOS / "slow-report").glob("log-*")):
        for word in re.findall(r"O-\d{4}|U-\d{3}|\b\d\d:\d\d\b|`[a-z]+-\d+`", path.read_text("utf-8")):
            assert word not in own, word
