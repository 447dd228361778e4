"""A student at lab 09: what becomes of large and old results, what lies on the desk, what deciding anew costs."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page

from harness import events as e
from harness.result_events import Decision
from harness.session import Session
from tests.browser_support import until
from tests.harness_support import ROOT, events, offline, run_sample
from tests.test_browser_lab07 import figure
from tests.test_browser_lab08 import ALIVE, check_looks, kinds, play, proved, rows, settled, values, visit
from tests.web_support import Web, serving

Axe = Callable[[Page], list[str]]
FILE = ".tool-results/1-search.txt"
PRESET = {"en": "Numbers: Small window for the samples", "zh": "数值：示例用的小窗口"}
OPEN = {"en": "The exact text that the model reads", "zh": "模型实际读到的文字"}
TURN = '[data-figure="call.{}.reported"]'


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with offline() as model, serving(tmp_path_factory.mktemp("lab"), lab="09", model=model, offline_assets=True) as lab:
        yield lab


def decisions(session: Session, verdict: str) -> list[Decision]:
    made = [each for event in events(session, e.ResultsDecided) for each in event.decisions]
    return [each for each in made if each.verdict == verdict]


def check_single(page: Page, session: Session, language: str) -> None:
    """The row says how long the result was and is, and where the whole of it lies; the exact text can be opened."""
    [made] = decisions(session, "single")
    row = rows(page, "ResultsDecided")
    assert row.count() == 1 and row.locator("[data-verdict=single]").count() == 1
    assert values(row.locator('[data-figure="decided.chars"], [data-figure="decided.after"]')) == [3670, 468]
    assert FILE in row.locator("[data-verdict] > .meta code").inner_text()
    row.get_by_text(OPEN[language]).click()
    text = row.locator("pre").inner_text()
    assert text == made.text and text[:300] == session.state.results[made.call_id].message.text[:300]
    row.get_by_text(OPEN[language]).click()
    assert (session.workspace.root / FILE).is_file() and "3,670" in text and FILE in text
    assert rows(page, "ToolEnded").locator(".sent-mark").is_visible()
    assert "E-12" in answer(page)


def answer(page: Page) -> str:
    return rows(page, "ModelCallEnded").locator(".prose").last.inner_text()


def check_together(page: Page) -> None:
    """Of three results the largest went, and what only it says is missing from the answer."""
    row = rows(page, "ResultsDecided").last
    assert row.locator("[data-verdict]").count() == row.locator("[data-verdict=together]").count() == 1
    assert "handover-2.md" in row.inner_text() and values(row.locator('[data-figure="decided.chars"]')) == [1208]
    reads = rows(page, "ToolEnded").filter(has_text="handover")
    assert reads.count() == 3 and reads.locator(".sent-mark").count() == 1
    assert "dripping" not in answer(page)


def check_rounds(page: Page) -> None:
    """A batch of old results shrank, then the context was compacted, all inside one task that read no round twice."""
    row = rows(page, "ResultsDecided").last
    assert row.locator("[data-verdict=stale]").count() == row.locator("[data-verdict]").count() == 3
    order = kinds(page)
    batch, cut = len(order) - 1 - order[::-1].index("ResultsDecided"), order.index("ContextCompacted")
    end = len(order) - 1 - order[::-1].index("TaskEnded")
    assert batch < cut < end and order[batch:cut].count("ToolEnded") == 2, "after the sixth, and after the eighth"
    read = re.findall(r"read (round-\d\.md)", "\n".join(rows(page, "ToolEnded").locator("summary").all_inner_texts()))
    assert read == [f"round-{n}.md" for n in range(1, 9)]
    card = rows(page, "ContextCompacted")
    assert card.locator("[data-pinned]").is_visible() and figure(page, "cut.budget") == 4180
    desk = card.locator(".beside pre").inner_text()
    assert [name for name in re.findall(r"File `(\S+)`", desk)] == [
        "skills/rounds/SKILL.md",
        "round-6.md",
        "round-5.md",
    ]
    assert "tangerine" in desk and "- search: Find lines" in desk
    assert "tangerine" not in card.locator(".summary-text").inner_text()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_samples_show_what_they_promise(page: Page, web: Web, axe: Axe, language: str) -> None:
    session = visit(page, web, language)
    play(page, 1)
    check_single(page, session, language)
    play(page, 2)
    assert "05:42" in answer(page) and "E-31" not in answer(page)
    if language == "en":
        play(page, 3)
        back = rows(page, "ToolEnded").last
        assert FILE in back.inner_text() and back.locator(".sent-mark").count() == 0 and "E-31" in answer(page)
        assert rows(page, "ResultsDecided").count() == 1
        proved(page, "spilled", "back")
        play(page, 4)
        check_together(page)
        play(page, 5)
        check_rounds(page)
        play(page, 6)
        assert "tangerine" in answer(page) and "skills/rounds/SKILL.md, beside the summary" in answer(page)
        play(page, 7)
        assert "67 %" in answer(page) and "round-1.md" in rows(page, "ToolEnded").last.inner_text()
        proved(page, "spilled", "back", "aged", "inside")
    settled(page, session)
    assert page.locator("[data-chip=preset]").inner_text() == PRESET[language]
    assert figure(page, "threshold", "#threshold") == 4180 and page.locator("#threshold [data-line=threshold]").count()
    check_looks(page, axe, ("?tab=lost",) if language == "en" else ("?view=model",))
    page.goto(page.url.split("?")[0] + "?view=model")
    assert "E-31" not in page.locator("#feed").inner_text() or language == "en"


@pytest.mark.parametrize("task", [1, 3])
def test_a_fork_keeps_the_previews_and_the_files(page: Page, web: Web, task: int) -> None:
    first = visit(page, web)
    play(page, 1, 2, 3)
    page.get_by_role("button", name=f"Fork from here, the end of task {task}", exact=True).click()
    until(page, f"location.pathname !== '/s/{first.id}' && {ALIVE}")
    made = web.run(web.library.open(page.url.split("/s/")[1].split("?")[0]))
    assert (made.workspace.root / FILE).read_bytes() == (first.workspace.root / FILE).read_bytes()
    assert values(rows(page, "ResultsDecided").locator('[data-figure="decided.after"]')) == [468]
    play(page, 2)
    assert made.state.request().messages[2:4] == first.state.request().messages[2:4], "the same preview"
    assert ("E-31" in answer(page)) == (task == 3), "what was read back is in the later fork alone"
    page.goto(page.url.split("?")[0] + "?view=model")
    assert page.locator("#feed .result.sent").count() == 1


def test_deciding_anew_breaks_the_start_that_requests_share(page: Page, web: Web) -> None:
    spent = []
    for anew in (False, True):
        session = visit(page, web)
        if anew:
            page.locator("#drawer > summary").click()
            page.get_by_label("Decide about results anew each time", exact=True).check()
            page.locator("#use-numbers").click()
            rows(page, "SettingChanged").wait_for()
            page.locator("#drawer > summary").click()
        if anew:
            play(page, *range(1, 8))
        else:
            web.run(samples(session), 60)
            page.reload()
        calls = rows(page, "ModelCallEnded")
        assert calls.count() == 20
        spent.append(
            sum(values(calls.locator(TURN.format("prompt")))) - sum(values(calls.locator(TURN.format("cached"))))
        )
    told = (ROOT / "labs/09-tool-result-budgets/README.md").read_text("utf-8").split("goes wrong on purpose")[1]
    for figure_of, told_of in zip(spent, re.findall(r"\d+,\d{3}", told), strict=False):
        assert abs(figure_of - int(told_of.replace(",", ""))) < 0.05 * figure_of, "the text's figures"
    proved(page, "anew")
    assert spent[1] > 1.3 * spent[0]
    assert "Decided anew" in rows(page, "ResultsDecided").last.inner_text()
    shorter = [
        each.seq for each in session.records
        if isinstance(each.event, e.ModelCallStarted) and each.event.task == 5
    ][7]  # fmt: skip
    page.goto(f"{page.url.split('?')[0]}?tab=diff&at={shorter}")
    assert page.locator("#panel [data-breaks] [data-part=results]").count() == 1


async def samples(session: Session) -> None:
    for number in range(1, 8):
        await run_sample(session, number)
