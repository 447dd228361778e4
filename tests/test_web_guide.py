"""The guide's column: what was seen, ticked by hand or by the journal, and the lab's drawing."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness import events as e
from harness.discovery import DrawnBar, Lab, Picture, Stroke, Tick, find_labs
from harness.messages import ToolCall
from harness.sizes import CATEGORIES
from tests.web_html import elements, find
from tests.web_session import FoldedSession, compacted_session, lab
from tests.web_support import FORM, Web, serving
from web.lab_picture import picture_of
from web.pages import Pages
from web.screens import render_session
from web.updates import render_panel_updates
from web.viewer import Viewer

VIEWER = Viewer(Pages.load())
LABS = find_labs(Path(__file__).parent.parent / "labs")
PAIR = {"en": "A <b>", "zh": "甲"}
TICKS = (
    Tick("mine", {"en": "I looked", "zh": "我看过"}),
    Tick("cut", {"en": "It was cut", "zh": "切过"}, "compacted"),
    Tick("no", {"en": "I denied", "zh": "我拒绝过"}, "denied"),
)


def with_ticks(session: FoldedSession) -> FoldedSession:
    session.lab = replace(lab(), ticks=TICKS)
    return session


def page(session: FoldedSession, language: str = "en") -> str:
    return render_session(session, replace(VIEWER, language=language), sandbox="none")


def seen(html: str) -> dict[str, str]:
    return {each.attributes["data-tick"]: each.attributes["data-seen"] for each in elements(html)
            if "data-tick" in each.attributes}  # fmt: skip


@pytest.mark.parametrize(
    ("language", "says", "proved"),
    [
        ("en", "1 of 3 so far in this session.", "Proved by the journal."),
        ("zh", "共 3 项，这个会话里已看到 1 项。", "日志已证明。"),
    ],
)
def test_what_the_journal_proves_is_ticked_and_no_button(language: str, says: str, proved: str) -> None:
    html = page(with_ticks(compacted_session()), language)
    assert seen(html) == {"mine": "false", "cut": "true", "no": "false"}
    assert says in html and html.count(proved) == 1
    buttons = [each for each in elements(html) if each.attributes.get("name") == "tick"]
    assert [button.attributes["value"] for button in buttons] == ["mine"], "only a person's own tick can be set"
    assert buttons[0].attributes["aria-pressed"] == "false"


@pytest.mark.parametrize(("language", "says"), [("en", "Each session counts by itself"), ("zh", "每个会话各自计数")])
def test_it_is_said_that_ticks_are_those_of_one_session(language: str, says: str) -> None:
    [ticks] = find(page(with_ticks(compacted_session()), language), id="guide-ticks")
    assert says in ticks.text


def test_who_started_a_sample_by_key_has_the_question_as_the_next_stop() -> None:
    session = FoldedSession().begin()
    session.task("Guess", "guess")
    assert not find(page(session), class_="to-question"), "nothing waits yet"
    named = {"task": 1, "call_id": "b1", "name": "bash", "arguments": "{}"}
    session.call_started()
    session.call_ended("", ToolCall("b1", "bash", "{}"))
    session.waiting = session.add(e.ApprovalRequested(preview="", seconds=9, **named)).event
    session.status = "waiting"
    samples = next(each.html for each in render_panel_updates(session, VIEWER) if each.target_id == "guide-samples")
    for html in (page(session), samples):
        stops = [each for each in elements(html) if each.tag in ("button", "a") and "samples" in html]
        [place] = [n for n, each in enumerate(stops) if each.attributes.get("class") == "to-question"]
        assert stops[place - 1].attributes["value"] == "guess"
        assert stops[place].attributes["href"] == "#tool-call-b1"
    assert find(page(session), id="tool-call-b1")
    past = render_session(session, replace(VIEWER, at=session.committed), sandbox="none")
    assert not find(past, class_="to-question"), "at a moment of the past nothing can be answered"


def test_a_tick_by_hand_stays_until_it_is_taken_away() -> None:
    session = with_ticks(FoldedSession().begin())
    session.add(e.Ticked(tick="mine", on=True))
    assert seen(page(session))["mine"] == "true"
    assert find(page(session), id="tick-mine")[0].attributes["aria-pressed"] == "true"
    session.add(e.Ticked(tick="mine", on=False))
    assert seen(page(session))["mine"] == "false"
    session.add(e.Ticked(tick="cut", on=True))
    assert seen(page(session))["cut"] == "false", "by hand nothing is proved"


def test_an_open_page_gets_the_ticks_as_a_reload_shows_them() -> None:
    session = with_ticks(compacted_session())
    block = next(each for each in render_panel_updates(session, VIEWER) if each.target_id == "guide-ticks")
    assert block.mode == "morph" and block.html in page(session)


def test_a_lab_without_ticks_and_picture_shows_neither() -> None:
    html = page(FoldedSession().begin())
    assert "hidden" in find(html, id="guide-ticks")[0].attributes
    assert not find(html, class_="picture")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, lab="07") as running:
        yield running


def ticks_at(web: Web, path: str) -> dict[str, str]:
    return seen(web.ask(path).text)


def test_a_tick_is_journalled_and_sent_to_every_open_page(web: Web) -> None:
    session = web.session()
    path, last = f"/s/{session.id}", len(session.records)
    stream = web.stream(f"{path}/events?after={last}")
    assert (
        web.post(f"{path}/ticks", {"tick": "views", "on": "yes"}, {"X-Context-Lab": "1", "HX-Request": "true"}).status
        == 204
    )
    assert session.records[-1].event == e.Ticked(tick="views", on=True)
    while "guide-ticks" not in (message := stream.next()).data:
        assert "ContextCompacted" not in message.data
    assert 'aria-pressed="true"' in message.data
    assert ticks_at(web, path)["views"] == "true"
    before = len(session.records)
    web.post(f"{path}/ticks", {"tick": "views", "on": "yes"})
    assert len(session.records) == before, "what is ticked already is no event"
    web.post(f"{path}/ticks", {"tick": "views", "on": "no"})
    assert ticks_at(web, path)["views"] == "false"


def test_a_page_of_the_past_shows_what_was_seen_until_now_and_no_button(web: Web) -> None:
    session = web.session()
    web.post(f"/s/{session.id}/ticks", {"tick": "views", "on": "yes"})
    html = web.ask(f"/s/{session.id}?at=1").text
    assert find(html, data_moment="1"), "it is a page of the past"
    assert seen(html)["views"] == "true" and not find(html, name="tick")


def test_a_plain_form_leads_back_to_the_ticks(web: Web) -> None:
    session = web.session()
    html = web.ask(f"/s/{session.id}").text
    token = re.search(r'name="token" value="([^"]+)"', html)[1]
    reply = web.post(f"/s/{session.id}/ticks", {"tick": "views", "on": "yes", "token": token}, {})
    assert reply.status == 303 and reply.headers["location"] == f"/s/{session.id}#guide-ticks"


@pytest.mark.parametrize(
    "fields",
    [{"tick": "compacted", "on": "yes"}, {"tick": "moon", "on": "yes"}, {"tick": "views", "on": "perhaps"}, {}],
)
def test_what_is_no_tick_of_a_person_changes_nothing(web: Web, fields: dict[str, str]) -> None:
    session = web.session()
    before = len(session.records)
    reply = web.post(f"/s/{session.id}/ticks", fields)
    assert reply.status == 404 and "nothing was changed" in reply.text
    assert len(session.records) == before and session.state.ticked == set()
    assert web.ask(f"/s/{session.id}/ticks", "POST", "tick=views&on=yes", FORM).status == 403


def drawn(*bars: tuple[Stroke, ...]) -> Lab:
    return replace(lab(), picture=Picture(tuple(DrawnBar(PAIR, parts) for parts in bars)))


def test_the_bars_have_one_scale_and_small_parts_no_letter() -> None:
    wide = (Stroke("system", 1), Stroke("user", 2, leaves=True), Stroke("assistant", 17, cut=True))
    picture = picture_of(drawn(wide, wide[:2]), "en")
    pieces = picture.bars[0].pieces
    assert [(piece.x, piece.width, piece.middle) for piece in pieces] == [
        ("0.00%", "5.00%", "2.50%"), ("5.00%", "10.00%", "10.00%"), ("15.00%", "85.00%", "57.50%"),
    ]  # fmt: skip
    assert [piece.letter for piece in pieces] == [False, True, True]
    assert picture.bars[1].pieces == pieces[:2], "a short bar is not stretched"
    assert picture.categories == ("system", "user", "assistant") and picture.leaves and picture.cuts
    assert not picture_of(drawn(wide[:1]), "en").leaves and not picture_of(drawn(wide[:1]), "en").cuts


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("number", sorted(LABS))
def test_every_lab_has_a_drawing_that_says_what_it_is_and_shows_no_number(number: str, language: str) -> None:
    session = FoldedSession().begin()
    session.lab = LABS[number]
    html = page(session, language)
    picture = html[html.index('<figure class="picture"') : html.index("</figure>")]
    [figure] = [each for each in elements(picture + "</figure>") if each.tag == "figure"]
    assert not re.search(r"\d", figure.text)
    assert ("A drawing, not a measurement" if language == "en" else "这是示意图，不是测量结果") in figure.text
    bars = find(picture + "</figure>", role="img")
    assert len(bars) == len(LABS[number].picture.bars) >= 4
    assert all(bar.attributes["aria-label"] for bar in bars)
    used = {stroke.part for bar in LABS[number].picture.bars for stroke in bar.parts}
    assert picture.count('class="key-letter') == len(used) <= len(CATEGORIES)
    for category in used:
        assert f'class="c-{category}"' in picture and f"url(#hatch-{category})" in picture
    assert html.index("</figure>") < html.index("<h3>", html.index('id="lab-text-title"')), "below the first words"


def test_what_gives_way_and_the_cut_are_named_for_who_does_not_see_them() -> None:
    session = FoldedSession().begin()
    session.lab = drawn((Stroke("user", 2, leaves=True), Stroke("assistant", 3, cut=True)))
    session.lab = replace(session.lab, folder=LABS["07"].folder)
    html = page(session)
    assert 'aria-label="User (gives way), cut point, Assistant"' in html
    assert "A &lt;b&gt;" in html, "a caption is text"
