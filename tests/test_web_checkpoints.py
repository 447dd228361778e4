"""The rows of checkpoints, of the end of a task, of the cut behind a stage, and the line of the status."""

import re
from dataclasses import replace

import pytest

from harness import checkpoints
from harness import events as e
from harness.session_events import SessionImported
from harness.stages import TRIGGER
from tests.web_html import elements
from tests.web_session import FoldedSession, decided_session, read_turn
from web.feed import render_feed
from web.pages import Pages
from web.status import status_line
from web.viewer import Viewer

VIEWERS = {each: Viewer(Pages.load(), form_token="token-1", language=each) for each in ("en", "zh")}


def long_task(turns: int, *, workspace: int = 1) -> FoldedSession:
    """A task with a checkpoint behind each of its turns."""
    session = FoldedSession().begin()
    session.task("Thirty steps")
    for number in range(turns):
        read_turn(session, number)
        saved = checkpoints.made(session.state, rounds=6, workspace=workspace)
        session.add(replace(saved, turn=number + 1))
    return session


def interrupted(session: FoldedSession) -> FoldedSession:
    session.add(e.TaskEnded(task=1, reason="interrupted", seconds=0.0))
    return session


def texts(session: FoldedSession, event: str, language: str = "en") -> list[str]:
    html = render_feed(session, VIEWERS[language])
    found = (each for each in elements(str(html)) if each.attributes.get("data-event") == event)
    return [" ".join(each.text.split()) for each in found]


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "Checkpoint 7, after turn 7: 7 rounds word for word, files as at checkpoint 1"),
        ("zh", "检查点 7（第 7 回合之后）：7 轮原样保留，文件与检查点 1 相同"),
    ],
)
def test_a_checkpoint_counts_the_rounds_that_stand_in_the_context(language: str, words: str) -> None:
    assert texts(long_task(7), "CheckpointSaved", language)[-1].startswith(words)


def test_after_a_cut_only_what_it_kept_is_counted() -> None:
    session = long_task(7)
    session.cut(2, "## Goal\n- steps")
    read_turn(session, 8)
    session.add(checkpoints.made(session.state, rounds=6, workspace=0))
    *_, seventh, eighth = texts(session, "CheckpointSaved")
    assert "7 rounds" in seventh, "what was saved then is not changed by a later cut"
    there = sum(entry.category == "assistant" for entry in session.state.context.entries)
    assert f"{there} rounds word for word, the files could not be kept" in eighth and 0 < there < 7


@pytest.mark.parametrize(
    ("workspace", "words"),
    [
        (1, "Go on from its last checkpoint above, or send it again."),
        (0, "What was done until then stays in the conversation. Send it again."),
    ],
)
def test_an_interrupted_task_names_its_checkpoint_where_it_can_go_on_from_one(workspace: int, words: str) -> None:
    assert words in texts(interrupted(long_task(2, workspace=workspace)), "TaskEnded")[-1]


def test_an_imported_session_offers_no_checkpoint_whose_files_did_not_come() -> None:
    session = long_task(2)
    assert 'action="/s/' in str(render_feed(session, VIEWERS["en"])) and "/resume" in str(
        render_feed(session, VIEWERS["en"])
    )
    session.add(SessionImported(file="log.jsonl"))
    interrupted(session)
    assert "/resume" not in str(render_feed(session, VIEWERS["en"]))
    assert all("the files did not come with the session" in each for each in texts(session, "CheckpointSaved"))
    assert "Send it again." in texts(session, "TaskEnded")[-1]
    read_turn(session, 3)


def test_the_line_of_a_cut_behind_a_stage_says_so() -> None:
    session = long_task(3)
    session.cut(1, "## Goal\n- steps")
    made = session.state.compactions[-1]
    for trigger, words in (("threshold", "was estimated at"), (TRIGGER, "Compaction 1: a stage had ended")):
        event = replace(made.event, trigger=trigger)
        session.state.compactions[-1] = replace(made, event=event)
        html = str(render_feed(session, VIEWERS["en"]))
        line = next(each for each in elements(html) if each.attributes.get("id") == "cut-line")
        assert words in line.text


@pytest.mark.parametrize(
    ("by", "at_once", "words"),
    [
        ("person", True, "all tasks so far, with their answers, give way to one summary at once"),
        ("person", False, "Before the next call, what the model has read up to here gives way"),
        ("agent", False, "If that is less than 300 tokens, nothing is summarised."),
    ],
)
def test_the_row_of_a_stage_says_what_gives_way_and_when(by: str, at_once: bool, words: str) -> None:
    session = long_task(3)
    session.add(e.StageEnded(task=1, name="reading", by=by, at_once=at_once))
    assert words in texts(session, "StageEnded")[-1]


@pytest.mark.parametrize(("running", "words"), [(True, "in task 1, because a stage"), (False, "after task 1, because")])
def test_the_card_of_a_stage_says_whether_a_task_ran(running: bool, words: str) -> None:
    session = long_task(3)
    if not running:
        session.end()
    session.cut(0, trigger=TRIGGER)
    assert words in texts(session, "ContextCompacted")[-1]


def test_the_sizes_of_a_decided_result_say_what_they_measure() -> None:
    row = texts(decided_session(), "ResultsDecided")[0]
    assert re.search(r"In the requests, as JSON, that frees [\d,]+ characters", row)
    assert re.search(r"its text: [\d,]+ → [\d,]+ characters", row)


@pytest.mark.parametrize("reason", ["answered", "interrupted"])
def test_the_status_tells_of_a_cut_only_while_it_is_news(reason: str) -> None:
    session, viewer = FoldedSession().begin(), VIEWERS["en"]
    session.task("Read.")
    for number in (1, 2, 3):
        read_turn(session, number, "E-217")
    session.cut(1)
    session.end(reason)
    assert "Context compacted" in status_line(session, viewer), "the last thing that was done"
    session.task("Read on.")
    for number in (4, 5, 6):
        read_turn(session, number, "E-218")
    session.cut(1)
    read_turn(session, 7, "E-219")
    session.end(reason)
    line = status_line(session, viewer)
    assert "Task 2" in line and "Context compacted" not in line
