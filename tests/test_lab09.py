"""Lab 09 over the real wire: the samples in both languages, decisions that stand, files, and what comes back."""

import asyncio
import functools
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness import by_hand
from harness import events as e
from harness.copies.fork import fork
from harness.request_diff import diff_requests, pieces_at
from harness.result_events import FOLDER, Decision
from harness.session import Session
from harness.thresholds import margin_threshold
from tests.harness_support import ROOT, assert_rebuilt, events, library, run, run_sample, running

LAB = ROOT / "labs/09-tool-result-budgets"
LANGUAGES = ["en", "zh"]
SAMPLES = 7
ANEW, WIDE = {"decide_anew": 1}, {"window": 12_000}


def decisions(session: Session) -> list[Decision]:
    return [each for event in events(session, e.ResultsDecided) for each in event.decisions]


def of(session: Session, verdict: str) -> list[Decision]:
    return [each for each in decisions(session) if each.verdict == verdict]


def answers(session: Session) -> list[str]:
    return [each.text for each in events(session, e.ModelCallEnded) if not each.calls]


def calls(session: Session, task: int) -> list[tuple[str, str]]:
    return [(each.name, each.arguments) for each in events(session, e.ToolEnded) if each.task == task]


def kept_files(session: Session) -> set[str]:
    folder = session.workspace.root / FOLDER
    return {f"{FOLDER}/{path.name}" for path in folder.iterdir()} if folder.is_dir() else set()


def uncached(session: Session) -> int:
    """Tokens of all turns that did not come from the cache, as the provider reports them."""
    ended = events(session, e.ModelCallEnded)
    return sum((each.usage.prompt or 0) - (each.usage.cached or 0) for each in ended)


@functools.cache
def played(data: Path, language: str, anew: int) -> Session:
    """Run all samples in one session; what is returned is for reading only."""

    async def scenario() -> Session:
        with running() as server:
            async with library(data, lab="09", server=server, settings={"decide_anew": anew}) as opened:
                session = await opened.create(language=language)
                for number in range(1, SAMPLES + 1):
                    await run_sample(session, number, language=language)
                assert_rebuilt(session, server.requests)
                return session

    return asyncio.run(scenario())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lab09")


def session_of(data: Path, language: str, anew: int = 0) -> Session:
    folder = data / f"{language}-{anew}"
    folder.mkdir(exist_ok=True)
    return played(folder, language, anew)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_large_result_lies_in_a_file_and_can_be_read_back(data: Path, language: str) -> None:
    session = session_of(data, language)
    (single,) = of(session, "single")
    assert (single.chars, single.file) == (3_670, ".tool-results/1-search.txt")
    whole = session.state.results[single.call_id].message.text
    assert (session.workspace.root / single.file).read_text("utf-8") == whole
    assert single.text.startswith(whole[:300] + "\n[") and "3,670" in single.text and single.file in single.text
    first, beyond, back = answers(session)[:3]
    assert "E-12" in first, "the preview has it"
    assert "E-31" not in beyond and "05:42" in beyond, "the preview does not"
    assert "05:42 ERROR pump-3 E-31" in back
    ((tool, arguments),) = calls(session, 3)
    assert tool == "read" and single.file in arguments
    read_back = next(each for each in decisions(session) if each.verdict == "kept" and each.file)
    assert read_back.chars > 1_500 and read_back.file == single.file, "over the limit, and whole all the same"


@pytest.mark.parametrize("language", LANGUAGES)
def test_of_three_results_the_largest_goes_first(data: Path, language: str) -> None:
    session = session_of(data, language)
    (together,) = of(session, "together")
    event = next(each for each in events(session, e.ResultsDecided) if together in each.decisions)
    lengths = {each.call_id: each.chars for each in event.decisions}
    assert len(lengths) == 3 and max(lengths.values()) == together.chars < 1_500 < sum(lengths.values())
    assert [each.verdict for each in event.decisions] == ["kept", "together", "kept"]
    assert event.freed_chars > 0 < event.freed_tokens
    assert "j-14" not in answers(session)[3] and "j-14" in session.state.results[together.call_id].message.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_old_results_go_in_batches_and_a_cut_falls_inside_the_task(data: Path, language: str) -> None:
    session = session_of(data, language)
    batches = [each for each in events(session, e.ResultsDecided) if any(d.verdict == "stale" for d in each.decisions)]
    assert batches and all(len([d for d in each.decisions if d.verdict == "stale"]) > 1 for each in batches)
    (cut,) = events(session, e.ContextCompacted)
    assert (cut.strategy, cut.trigger, cut.task, cut.budget) == ("budgets", "threshold", 5, 4_180)
    assert cut.pinned == (session.state.tasks[4].seq,)
    # English and Chinese meet the two in another order, as the texts say.
    order = [each.task for each in batches][0] <= cut.task
    assert order == (language == "en")
    reads = [arguments for _, arguments in calls(session, 5)]
    assert len(reads) == len(set(reads)) == 9, "nothing is read twice"
    assert session.state.tasks[4].ended == "answered"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_desk_stands_beside_the_summary(data: Path, language: str) -> None:
    session = session_of(data, language)
    (cut,) = events(session, e.ContextCompacted)
    word = {"en": "tangerine", "zh": "橘子"}[language]
    assert word in cut.beside and word not in cut.summary and word in answers(session)[5]
    assert re.search(r"^- search: Find lines in text files\.$", cut.beside, re.MULTILINE)
    assert "SKILL.md" in cut.beside.split("`")[1], "the skill comes first"
    wish = {"en": "Don't change any file.", "zh": "不要改动任何文件。"}[language]
    assert wish in cut.summary + cut.beside
    kept = set(cut.kept)
    in_tail = [
        call.arguments for entry in session.state.history if entry.seq in kept
        for call in getattr(entry.message, "calls", ())
    ]  # fmt: skip
    assert in_tail and not [each for each in in_tail if each.split('"')[3] in cut.beside]


@pytest.mark.parametrize("language", LANGUAGES)
def test_kept_decisions_let_the_prefix_grow_and_new_ones_break_it(data: Path, language: str) -> None:
    spent = {}
    breaks: dict[int, list[str]] = {}
    for anew in (0, 1):
        session = session_of(data, language, anew)
        state, spent[anew], breaks[anew] = session.state, uncached(session), []
        turns = [call for call in state.calls if call.purpose == "turn"]
        for before, after in zip(turns, turns[1:], strict=False):
            diff = diff_requests(pieces_at(state, before.seq), pieces_at(state, after.seq), after.call)
            between = [each for seq, each in numbered(session) if before.seq < seq < after.seq]
            changed = any(isinstance(each, e.ContextCompacted) for each in between) or any(
                decision.verdict == "stale"
                for each in between
                if isinstance(each, e.ResultsDecided)
                for decision in each.decisions
            )
            assert (diff.breaks_at is not None) == changed
            breaks[anew] += ["cut"] if diff.breaks_at else []
    assert len(breaks[1]) >= 3 * len(breaks[0])
    assert spent[1] > 1.3 * spent[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_text_s_figures_of_the_cache_are_what_comes_out(data: Path, language: str) -> None:
    """Every one of them: both sessions on one server, the second on a server of its own, both in a larger window."""

    async def scenario() -> list[int]:
        found = []
        for number, runs in enumerate(([{}, ANEW], [WIDE], [WIDE | ANEW])):
            with running() as server:
                for settings in runs:
                    folder = data / f"{language}-told-{number}-{len(found)}"
                    folder.mkdir()
                    async with library(folder, lab="09", server=server, settings=settings) as opened:
                        session = await opened.create(language=language)
                        for sample in range(1, SAMPLES + 1):
                            await run_sample(session, sample, language=language)
                        found.append(uncached(session))
        return found

    standing, anew, wide, wide_anew = asyncio.run(scenario())
    text = (LAB / ("README.zh.md" if language == "zh" else "README.md")).read_text("utf-8")
    steps = re.split(r"故意做错一次|goes wrong on purpose", text)[1].split("\n4. ")[0]
    told = [int(each.replace(",", "")) for each in re.findall(r"\d+,\d{3}", steps)]
    assert told == [standing, anew, uncached(session_of(data, language, 1)), wide, wide_anew]


def numbered(session: Session) -> list[tuple[int, e.Event]]:
    return [(recorded.seq, recorded.event) for recorded in session.records]


def test_a_restart_sends_the_same_bytes_and_goes_on_from_the_same_decisions(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="09", server=server) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
                await run_sample(session, 4)
                before, decided = session.state.request().body(), dict(session.state.decisions)
            async with library(tmp_path, lab="09", server=server) as opened:
                again = await opened.open(session.id)
                assert again.state.request().body() == before
                assert again.state.decisions == decided
                assert kept_files(again) == {each.file for each in decided.values() if each.file}
                await run_sample(again, 3)
                made = [each for each in decisions(again) if each.call_id in decided]
                assert len(made) == len(decided), "nothing was decided twice"
                assert "E-31" in answers(again)[-1]
                assert_rebuilt(again, server.requests)

    asyncio.run(scenario())


def test_a_fork_has_the_decisions_and_the_files_of_its_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="09", server=server) as opened:
                session = await opened.create(language="en")
                await run_sample(session, 1)
                before = session.state.request().body()
                await run_sample(session, 4)
                copy = await fork(opened, session, 1)
                assert copy.state.request().body() == before
                assert kept_files(copy) == {".tool-results/1-search.txt"} < kept_files(session)
                await run_sample(copy, 3)
                assert "E-31" in answers(copy)[-1]
                assert_rebuilt(copy, server.requests)

    asyncio.run(scenario())


def test_where_no_file_can_be_written_the_model_reads_the_whole(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="09", server=server) as opened:
                session = await opened.create(language="en")
                (session.workspace.root / FOLDER).write_text("in the way")
                await run_sample(session, 1)
                (kept,) = decisions(session)
                assert kept.verdict == "kept" and kept.detail.startswith(".tool-results/1-search.txt: ")
                assert not events(session, e.HookFailed)
                (session.workspace.root / FOLDER).unlink()
                await run_sample(session, 2)
                assert "E-31" in answers(session)[-1], "it is all there"
                assert decisions(session) == [kept], "and it stays so"

    asyncio.run(scenario())


CHILD = """
import asyncio, os, signal, sys, time
from pathlib import Path
from types import SimpleNamespace
from harness.agent import Agent
from tests.harness_support import library, run_sample

def killed(self, decisions, *, anew=False):
    time.sleep(0.5)  # the journal writes what came before
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    server = SimpleNamespace(address=sys.argv[2])
    async with library(Path(sys.argv[1]), lab="09", server=server) as opened:
        session = await opened.create(language="en")
        print(session.id, flush=True)
        Agent.decide = killed
        await run_sample(session, 1)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_kill_between_file_and_event_leaves_no_orphan(tmp_path: Path) -> None:
    with running() as server:
        command = [sys.executable, "-c", CHILD, str(tmp_path), server.address]
        child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert child.returncode == -signal.SIGKILL, child.stderr
        session_id = child.stdout.strip()
        folder = tmp_path / "sessions" / session_id / "workspace" / FOLDER
        assert [path.name for path in folder.iterdir()] == ["1-search.txt"], "the file came first"

        async def scenario() -> None:
            async with library(tmp_path, lab="09", server=server) as opened:
                session = await opened.open(session_id)
                assert kept_files(session) == set() and not events(session, e.ResultsDecided)
                assert session.state.tasks[0].ended == "interrupted"
                await run_sample(session, 2)
                named = {each.file for each in decisions(session) if each.file}
                assert kept_files(session) == named != set(), "what came before the kill is decided about now"

        asyncio.run(scenario())


def test_search_leaves_the_folder_out_unless_it_is_named(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with library(tmp_path, lab="09") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            tools = session.prepare()
            everywhere = await tools["search"].run({"pattern": "E-31"})
            assert ".tool-results/" not in everywhere.split("\n[")[0] and "logs/pump-3.log:45:" in everywhere
            assert "E-31" in await tools["search"].run({"pattern": "E-31", "path": ".tool-results/1-search.txt"})
            assert ".tool-results/" in (await tools["read"].run({"path": "."})).splitlines()

    asyncio.run(scenario())


def test_for_too_little_nobody_is_asked(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            settings = {"least_gain": 100_000, "window": 2_300}
            async with library(tmp_path, lab="09", server=server, settings=settings) as opened:
                session = await opened.create(language="en")
                for number in (1, 3):
                    await run_sample(session, number)
                (refused,) = events(session, e.CompactionRefused)
                assert (refused.reason, refused.failures, refused.task) == ("little_gain", 0, 2)
                assert not events(session, e.SummaryCallStarted)

    asyncio.run(scenario())


def test_by_hand_the_margin_is_smaller(tmp_path: Path) -> None:
    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="09", server=server) as opened:
                session = await opened.create(language="en")
                for number in (1, 3, 4):
                    await run_sample(session, number)
                assert session.strategy
                plan, job = by_hand.plan_by_hand(session.strategy, session.state, 1)
                assert (plan.budget, job.least) == (margin_threshold(6_000, 1_200, 200), 300)
                by_hand.compact_now(session, focus="", keep=1, cut=plan.cut, language="en")
                while session.status != "idle":
                    await asyncio.sleep(0.01)
                (cut,) = events(session, e.ContextCompacted)
                assert (cut.trigger, cut.budget) == ("by hand", 4_600) and cut.after.tokens < cut.before.tokens

    asyncio.run(scenario())


def test_a_summary_request_that_is_too_long_drops_its_oldest_rounds(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(4):
        # The request has a short preview of each; the summariser reads the results themselves.
        (source / f"{number}.md").write_text(
            "".join(f"- 0{number}:{n:02} Round {n} of {number}.\n" for n in range(60)) * 8
        )

    async def scenario() -> None:
        with running() as server:
            async with library(tmp_path, lab="09", server=server, settings={"window": 4_000}, source=source) as opened:
                session = await opened.create(language="en")
                for number in range(4):
                    await run(session, f"Read {number}.md")
                assert session.strategy
                plan, _ = by_hand.plan_by_hand(session.strategy, session.state, 1)
                by_hand.compact_now(session, focus="", keep=1, cut=plan.cut, language="en")
                while session.status != "idle":
                    await asyncio.sleep(0.01)
                first, *again = events(session, e.SummaryCallStarted)
                assert again and len(again) <= 3 and first.clipped < again[0].clipped
                assert "[… the oldest" in str(again[-1].messages) and "[… the oldest" not in str(first.messages)
                (cut,) = events(session, e.ContextCompacted)
                assert cut.calls == (again[-1].call,)

    asyncio.run(scenario())


def test_the_article_s_numbers_are_the_other_preset() -> None:
    lab = tomllib.loads((LAB / "lab.toml").read_text("utf-8"))
    small, article = (preset["settings"] for preset in lab["presets"])
    switches = {"keep_demands", "decide_anew"}
    assert small == {name: value for name, value in lab["settings"].items() if name not in switches}
    assert set(article) == set(small) and lab["settings"].keys() - small.keys() == switches
    assert list(article.values()) == [
        0, 50_000, 2_000, 200_000, 10, 2_000, 20_000, 20_000, 13_000, 3_000, 10_000, 5, 40_000, 2_000, 5, 5_000, 25_000,
    ]  # fmt: skip
    for language in ("README.md", "README.zh.md"):
        text = (LAB / language).read_text("utf-8")
        wanted = (*small.values(), *article.values(), margin_threshold(200_000, 20_000, 13_000), 4_180)
        for number in wanted:
            # By hand the text says no more than that it is smaller, and 0 is the model's own window.
            if number not in (0, small["margin"], small["margin_by_hand"], 3_000, small["summary_reserve"]):
                assert re.search(rf"(?<![\d,]){number:,}(?![\d,]*\d)", text), number


def test_the_extension_is_short() -> None:
    assert (LAB / "extension.py").read_text("utf-8").count("\n") < 120


def test_a_task_of_one_s_own_works_under_the_article_s_numbers(tmp_path: Path) -> None:
    async def scenario() -> None:
        lab = tomllib.loads((LAB / "lab.toml").read_text("utf-8"))
        with running() as server:
            settings = lab["presets"][1]["settings"]
            async with library(tmp_path, lab="09", server=server, settings=settings) as opened:
                session = await opened.create(language="en")
                await run(session, "Read README.md")
                assert {each.verdict for each in decisions(session)} == {"kept"}
                assert not events(session, e.ContextCompacted, e.HookFailed)

    asyncio.run(scenario())
