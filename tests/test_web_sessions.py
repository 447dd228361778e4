"""The list of sessions over HTTP: names, the second question, files in and out, and who may send them."""

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from harness import by_hand
from harness.copies.fork import fork
from harness.session import Session
from tests.harness_support import run, until
from tests.test_web_guard import assert_secured
from tests.web_html import elements, find
from tests.web_support import FORM, MINE, Reply, Web, serving
from web.body import UPLOAD_LIMIT

TOKEN = "c4" * 24
HTML = {"Accept": "text/html"}
HOSTILE = '<script>alert(1)</script><b hx-get="/x">bold</b>'
PART = '--line\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
KIND = {"Content-Type": "multipart/form-data; boundary=line"}
SENT = ("X-Context-Lab: 1", "Content-Type: multipart/form-data; boundary=line")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("open")) as running:
        yield running


@pytest.fixture
def session(web: Web) -> Session:
    return lived(web)


def lived(web: Web, words: str = "Invent a new colour.") -> Session:
    async def live() -> Session:
        session = await web.library.create(language="en")
        await run(session, words)
        await until(lambda: session.committed == len(session.records))
        return session

    return web.run(live())


def form(token: str, file: bytes, name: str = "log.jsonl") -> bytes:
    """Return a form with a file, as a browser writes it."""
    more = f'; filename="{name}"\r\nContent-Type: application/octet-stream'
    head = PART.format(name="token", more="") + token + "\r\n" + PART.format(name="file", more=more)
    return head.encode() + file + b"\r\n--line--\r\n"


def send(web: Web, file: bytes, headers: dict[str, str] | None = None, token: str | None = None, **more: str) -> Reply:
    body = form(web.settings.form_token if token is None else token, file, **more)
    return web.ask("/sessions/import", "POST", body, KIND | HTML | (headers or {}))


def ids(page: Reply) -> list[str]:
    return [
        each.attributes["id"][8:] for each in find(page.text) if each.attributes.get("id", "").startswith("session-")
    ]


def test_a_session_goes_out_and_comes_in_again(web: Web, session: Session) -> None:
    out = web.ask(f"/s/{session.id}/export.jsonl")
    assert out.headers["content-disposition"] == f'attachment; filename="context-lab-{session.id}.jsonl"'
    assert out.headers["content-type"].startswith("application/jsonl")
    assert_secured(dict(out.headers))
    assert json.loads(out.text.splitlines()[0])["events"] == len(session.records) == out.text.count("\n") - 1
    answer = send(web, out.body, name="our log.jsonl")
    assert answer.status == 303
    page = web.ask(answer.headers["location"], headers=HTML).text
    assert "our log.jsonl" in page and "Invent a new colour." in page
    assert "copy of your folder" not in page, "it works in the lab's own"
    assert ids(web.ask("/sessions"))[:2] == [answer.headers["location"][3:], session.id]


def test_what_came_from_a_file_is_no_fork_of_what_never_was_here(web: Web, session: Session) -> None:
    copied = web.run(fork(web.library, session, 1))
    web.run(until(lambda: copied.committed == len(copied.records)))
    lines = web.ask(f"/s/{copied.id}/export.jsonl").text.replace(session.id, "x" * len(session.id))
    there = send(web, lines.encode()).headers["location"][3:]
    page = web.ask("/sessions", headers=HTML).text
    row = next(each.text for each in find(page) if each.attributes.get("id") == f"session-{there}")
    assert "imported from log.jsonl" in row and "no longer here" not in row


def test_what_is_no_session_is_said_on_the_list_and_nothing_comes_in(web: Web, session: Session) -> None:
    before = ids(web.ask("/sessions"))
    out = web.ask(f"/s/{session.id}/export.jsonl").body
    for file, line in ((b"hello", "no session that Context Lab"), (out.replace(b"colour", b"color"), "Line ")):
        answer = send(web, file)
        assert answer.status == 422 and re.search(rf'role="alert">[^<]*{line}[^<]*othing was imported', answer.text)
        assert ids(answer) == before
    assert "什么都没有导入" in send(web, b"hello", {"Accept-Language": "zh"}).text
    folders = {path.name for path in (web.library.setup.data / "sessions").iterdir()}
    assert folders == set(before)


def test_the_checks_of_an_upload_come_in_their_order(web: Web, session: Session, tmp_path: Path) -> None:
    out = web.ask(f"/s/{session.id}/export.jsonl").body
    before = ids(web.ask("/sessions"))
    for headers, token, status in [
        ({"Host": "evil.example"}, None, 400),
        ({"Origin": "http://evil.example"}, None, 403),
        ({"Sec-Fetch-Site": "cross-site"}, None, 403),
        ({}, "wrong", 403),
        ({}, "", 403),
    ]:
        assert send(web, out, headers, token).status == status
    assert ids(web.ask("/sessions")) == before
    assert send(web, out, MINE, "").status == 303
    with serving(tmp_path, token=TOKEN, host="lab.example") as closed:
        assert send(closed, out).status == 401
        assert send(closed, out, {"Authorization": f"Bearer {TOKEN}"}, "wrong").status == 403
        assert send(closed, out, {"Authorization": f"Bearer {TOKEN}"}).status == 303


def test_only_the_import_takes_a_file_and_it_takes_nothing_else(web: Web, session: Session) -> None:
    body = form(web.settings.form_token, b"x")
    for path in ("/sessions", f"/s/{session.id}/name", f"/s/{session.id}/delete", "/sessions/import/", "/preferences"):
        assert web.ask(path, "POST", body, MINE | KIND).status in (404, 415)
    assert web.post("/sessions/import", {"file": "x"}).status == 415
    assert web.ask("/sessions/import", "POST", b"{}", MINE | {"Content-Type": "application/json"}).status == 415
    assert web.ask("/sessions/import").status == 405
    big = b"text=" + b"a" * 1_100_000
    assert web.ask(f"/s/{session.id}/tasks", "POST", big, MINE | FORM).status == 413


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("multipart/form-data", b"x", 400),
        ("multipart/form-data; boundary=", b"x", 400),
        ("multipart/form-data; boundary=line", b"", 400),
        ("multipart/form-data; boundary=line", b"--other\r\n\r\n", 400),
        ("multipart/form-data; boundary=line", b"--line\r\nno header\r\n\r\nx\r\n--line--\r\n", 400),
        ("multipart/form-data; boundary=line", b"--line\r\nContent-Disposition: form-data\r\n\r\nx\r\n--line--", 400),
        ("multipart/form-data; boundary=line", form("t", b"x", "")[:-12], 400),
        ("multipart/form-data; boundary=line", form("t", b"x" * 3_000_000)[:-12], 400),
        ("multipart/form-data; boundary=line", form("t", b"x", ""), 422),
        ("multipart/form-data; boundary=line", form("t", b"x")[:-2] + b"\r\n" + form("t", b"y"), 422),
        ("multipart/form-data; boundary=line", form("t", b"x")[:-10] + b"\r\n" + form("t", b"y"), 400),
        ("multipart/form-data; boundary=line", form("t" * 20_000, b"x"), 400),
        ("multipart/form-data; boundary=line; charset=\xff", form("t", b"x"), 422),
        ("multipart/form-data; boundary=line", b"--line\r\n" + b"X-A: b\r\n" * 9_000 + b"\r\n", 400),
        ("multipart/form-data; boundary=line", b"--line\r\nX-" + b"a" * 100_000 + b": b\r\n\r\n", 400),
    ],
)
def test_a_broken_form_is_one_clear_line(web: Web, kind: str, body: bytes, status: int) -> None:
    answer = web.ask("/sessions/import", "POST", body, MINE | HTML | {"Content-Type": kind})
    assert answer.status == status and "alert" in answer.text


def test_a_file_of_more_than_64_megabytes_is_refused_also_in_chunks(web: Web) -> None:
    head = "\r\n".join(["POST /sessions/import HTTP/1.1", f"Host: 127.0.0.1:{web.port}", *SENT, ""])
    claimed = web.raw(f"{head}Content-Length: {UPLOAD_LIMIT + 1}\r\n\r\n".encode())
    assert claimed.startswith(b"HTTP/1.1 413") and b"64 MB" in claimed, "the claim is enough"
    start = form(web.settings.form_token, b"")[:-12]
    piece = b"x" * 1_048_576
    received = b""
    with socket.create_connection(("127.0.0.1", web.port), 20) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n{len(start):x}\r\n".encode() + start + b"\r\n")
        for _ in range(66):
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        received = connection.recv(65536)
    assert received == b"" or received.startswith(b"HTTP/1.1 413")
    assert web.ask("/healthz").status == 200


def test_a_name_is_given_and_taken_away(web: Web, session: Session) -> None:
    page = web.ask("/sessions?q=colour", headers=HTML).text
    assert f'action="/s/{session.id}/name"' in page and 'name="back" value="/sessions?q=colour"' in page
    answer = web.post(f"/s/{session.id}/name", {"name": f"  {HOSTILE}  x ", "back": "/sessions?q=a&page=2"})
    assert (answer.status, answer.headers["location"]) == (303, f"/sessions?q=a&page=2#session-{session.id}")
    named = web.ask("/sessions", headers=HTML).text
    assert "&lt;script&gt;alert(1)" in named and "alert(1)</script>" not in named
    inside = [each for each in elements(named) if "hx-get" in each.attributes]
    assert not inside and session.state.name == f"{HOSTILE} x"
    for back in ("//evil.example", "http://evil.example", "/s/x", "/sessionsx", ""):
        answer = web.post(f"/s/{session.id}/name", {"name": "", "back": back})
        assert answer.headers["location"] == f"/sessions#session-{session.id}"
    assert session.state.name == ""
    assert web.post(f"/s/{session.id}/name", {"name": "x"}, {}).status == 403
    assert web.post("/s/none/name", {"name": "x"}).status == 404


@pytest.mark.parametrize("path", ["/name", "/preferences"])
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_a_form_leads_back_to_a_page_of_ours_however_it_is_written(
    web: Web, session: Session, path: str, headers: dict[str, str]
) -> None:
    own = path == "/preferences"
    address, mark = (path, "") if own else (f"/s/{session.id}{path}", f"#session-{session.id}")
    sent = MINE | headers | {"Content-Type": "application/json"}
    chinese = "/sessions?q=%E6%97%A5%E6%9C%AC"
    for back, led in [
        ("/sessions?q=日本", chinese),
        (chinese, chinese),
        ("/sessions?q=\ud800&page=2", "/sessions?q=%EF%BF%BD&page=2"),
        ("/sessions?q=" + "🧭" * 200, "/sessions?q=" + "%F0%9F%A7%AD" * 200),
        ("/sessions?q=a+b%25#row", "/sessions?q=a+b%25" + ("#row" if own else "")),
        ("/sessions?\r\nX-A: b", None),
        ("/sessions?q=\0", None),
        ("/sessions?q=" + "a" * 5_000, None),
        ("/sessionsx?q=a", None),
    ]:
        answer = web.ask(address, "POST", json.dumps({"name": "x", "back": back}).encode(), sent)
        name, status = ("hx-redirect", 204) if headers else ("location", 303)
        assert (answer.status, answer.headers[name]) == (status, (led or ("/" if own else "/sessions")) + mark)
        assert "x-a" not in answer.headers
        assert web.ask(answer.headers[name].partition("#")[0], headers=HTML).status in (200, 303)


def test_a_long_search_leads_back_to_itself(web: Web, session: Session) -> None:
    web.run(named(session, "🧭" * 120))
    address = "/sessions?" + urlencode({"q": " ".join(["🧭" * 60] * 3)})
    back = find(web.ask(address, headers=HTML).text, name="back")[-1].attributes["value"]
    assert back == address
    answer = web.post(f"/s/{session.id}/name", {"name": "x", "back": back})
    assert answer.headers["location"] == f"{address}#session-{session.id}"


def test_deleting_asks_a_second_time(web: Web, session: Session) -> None:
    web.run(named(session, HOSTILE))
    asked = web.ask(f"/s/{session.id}/delete", headers=HTML)
    assert asked.status == 200 and "&lt;script&gt;" in asked.text and "alert(1)</script>" not in asked.text
    assert f'data-value="{len(session.records)}"' in asked.text
    assert web.ask(f"/s/{session.id}/export.jsonl").status == 200, "asking changes nothing"
    assert web.post(f"/s/{session.id}/delete", {}, {}).status == 403
    answer = web.post(f"/s/{session.id}/delete", {"token": web.settings.form_token}, HTML)
    assert (answer.status, answer.headers["location"]) == (303, "/sessions")
    assert session.id not in web.ask("/sessions").text
    for path in ("", "/delete", "/export.jsonl", "/events", "/state", "/panel"):
        gone = web.ask(f"/s/{session.id}{path}", headers=HTML)
        assert gone.status == 404 and "may have been deleted" in gone.text
    for path in ("delete", "name", "tasks", "stop"):
        assert web.post(f"/s/{session.id}/{path}", {"text": "x"}).status == 404
    assert not web.library.folder(session.id).parent.exists()


async def named(session: Session, name: str) -> None:
    by_hand.rename(session, name)
    await until(lambda: session.committed == len(session.records))


def test_pages_that_watch_are_told_that_the_session_is_gone(web: Web, session: Session) -> None:
    stream = web.stream(f"/s/{session.id}/events?after={len(session.records)}")
    web.run(until(lambda: web.pages() == 1))
    assert web.post(f"/s/{session.id}/delete", {}).status == 303
    told = []
    while line := stream.answer.readline().decode():
        told.append(line)
    assert "This session was deleted" in "".join(told) and "event: over\n" in told, "and do not come back"


@pytest.mark.parametrize("name", ["..%2f..%2fetc", "..", "%2e%2e", "a%00b", "x" * 5000, "'or 1=1--", "%0d%0aX: y"])
def test_an_id_is_only_a_name(web: Web, name: str) -> None:
    for path in ("delete", "export.jsonl"):
        assert web.ask(f"/s/{name.replace(' ', '%20')}/{path}", headers=HTML).status == 404
    assert web.post(f"/s/{name.replace(' ', '%20')}/delete", {}).status == 404
    assert web.library.setup.data.is_dir() and web.ask("/sessions").status == 200


def test_the_list_leads_from_page_to_page(tmp_path: Path) -> None:
    with serving(tmp_path) as web:
        empty = web.ask("/sessions", headers=HTML).text
        assert "no session yet" in empty and "<table" not in empty and 'type="file"' in empty
        first = lived(web)
        records = first.records
        for number in range(60):
            web.library.journal.store(f"copy-{number}", records)
        one, two = web.ask("/sessions?q=COLOUR"), web.ask("/sessions?q=COLOUR&page=2")
        assert len(ids(one)) == 50 and len(ids(two)) == 11 and not set(ids(one)) & set(ids(two))
        assert 'href="/sessions?q=COLOUR&amp;page=2"' in one.text and 'href="/sessions?q=COLOUR"' in two.text
        assert "61 of 61 sessions have" in one.text and "Page 2 of 2" in two.text
        odd = web.ask("/sessions?q=%3Cscript%3Ealert%281%29&page=-7&page=x", headers=HTML).text
        assert "0 of 61 sessions" in odd and "<script>alert" not in odd
        chosen = web.post("/preferences", {"language": "zh", "back": "/sessions?q=%E4%B8%AD+a%25&page=2"})
        assert chosen.headers["location"] == "/sessions?q=%E4%B8%AD+a%25&page=2"


def test_a_running_task_is_stopped_by_a_delete(tmp_path: Path) -> None:
    with serving(tmp_path, lab="01") as web:
        session = web.session()

        async def begin() -> None:
            session.start_task("Run the tests.", language="en")
            await until(lambda: session.status == "waiting")

        web.run(begin())
        assert web.post(f"/s/{session.id}/delete", {}).status == 303
        web.run(asyncio.sleep(0))
        assert session.status == "idle" and web.ask("/sessions").status == 200
