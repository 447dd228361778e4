"""A session of 2,000 messages in the panel: only what is seen is drawn, whatever the tab or the moment."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from harness import by_hand
from harness import events as e
from harness.messages import ToolCall
from harness.session import Session
from harness.sizes import Usage
from tests.harness_support import until
from tests.web_support import Web, serving


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("long"), offline_assets=True) as web:
        yield web


def long_session(web: Web, turns: int) -> Session:
    """Record one task of so many turns, each a call and its result, and compact all but its end by hand."""
    session = web.session()

    async def record() -> None:
        session.emit(e.TaskStarted(task=1, text="Read every log. Don't change any file.", language="en"))
        for number in range(turns):
            one_turn(session, number)
        session.emit(e.TaskEnded(task=1, reason="answered", seconds=1.0))
        plan = by_hand.plan_by_hand(session.strategy, session.state, 0)[0]
        by_hand.compact_now(session, focus="", keep=0, cut=plan.cut, language="en")
        await until(lambda: session.status == "idle" and session.committed == len(session.records), 60)
        assert session.state.compactions

    web.run(record(), 90)
    return session


def one_turn(session: Session, number: int) -> None:
    call = ToolCall(f"r{number}", "read", f'{{"path":"logs/day-{number}.md"}}')
    parts, digest = dict(session.state.context.totals), session.state.context.digest("offline")
    named = {"call": number + 1, "task": 1, "turn": number + 1}
    messages = len(session.state.context.entries) + 1
    session.emit(e.ModelCallStarted(messages=messages, parts=parts, digest=digest, **named))
    session.emit(
        e.ModelCallEnded(
            text="", calls=(call,), reasoning="", finish="tool_calls", usage=Usage(1000 + number, 9), seconds=0.1,
            **named,
        )
    )  # fmt: skip
    text = f"08:{number % 60:02d} Confirmed: probe {number} → 503 after {number * 7} ms, request 7f3{number:05d}"
    session.emit(
        e.ToolEnded(task=1, call_id=call.id, name="read", arguments=call.arguments, text=text, ok=True, seconds=0.01)
    )


def elements(page: Page) -> int:
    return page.evaluate("document.querySelectorAll('*').length")


@pytest.mark.parametrize("tab", ["now", "turns", "diff", "lost"])
def test_ten_times_the_messages_draw_no_more(page: Page, web: Web, tab: str) -> None:
    drawn = []
    for turns in (150, 1000):
        session = long_session(web, turns)
        assert len(session.state.history) == 2 * turns + 1
        page.goto(f"{web.address}/s/{session.id}?tab={tab}")
        now = elements(page)
        last = session.state.calls[turns - 1].seq
        page.goto(f"{web.address}/s/{session.id}?tab={tab}&at={last}")
        assert page.locator('[data-step="back"]').count() == 1
        drawn.append((now, elements(page)))
    for small, large in zip(*drawn, strict=True):
        assert large <= small * 1.25, f"{small} elements became {large}"
        assert large < 9_000
