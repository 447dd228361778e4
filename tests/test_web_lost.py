"""The tab "What was lost": its counts, its rows, its links, and that it stays small however much was cut."""

import asyncio
import re
from dataclasses import replace

import pytest

from harness import events as e
from harness.lost import trace
from harness.messages import ToolCall
from harness.sizes import Size
from tests.web_html import Element, figure, find
from tests.web_session import SUMMARY, FoldedSession, compacted_session, first_task, second_task
from web import lost
from web.lost import FEW, PART, lost_view
from web.pages import Pages
from web.reading import Reading
from web.screens import Asked, render_session
from web.updates import render_panel_updates
from web.viewer import Viewer

VIEWER = Viewer(Pages.load(), tab="lost", form_token="token-1")
NUMBERS = replace(VIEWER, facts="number")
FIGURES = {
    "tail": "lost.kept_tail", "summary": "lost.in_summary", "beside": "lost.beside", "again": "lost.again",
    "changed": "lost.changed", "lost": "lost.lost",
}  # fmt: skip


def panel(session: FoldedSession, viewer: Viewer = VIEWER) -> str:
    """The panel as it is sent to an open page."""
    return next(str(update.html) for update in render_panel_updates(session, viewer) if update.target_id == "panel")


def facts(html: str) -> list[Element]:
    return [element for element in find(html) if "data-fact" in element.attributes]


def fate_of(html: str, text: str) -> str:
    """The fate of the fact whose row has this text."""
    return next(row.attributes["data-fate"] for row in facts(html) if row.text.strip().split("\n")[0].strip() == text)


def telling(text: str, *, summary: str = SUMMARY, session: FoldedSession | None = None) -> FoldedSession:
    """A session whose tool result `text` was cut, with `summary` in its place."""
    session = session or FoldedSession().begin()
    session.task("Read it. Never touch /etc/hosts.")
    session.call_started()
    call = ToolCall(f"c{len(session.records)}", "bash", '{"command":"gatectl list --all"}')
    session.call_ended("", call)
    session.tool(call, text)
    session.call_started()
    session.call_ended("Read.")
    session.end()
    session.task("Go on")
    session.call_started()
    session.call_ended("On it goes.")
    session.compact(summary)
    session.end()
    return session


@pytest.mark.parametrize("language", ["en", "zh"])
def test_before_a_compaction_it_says_that_nothing_was_cut(language: str) -> None:
    session = FoldedSession().begin()
    first_task(session)
    viewer = replace(VIEWER, language=language)
    html = panel(session, viewer)
    assert str(viewer.words.t("lost.none")) in html and not facts(html)
    assert lost_view(session, viewer) is None


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_counts_are_those_of_the_trace_and_the_user_comes_first(language: str) -> None:
    session = compacted_session()
    html = panel(session, replace(VIEWER, language=language))
    made = session.state.compactions[0]
    traced = trace(made.removed, session.state.context.entries, made.seq)
    for fate, name in FIGURES.items():
        assert int(figure(html, name)) == sum(1 for each in traced if each.fate == fate)
    first = facts(html)[0]
    assert (first.attributes["data-fact"], first.attributes["data-fate"]) == ("constraint", "summary")
    assert "Don't change any file." in first.text
    assert fate_of(html, "incident-log.md") == "lost"
    assert fate_of(panel(session, NUMBERS), "08:03") == "summary"
    numbers = [lost.FATES.index(row.attributes["data-fate"]) for row in facts(panel(session, NUMBERS))]
    assert numbers == sorted(numbers) and len(set(numbers)) > 1, "what is lost comes first"


def test_each_fate_is_a_word_and_a_sign_and_says_where_it_stands() -> None:
    told = "E-217 at gate_log\nthe retry limit is 15 %\nport 8443"
    session = telling(told, summary="- gate_log\n- the retry limit is 20 %")
    session.task("What about port 8443?")
    html = panel(session)
    words = {"E-217": "✕ lost", "gate_log": "Σ in the summary", "15 %": "⇄ changed", "8443": "↺ came back later"}
    for text, word in words.items():
        row = next(row for row in facts(html) if row.text.strip().startswith(text))
        assert word in row.text
    assert "now: 20 %" in " ".join(next(row for row in facts(html) if row.text.strip().startswith("15 %")).text.split())
    made = session.state.compactions[0]
    places = re.findall(r'<a href="(#[^"]+)">(?:in the summary|changed|came back later)</a>', html)
    assert set(places) == {f"#row-{made.seq}", f"#row-{session.state.tasks[2].seq}"}


def test_what_a_tool_said_is_text_that_no_script_reads() -> None:
    session = telling("`<img/src=x.py>` `a_b hx-get='/x'` https://a.example/<script>alert(1)</script>")
    html = panel(session)
    assert "<img" not in html and "<script" not in html and "hx-get" not in html
    for text in find(html, class_="fact-text"):
        assert "hx-ignore" in text.attributes and text.attributes["lang"] in ("en", "zh-CN")


def test_the_arguments_of_a_call_are_facts_of_the_assistant() -> None:
    html = panel(telling("ok"))
    row = next(row for row in facts(html) if row.attributes["data-fact"] == "command")
    assert "gatectl list --all" in row.text and "Task 1 · Assistant" in row.text


def test_a_long_fact_is_shortened() -> None:
    html = panel(telling("$ echo " + "a" * 5000))
    row = next(row for row in facts(html) if "echo" in row.text)
    assert len(row.text) < 500 and "[…]" in row.text


def numbered(count: int, session: FoldedSession | None = None) -> FoldedSession:
    return telling(" ".join(f"lane_{number}" for number in range(count)), session=session)


def test_of_each_kind_a_few_are_shown_and_the_links_lead_through_all_the_others_once() -> None:
    session = numbered(PART + 50)
    html = panel(session)
    shown = [row for row in facts(html) if row.attributes["data-fact"] == "identifier"]
    assert len(shown) == FEW and len(html) < 100_000
    assert figure(html, "lost.lost") == str(PART + 50 + 3), "what is not shown is counted"
    assert "facts=identifier" in html and "facts=path" not in html
    seen: list[str] = []
    for part in (1, 2):
        viewer = VIEWER.asked({"tab": "lost", "facts": "identifier", "part": str(part)})
        rows = facts(panel(session, viewer))
        assert {row.attributes["data-fact"] for row in rows} == {"identifier"}
        seen += [row.text.split()[0] for row in rows]
    assert sorted(seen) == sorted(f"lane_{number}" for number in range(PART + 50))
    first = panel(session, VIEWER.asked({"tab": "lost", "facts": "identifier"}))
    assert "part=2" in first and "Part 1 of 2" in first
    assert facts(panel(session, VIEWER.asked({"tab": "lost", "facts": "identifier", "part": "99"})))
    assert panel(session, VIEWER.asked({"tab": "lost", "facts": "moon", "part": "-1"})) == html


def test_the_user_s_demands_are_a_kind_of_their_own() -> None:
    viewer = VIEWER.asked({"tab": "lost", "facts": "user"})
    assert [row.text.split("\n")[1].strip() for row in facts(panel(telling("You must wait 5 s."), viewer))] == [
        "Never touch /etc/hosts."
    ]


def test_an_earlier_compaction_can_be_chosen_and_an_undone_one_is_none() -> None:
    session = numbered(3)
    telling("E-217", session=session)
    first, _ = session.state.compactions
    html = panel(session)
    assert "Compaction 2" in html and "Compared with the context as it is now." in html
    assert "compaction=1" in html and "compaction=3" not in html
    chosen = panel(session, VIEWER.asked({"tab": "lost", "compaction": "1"}))
    assert "Compaction 1" in chosen and "until compaction 2" in chosen and "compaction=2" in chosen
    assert fate_of(chosen, "lane_1") == "lost" and "E-217" not in chosen
    session.task("What was `lane_1`?")
    chosen = panel(session, VIEWER.asked({"tab": "lost", "compaction": "1"}))
    assert fate_of(chosen, "lane_1") == "lost", "what came after the next compaction is another context"
    session.end()
    assert panel(session, VIEWER.asked({"tab": "lost", "compaction": "7"})) != chosen
    session.add(e.CompactionUndone(number=2, before=Size(), after=Size()))
    html = panel(session)
    assert "Compaction 1" in html and "compaction=" not in html
    assert fate_of(html, "lane_1") == "again" and fate_of(html, "lane_2") == "lost"
    assert lost_view(session, VIEWER).compaction == first


def test_the_second_compaction_traces_the_first_summary_too() -> None:
    session = compacted_session()
    second_task(session)
    html = panel(session)
    assert any("Task 2 · Summary" in row.text for row in facts(html))


def test_the_newest_is_compared_with_the_context_now_message_by_message() -> None:
    session = numbered(3)
    assert fate_of(panel(session), "lane_2") == "lost"
    session.task("What was `lane_2`?")
    html = panel(session)
    assert fate_of(html, "lane_2") == "again" and fate_of(html, "lane_1") == "lost"
    made = session.state.compactions[0]
    traced = trace(made.removed, session.state.context.entries, made.seq)
    assert [row.traced.fate for group in lost_view(session, VIEWER).groups for row in group.rows].count("again") == sum(
        1 for each in traced if each.fate == "again"
    )


def test_every_link_leads_to_a_page_that_shows_the_message() -> None:
    session = FoldedSession().begin()
    session.task("Read much. Keep lane_0.")
    for number in range(250):
        session.call_started()
        call = ToolCall(f"r{number}", "read", f'{{"path":"lane_{number}.md"}}')
        session.call_ended("", call)
        session.tool(call, f"lane_{number}" if number % 50 == 0 else "-")
    session.call_started()
    session.call_ended("Done.")
    session.end()
    second_task(session)
    for viewer in (VIEWER, replace(VIEWER, view="model")):
        links = {
            link for group in lost_view(session, viewer).groups for row in group.rows for link in (row.link, row.place)
        }
        assert len(links) > 20
        for link in filter(None, links):
            address, _, name = link.partition("#")
            number = re.search(r"before=(\d+)", address)
            there = viewer if not address or "view=" in address else replace(viewer, view="full")
            asked = Asked(before=int(number[1])) if number else Asked()
            assert find(render_session(session, there, asked, sandbox="none"), id=name), link


def test_what_was_traced_is_kept_and_only_what_is_new_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    class Counted(lost.Trace):
        def read(self, kept: list) -> tuple:
            made.append(len(kept))
            return super().read(kept)

    monkeypatch.setattr(lost, "Trace", Counted)
    session = numbered(4)
    asyncio.run(lost.ready(session, replace(VIEWER, tab="now")))
    assert made == [], "a tab that is not open costs nothing"
    asyncio.run(lost.ready(session, VIEWER))
    kept = len(session.state.context.entries)
    panel(session)
    panel(session, replace(VIEWER, language="zh", facts="identifier"))
    assert made == [kept]
    session.task("And lane_3?")
    panel(session)
    assert made == [kept, 1]
    other = numbered(5)
    assert other.id == session.id
    assert fate_of(panel(other), "lane_3") == "lost", "a session of the same name is another session"
    for number in range(3 * lost.KEPT):
        panel(replace_id(other, f"s{number}"))
    assert len(lost._followed) == lost.KEPT


def replace_id(session: FoldedSession, name: str) -> FoldedSession:
    session.id = name
    return session


def test_pages_that_show_other_facts_do_not_share_what_is_rendered() -> None:
    class Channel:
        session = numbered(3)

    variants = {
        Reading(Channel, VIEWER.asked({"tab": "lost"} | asked), 0)._variant  # type: ignore[arg-type]
        for asked in ({}, {"facts": "path"}, {"compaction": "1"}, {"part": "2"})
    }
    assert len(variants) == 4
