"""A student at lab 08: every sample shows on the page what its `watch` promises, and what the text lets one try."""

import re
from collections.abc import Callable, Iterator, Sequence

import pytest
from playwright.sync_api import Locator, Page

from harness import by_hand
from harness import events as e
from harness.session import Session
from tests.browser_support import until
from tests.harness_support import ROOT, offline
from tests.test_browser_lab07 import figure
from tests.web_support import Web, serving
from web.visitor import LANGUAGE_COOKIE

Axe = Callable[[Page], list[str]]
LAB = ROOT / "labs/08-threshold-and-cut-point"
ALIVE = "!!document.querySelector('#stream')?._htmx?.sse"
ENDED = "document.querySelectorAll('[data-event=\"TaskEnded\"]').length"
# The newest rows as they are, and the parts around them as they read: what a reload must show as well.
SHOWN = (
    "[...[...document.querySelectorAll('#feed > li')].slice(-60).map(row => row.outerHTML),"
    "...['meter', 'panel', 'guide-ticks', 'drawer-session'].map(id => document.getElementById(id)?.innerText)]"
)
LIMITS = {
    "en": ["Do not change any file but report.py.", "The signature of monthly_total must stay as it is."],
    "zh": ["除 report.py 外不要改动任何文件，monthly_total 的签名也不要动。"],
}
BESIDE = "Answer from what you have, without reading the logs again."
SAYS = {
    "en": {"cut": "Context compacted", "pinned": "stays word for word", "lost": "What was lost",
           "preset": "Numbers: Small window for the samples"},
    "zh": {"cut": "上下文已整理", "pinned": "仍然逐字保留", "lost": "丢了什么",
           "preset": "数值：示例用的小窗口"},
}  # fmt: skip


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with offline() as model, serving(tmp_path_factory.mktemp("lab"), lab="08", model=model, offline_assets=True) as lab:
        yield lab


def visit(page: Page, web: Web, language: str = "en", query: str = "", **settings: int) -> Session:
    """Open a new session's page in a browser of this language, once the page is alive."""
    session = web.run(web.library.create(language=language))

    async def change() -> None:
        for name, value in settings.items():
            by_hand.change_setting(session, name, value)

    web.run(change())
    page.context.add_cookies([{"name": LANGUAGE_COOKIE, "value": language, "url": web.address}])
    page.goto(f"{web.address}/s/{session.id}{query}")
    until(page, ALIVE)
    return session


def play(page: Page, *numbers: int) -> None:
    """Run samples to their end, one after another, and allow all that they ask for."""
    for number in numbers:
        press(page, page.locator(f'[data-sample="{number}"]'))


def press(page: Page, start: Locator) -> None:
    """Press what starts a task, and allow all that it asks for until it has ended."""
    over = f"{ENDED} > {page.evaluate(ENDED)}"
    start.click()
    while True:
        until(page, f"{ALIVE} && (({over}) || document.querySelector('form[data-approval]'))", 90)
        form = page.locator("form[data-approval]").last
        if not form.count():
            break
        asked = form.locator("[name=call_id]").get_attribute("value")
        form.locator('[value="allow"]').click()
        until(page, f"{ALIVE} && !document.querySelector('form[data-approval] [value=\"{asked}\"]')", 90)
    until(page, "document.body.dataset.state === 'idle'")


def settled(page: Page, session: Session) -> None:
    """Wait until the panel shows the session as it is."""
    until(page, f"document.querySelector('#panel [data-figure=\"context.chars\"]')?.dataset.value === "
                f"'{session.state.context.total.chars}'")  # fmt: skip


def rows(page: Page, *events: str) -> Locator:
    return page.locator("#feed > li").and_(page.locator(",".join(f'[data-event="{event}"]' for event in events)))


def kinds(page: Page) -> list[str]:
    return page.locator("#feed > li").evaluate_all("rows => rows.map(row => row.dataset.event)")


def values(found: Locator) -> list[int]:
    return [int(value) for value in found.evaluate_all("all => all.map(one => one.dataset.value)")]


def proved(page: Page, *ticks: str) -> None:
    """Wait until the journal has proved these ticks, which comes a little later than the rows."""
    for tick in ticks:
        until(page, f"document.querySelector('[data-tick={tick}]').dataset.seen === 'true'")


def check_looks(page: Page, axe: Axe, queries: Sequence[str] = ("",)) -> None:
    """At both widths and in both themes the page is clean and nothing sticks out; a reload shows the same."""
    live = None
    # What is around the rows comes a little later than they do.
    while live != (live := page.evaluate(SHOWN)):
        page.wait_for_timeout(250)
    page.reload()
    until(page, ALIVE)
    assert page.evaluate(SHOWN) == live, "what came live is what a reload shows"
    base = page.url.split("?")[0]
    for query in queries:
        page.goto(base + query)
        for theme, width in (("light", 1280), ("dark", 320)):
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            page.set_viewport_size({"width": width, "height": 800})
            assert axe(page) == [], f"{query} in {theme} at {width}"
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{query} sticks out"
    page.set_viewport_size({"width": 1280, "height": 800})


def check_inside(page: Page, language: str) -> None:
    """Every log made the request larger; past the threshold the task was compacted, and it went on."""
    order = kinds(page)
    cut = order.index("ContextCompacted")
    assert order.index("TaskStarted") < cut < order.index("TaskEnded") and order[cut:].count("ToolEnded") == 3
    measured = rows(page, "ContextMeasured")
    estimates = values(measured.locator('[data-figure="measured.estimate"]'))
    before = order[:cut].count("ContextMeasured")
    assert estimates[:before] == sorted(estimates[:before]) and before == 7
    assert all(after - first > 450 for first, after in zip(estimates[2:6], estimates[3:7], strict=True)), "four steps"
    assert [estimate > 3200 for estimate in estimates] == [False] * 6 + [True] + [False] * 3
    assert measured.locator(".past").count() == 1, "and the one row is marked"
    card = rows(page, "ContextCompacted")
    assert SAYS[language]["cut"] in card.inner_text()
    assert values(card.locator('[data-figure="cut.measured"],[data-figure="cut.budget"]')) == [estimates[6], 3200]
    assert SAYS[language]["pinned"] in card.locator("[data-pinned]").inner_text()
    assert figure(page, "cut.kept", '[data-event="ContextCompacted"]') == 2 and page.locator("#cut-line").count() == 1
    end = ".zh.md" if language == "zh" else ".md"
    assert f"README{end}, log-1{end} … log-3{end}" in card.locator(".summary-text").inner_text(), "what is done"
    read = [re.search(r"\S+\.(?:md|py)", text) for text in rows(page, "ToolEnded").locator("summary").all_inner_texts()]
    paths = [found.group() for found in read if found]
    assert len(paths) == 7 and len(set(paths) - {"report.py"}) == 5, "no log is read twice"
    dimmed = rows(page, "ToolEnded", "TaskStarted").filter(has=page.locator(".gone-mark:visible"))
    assert dimmed.count() == 5 and not dimmed.and_(page.locator('[data-event="TaskStarted"]')).count()


def check_limits(page: Page) -> None:
    """The second compaction brought the first summary up to date; each limit stands word for word, and says where."""
    first, second = rows(page, "ContextCompacted").all()
    assert first.locator("header .gone-mark").is_visible() and "gave way too" in second.locator(".nums").inner_text()
    assert BESIDE in second.locator(".beside pre").inner_text()
    told = second.locator(".demands li").all_inner_texts()
    assert told == [f"{each} in the summary" for each in LIMITS["en"]] + [f"{BESIDE} beside it"]
    proved(page, "inside", "updated", "wish")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_samples_show_what_they_promise(page: Page, web: Web, axe: Axe, language: str) -> None:
    session = visit(page, web, language)
    answer = rows(page, "ModelCallEnded").locator(".prose").last
    play(page, 1)
    check_inside(page, language)
    play(page, 2)
    assert "9e41c7" not in answer.inner_text()
    page.locator("#panel").get_by_role("link", name=SAYS[language]["lost"]).click()
    lost = page.locator('#panel [data-fact][data-fate="lost"] .fact-text').all_inner_texts()
    assert {"9e41c7", "ledger-copy"} <= set(lost)
    page.goto(page.url.split("?")[0])
    until(page, ALIVE)
    if language == "en":
        play(page, 3)
        assert "9e41c7" in answer.inner_text() and "ledger-copy" in answer.inner_text()
        play(page, 4)
        assert all(limit in answer.inner_text() for limit in (*LIMITS["en"], BESIDE))
        check_limits(page)
    settled(page, session)
    assert page.locator("[data-chip=preset]").inner_text() == SAYS[language]["preset"]
    assert figure(page, "threshold", "#threshold") == 3200 and page.locator("#threshold [data-line=threshold]").count()
    assert figure(page, "next_cut.removed", "#next-cut") > 0
    check_looks(page, axe, ("?tab=lost&compaction=1",) if language == "en" else ("?view=model",))
    page.goto(page.url.split("?")[0] + "?view=model")
    assert kinds(page)[:3] == ["InstructionsSet", "ContextCompacted", "TaskStarted"], "summary, request, newest"


def test_diff_shows_what_a_cut_costs(page: Page, web: Web) -> None:
    session = visit(page, web)
    play(page, 1)
    [call] = [
        each.seq for each in session.records if isinstance(each.event, e.ModelCallStarted) and each.event.call == 8
    ]
    page.goto(f"{page.url}?tab=diff&at={call}")
    assert "call 8 goes out" in page.locator("#stepper").inner_text()
    start = sum(size.chars for part, size in session.state.context.totals.items() if part in ("system", "tools"))
    assert figure(page, "diff.shared.chars") == start, "the tool definitions and the system prompt"
    assert page.locator("#panel [data-breaks] [data-part=summary]").count() == 1


def test_a_threshold_of_your_own_and_a_tail_that_is_too_long(page: Page, web: Web) -> None:
    visit(page, web, trigger=2000)
    play(page, 1)
    assert rows(page, "ContextCompacted").count() == 3, "three cuts in one task"
    assert page.locator("[data-chip=preset]").inner_text() == "Numbers: your own"
    visit(page, web, keep=3000)
    play(page, 1)
    refused = rows(page, "CompactionRefused").all_inner_texts()
    assert "the cut point falls at the very start" in refused[0] and "no shorter than" in refused[1]
    assert "Failure 3 of 3 in a row" in refused[3] and "too many attempts" in refused[4]
    assert "request too large" in rows(page, "TaskEnded").inner_text()
    page.locator("#breaker").wait_for()


def choose(page: Page, fault: str) -> None:
    """Choose a fault by its name, or that there is none, and close the drawer again."""
    chosen = page.locator('[data-event="FaultChosen"]').count()
    page.locator("#drawer > summary").click()
    page.get_by_label(fault, exact=True).check()
    page.locator("#use-fault").click()
    until(page, f"document.querySelectorAll('[data-event=FaultChosen]').length > {chosen}")
    page.locator("#drawer > summary").click()


# The fault, none, the button, where the text tells what to send, and what the page says.
CUT_OFF = {
    "en": {"fault": "Summary is cut off", "none": "Nothing", "button": "Compact now", "sends": "Send “(.+?)”",
           "refused": "the summary was cut off before its end", "breaker": "too many attempts",
           "too_large": "request too large", "passes": "The tests pass", "text": "README.md"},
    "zh": {"fault": "摘要没写完", "none": "不出错", "button": "现在整理", "sends": "发一句“(.+?)”",
           "refused": "摘要没写完就被截断了", "breaker": "连续失败的次数太多",
           "too_large": "请求太大", "passes": "测试全部通过", "text": "README.zh.md"},
}  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
def test_summaries_that_are_cut_off_replace_nothing_until_it_is_done_by_hand(
    page: Page, web: Web, language: str
) -> None:
    visit(page, web, language)
    says = CUT_OFF[language]
    choose(page, says["fault"])
    play(page, 1)
    refused = rows(page, "CompactionRefused").all_inner_texts()
    assert all(says["refused"] in each for each in refused[:3]) and says["breaker"] in refused[3]
    assert rows(page, "SummaryCallEnded").count() == 6, "each was asked for once more"
    if language == "zh":
        # In Chinese the answer still begins, and the window is full before it is whole.
        assert "回复在这里被截断" in rows(page, "ModelCallEnded").last.inner_text()
        until(page, "document.querySelector('#meter').innerText.includes('已超出窗口')")
        play(page, 1)
    assert rows(page, "ContextCompacted").count() == 0
    assert says["too_large"] in rows(page, "TaskEnded").last.inner_text()
    proved(page, "failed")
    page.locator("#breaker").wait_for()
    choose(page, says["none"])
    page.locator("#by-hand summary").first.click()
    page.get_by_role("button", name=says["button"], exact=True).click()
    until(page, "!!document.querySelector('[data-event=ContextCompacted]') && document.body.dataset.state === 'idle'")
    until(page, "!document.querySelector('#breaker')")
    [message] = re.findall(says["sends"], (LAB / says["text"]).read_text("utf-8"))
    page.locator("textarea[name=text]").fill(message)
    press(page, page.locator("#composer-actions .strong"))
    assert says["passes"] in rows(page, "ModelCallEnded").locator(".prose").last.inner_text(), "it goes on"
    assert rows(page, "ContextCompacted").count() == 1, "and nothing is read again"
