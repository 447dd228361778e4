"""Who may ask the server for what: hosts, origins, tokens, forms, sizes, headers. Over real HTTP."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web_support import FORM, MINE, Web, serving
from web import access
from web.catalogue import load_all
from web.settings import WebSettings

ROOT = Path(__file__).parent.parent
TOKEN = "b7" * 24
HTML = {"Accept": "text/html"}
FOREIGN = {"Sec-Fetch-Site": "cross-site"}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("open")) as running:
        yield running


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("closed"), token=TOKEN, host="lab.example") as running:
        yield running


@pytest.fixture(scope="module")
def session(web: Web) -> str:
    return f"/s/{web.session().id}"


@pytest.mark.parametrize("path", ["/", "/sessions", "/static/js/main.js", "/healthz", "{session}/events", "/nowhere"])
@pytest.mark.parametrize("host", ["evil.example:{port}", "127.0.0.1:1", "127.0.0.1", "x@127.0.0.1:{port}", "", "[::1"])
def test_a_foreign_host_is_refused_everywhere(web: Web, session: str, path: str, host: str) -> None:
    answer = web.ask(path.format(session=session), headers={"Host": host.format(port=web.port)})
    assert answer.status == 400


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LocalHost:{port}", "[::1]:{port}"])
def test_our_own_hosts_are_answered(web: Web, host: str) -> None:
    assert web.ask("/healthz", headers={"Host": host.format(port=web.port)}).body == b"ok\n"


@pytest.mark.parametrize("twice", ["Host: 127.0.0.1:{port}\r\nHost: 127.0.0.1:{port}", "Host: {host}\r\nHost: x"])
def test_two_hosts_are_refused(web: Web, twice: str) -> None:
    lines = twice.format(port=web.port, host=f"127.0.0.1:{web.port}")
    answer = web.raw(f"GET /healthz HTTP/1.1\r\n{lines}\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 400")


def test_two_origins_are_refused(web: Web) -> None:
    own = f"http://127.0.0.1:{web.port}"
    request = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\nOrigin: {own}\r\nOrigin: {own}\r\n\r\n"
    assert web.raw(request.encode()).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil.example", "http://127.0.0.1", "https://127.0.0.1:{port}", "http://localhost:{port}",
     "http://127.0.0.1:{port}.evil.example", "http://127.0.0.1:{port}/"],
)  # fmt: skip
def test_another_origin_is_refused_with_all_else_right(web: Web, session: str, origin: str) -> None:
    headers = MINE | {"Origin": origin.format(port=web.port)}
    fields = {"text": "hello", "token": web.settings.form_token}
    assert web.post(f"{session}/tasks", fields, headers).status == 403
    assert web.ask(session, headers=headers).status == 403


def test_what_another_site_makes_the_browser_ask_is_refused(web: Web, session: str) -> None:
    followed = FOREIGN | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    framed = followed | {"Sec-Fetch-Dest": "iframe"}
    assert web.ask(session, headers=followed).status == 200, "a link from a mail may be followed"
    assert web.ask(session, headers=framed).status == 403
    for site in ("cross-site", "same-site"):
        assert web.ask(f"{session}/events", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"}).status == 403
        assert web.ask("/static/js/main.js", headers={"Sec-Fetch-Site": site}).status == 403
        assert web.post(f"{session}/stop", {}, MINE | {"Sec-Fetch-Site": site}).status == 403
    assert web.post(f"{session}/stop", {}, MINE | followed).status == 403
    assert web.post(f"{session}/stop", {}, MINE | {"Sec-Fetch-Site": "same-origin"}).status == 303


def test_a_change_needs_our_header_or_a_forms_token(web: Web, session: str) -> None:
    assert web.post(f"{session}/stop", {}, {}).status == 403
    assert web.post(f"{session}/stop", {"token": "wrong"}, {}).status == 403
    assert web.post(f"{session}/stop", {"token": ""}, {}).status == 403
    assert web.post(f"{session}/stop", {"token": web.settings.form_token}, {}).status == 303
    assert web.post(f"{session}/stop", {}, MINE | {"HX-Request": "true"}).status == 204


def test_only_get_head_and_post_exist_and_a_change_is_never_a_get(web: Web, session: str) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert web.ask(session, method, headers=MINE).status == 405
    for path in ("tasks", "stop", "approvals", "budget"):
        assert web.ask(f"{session}/{path}", headers=MINE).status == 405
    assert web.ask("/preferences", headers=MINE).status == 405
    assert web.ask(session, "HEAD").body == b""


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x", "", "application/xml", "text/json"])
def test_other_types_than_forms_and_json_are_refused(web: Web, session: str, kind: str) -> None:
    assert web.ask(f"{session}/stop", "POST", b"a=1", MINE | {"Content-Type": kind}).status == 415


def test_json_is_a_change_too(web: Web, session: str) -> None:
    headers = MINE | {"Content-Type": "application/json"}
    assert web.ask(f"{session}/budget", "POST", json.dumps({"budget": 1234}), headers).status == 303
    assert web.run(web.library.open(session[3:])).state.settings["budget"] == 1234
    for broken in ("{", "[1]", "[" * 100_000, "\xff"):
        assert web.ask(f"{session}/budget", "POST", broken.encode("latin-1"), headers).status == 400


def test_a_body_of_more_than_a_megabyte_is_refused_also_in_chunks(web: Web, session: str) -> None:
    assert web.ask(f"{session}/tasks", "POST", b"text=" + b"a" * 1_100_000, MINE | FORM).status == 413
    head = (
        f"POST {session}/tasks HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\nX-Context-Lab: 1\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\n"
    )
    chunks = b"".join(b"%x\r\n%s\r\n" % (60_000, b"a" * 60_000) for _ in range(20))
    answer = web.raw(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413")
    claimed = web.raw(f"{head}Content-Length: 99999999999\r\n\r\n".encode())
    assert claimed.startswith(b"HTTP/1.1 413"), "the claim is enough"
    assert web.run(web.library.open(session[3:])).state.tasks == []


def test_a_text_that_is_too_long_or_empty_starts_nothing(web: Web, session: str) -> None:
    for text, status in (("x" * 20_001, 422), ("", 422), ("   ", 422)):
        assert web.post(f"{session}/tasks", {"text": text}).status == status
    answer = web.post(f"{session}/tasks", {"text": "x" * 20_001}, MINE | {"HX-Request": "true"})
    assert 'hx-target="#notice"' in answer.text and "20,001" in answer.text
    assert web.run(web.library.open(session[3:])).state.tasks == []


@pytest.mark.parametrize(
    "path", ["/", "/sessions", "{s}", "{s}/calls/9", "/static/js/main.js", "/static/none", "/s/none", "/nowhere"]
)
def test_every_answer_carries_the_security_headers(web: Web, session: str, path: str) -> None:
    answers = [web.ask(path.format(s=session), headers=HTML), web.ask(path.format(s=session), headers={"Host": "x"})]
    for answer in answers:
        assert_secured(answer.headers)


def test_the_stream_carries_them_too(web: Web, session: str) -> None:
    stream = web.stream(f"{session}/events")
    assert_secured({name.lower(): value for name, value in stream.answer.getheaders()})
    assert stream.answer.headers["content-type"].startswith("text/event-stream")


def assert_secured(headers: dict[str, str] | object) -> None:
    assert isinstance(headers, dict)
    policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["object-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["form-action"] == policy["connect-src"] == policy["style-src"] == "'self'"
    assert policy["script-src"].startswith("'nonce-") and "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert headers["cache-control"]


def test_a_nonce_is_used_once(web: Web, session: str) -> None:
    pages = [web.ask(session, headers=HTML) for _ in range(2)]
    nonces = [page.headers["content-security-policy"].partition("'nonce-")[2].partition("'")[0] for page in pages]
    assert len(set(nonces)) == 2
    for page, nonce in zip(pages, nonces, strict=True):
        assert page.text.count("<script") == page.text.count(f'nonce="{nonce}"') > 0


def test_a_fault_of_ours_tells_nothing_and_is_secured_too(web: Web, session: str, monkeypatch) -> None:
    opened = web.run(web.library.open(session[3:]))
    monkeypatch.setattr(type(opened), "committed", property(lambda _: 1 / 0))
    answer = web.ask(session, headers=HTML)
    assert answer.status == 500
    assert_secured(answer.headers)
    assert "ZeroDivision" not in answer.text and "Traceback" not in answer.text


def test_errors_are_one_line_in_the_visitors_language(web: Web) -> None:
    english, chinese = (web.ask("/s/none", headers={"Accept-Language": tag}) for tag in ("en-GB,en", "zh-CN,zh;q=0.9"))
    assert english.status == chinese.status == 404
    assert english.text.startswith("There is no such session") and english.text.count("\n") == 1
    assert chinese.text.startswith("找不到这个会话")


def test_choices_are_kept_and_lead_back_to_our_own_pages_only(web: Web, session: str) -> None:
    chosen = web.post("/preferences", {"language": "zh", "theme": "dark", "back": f"{session}?view=model"})
    assert chosen.headers["location"] == f"{session}?view=model"
    page = web.ask(session, headers={"Cookie": "context-lab-language=zh; context-lab-theme=dark"} | HTML).text
    assert 'lang="zh' in page and 'data-theme="dark"' in page
    for back in ("//evil.example", "/\\evil.example", "http://evil.example", "/s/../../x", "/s/a\r\nX: y", "x:y"):
        assert web.post("/preferences", {"theme": "dark", "back": back}).headers["location"] == "/"
    assert "set-cookie" not in web.post("/preferences", {"theme": "<b>", "language": "fr"}).headers


def test_with_a_token_nothing_is_answered_without_it(closed: Web) -> None:
    for path in ("/", "/sessions", "/s/x", "/s/x/events", "/s/x/calls/1", "/?token=", "/?token=" + "b7" * 23):
        answer = closed.ask(path, headers=HTML)
        assert answer.status == 401 and TOKEN not in answer.text and "b7b7" not in answer.text
    assert closed.post("/sessions", {}).status == 401
    assert closed.ask("/static/js/main.js").status == 200, "our files hold no data"
    for wrong in ("Bearer ", "Bearer x", f"Basic {TOKEN}", TOKEN):
        assert closed.ask("/sessions", headers={"Authorization": wrong}).status == 401
    assert closed.ask("/sessions", headers={"Cookie": f"context-lab-{closed.port}=x"}).status == 401


def test_the_token_in_the_address_becomes_a_cookie_and_leaves_the_address(closed: Web) -> None:
    answer = closed.ask(f"/sessions?a=1&token={TOKEN}&b=2")
    assert (answer.status, answer.headers["location"]) == (303, "/sessions?a=1&b=2")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"context-lab-{closed.port}={TOKEN};")
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
    assert closed.ask(f"//evil.example/?token={TOKEN}").headers["location"] == "/evil.example/"
    with_cookie = {"Cookie": f"other=1; context-lab-{closed.port}={TOKEN}"}
    assert closed.ask("/sessions", headers=with_cookie).status == 200
    assert closed.ask("/sessions", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
    assert closed.ask("/sessions", headers=with_cookie | {"Host": f"lab.example:{closed.port}"}).status == 200


def test_a_cookie_is_not_enough_for_a_change_from_elsewhere(closed: Web) -> None:
    cookie = {"Cookie": f"context-lab-{closed.port}={TOKEN}"}
    assert closed.post("/sessions", {}, cookie).status == 403
    assert closed.post("/sessions", {}, cookie | MINE | {"Origin": "http://evil.example"}).status == 403
    assert closed.post("/sessions", {}, cookie | MINE).status == 303


@pytest.mark.parametrize(
    ("host", "asked", "ours"),
    [
        ("0.0.0.0", "192.0.2.7:80", True), ("0.0.0.0", "192.0.2.7", True), ("::", "[2001:db8::1]:80", True),
        ("0.0.0.0", "evil.example:80", False), ("192.0.2.7", "192.0.2.8:80", False), ("192.0.2.7", "192.0.2.7", True),
        ("0.0.0.0", "192.0.2.7:81", False), ("0.0.0.0", "192.0.2.7:80:80", False), ("0.0.0.0", "a b", False),
    ],
)  # fmt: skip
def test_who_listens_everywhere_answers_to_addresses_but_to_no_unknown_name(host: str, asked: str, ours: bool) -> None:
    refusal = access.check_host({"host": [asked]}, WebSettings(host=host, port=80, token=TOKEN))
    assert (refusal is None) == ours


def test_secrets_are_not_in_the_settings_text() -> None:
    settings = WebSettings(host="127.0.0.1", port=1, token=TOKEN)
    assert TOKEN not in repr(settings) and settings.form_token not in repr(settings)
    assert len(settings.form_token) == 48


def test_a_session_id_is_only_a_name(web: Web, tmp_path: Path) -> None:
    for name in ("..%2f..%2fetc", "a%00b", "%ff", "x" * 5000, "<script>", "'or 1=1--"):
        answer = web.ask(f"/s/{name.replace(' ', '%20')}", headers=HTML)
        assert answer.status == 404 and "<script>alert" not in answer.text


def test_every_error_has_its_line_in_both_languages() -> None:
    used: set[str] = set()
    for path in (ROOT / "web").glob("*.py"):
        used |= set(re.findall(r'(?:Refusal|PageError|BodyRefused)\(\d+, "(\w+)"', path.read_text("utf-8")))
    used |= {"method", "no_page", "failure", "problem"}
    for language, words in load_all().items():
        written = {key.removeprefix("error.") for key in words.entries if key.startswith("error.")}
        assert written == used, language
