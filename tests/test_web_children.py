"""Sub-agents on the page: bounded, by ids of their own, without what only a session can do, and counted apart."""

import re
from dataclasses import replace

import pytest

from harness import events as e
from harness.messages import ToolCall
from harness.sizes import Usage
from tests.web_html import elements, figure, find
from tests.web_session import ChildSession, FoldedSession, hand_on, handed_session
from web.changes import own_page
from web.child_pages import render_child
from web.child_view import ROWS, child_number, children_view
from web.feed import render_feed, render_inside
from web.pages import Pages
from web.screens import render_session
from web.status import status_line
from web.updates import render_updates
from web.viewer import Viewer

VIEWER = Viewer(Pages.load(), form_token="token-1")


def long_session(turns: int) -> FoldedSession:
    """A sub-agent that has read a file in each of its turns, and works on."""
    session = FoldedSession().begin()
    session.task("Look")
    session.call_started()
    call = ToolCall("t1", "task", "{}")
    session.call_ended("", call)
    child = hand_on(session, call, "explorer", "look")
    for number in range(turns):
        child.call_started()
        read = ToolCall(f"r{number}", "read", f'{{"path":"file-{number}.md"}}')
        child.call_ended("", read)
        child.tool(read, f"text {number}")
    child.call_started()
    session.status = "running"
    return session


def test_what_a_sub_agent_did_is_in_no_model_view_and_its_answer_is() -> None:
    html = render_feed(handed_session(), replace(VIEWER, view="model"))
    assert 'id="child-1-head"' in html and 'id="child-3-head"' in html
    assert "-feed" not in html and "child-1-row" not in html and "503, pool" not in html
    assert "pool 100/100" in html, "the answer, which the model reads"


def test_a_long_one_shows_its_newest_rows_and_leads_to_a_page_with_all_of_them() -> None:
    session = long_session(60)
    html = render_feed(session, VIEWER)
    nested = re.findall(r'<li id="child-1-[\w-]+" class="row', html)
    assert ROWS <= len(nested) < ROWS + 3
    assert f'<a class="button" href="/s/{session.id}/children/1?">' in html
    child = child_number(session, 1)
    assert child
    viewer = replace(VIEWER, child=1, at=session.committed)
    rows, before, seen = render_child(child, viewer), None, set()
    for _ in range(5):
        seen |= set(re.findall(r"file-(\d+)\.md", rows))
        link = re.search(r'id="earlier-link"[^>]*href="[^"]*before=(\d+)', rows)
        if not link:
            break
        before = int(link[1])
        rows = render_child(child, viewer, before)
    assert seen == {str(number) for number in range(60)}


def test_the_rows_of_one_that_has_ended_come_when_they_are_asked_for() -> None:
    session = handed_session()
    html = render_feed(session, VIEWER)
    assert not re.search(r'id="child-[12]-(row|model|tool)', html) and 'id="child-3-model-call-1"' in html
    for number in (1, 2):
        [fold] = [x for x in find(html) if x.attributes.get("hx-get") == f"/s/s1/children/{number}/rows?"]
        assert fold.tag == "details" and fold.attributes["hx-target"] == f"#child-{number}-feed"
        child = child_number(session, number)
        assert child and f'id="child-{number}-model-call-1"' in render_inside(child, VIEWER)
    assert f'<a class="button" href="/s/{session.id}/children/1?">' in html, "without a script its page has them"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_while_it_works_it_is_folded_and_its_head_says_what_it_does_unless_it_asks(language: str) -> None:
    session, viewer = long_session(2), replace(VIEWER, language=language)
    html = render_feed(session, viewer)
    [fold] = find(html, class_="fold inside")
    assert "open" not in fold.attributes and "file-1.md" in fold.text and "look" in fold.text
    head = find(html, id="child-1-head")[0].text
    assert viewer.words.t("status.model", call=3) in head and "explorer" in head
    [given] = find(html, class_="plain given")
    assert "details" in given.inside, "what it was told is folded too"
    call = ToolCall("b1", "bash", '{"command":"ls"}')
    child = ChildSession(whole=session, number=1, state=session.state.children[1].state)
    child.call_ended("", call)
    named = {"task": 1, "call_id": "b1", "name": "bash", "arguments": call.arguments}
    asked = child.add(e.ApprovalRequested(preview="ls", seconds=5, **named))
    session.status, session.asking, session.waiting = "waiting", 1, asked.event
    [update] = [x for x in render_updates(session, session.records[-1], viewer) if x.target_id == "tool-call-t1"]
    for each in (render_feed(session, viewer), update.html):
        [fold] = find(each, class_="fold inside")
        assert "open" in fold.attributes and find(each, action="/s/s1/children/1/approvals")
    session.status, session.asking, session.waiting = "running", 0, None
    child.add(e.ApprovalAnswered(allowed=True, by="person", **named))
    [update] = [x for x in render_updates(session, session.records[-1], viewer) if x.target_id == "tool-call-t1"]
    assert "open" not in find(update.html, class_="fold inside")[0].attributes


def test_a_page_of_very_many_stays_small() -> None:
    session = FoldedSession().begin()
    session.task("Look")
    session.call_started()
    calls = [ToolCall(f"t{n}", "task", "{}") for n in range(100)]
    session.call_ended("", *calls)
    for call in calls:
        child = hand_on(session, call, "explorer", "look")
        for number in range(20):
            child.call_started()
            read = ToolCall(f"r{number}", "read", "{}")
            child.call_ended("", read)
            child.tool(read, "y" * 2_000)
        child.call_started()
        child.call_ended("done")
        child.end()
        ended = {"task": 1, "call_id": call.id, "name": "task", "arguments": "{}"}
        session.add(e.ToolEnded(text="done", ok=True, seconds=0.2, **ended))
    assert len(render_feed(session, VIEWER)) < 500_000


@pytest.mark.parametrize("view", ["full", "model"])
@pytest.mark.parametrize("tab", ["now", "turns", "diff", "lost"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_its_page_is_well_formed_and_changes_nothing(language: str, tab: str, view: str) -> None:
    session = handed_session()
    for number in (1, 2, 3):
        child = child_number(session, number)
        assert child
        viewer = replace(VIEWER, language=language, tab=tab, view=view, child=number, at=session.committed)
        found = elements(render_child(child, viewer))
        ids = [x.attributes["id"] for x in found if "id" in x.attributes]
        assert len(ids) == len(set(ids))
        posts = {x.attributes["action"] for x in found if x.tag == "form" and x.attributes["method"] == "post"}
        assert posts == {"/preferences"}
        back = next(x.attributes["value"] for x in found if x.attributes.get("name") == "back")
        assert own_page(back) == back
        anchors = [x.attributes["href"] for x in found if x.attributes.get("href", "").startswith("#")]
        assert all(a[1:] in ids for a in anchors)


def test_only_a_session_can_be_forked_or_have_a_compaction_undone() -> None:
    html = render_feed(handed_session(), VIEWER)
    assert len(find(html, action="/s/s1/forks")) == 1, "before the first task"
    assert not find(html, action="/s/s1/undo") and not find(html, action="/s/s1/children/1/undo")


def test_a_call_with_the_id_of_another_s_waits_in_one_row_only() -> None:
    session = handed_session()
    # A model may give the same id to a call of its own and one of a sub-agent's.
    session.status, session.asking = "waiting", 2
    session.waiting = next(
        x.event.event for x in session.records
        if isinstance(x.event, e.ChildEvent) and isinstance(x.event.event, e.ApprovalRequested)
    )  # fmt: skip
    html = render_feed(session, VIEWER)
    assert not find(html, action="/s/s1/approvals"), "the agent's own call does not wait"
    assert status_line(session, VIEWER) == "Sub-agent 2: bash waits for your answer: allow or deny."
    assert "子 Agent 2：bash" in status_line(session, replace(VIEWER, language="zh"))


def test_the_panel_counts_apart_and_adds() -> None:
    session = handed_session()
    view = children_view(session.state)
    assert view and view.count == 3
    html = render_session(session, VIEWER, sandbox="none")
    for name, calls in {"own": 2, "inside": 3 + 2 + 1, "all": 8}.items():
        assert figure(html, f"spent.{name}.calls") == str(calls)
    assert view.all.requests == view.own.requests + view.inside.requests
    assert view.all.largest == max((view.own.largest, view.inside.largest), key=lambda size: size.chars)
    assert not children_view(FoldedSession().begin().state)


@pytest.mark.parametrize(("unit", "suffix"), [("characters", "chars"), ("estimated", "tokens.estimated")])
def test_the_largest_request_and_all_of_them_are_told_in_the_same_unit(unit: str, suffix: str) -> None:
    session = handed_session()
    html = render_session(session, replace(VIEWER, unit=unit), sandbox="none")
    for name in ("own", "inside", "all"):
        spent = getattr(children_view(session.state), name)
        for told, size in ((f"spent.{name}.largest", spent.largest), (f"spent.{name}", spent.requests)):
            assert figure(html, f"{told}.{suffix}") == str(size.chars if unit == "characters" else size.tokens)
    table = html.partition('id="children"')[2].partition("</table>")[0]
    assert table.count('<th scope="col">') == 4 and "spent.own.tokens.reported" not in table


@pytest.mark.parametrize("tab", ["now", "turns", "diff"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_one_that_has_ended_speaks_of_its_end_and_one_that_works_of_what_comes_next(language: str, tab: str) -> None:
    session = handed_session()
    later = {"en": r"[Nn]ext request|as it would go out|next one would|as it is now", "zh": "下一次请求|现在的样子"}
    ends = {"en": "at the end", "zh": "结束时"}
    for number in (1, 3):
        child = child_number(session, number)
        assert child and child.ended is (number == 1)
        viewer = replace(VIEWER, language=language, tab=tab, child=number, at=session.committed)
        # Its rows say what held then.
        html = render_child(child, viewer).partition('class="dock')[2]
        assert bool(re.search(later[language], html)) is (number == 3)
        assert (ends[language] in html.partition('id="panel"')[2]) is (number == 1)


def test_what_is_no_answer_is_not_called_one() -> None:
    html = render_feed(handed_session(), VIEWER)
    first, second = (html.partition(f'id="child-{number}-head"')[2].partition("</section>")[0] for number in (1, 2))
    assert "Its answer" in first and "no answer" not in first
    assert "It gave no answer" in second and "Its answer" not in second


def test_what_no_provider_reported_is_not_added_to_what_one_did() -> None:
    session = long_session(1)
    state = session.state.children[1].state
    assert (state.spent.calls, state.spent.reported) == (2, 1)
    html = render_session(session, replace(VIEWER, unit="reported"), sandbox="none")
    assert re.search(r'data-figure="spent.inside.tokens.reported"[^<]*</b> <small>for 1 of 2 calls', html)
    assert "（2 次调用中的 1 次）" in render_session(
        session, replace(VIEWER, unit="reported", language="zh"), sandbox="none"
    )
    session = FoldedSession().begin()
    session.task("Look")
    session.call_started()
    session.call_ended("Done.", usage=Usage())
    assert session.state.spent.reported == 0 and session.state.spent.prompt == 0


def test_while_they_work_the_status_says_so() -> None:
    assert status_line(long_session(1), VIEWER) == "Sub-agents are working."


def test_untrusted_words_of_a_sub_agent_stay_words() -> None:
    hostile = "<script>alert(1)</script><img src=x onerror=y>"
    session = long_session(0)
    child = session.state.children[1]
    session.state.children[1] = session.state.child_of["t1"] = replace(child, event=replace(child.event, role=hostile))
    html = render_feed(session, VIEWER)
    assert hostile not in html and "&lt;script&gt;" in html
    assert not [x for x in elements(html) if x.tag in ("script", "img")]
