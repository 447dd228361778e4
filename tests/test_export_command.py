"""`server.py export`, and the same from the page: each form of a session, and one clear line where there is none."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from atif import Trajectory
from playwright.sync_api import Page

from harness.discovery import find_labs
from harness.exchange import session_file
from harness.problems import Problem
from tests.browser_support import chromium, page  # noqa: F401
from tests.harness_support import ROOT, library, run_sample, until
from tests.test_web_guard import assert_secured
from tests.web_html import find
from tests.web_support import Web, serving
from web.catalogue import load
from web.command import read_arguments
from web.export_command import hand_on

FORMS = {"jsonl": ".jsonl", "html": ".html", "atif": ".atif.json"}


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of a journal and the id of the one session in it."""
    data = tmp_path_factory.mktemp("lived")

    async def live() -> str:
        async with library(data, lab="07") as opened:
            session = await opened.create(language="en")
            await run_sample(session, 1)
            await until(lambda: session.committed == len(session.records))
            return session.id

    return data, asyncio.run(live())


def export(data: Path, *arguments: str, place: Path, language: str = "en") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "server.py", "export", *arguments, "--lang", language]
    command += ["--database", f"sqlite:///{data / 'journal.db'}"]
    return subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=60)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_written_beside_and_said_in_a_line(form: str, lived: tuple[Path, str], tmp_path: Path) -> None:
    data, session = lived
    done = export(data, session, "--as", form, place=tmp_path)
    file = tmp_path / f"context-lab-{session}{FORMS[form]}"
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout == f"{file.name} was written: {-(-file.stat().st_size // 1024):,} KB.\n"
    assert [each.name for each in tmp_path.iterdir()] == [file.name], "and nothing else"
    match form:
        case "jsonl":
            with file.open("rb") as raw:
                assert len(list(session_file.read(raw))) == json.loads(raw.seek(0) or raw.readline())["events"]
        case "html":
            assert f'data-session="{session}"' in file.read_text("utf-8") and "<html lang=" in file.read_text("utf-8")
        case _:
            assert Trajectory.model_validate_json(file.read_text("utf-8")).session_id == session


def test_a_file_that_is_there_is_not_overwritten_unless_that_is_asked_for(
    lived: tuple[Path, str], tmp_path: Path
) -> None:
    data, session = lived
    file = tmp_path / "mine.html"
    file.write_text("mine")
    named = (session, "--as", "html", "--out", str(file))
    done = export(data, *named, place=tmp_path)
    assert done.returncode == 2 and file.read_text() == "mine"
    assert done.stderr == f"{load('en').t('problem.export_exists', file=file)}\n"
    assert export(data, *named, "--force", place=tmp_path).returncode == 0 and "<html" in file.read_text("utf-8")


def test_the_terminal_gets_the_file_itself_and_the_newest_session_has_a_name(
    lived: tuple[Path, str], tmp_path: Path
) -> None:
    data, session = lived
    done = export(data, "newest", "--as", "atif", "--out", "-", place=tmp_path, language="zh")
    assert done.returncode == 0 and json.loads(done.stdout)["session_id"] == session
    assert list(tmp_path.iterdir()) == []
    shown = export(data, "newest", "--as", "html", "--out", "-", place=tmp_path, language="zh").stdout
    assert str(load("zh").t("handout.says")) in shown


def test_what_cannot_be_exported_is_said_and_leaves_nothing(
    lived: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, session = lived
    (tmp_path / "empty").mkdir()

    async def begin_only() -> str:
        async with library(tmp_path / "empty") as opened:
            return (await opened.create(language="en")).id

    begun = asyncio.run(begin_only())
    cases = {
        "export_which": (data, ()),
        "export_unknown": (data, ("nobody",)),
        "export_no_database": (tmp_path, (session,)),
        "export_not_written": (data, (session, "--out", str(tmp_path / "no" / "where.html"))),
        "export_nothing": (tmp_path / "empty", (begun, "--as", "html", "--out", str(tmp_path / "a.html"))),
    }
    for code, (place, named) in cases.items():
        address = f"sqlite:///{place / 'journal.db'}"
        monkeypatch.setattr(sys, "argv", ["server.py", "export", *named, "--database", address])
        with pytest.raises(Problem, match=code):
            hand_on(read_arguments(load("en")), find_labs(ROOT / "labs"), place, load("en"))
    assert [each.name for each in tmp_path.iterdir()] == ["empty"], "no database was made, and nothing written"


def test_a_problem_is_one_line_in_the_language_asked_for_and_an_exit_code(tmp_path: Path) -> None:
    done = export(tmp_path, "nobody", place=tmp_path, language="zh")
    line = load("zh").t("problem.export_no_database", file=tmp_path / "journal.db")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")


def test_sending_to_nobody_says_how_many_arrived_and_why_not(lived: tuple[Path, str], tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="The group observability is not installed.")
    data, session = lived
    done = export(data, session, "--as", "otlp", "--endpoint", "http://127.0.0.1:9", place=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert re.match(r"0 of [1-9]\d* spans were sent\..* Nobody answers at http://127\.0\.0\.1:9\.", done.stderr)


def test_a_session_can_be_exported_while_a_server_works_with_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with serving(tmp_path / "data") as web:
        session = web.session()
        web.run(run_sample(session, 1))
        done = export(tmp_path / "data", session.id, place=tmp_path)
        assert done.returncode == 0, done.stderr
        assert web.ask(f"/s/{session.id}/state").status == 200


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("web")) as running:
        yield running


def test_the_page_and_the_list_offer_each_form_and_say_what_is_masked(
    web: Web, page: Page, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    session = web.session()
    web.run(run_sample(session, 1))
    for address, opener in ((f"/s/{session.id}", "Export this session"), ("/sessions", "Export")):
        page.goto(web.address + address)
        box = page.locator("details", has=page.locator("ul.exports")).first
        box.locator("summary").click()
        assert box.locator("summary").inner_text().startswith(opener)
        links = [link.get_attribute("href") for link in box.locator("a").all()]
        assert links == [f"/s/{session.id}/export{FORMS[form]}" for form in ("html", "jsonl", "atif")]
        says = box.inner_text()
        assert "nothing is masked" in says and "imported again" in says and says.count("Secrets are masked") == 2
        for link in box.locator("a").all():
            with page.expect_download() as waiting:
                link.click()
            file = tmp_path / waiting.value.suggested_filename
            waiting.value.save_as(file)
            assert file.name.startswith(f"context-lab-{session.id}.") and file.stat().st_size > 1000


def test_over_http_they_are_attachments_with_our_headers(web: Web) -> None:
    session = web.session()
    for form in ("html", "atif"):
        path = f"/s/{session.id}/export{FORMS[form]}"
        assert web.ask(path).status == 409, "nothing happened yet"
    web.run(run_sample(session, 1))
    for form, kind in (("html", "text/html"), ("atif", "application/json")):
        answer = web.ask(f"/s/{session.id}/export{FORMS[form]}")
        assert answer.status == 200 and answer.headers["content-type"] == f"{kind}; charset=utf-8"
        assert answer.headers["content-disposition"] == f'attachment; filename="context-lab-{session.id}{FORMS[form]}"'
        assert_secured(dict(answer.headers))
        assert web.ask(f"/s/nobody/export{FORMS[form]}").status == 404
    chinese = web.ask(f"/s/{session.id}/export.html", headers={"Accept-Language": "zh-CN"}).text
    assert find(chinese)[0].attributes["lang"] == str(load("zh").t("language.tag"))
    assert web.settings.form_token not in chinese
