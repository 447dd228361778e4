"""A session as one HTML file: opened from disk it asks nobody for anything, and shows what the page shows."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness import events as e
from harness.discovery import find_labs
from harness.messages import ToolCall
from harness.problems import Problem
from tests.browser_support import axe, chromium  # noqa: F401
from tests.harness_support import ROOT
from tests.web_html import find
from tests.web_session import LOG, FoldedSession, handed_session
from web.catalogue import load
from web.handout import TEXT_CHARS, handout
from web.moment import Moment, moment_from
from web.pages import Pages
from web.standing import alone, linked
from web.viewer import Viewer

LABS = find_labs(ROOT / "labs")
PAGES = Pages.load(labs=LABS)
HOSTILE = (
    '<script>alert(1)</script><img src="http://example.com/x.png" onerror="alert(2)"><form action="/x"><b hx-get="/x">'
)
KEY = "sk-" + "a1B2c3D4" * 5
Check = Callable[[Page], list[str]]


def compacted(more: str = "") -> FoldedSession:
    """A task with a call, a compaction, and a second task."""
    session = FoldedSession().begin(budget=100)
    call = ToolCall("c1", "read", '{"path": "incident-log.md"}')
    session.task(f"Sort the log {more}")
    session.call_started()
    session.call_ended(f"I **look** at [it](http://example.com/a). {more}", call)
    session.tool(call, f"{LOG}\n{more}")
    session.call_started()
    session.call_ended("It is the pool.")
    session.end()
    session.task("Which are guesses?")
    session.call_started()
    session.call_ended("The push.")
    session.compact()
    session.end()
    return session


def moment(session: FoldedSession) -> Moment:
    return moment_from(session.id, LABS["07"], LABS, session.records)


def file_of(session: FoldedSession, language: str = "en", **looks: str) -> str:
    viewer = Viewer(PAGES, language, form_token="f0rm", nonce="n0nce", theme="dark", **looks)  # type: ignore[arg-type]
    return handout(moment(session), viewer)


def figures_of(html: str) -> dict[str, str]:
    """Return the figures of a file, by name."""
    named = [each.attributes for each in find(html) if "data-figure" in each.attributes]
    return {each["data-figure"]: each["data-value"] for each in named}


def opened(browser: Browser, path: Path, width: int, scheme: str) -> tuple[Page, list[str], list[str]]:
    """Open a file from disk; return the page, what it asked for and what it complained about."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    page, asked, faults = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(path.as_uri())
    return page, asked, faults


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_from_disk_without_a_request_and_is_clean(
    scheme: str, chromium: Browser, axe: Check, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    for language, session in (("en", compacted(HOSTILE)), ("zh", handed_session())):
        path = tmp_path / f"{language}.html"
        path.write_text(file_of(session, language), "utf-8")
        for width in (1280, 320):
            page, asked, faults = opened(chromium, path, width, scheme)
            assert (asked, faults) == ([path.as_uri()], [])
            fits = "document.documentElement.scrollWidth <= innerWidth"
            paper = "rgb(251, 250, 247)" if scheme == "light" else "rgb(20, 23, 28)"
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
            assert page.evaluate(fits)
            page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            assert page.evaluate(fits) and axe(page) == []
            page.context.close()


def test_it_shows_the_rows_the_compaction_and_the_panel_and_works_without_a_script(
    chromium: Browser, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    path = tmp_path / "a.html"
    path.write_text(file_of(compacted()), "utf-8")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    row = page.locator('[data-event="ToolEnded"]')
    assert not row.locator("pre.result").is_visible()
    row.locator("summary").click()
    assert "08:03 probe" in row.locator("pre.result").inner_text()
    made = page.locator('[data-event="ContextCompacted"]')
    assert "pool 100/100" in made.locator(".summary-text").inner_text()
    originals = made.locator("[data-original]")
    assert originals.count() == 4
    originals.nth(2).locator("summary").click()
    assert "08:03 probe" in originals.nth(2).inner_text()
    page.get_by_text("What was lost").click()
    assert page.locator('#panel [data-figure="context.chars"]').is_visible()
    assert page.locator('#panel [data-call="1"]').first.is_visible() and page.locator("#panel .fact").first.is_visible()
    page.locator("#panel tr[data-call] a").last.click()
    assert page.url.endswith("#model-call-1")
    context.close()


def test_its_figures_are_those_of_the_session() -> None:
    session = compacted()
    shown = figures_of(file_of(session))
    total = session.state.context.total
    assert int(shown["context.chars"]) == total.chars and int(shown["context.tokens.estimated"]) == total.tokens
    assert shown["compactions"] == "1" and int(shown["cut.removed"]) == 4
    assert int(shown["cut.before.tokens.estimated"]) == session.state.compactions[0].event.before.tokens


def test_nothing_in_it_leads_to_the_server_or_came_from_the_visit() -> None:
    html = file_of(compacted(HOSTILE), unit="estimated")
    tags = {(each.tag, *each.attributes) for each in find(html)}
    assert not {"form", "script", "img", "button", "input", "iframe"} & {tag[0] for tag in tags}
    names = {name for tag in tags for name in tag[1:]}
    assert not [
        name for name in names if name.startswith(("hx-", "on")) or name in ("src", "style", "data-theme", "nonce")
    ]
    assert "f0rm" not in html and "n0nce" not in html and "/static/" not in html
    assert "alert(1)" in html, "as text"
    links = {x.attributes["href"] for x in find(html) if "href" in x.attributes}
    ids = {x.attributes["id"] for x in find(html) if "id" in x.attributes}
    assert {link for link in links if not link.startswith("#")} == {"http://example.com/a"}
    assert {link[1:] for link in links if link.startswith("#")} <= ids
    assert len(ids) == len(re.findall(r' id="', html)), "each id once"
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy and re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'none'", policy[1]
    )


def test_secrets_are_masked_wherever_they_stand_and_the_figures_stay() -> None:
    session = compacted(f"password: hunter2x {KEY}")
    write = ToolCall("c9", "write", f'{{"path": ".env", "content": "OPENAI_API_KEY={KEY}", "password": "hunter2x"}}')
    session.task(f"Keep {KEY}")
    session.call_started()
    session.call_ended("**password**: hunter2x", write)
    session.tool(write, "done")
    session.add(e.InstructionsSet(system=f"You are careful. api_key: {KEY}", tools=()))
    session.call_started()
    session.call_ended("Done.")
    session.end()
    html = file_of(session)
    assert (
        KEY not in html
        and "hunter2x" not in html.replace("<strong>password</strong>: hunter2x", "")
        and "[masked]" in html
    )
    shown = figures_of(html)
    assert int(shown["context.chars"]) == session.state.context.total.chars
    assert int(shown["part.system.chars"]) == session.state.context.totals["system"].chars


def test_what_is_too_long_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    session = FoldedSession().begin()
    session.task("Look")
    for number in range(150):
        call = ToolCall(f"c{number}", "read", '{"path": "a.md"}')
        session.call_started()
        session.call_ended("", call)
        session.tool(call, "0123456789" * (20_000 if number == 149 else 1))
    session.call_started()
    session.call_ended("Done.")
    session.end()
    html = file_of(session)
    assert f"[… {200_000 - TEXT_CHARS:,} more characters are left out of this file]" in html
    assert "have no row here" not in html and 'id="model-call-1"' in html and "Done." in html
    monkeypatch.setattr("web.handout.ROWS_CHARS", 1000)
    html = file_of(session)
    left = re.search(r"the first (\d+) of (\d+) events have no row here", html)
    assert left and 0 < int(left[1]) < int(left[2]) == len(session.records)
    assert 'id="model-call-1"' not in html and 'href="#model-call-1"' not in html and "Done." in html
    assert figures_of(html)["context.chars"] == str(session.state.context.total.chars)


def test_rows_of_sub_agents_are_in_it() -> None:
    session = handed_session()
    html = file_of(session)
    assert "I look." in html and "08:03 probe" in html and 'id="child-1-' in html


def test_a_session_in_which_nothing_happened_is_no_file() -> None:
    with pytest.raises(Problem, match="export_nothing"):
        file_of(FoldedSession().begin())


def test_what_a_server_would_have_to_answer_is_taken_out_of_html() -> None:
    html = (
        '<p hx-get="/x" onclick="a()" style="b" title="t&quot;">a &lt;b&gt; <a href="/s/1?x#here" lang="en">to</a> '
        '<a href="/s/1#gone">no</a> <a class="button" href="#here">more</a><a href="https://h/">out</a>'
        '<form><p>x<br></p><input></form><br><svg><line x1="0"/></svg></p>'
    )
    assert linked(alone(html, str), {"here"}) == (
        '<p title="t&quot;">a &lt;b&gt; <a href="#here" lang="en">to</a> <span>no</span> '
        '<a href="https://h/">out</a><br><svg><line x1="0"/></svg></p>'
    )


def test_the_file_names_each_thing_in_both_languages() -> None:
    for language in ("en", "zh"):
        html = file_of(compacted(), language)
        assert f'lang="{load(language).t("language.tag")}"' in html and str(load(language).t("handout.says")) in html


def test_a_moment_of_a_running_task_is_a_file_too() -> None:
    session = FoldedSession().begin()
    session.task("Look")
    session.call_started()
    assert "Look" in file_of(session)
    assert moment(session).status == "running"
