"""The stream of events: nothing lost and nothing doubled, whatever breaks; bounded in memory, rate and time."""

import asyncio
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from harness import events as e
from harness.events import Event, HookFailed
from harness.journal import Recorded
from harness.session import Session
from tests.browser_support import Tabs, until
from tests.harness_support import offline
from tests.web_support import Stream, Web, serving
from web.fragments import message, partial
from web.pages import Pages
from web.reading import Reading
from web.updates import Update
from web.viewer import Viewer

CONNECTED = "!!document.querySelector('#stream')?._htmx?.sse && !document.body.hasAttribute('data-offline')"
ROWS = "[...document.querySelectorAll('#feed > li')].map(row => row.id)"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, offline_assets=True) as running:
        yield running


def numbered(stream: Stream, last: int) -> list[int]:
    return [read.id for read in stream.until(last) if read.id is not None]


def test_a_message_survives_line_ends_of_every_kind() -> None:
    assert message("a\nb\r\nc\rd", 7) == b"id: 7\ndata: a\ndata: b\ndata: c\ndata: d\n\n"
    assert message("") == b"data: \n\n"
    assert message("\ud800") == b"data: ?\n\n"


def test_an_update_names_its_own_target() -> None:
    assert partial(Update("row-1", "<li>x</li>", "append")) == (
        '<hx-partial hx-target="#row-1" hx-swap="beforeend"><li>x</li></hx-partial>'
    )


def test_a_page_reads_on_after_its_number_and_the_header_wins(web: Web) -> None:
    session = web.session()
    last = web.change(session, 5)
    path = f"/s/{session.id}/events"
    assert numbered(web.stream(path), last) == list(range(1, last + 1))
    assert numbered(web.stream(f"{path}?after={last - 2}"), last) == [last - 1, last]
    assert numbered(web.stream(f"{path}?after=0", {"Last-Event-ID": str(last - 1)}), last) == [last]
    for senseless in ("-1", "x", "9" * 30, "²", ""):
        assert numbered(web.stream(path, {"Last-Event-ID": senseless}), last)[-1] == last
    ahead = web.stream(path, {"Last-Event-ID": "999999"})
    following = web.change(session, 1)
    assert numbered(ahead, following) == [following], "a number from another journal is no reason to be silent"


def test_live_events_come_in_order_with_their_numbers(web: Web) -> None:
    session = web.session()
    first = web.change(session, 1)
    stream = web.stream(f"/s/{session.id}/events?after={first}")
    last = web.change(session, 300)
    assert numbered(stream, last) == list(range(first + 1, last + 1))


def test_pages_in_two_languages_get_their_own_words(web: Web) -> None:
    session = web.session()
    english = web.stream(f"/s/{session.id}/events?after=3", {"Accept-Language": "en"})
    chinese = web.stream(f"/s/{session.id}/events?after=3", {"Accept-Language": "zh-CN"})
    last = web.change(session, 1)
    here, there = english.until(last)[-1].data, chinese.until(last)[-1].data
    assert not re.search("[一-鿿]", here) and re.search("[一-鿿]", there)


def test_an_event_is_rendered_once_for_all_pages(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    import web.reading as reading

    rendered: list[int] = []
    original = reading.render_updates

    def counted(session: Session, recorded: Recorded, viewer: object) -> list[Update]:
        rendered.append(recorded.seq)
        return original(session, recorded, viewer)

    monkeypatch.setattr(reading, "render_updates", counted)
    session = web.session()
    streams = [web.stream(f"/s/{session.id}/events?after=3", {"Accept-Language": "en"}) for _ in range(30)]
    last = web.change(session, 4)
    for stream in streams:
        assert numbered(stream, last)[-4:] == list(range(last - 3, last + 1))
    assert sorted(rendered) == list(range(last - 3, last + 1))


def test_a_burst_of_events_sends_few_panels(web: Web) -> None:
    session = web.session()
    stream = web.stream(f"/s/{session.id}/events?after=3")
    for _ in range(10):
        last = web.change(session, 20)
    panels = [read for read in stream.until(last) if read.id is None]
    assert len(panels) <= 6
    final = stream.next()
    assert final and final.id is None and 'hx-target="#panel"' in final.data, "the last state always arrives"
    assert str(f"{session.state.settings['budget']:,}") in final.data


def test_a_fast_reply_is_sent_in_few_pieces_and_whole(tmp_path: Path) -> None:
    model = offline(delay=0.001)
    model.start()
    with serving(tmp_path, model=model) as web:
        session = web.session()
        stream = web.stream(f"/s/{session.id}/events?after=3")
        # Its answer is long enough to take several ticks.
        web.post(f"/s/{session.id}/tasks", {"sample": "sort"})
        started = time.monotonic()
        ended, pieces = read_task(session, stream)
        passed = time.monotonic() - started
        assert pieces, "the reply streamed"
        assert len(pieces) <= passed * 20 + 20
        assert ended
    model.stop()


def read_task(session: Session, stream: Stream) -> tuple[bool, list[str]]:
    """Read until the task has ended; return whether it did, and the pieces of replies."""
    pieces: list[str] = []
    while read := stream.next():
        pieces += re.findall(r'hx-target="#model-call-\d+-(?:text|reasoning)" hx-swap="beforeend">', read.data)
        if read.id and type(session.records[read.id - 1].event).__name__ == "TaskEnded":
            return True, pieces
    return False, pieces


def test_who_joins_in_the_middle_of_a_reply_gets_all_of_it_once(tmp_path: Path) -> None:
    model = offline(delay=0.03)
    model.start()
    with serving(tmp_path, model=model) as web:
        session = web.session()
        web.post(f"/s/{session.id}/tasks", {"text": "Say what you can do."})
        while not (session.partial and len(session.partial[1]) > 10):
            time.sleep(0.01)
        web.run(asyncio.sleep(0.1))
        stream = web.stream(f"/s/{session.id}/events?after={session.committed}")
        whole = stream.next()
        assert whole and whole.id is None and 'hx-target="#model-call-1" hx-swap="outerHTML"' in whole.data
        shown = text_of(whole.data)
        while (read := stream.next()) and read.id is None:
            shown += "".join(re.findall(r'model-call-1-text" hx-swap="beforeend">(.*?)</hx-partial>', read.data, re.S))
        reply = next(each.event.text for each in session.records if type(each.event).__name__ == "ModelCallEnded")
        assert squeezed(shown).endswith(squeezed(reply)) and squeezed(shown).count(squeezed(reply[:20])) == 1
    model.stop()


def text_of(html: str) -> str:
    found = re.search(r'id="model-call-1-text"[^>]*>(.*?)</', html, re.S)
    return found[1] if found else ""


def squeezed(text: str) -> str:
    return re.sub(r"\s+|&#?\w+;|['\"<>&]", "", text)


def test_a_page_that_leaves_is_forgotten_and_the_last_one_ends_the_watching(web: Web) -> None:
    session = web.session()
    streams = [web.stream(f"/s/{session.id}/events") for _ in range(10)]
    wait_for(lambda: web.pages() == 10)
    for stream in streams:
        stream.answer.close()
        stream.close()
    wait_for(lambda: web.pages() == 0)
    assert not session._feed._watchers, "nothing watches the session any more"  # noqa: SLF001
    web.change(session, 3)


def wait_for(true, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_page_that_does_not_read_holds_no_memory_and_nobody_up(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    import web.sse as sse

    monkeypatch.setattr(sse, "STUCK", 1)
    session = web.session()
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", web.port))
        slow.sendall(f"GET /s/{session.id}/events HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n\r\n".encode())
        wait_for(lambda: web.pages() == 1)
        other = web.stream(f"/s/{session.id}/events?after=3")
        # It reads all the while: a page that waits for the last event would itself be one that does not read.
        with ThreadPoolExecutor() as pool:
            reading = pool.submit(numbered, other, 3 + 150 + 1)
            for _ in range(150):
                web.run(record(session, HookFailed(task=1, extension="x", hook="on_event", detail="large " * 20_000)))
            last = web.change(session, 1)
            assert reading.result(60)[-1] == last
        wait_for(lambda: web.pages() == 1)


async def record(session: Session, event: Event) -> None:
    session.emit(event)


def test_the_stream_says_now_and_then_that_it_lives(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    import web.sse as sse

    monkeypatch.setattr(sse, "HEARTBEAT", 0.05)
    session = web.session()
    stream = web.stream(f"/s/{session.id}/events?after=3")
    lines = [stream.answer.readline() for _ in range(8)]
    assert lines == [b": still here\n", b"\n"] * 4


def test_the_server_ends_while_pages_watch(tmp_path: Path) -> None:
    with serving(tmp_path) as web:
        session = web.session()
        streams = [web.stream(f"/s/{session.id}/events?after=3") for _ in range(5)]
        wait_for(lambda: web.pages() == 5)
        started = time.monotonic()
        # What the command does at a signal.
        web.loop.call_soon_threadsafe(web.app.state.site.channels.close)
        assert [stream.next() for stream in streams] == [None] * 5
        assert time.monotonic() - started < 2
        assert web.ask(f"/s/{session.id}/events").status == 503


def test_no_page_of_an_unknown_session(web: Web) -> None:
    assert web.ask("/s/unknown/events").status == 404
    assert web.pages() == 0


def test_an_open_page_costs_less_than_sixty_kibibytes(web: Web) -> None:
    session = web.session()
    web.change(session, 50)
    process = psutil.Process()

    def opened(number: int) -> list[socket.socket]:
        request = f"GET /s/{session.id}/events?after=50 HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n\r\n".encode()
        sockets = []
        for _ in range(number):
            sockets.append(socket.create_connection(("127.0.0.1", web.port)))
            sockets[-1].sendall(request)
        wait_for(lambda: web.pages() == len(all_sockets) + number, 60)
        return sockets

    all_sockets: list[socket.socket] = []
    all_sockets += opened(50)
    before = process.memory_info().rss
    all_sockets += opened(200)
    web.change(session, 5)
    time.sleep(0.5)
    grown = process.memory_info().rss - before
    for each in all_sockets:
        each.close()
    assert grown / 200 < 60 * 1024


def test_a_hidden_tab_loses_and_doubles_nothing(web: Web, tabs: Tabs) -> None:
    session = web.session()
    web.change(session, 1)
    tab, page = tabs.open(f"{web.address}/s/{session.id}")
    wait_for(lambda: tabs.value(page, CONNECTED))
    other, _ = tabs.open("about:blank")
    wait_for(lambda: tabs.value(page, "document.hidden"))
    wait_for(lambda: web.pages() == 0)
    before = len(tabs.value(page, ROWS))
    last = web.change(session, 25)
    assert len(tabs.value(page, ROWS)) == before
    tabs.show(tab)
    wait_for(lambda: f"row-{last}" in tabs.value(page, ROWS))
    for _ in range(5):
        tabs.show(other)
        web.change(session, 3)
        tabs.show(tab)
        last = web.change(session, 3)
    wait_for(lambda: f"row-{last}" in tabs.value(page, ROWS))
    rows = tabs.value(page, ROWS)
    assert rows == list(dict.fromkeys(rows))
    assert [int(row[4:]) for row in rows if row.startswith("row-")] == list(range(2, last + 1))


def test_a_broken_connection_and_a_new_server_lose_and_double_nothing(tmp_path: Path, page) -> None:
    with serving(tmp_path, offline_assets=True) as web:
        session = web.session()
        page.goto(f"{web.address}/s/{session.id}")
        until(page, CONNECTED)
        web.change(session, 3)
        web.drop()
        last = web.change(session, 10)
        until(page, f"!!document.querySelector('#row-{last}')")
        port, path = web.port, session.id
    until(page, "document.body.hasAttribute('data-offline') && !document.querySelector('#offline').hidden")
    with serving(tmp_path, port=port, offline_assets=True) as web:
        session = web.run(web.library.open(path))
        last = web.change(session, 10)
        until(page, f"!!document.querySelector('#row-{last}')")
        until(page, "document.querySelector('#offline').hidden")
        rows = page.evaluate(ROWS)
        assert [int(row[4:]) for row in rows] == list(range(2, last + 1))
        page.click("#budget button >> nth=0")
        page.wait_for_url("**budget=**")


def test_a_first_connection_that_fails_is_tried_again(web: Web, page) -> None:
    session = web.session()
    failed: list[str] = []

    def once(route) -> None:
        if len(failed) < 2:
            failed.append(route.request.url)
            route.fulfill(status=503, body="") if len(failed) == 1 else route.abort()
        else:
            route.continue_()

    page.route("**/events**", once)
    page.goto(f"{web.address}/s/{session.id}")
    until(page, CONNECTED)
    last = web.change(session, 2)
    until(page, f"!!document.querySelector('#row-{last}')")
    rows = page.evaluate(ROWS)
    assert len(failed) == 2 and rows == list(dict.fromkeys(rows))
    wait_for(lambda: web.pages() == 1)


def test_a_panel_that_was_drawn_before_the_commit_is_drawn_again_after_it(web: Web) -> None:
    """What is committed is shown in the stepper, so the same records may give another panel."""
    session = web.session()

    async def drawn() -> tuple[bytes, bytes]:
        with web.app.state.site.channels.watch(session) as channel:
            reading = Reading(channel, Viewer(Pages.load()), 0)
            for task in (1, 2):
                session.emit(e.TaskStarted(task=task, text="x", language="en"))
                session.emit(e.TaskEnded(task=task, reason="answered", seconds=0.1))
            early = reading._panel()  # noqa: SLF001
            while session.committed < len(session.records):
                await asyncio.sleep(0.005)
            return early, reading._panel()  # noqa: SLF001

    early, late = web.run(drawn())
    assert b'data-step="back"' not in early and b'data-step="back"' in late
