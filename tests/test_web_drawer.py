"""The settings drawer without a browser: what its forms change, what they refuse, what the file and the rows say."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness import events as e
from harness.offline import FAULT_KINDS, FAULTS
from harness.session import Session
from offline_model import faults
from tests.harness_support import ROOT, events, offline
from tests.web_html import elements, find
from tests.web_session import FoldedSession
from tests.web_support import MINE, Web, serving
from web.catalogue import load
from web.drawer import Opened, drawer_of, render_parts
from web.feed import make_row, render_row
from web.pages import Pages
from web.panel import panel_of
from web.screens import Asked, render_session
from web.settings_file import FileSettings, parse_settings
from web.viewer import Viewer
from web.words import LANGUAGES

VIEWER = Viewer(Pages.load())
HTMX = MINE | {"HX-Request": "true"}
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("drawer")) as running:
        yield running


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server of lab 01, where lab 07 is an extension to switch on."""
    with serving(tmp_path_factory.mktemp("base"), lab="01") as running:
        yield running


def field(html: str, name: str) -> dict[str, str]:
    """Return the attributes of the drawer's field for this setting."""
    return find(html, id=f"set-{name}")[0].attributes


def ticked(html: str, name: str, value: str) -> bool:
    """Say whether a switch of the drawer is on."""
    return "checked" in find(html, name=name, value=value)[0].attributes


def stalled(web: Web, session: Session) -> None:
    """Start a task that goes on until it is stopped."""

    async def begin() -> None:
        session.emit(e.FaultChosen(fault="stall"))
        session.start_task("Say something.", language="en")

    web.run(begin())
    assert session.status == "running"


def test_the_faults_are_those_of_the_offline_model_and_each_has_words() -> None:
    assert sorted(FAULTS) == sorted(faults.FAULTS)
    for language in LANGUAGES:
        words = load(language)
        kinds = {key.split(".")[1] for key in words.entries if key.startswith("fault_kind.")}
        assert kinds == set(FAULT_KINDS)
        for section in ("fault", "fault_says"):
            assert {key.split(".")[1] for key in words.entries if key.startswith(f"{section}.")} == set(FAULTS)


def test_a_setting_with_a_label_has_a_unit_and_a_sentence() -> None:
    words = load("en")
    names = [{key.split(".")[1] for key in words.entries if key.startswith(f"setting_{part}.")} for part in
             ("name", "unit", "says")]  # fmt: skip
    assert names[0] == names[1] == names[2] >= {"budget", "summary_limit", "step_limit", "approval_seconds", "window"}


def test_several_numbers_are_taken_at_once_and_each_is_an_event(web: Web) -> None:
    session = web.session()
    path = f"/s/{session.id}/numbers"
    answer = web.post(path, {"budget": "2000", "step_limit": " 12 ", "summary_limit": "900", "x": "1"}, HTMX)
    assert answer.status == 200 and "In force from now on" in answer.text
    changed = [e.SettingChanged(name="step_limit", value=12), e.SettingChanged(name="budget", value=2000)]
    assert events(session, e.SettingChanged) == changed
    assert field(answer.text, "budget")["value"] == "2000"
    again = web.post(path, {"budget": "2000"}, HTMX)
    assert "in force already" in again.text and len(events(session, e.SettingChanged)) == 2


@pytest.mark.parametrize("wrong", ["", "-5", "1.5", "1,500", "ten", "10000001", "<b>", "²"])
def test_a_wrong_number_changes_nothing_and_stays_where_it_was_typed(web: Web, wrong: str) -> None:
    session = web.session()
    before = len(session.records)
    for headers in (HTMX, MINE | HTML):
        answer = web.post(f"/s/{session.id}/numbers", {"step_limit": "12", "budget": wrong}, headers)
        assert answer.status == 422
        html = answer.text
        assert field(html, "budget")["value"] == wrong and field(html, "step_limit")["value"] == "12"
        described = field(html, "budget")["aria-describedby"].split()
        assert "from 0 to 10,000,000" in find(html, id=described[0])[0].text
        assert "aria-invalid" in field(html, "budget") and "aria-invalid" not in field(html, "step_limit")
    assert "open" in find(answer.text, id="drawer")[0].attributes
    assert len(session.records) == before


def test_what_utf_8_cannot_carry_is_a_wrong_number_like_any_other(web: Web) -> None:
    session = web.session()
    for headers in (HTMX, MINE | HTML):
        sent = headers | {"Content-Type": "application/json"}
        answer = web.ask(f"/s/{session.id}/numbers", "POST", b'{"budget": "\\ud800"}', sent)
        assert answer.status == 422 and field(answer.text, "budget")["value"] == "\ufffd"


def test_no_turn_at_all_and_no_time_to_answer_are_refused(web: Web) -> None:
    session = web.session()
    for name in ("step_limit", "approval_seconds"):
        answer = web.post(f"/s/{session.id}/numbers", {name: "0"}, HTMX)
        assert answer.status == 422 and "from 1 to" in answer.text


def test_the_pause_before_a_summary_is_a_switch(web: Web) -> None:
    session = web.session()
    for value in ("1", "0"):
        # A form sends the hidden zero, and the one behind it only where the switch is on.
        body = "confirm_summary=0" + ("&confirm_summary=1" if value == "1" else "")
        headers = HTMX | {"Content-Type": "application/x-www-form-urlencoded"}
        html = web.ask(f"/s/{session.id}/numbers", "POST", body, headers).text
        assert session.state.settings["confirm_summary"] == int(value)
        assert ticked(html, "confirm_summary", "1") == (value == "1")
    assert web.post(f"/s/{session.id}/numbers", {"confirm_summary": "2"}, HTMX).status == 422


def test_while_a_task_runs_numbers_change_but_the_window_and_the_extensions_do_not(base: Web) -> None:
    session = base.session()
    stalled(base, session)
    path = f"/s/{session.id}"
    assert base.post(f"{path}/numbers", {"step_limit": "9", "window": "0"}, HTMX).status == 200
    refused = base.post(f"{path}/numbers", {"step_limit": "8", "window": "2000"}, HTMX)
    assert refused.status == 422 and "while a task runs" in refused.text
    assert (session.state.settings["step_limit"], session.state.settings["window"]) == (9, 0)
    refused = base.post(f"{path}/extensions", {"lab-07": "on"}, HTMX)
    assert refused.status == 409 and 'hx-target="#notice"' in refused.text and "still running" in refused.text
    assert session.state.extensions == ()
    base.run(session.stop())
    assert base.post(f"{path}/numbers", {"window": "2000"}, HTMX).status == 200
    assert session.state.settings["window"] == 2000


def test_an_extension_is_switched_on_with_its_settings_and_off_again(base: Web) -> None:
    session = base.session()
    path = f"/s/{session.id}"
    page = base.ask(path, headers=HTML).text
    assert "disabled" in find(page, name="lab-01")[0].attributes
    assert ticked(page, "lab-01", "on") and not ticked(page, "lab-07", "on")
    html = base.post(f"{path}/extensions", {"lab-07": "on", "lab-01": "on", "lab-99": "on"}, HTMX).text
    assert session.state.extensions == ("07",) and session.state.settings["budget"] == 1500
    assert ticked(html, "lab-07", "on")
    assert "in force already" in base.post(f"{path}/extensions", {"lab-07": "on"}, HTMX).text
    assert base.post(f"{path}/extensions", {}).headers["location"] == f"{path}?drawer=1"
    assert [event.extensions for event in events(session, e.ExtensionsChanged)] == [("07",), ()]
    assert "budget" not in session.state.settings


def test_a_broken_extension_changes_nothing_and_says_why(base: Web, tmp_path: Path) -> None:
    (tmp_path / "extension.py").write_text("import nothing_of_this_name\n")
    labs = base.library.setup.labs
    labs["98"] = base.app.state.site.pages.labs["98"] = replace(labs["07"], number="98", folder=tmp_path)
    try:
        session = base.session()
        before = len(session.records)
        answer = base.post(f"/s/{session.id}/extensions", {"lab-98": "on"}, HTMX)
    finally:
        del labs["98"], base.app.state.site.pages.labs["98"]
    assert answer.status == 409 and 'hx-target="#notice"' in answer.text and "nothing_of_this_name" in answer.text
    assert len(session.records) == before and session.state.extensions == ()


def test_a_fault_is_chosen_by_its_code_and_shown_in_the_header(web: Web) -> None:
    session = web.session()
    path = f"/s/{session.id}"
    assert "hidden" in find(web.ask(path, headers=HTML).text, id="fault-chip")[0].attributes
    assert web.post(f"{path}/fault", {"fault": "rate_limit"}, HTMX).status == 200
    page = web.ask(path, headers=HTML).text
    [chip] = find(page, id="fault-chip")
    assert "hidden" not in chip.attributes and "429" in chip.text
    assert ticked(page, "fault", "rate_limit")
    assert web.post(f"{path}/fault", {"fault": "earthquake"}, HTMX).status == 422
    assert web.post(f"{path}/fault", {"fault": ""}).headers["location"] == f"{path}?drawer=1"
    assert [event.fault for event in events(session, e.FaultChosen)] == ["rate_limit", ""]


def test_only_the_offline_model_acts_faults_out(web: Web) -> None:
    session = web.session()
    assert session.state.model
    session.state.model = replace(session.state.model, provider="openai")
    assert web.post(f"/s/{session.id}/fault", {"fault": "cut"}, HTMX).status == 409
    page = web.ask(f"/s/{session.id}", headers=HTML).text
    form = page.split('id="drawer-faults"')[1].split("</form>")[0]
    assert "<fieldset disabled>" in form and "another model answers" in form
    session.state.fault = "cut"
    assert "hidden" in find(web.ask(f"/s/{session.id}", headers=HTML).text, id="fault-chip")[0].attributes
    assert events(session, e.FaultChosen) == []


def test_without_htmx_every_form_leads_to_the_page_with_the_drawer_open(web: Web) -> None:
    session = web.session()
    path = f"/s/{session.id}"
    answer = web.post(f"{path}/numbers", {"budget": "1700"})
    assert (answer.status, answer.headers["location"]) == (303, f"{path}?drawer=1")
    assert "open" in find(web.ask(f"{path}?drawer=1", headers=HTML).text, id="drawer")[0].attributes
    assert "open" not in find(web.ask(path, headers=HTML).text, id="drawer")[0].attributes
    # Where a wrong number was answered the address is the form's, and a reload must work there too.
    assert web.ask(f"{path}/numbers", headers=HTML).status == 200


def test_the_file_holds_all_that_is_in_force(web: Web) -> None:
    session = web.session()
    path = f"/s/{session.id}"
    web.post(f"{path}/numbers", {"budget": "1234", "window": "5000", "confirm_summary": "1"}, HTMX)
    web.post(f"{path}/fault", {"fault": "summary_empty"}, HTMX)
    cookies = "context-lab-language=zh; context-lab-theme=dark; context-lab-size=largest"
    answer = web.ask(f"{path}/settings.toml", headers={"Cookie": cookies})
    assert answer.headers["content-type"] == "application/toml; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    read = parse_settings(answer.text, "lab.toml", session.state.settings)
    expected = FileSettings(
        lab="07", extensions=(), fault="summary_empty", language="zh", theme="dark", text_size="largest",
        settings=session.state.settings,
    )  # fmt: skip
    assert read == expected and read.settings["budget"] == 1234


def test_a_change_reaches_every_open_page(web: Web) -> None:
    session = web.session()
    stream = web.stream(f"/s/{session.id}/events?after={session.committed}", {})
    web.post(f"/s/{session.id}/fault", {"fault": "empty"}, HTMX)
    message = stream.next()
    assert message and 'hx-target="#fault-chip"' in message.data and 'hx-target="#drawer-session"' in message.data
    assert 'data-event="FaultChosen"' in message.data


def test_theme_and_text_size_are_the_servers_until_a_visitor_chooses(tmp_path: Path) -> None:
    with serving(tmp_path, theme="dark", text_size="large") as web:
        path = f"/s/{web.session().id}"
        html = elements(web.ask(path, headers=HTML).text)[0].attributes
        assert (html["data-theme"], html["data-size"]) == ("dark", "large")
        cookies = {"Cookie": "context-lab-theme=auto; context-lab-size=normal"}
        html = elements(web.ask(path, headers=HTML | cookies).text)[0].attributes
        assert not {"data-theme", "data-size"} & html.keys()
        html = elements(web.ask(path, headers=HTML | {"Cookie": "context-lab-size=<b>"}).text)[0].attributes
        assert html["data-size"] == "large"
        chosen = web.post("/preferences", {"size": "largest", "back": f"{path}?drawer=1"})
        assert chosen.headers["location"] == f"{path}?drawer=1"
        assert "context-lab-size=largest" in chosen.headers["set-cookie"]
        assert "set-cookie" not in web.post("/preferences", {"size": "huge"}).headers


def test_a_setting_without_words_is_shown_by_its_name() -> None:
    session = FoldedSession().begin()
    session.state.settings |= {"keep_<b>": 7}
    html = render_parts(session, VIEWER)["drawer-session"]
    assert field(html, "keep_<b>")["value"] == "7" and "keep_&lt;b&gt;</label>" in html
    names = [number.name for number in drawer_of(session, VIEWER, None).numbers]
    assert names.index("keep_<b>") < names.index("step_limit"), "what a lab brings comes first"


def test_each_change_is_one_row_that_says_what_changed() -> None:
    session = FoldedSession().begin()
    pages = Pages.load(labs={"07": replace(session.lab, folder=ROOT / "labs" / "07-context-management")})
    settings = {"budget": 1500, "x<b>": 2}
    said = {
        e.SettingChanged(name="window", value=2000): "taken to be 2,000 tokens",
        e.SettingChanged(name="window", value=0): "own again",
        e.SettingChanged(name="confirm_summary", value=1): "waits for your yes",
        e.SettingChanged(name="confirm_summary", value=0): "without asking",
        e.SettingChanged(name="keep<b>", value=3): "keep&lt;b&gt; set to 3.",
        e.FaultChosen(fault="server_error"): "acts out a fault: 500",
        e.FaultChosen(fault="<b>"): "acts out a fault: &lt;b&gt;",
        e.FaultChosen(fault=""): "as usual",
    }
    for event, words in said.items():
        assert words in render_row(session, make_row(session, session.add(event)), Viewer(pages))
    switched = session.add(e.ExtensionsChanged(extensions=("07", "42"), settings=settings))
    html = render_row(session, make_row(session, switched), Viewer(pages))
    assert "07 Context at the task boundary, 42." in html and "x&lt;b&gt;" in html and "1,500" in html
    none = session.add(e.ExtensionsChanged(extensions=(), settings={}))
    assert "no extension" in render_row(session, make_row(session, none), Viewer(pages))


def test_the_panel_counts_against_the_window_that_was_set() -> None:
    session = FoldedSession().begin()
    assert (panel_of(session, VIEWER).window, panel_of(session, VIEWER).window_source) == (32768, "table")
    session.add(e.SettingChanged(name="window", value=2000))
    assert (panel_of(session, VIEWER).window, panel_of(session, VIEWER).window_source) == (2000, "setting")


def test_a_page_of_a_past_moment_shows_what_was_in_force_and_changes_nothing() -> None:
    session = FoldedSession().begin(budget=1111)
    html = render_session(session, replace(VIEWER, at=3), Asked(drawer=Opened()), sandbox="none")
    drawer = html.split('id="drawer-session"')[1].split("drawer-said")[0]
    assert drawer.count("<fieldset disabled>") == 3 and field(html, "budget")["value"] == "1111"
    assert "past moment" in html.split('id="drawer"')[1]


def test_a_session_that_starts_with_a_fault_shows_it(tmp_path: Path) -> None:
    with offline() as model, serving(tmp_path, model=model) as web:
        object.__setattr__(web.library.setup, "fault", "cut")
        page = web.ask(f"/s/{web.session().id}", headers=HTML).text
        assert "Stream breaks" in find(page, id="fault-chip")[0].text
