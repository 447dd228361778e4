"""The feed: every event has a row, live and reload look the same, and nothing untrusted comes through."""

import re
from typing import get_args

import pytest

from harness import events as e
from harness.messages import ToolCall
from harness.session_list import SessionPage
from harness.sizes import Usage
from tests.web_html import elements, figure, find
from tests.web_session import (
    FoldedSession,
    by_hand_session,
    checked_session,
    compacted_session,
    decided_session,
    first_task,
    handed_session,
    resumed_session,
    second_task,
    sourced_session,
    threshold_session,
    waiting_session,
)
from web.details import telling_line
from web.feed import render_feed
from web.pages import TEMPLATES, Pages
from web.rows import INVISIBLE
from web.screens import render_error, render_session
from web.session_lines import render_sessions
from web.updates import Update, render_partial, render_updates
from web.viewer import Viewer

PAGES = Pages.load()
VIEWER = Viewer(PAGES, form_token="token-1")
HOSTILE = '<script>alert(1)</script><b hx-get="/x" onclick=x>bold</b> [a](javascript:x) ![p](http://h.invalid/i)'


def ask(session: FoldedSession, event: e.Event) -> None:
    """Let the call of this event wait for a person, be it a sub-agent's, or none."""
    if isinstance(event, e.ChildEvent) and session.asking not in (0, event.child):
        return  # another one goes on beside it
    inner = event.event if isinstance(event, e.ChildEvent) else event
    session.waiting = inner if isinstance(inner, e.ApprovalRequested) else None
    session.asking = event.child if session.waiting and isinstance(event, e.ChildEvent) else 0


def squeezed(html: str) -> str:
    """A list without what lies between its elements, which is nothing to a reader."""
    return re.sub(r">\s+<", "><", html)


def rows(html: str) -> list[str]:
    """The ids of a list's own rows and its line; those that a sub-agent's list holds are no rows of it."""
    named = [(x.attributes.get("id", ""), "data-event" in x.attributes) for x in find(html)]
    return [name for name, row in named if (row or name == "cut-line") and not name.startswith("child-")]


def troubled_session() -> FoldedSession:
    session = FoldedSession().begin(budget=None)
    session.task("Run the tests")
    session.call_started()
    call = ToolCall("b1", "bash", '{"command":"pytest -q"}')
    session.call_ended("", call, reasoning="so", usage=Usage(), marks=("calls_in_text", "no_usage"))
    named = {"task": 1, "call_id": "b1", "name": "bash", "arguments": call.arguments}
    session.add(e.ApprovalRequested(preview="pytest -q", seconds=5, **named))
    session.add(e.ApprovalAnswered(allowed=False, by="timeout", **named))
    session.add(e.ToolEnded(text="Nobody answered.", ok=False, seconds=5.0, **named))
    session.call_started()
    session.add(e.ModelCallFailed(call=2, task=1, kind="rate_limit", detail="429", seconds=1.0))
    session.add(e.FollowUpAdded(task=1, extension="tests", text="Run them."))
    session.add(e.HookFailed(task=1, extension="tests", hook="on_stop", detail="ValueError('x')"))
    session.add(e.CompactionRefused(task=1, strategy="task boundary", reason="summary_headings", detail="Confirmed"))
    session.add(e.SettingChanged(name="step_limit", value=7))
    session.end("failed", "rate_limit")
    return session


SESSIONS = {
    "empty": lambda: FoldedSession().begin(),
    "compacted": compacted_session,
    "waiting": waiting_session,
    "troubled": troubled_session,
    "by hand": by_hand_session,
    "threshold": threshold_session,
    "decided": decided_session,
    "resumed": resumed_session,
    "checked": checked_session,
    "sourced": sourced_session,
    "handed on": handed_session,
}
END = "</ol>\n</details>\n</section>"


def parts(html: str) -> dict[str, str]:
    """The rows of a list with their HTML, by id."""
    kinds = "row-|model-call-|tool-call-|summary-call-|proposal-|check-|cut-line|earlier"
    found = re.split(rf'\n(?=<li id="(?:{kinds}))', html.partition(">")[2].rpartition("</ol>")[0].strip())
    return {re.findall('id="([^"]+)"', part)[0]: part for part in found}


class Page:
    """An open page: takes updates as the browser does."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    def take(self, update: Update) -> None:
        if update.target_id.startswith("child-"):
            self._inside(update)
        elif update.target_id == "feed" and update.mode == "append":
            [row] = rows(update.html)
            assert row not in self.rows, f"{row} was appended twice"
            self.rows[row] = update.html
        elif update.mode == "before":
            assert find(update.html)[0].attributes["id"] == "cut-line" not in self.rows
            place = list(self.rows).index(update.target_id)
            there = list(self.rows.items())
            self.rows = dict([*there[:place], ("cut-line", update.html), *there[place:]])
        elif update.mode == "remove":
            self.rows.pop(update.target_id, None)
        elif update.target_id in self.rows:
            assert update.mode == "replace" and rows(update.html) == [update.target_id]
            self.rows[update.target_id] = update.html
        elif update.target_id == "feed":
            self.rows = parts(update.html)
            assert list(self.rows) == rows(update.html)
        else:
            assert update.target_id in (
                "status",
                "composer-actions",
                "fault-chip",
                "drawer-session",
                "by-hand-place",
                "trust",
                "guide-notes",
            )

    def _inside(self, update: Update) -> None:
        """Change the row that holds what a sub-agent did."""
        row = next(
            name for name, html in self.rows.items() if f'id="{"-".join(update.target_id.split("-")[:2])}-' in html
        )
        html = self.rows[row]
        if update.mode == "append":
            end = start = html.rindex(END)
            assert f'<ol id="{update.target_id}"' in html
        elif (start := html.find(f' id="{update.target_id}"')) < 0:
            # Passed over, as in the browser: the rows of one that has ended are not there until somebody asks.
            return
        else:
            start = html.rindex("<", 0, start)
            ends = ("</div>",) if update.target_id.endswith("-head") else ('\n<li id="child-', "\n" + END)
            end = min(place for place in (html.find(each, start) for each in ends) if place > 0)
            end += len("</div>") if update.target_id.endswith("-head") else 0
        start = start if update.mode != "before" else html.rindex("<", 0, html.index(f' id="{update.target_id}"'))
        self.rows[row] = f"{html[:start]}{update.html}\n{html[end if update.mode != 'before' else start :]}"

    @property
    def html(self) -> str:
        return "\n".join(self.rows.values())


@pytest.mark.parametrize("kind", get_args(e.Event))
def test_every_event_class_has_a_template_or_is_invisible(kind: type) -> None:
    assert (TEMPLATES / "events" / f"{kind.__name__}.html").is_file() != (kind in INVISIBLE)


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.name)
def test_a_template_begins_by_naming_its_context(path: object) -> None:
    assert path.read_text("utf-8").startswith("{#")


def test_the_test_sessions_show_every_event_at_least_once() -> None:
    shown = {type(r.event).__name__ for make in SESSIONS.values() for r in make().records}
    assert set(e.EVENTS) - shown == set()


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("view", ["full", "model"])
@pytest.mark.parametrize("tab", ["now", "turns", "diff", "lost"])
@pytest.mark.parametrize("name", SESSIONS)
def test_a_page_is_well_formed_and_fit_for_a_strict_policy(name: str, tab: str, view: str, language: str) -> None:
    viewer = Viewer(PAGES, language=language, view=view, tab=tab, form_token="token-1", nonce="n")
    html = render_session(SESSIONS[name](), viewer, sandbox="none")
    found = elements(html)
    ids = [x.attributes["id"] for x in found if "id" in x.attributes]
    assert len(ids) == len(set(ids))
    assert not any(name == "style" or name.startswith("on") for x in found for name in x.attributes)
    assert not any(x.tag in ("style", "script") for x in found)
    posts = [x for x in found if x.tag == "form" and x.attributes["method"] == "post"]
    tokens = [x for x in found if x.attributes.get("name") == "token" and "form" in x.inside]
    assert posts and len(posts) == len(tokens) and {x.attributes["value"] for x in tokens} == {"token-1"}
    assert all(x.attributes["action"].startswith("/") for x in posts)
    assert all(a.startswith("#") and a[1:] in ids for x in found if (a := x.attributes.get("href", "#feed"))[0] == "#")


@pytest.mark.parametrize("name", SESSIONS)
def test_what_comes_live_is_what_a_reload_shows(name: str) -> None:
    whole, session, page = SESSIONS[name](), FoldedSession(), Page()
    for recorded in whole.records:
        session.status = "idle" if isinstance(recorded.event, e.TaskEnded) else "running"
        ask(session, recorded.event)
        session.proposed = recorded.event if isinstance(recorded.event, e.SummaryProposed) else None
        session.add(recorded.event)
        for update in render_updates(session, recorded, VIEWER):
            page.take(update)
        assert squeezed(page.html) == squeezed(render_feed(session, VIEWER)), recorded


@pytest.mark.parametrize("name", SESSIONS)
@pytest.mark.parametrize("ahead", [False, True])
def test_the_model_view_holds_the_same_rows_live_and_after_a_reload(name: str, ahead: bool) -> None:
    """`ahead`: the state is already at the end while the page still takes the events one by one."""
    whole, viewer, page = SESSIONS[name](), Viewer(PAGES, view="model"), Page()
    session = whole if ahead else FoldedSession()
    for recorded in list(whole.records):
        if not ahead:
            session.status = "idle" if isinstance(recorded.event, e.TaskEnded) else "running"
            ask(session, recorded.event)
            session.add(recorded.event)
        for update in render_updates(session, recorded, viewer):
            page.take(update)
    assert list(page.rows) == rows(render_feed(session, viewer))


@pytest.mark.parametrize("name", SESSIONS)
def test_a_page_that_comes_late_ends_with_the_same_rows(name: str) -> None:
    session, page = SESSIONS[name](), Page()
    for recorded in list(session.records):
        for update in render_updates(session, recorded, VIEWER):
            page.take(update)
    assert squeezed(page.html) == squeezed(render_feed(session, VIEWER))


def test_a_reply_cut_short_is_not_shown_as_going_on() -> None:
    session, page = FoldedSession().begin(), Page()
    session.task("Hello")
    session.call_started()
    session.end("interrupted")
    for recorded in session.records:
        for update in render_updates(session, recorded, VIEWER):
            page.take(update)
    assert "busy" not in page.html and page.html == render_feed(session, VIEWER)


def test_a_second_compaction_moves_the_line_and_dims_what_it_removes() -> None:
    session, page, model = FoldedSession().begin(), Page(), Viewer(PAGES, view="model")
    first_task(session)
    second_task(session)
    first_task(session)
    before = len(session.records)
    for update in [u for r in session.records for u in render_updates(session, r, VIEWER)]:
        page.take(update)
    second_task(session)
    for recorded in session.records[before:]:
        for update in render_updates(session, recorded, VIEWER):
            page.take(update)
    assert page.html == render_feed(session, VIEWER)
    [line] = find(page.html, id="cut-line")
    cut = session.state.compactions[-1].event.cut
    order = [x for x in find(page.html) if "data-event" in x.attributes or x.attributes.get("id") == "cut-line"]
    place = order.index(line)
    assert order[place + 1].attributes["data-seq"] == str(cut) and "Compaction 2" in line.text
    above = [x for x in order[:place] if " entry" in x.attributes["class"]]
    assert all("no longer in context" in x.text for x in above)
    removed = {x.attributes["data-seq"] for x in above}
    assert removed == {
        str(x.seq) for made in session.state.compactions for x in made.removed if x.category != "summary"
    }
    sent = [str(entry.seq) for entry in session.state.context.entries]
    shown = [row.attributes["data-seq"] for row in find(render_feed(session, model)) if "data-event" in row.attributes]
    assert [seq for seq in shown if seq in sent] == sent and not set(shown) & removed


def test_the_compaction_row_has_the_figures_of_its_event() -> None:
    session = compacted_session()
    event = session.state.compactions[-1].event
    html = render_feed(session, VIEWER)
    [row] = find(html, data_event="ContextCompacted")
    expected = {
        "cut.measured": event.measured, "cut.measured_after": 0, "cut.budget": 1500,
        "cut.before.chars": event.before.chars, "cut.after.chars": event.after.chars,
        "cut.removed": len(event.removed), "cut.kept": len(event.kept),
        "cut.prompt.reported": 1204, "cut.completion.reported": 188,
    }  # fmt: skip
    assert {name: figure(html, name) for name in expected} == {name: str(n) for name, n in expected.items()}
    assert event.summary in row.text and event.preface in row.text
    originals = [x.attributes["data-original"] for x in find(html) if "data-original" in x.attributes]
    assert originals == [str(seq) for seq in event.removed]
    for entry in session.state.compactions[-1].removed:
        assert str(entry.wire["content"]) in row.text


def test_untrusted_text_stays_text() -> None:
    session = FoldedSession().begin()
    session.task(HOSTILE)
    session.call_started()
    session.call_ended(HOSTILE, ToolCall('c"1 x', "bash", HOSTILE), reasoning=HOSTILE, marks=(HOSTILE,))
    session.tool(ToolCall('c"1 x', HOSTILE, f'{{"path":"{HOSTILE.replace(chr(34), "")}"}}'), HOSTILE)
    session.end("failed", HOSTILE)
    found = elements(render_feed(session, VIEWER))
    assert not {x.tag for x in found} & {"script", "img"} and not [
        x for x in found if x.tag == "b" and x.text == "bold"
    ]
    assert not any(name in ("onclick", "src", "hx-get") for x in found for name in x.attributes)
    assert not any(x.attributes.get("href", "").startswith("javascript") for x in found)
    [update] = render_updates(session, e.TextDelta(call=1, text=HOSTILE), VIEWER)
    assert update == Update("model-call-1-text", update.html, "append") and "<" not in update.html


def test_an_approval_can_be_answered_without_scripts_and_becomes_the_row_of_its_call() -> None:
    session = waiting_session()
    html = render_feed(session, VIEWER)
    [row] = find(html, id="tool-call-w1")
    assert row.attributes["data-event"] == "ApprovalRequested" and "-x = 1" in row.text and "+x = 2" in row.text
    answers = [x.attributes["value"] for x in find(html, name="answer")]
    assert answers == ["allow", "deny"] and "No answer means no" in row.text
    session.status, session.waiting = "idle", None
    assert not find(render_feed(session, VIEWER), name="answer")


def test_a_reply_that_streams_is_shown_again_after_a_reload() -> None:
    session = FoldedSession().begin()
    session.task("Hello")
    session.call_started()
    session.partial = (1, "Half <a", "hm")
    [update] = render_partial(session, VIEWER)
    assert (
        update.target_id == "model-call-1" and update.mode == "replace" and update.html in render_feed(session, VIEWER)
    )
    assert find(update.html, id="model-call-1-text")[0].text == "Half <a"
    assert find(update.html, id="model-call-1-reasoning")[0].text == "hm"


def test_unknown_codes_are_shown_as_they_are() -> None:
    session = FoldedSession().begin()
    session.task("Hello")
    session.call_started()
    session.add(e.ModelCallFailed(call=1, task=1, kind="moon_phase", detail="", seconds=1.0))
    assert "moon_phase" in find(render_feed(session, VIEWER), id="model-call-1")[0].text


def test_the_other_pages_are_well_formed() -> None:
    assert elements(render_sessions(SessionPage((), "", 0, 0, 1, 1), {}, VIEWER))
    assert elements(render_error("failure", VIEWER))


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ("", ""),
        ("one", "one"),
        ("one\ntwo", "one …"),
        ("..F\n[Exit code 1]\n", "[Exit code 1]"),
        ("x" * 161, "x" * 160 + " …"),
    ],
)
def test_a_folded_call_shows_the_line_that_says_most(result: str, line: str) -> None:
    assert telling_line(result) == line
