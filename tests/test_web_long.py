"""Long sessions: a page and an event cost the same however much lies before, and nothing is missing or doubled."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness import events as e
from harness.messages import ToolCall
from tests.test_web_feed import Page, rows
from tests.web_html import find
from tests.web_session import FoldedSession, first_task, lab, second_task
from web.feed import render_earlier, render_feed
from web.lab_text import LabTexts
from web.pages import Pages
from web.parts import PAGE
from web.screens import Asked, render_session
from web.updates import render_panel_updates, render_updates
from web.viewer import Viewer

VIEWER = Viewer(Pages.load(), form_token="token-1")
MODEL = replace(VIEWER, view="model")


def long_session(turns: int) -> FoldedSession:
    """One task with many turns, each with a tool call."""
    session = FoldedSession().begin()
    session.task("Read it all")
    for number in range(turns):
        session.call_started()
        call = ToolCall(f"r{number}", "read", '{"path":"a.md"}')
        session.call_ended("", call)
        session.tool(call, "line\n" * 3)
    session.call_started()
    session.call_ended("Done.")
    session.measure("none")
    session.end()
    return session


def shown(html: str) -> list[str]:
    return [name for name in rows(html) if name != "cut-line"]


def before(html: str) -> int | None:
    found = re.search(r"[?&;]before=(\d+)", str(html))
    return int(found[1]) if found else None


def test_a_compaction_touches_no_row_that_it_removes() -> None:
    session = long_session(300)
    compacted = second_task(session)
    updates = render_updates(session, compacted, VIEWER)
    assert len(updates) == 5 and sum(len(update.html) for update in updates) < 100_000
    assert len([x for x in find(updates[0].html) if "data-original" in x.attributes]) == 100
    assert "602 messages, whole" in updates[0].html and "The newest 100 are repeated here" in updates[0].html
    assert [(x.target_id, x.mode) for x in updates[:3]] == [
        ("feed", "append"), ("cut-line", "remove"), (f"row-{compacted.event.cut}", "before"),
    ]  # fmt: skip


def test_the_model_view_renders_no_more_than_a_page_at_a_compaction() -> None:
    session = long_session(300)
    compacted = second_task(session)
    whole, *_ = render_updates(session, compacted, MODEL)
    assert whole.target_id == "feed" and len(shown(whole.html)) < 10


@pytest.mark.parametrize("viewer", [VIEWER, MODEL], ids=["full", "model"])
def test_the_newest_rows_are_shown_and_the_links_lead_through_all_the_others_once(viewer: Viewer) -> None:
    session = long_session(300)
    html = render_session(session, viewer, sandbox="none")
    assert PAGE <= len(shown(html)) < PAGE + 5
    parts, number = [shown(html)], before(html)
    assert find(html, id="earlier-link")[0].attributes["href"].endswith(f"before={number}")
    while number:
        part = render_earlier(session, viewer, number)
        page = render_session(session, viewer, Asked(before=number), sandbox="none")
        assert shown(page) == shown(part) and len(shown(part)) < PAGE + 5
        parts.append(shown(part))
        number = before(part)
    if viewer.view == "model":  # what the model reads first stands above everything
        assert parts[0].pop(0) == "row-3"
        parts.append(["row-3"])
    everything = [name for part in reversed(parts) for name in part]
    assert len(everything) == len(set(everything)) > 600
    page = Page()
    for recorded in session.records:
        for update in render_updates(session, recorded, viewer):
            page.take(update)
    assert list(page.rows) == everything, "in the order in which they came"


def test_a_short_session_has_no_link_and_a_part_of_it_is_a_page_without_scripts() -> None:
    session = FoldedSession().begin()
    first_task(session)
    assert not find(render_session(session, VIEWER, sandbox="none"), id="earlier")
    page = render_session(session, replace(VIEWER, scripts=("x",)), Asked(before=6), sandbox="none")
    assert "<script" not in page and shown(page) == ["row-2", "row-3", "row-4", "model-call-1"]


def test_a_page_of_older_rows_knows_what_was_cut_later() -> None:
    session = FoldedSession().begin()
    for _ in range(2):
        first_task(session)
        second_task(session)
    first, second = (made.seq for made in session.state.compactions)
    cut = session.state.compactions[-1].event.cut

    def marks(number: int, viewer: Viewer = VIEWER) -> set[str]:
        [feed] = find(render_session(session, viewer, Asked(before=number), sandbox="none"), id="feed")
        return set(feed.attributes["class"].split()) - {"feed", "past-task"}

    assert marks(first + 1) == marks(cut) == {"past-cut", "replaced"}
    assert marks(cut + 1) == {"replaced"} and marks(second + 1) == set()
    assert marks(cut, MODEL) == set()


@pytest.mark.parametrize("between", [3, 25, 400])
def test_a_row_is_found_again_however_much_came_between(between: int) -> None:
    session, page = FoldedSession().begin(), Page()
    session.task("Run it")
    session.call_started()
    call = ToolCall("b1", "bash", '{"command":"true"}')
    session.call_ended("", call)
    named = {"task": 1, "call_id": "b1", "name": "bash", "arguments": call.arguments}
    session.add(e.ApprovalRequested(preview="true", seconds=300, **named))
    for number in range(between):
        session.add(e.SettingChanged(name="budget", value=number))
    session.add(e.ApprovalAnswered(allowed=True, by="person", **named))
    session.add(e.ToolStarted(**named))
    session.add(e.ToolEnded(text="ok", ok=True, seconds=1.0, **named))
    session.end()
    for recorded in session.records:
        for update in render_updates(session, recorded, VIEWER):
            page.take(update)
    assert list(page.rows).count("tool-call-b1") == 1 and "allowed by you" in page.rows["tool-call-b1"]


def test_a_call_that_the_model_named_like_a_row_keeps_its_own_row() -> None:
    session = FoldedSession().begin()
    session.task("Read")
    for number in range(3):
        session.call_started()
        call = ToolCall(["row-3", "3", "model-call-1"][number], "read", "{}")
        session.call_ended("", call)
        session.tool(call, "text")
    session.end()
    names = rows(render_feed(session, VIEWER))
    assert len(names) == len(set(names))
    assert {"tool-call-row-3", "tool-call-3", "model-call-3", "row-3"} <= set(names)


def test_the_labs_text_is_read_once_and_never_for_an_update(tmp_path: Path) -> None:
    readme, texts = tmp_path / "README.md", LabTexts()
    readme.write_text("# Title\n\nFirst.\n", "utf-8")
    read = texts.of(lab(tmp_path), VIEWER.words)
    assert read.sections[0].body == "First." and texts.of(lab(tmp_path), VIEWER.words) is read
    readme.write_bytes(b"\xff")
    session = FoldedSession(lab=lab(tmp_path)).begin()
    updates = render_panel_updates(session, replace(VIEWER, pages=Pages.load()))
    places = ["meter", "panel", "budget", "stepper", "guide-samples", "guide-ticks"]
    assert [update.target_id for update in updates] == places
    with pytest.raises(UnicodeDecodeError):
        render_session(session, replace(VIEWER, pages=Pages.load()), sandbox="none")
