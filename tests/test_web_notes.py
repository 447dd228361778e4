"""The notes on the page: shown as text and no more, forgotten only as they were seen, and only by who may."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from harness.notes.folder import look
from harness.notes.keeping import keep
from harness.session import Session
from tests.test_notes_faults import small_files
from tests.web_support import FORM, MINE, Web, serving

HTMX = MINE | {"HX-Request": "true"}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, lab="02") as running:
        yield running


def folder(session: Session) -> Path:
    assert session.workspace.notes
    return session.workspace.notes


def digest(session: Session, name: str) -> str:
    note = look(folder(session)).note(name)
    assert note
    return note.digest


def test_the_page_has_a_place_for_notes_where_they_are_offered(web: Web, tmp_path: Path) -> None:
    session = web.session()
    page = web.ask(f"/s/{session.id}").text
    assert f'hx-get="/s/{session.id}/notes" hx-trigger="load"' in page and f'href="/s/{session.id}/notes"' in page
    assert 'id="guide-notes" class="card notes" hidden' in web.ask(f"/s/{session.id}?at={session.committed}").text
    (tmp_path / "other").mkdir()
    with serving(tmp_path / "other", lab="07") as other:
        assert 'id="guide-notes" class="card notes" hidden' in other.ask(f"/s/{other.session().id}").text


def test_notes_are_listed_by_when_they_are_offered_and_all_of_them_is_text(web: Web) -> None:
    keep(folder(web.session()), "<b>Old</b>", "</pre><script>alert(1)</script>")
    session = web.session()
    keep(folder(session), "New", '<img src=x hx-get="/">')
    part = web.ask(f"/s/{session.id}/notes", headers=HTMX).text
    assert part.strip().startswith('<div id="notes">') and "<html" not in part
    assert "<script" not in part and "<img" not in part and "<b>" not in part
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)" in part and str(folder(session)) in part
    offered, since = part.split("Kept since it began")
    assert "Offered in this session" in offered and 'data-note="b-old-b"' in offered and 'data-note="new"' in since
    page = web.ask(f"/s/{session.id}/notes").text
    assert part.strip() in page and "<h1>Notes</h1>" in page, "without scripts it is a page"
    (folder(session) / "b-old-b.md").unlink()
    part = web.ask(f"/s/{session.id}/notes", headers=HTMX).text
    assert "forgotten since" in part and "b-old-b.md" in part and 'data-note="b-old-b"' not in part


def test_a_long_note_and_many_notes_are_bounded_where_all_can_see(web: Web) -> None:
    session = web.session()
    folder(session).mkdir(parents=True)
    (folder(session) / "a.md").write_text("y" * 5_000)
    for number in range(70):
        (folder(session) / f"n{number:02}.md").write_text("x")
    part = web.ask(f"/s/{session.id}/notes", headers=HTMX).text
    assert part.count("y" * 4_000) == 1 and "y" * 4_001 not in part
    assert "The agent reads the first 4,000 of 5,000 characters." in part
    assert part.count("data-note=") == 60 and "11 more notes are not shown" in part


def test_a_person_forgets_a_note_as_it_was_seen_and_no_other(web: Web) -> None:
    session = web.session()
    keep(folder(session), "One", "1")
    keep(folder(session), "Two", "2")
    seen, path = digest(session, "one"), f"/s/{session.id}/notes"
    (folder(session) / "one.md").write_text("# One\n\nchanged")
    for fields in ({"name": "one", "digest": seen}, {"name": "one"}, {"name": "../one", "digest": seen}, {}):
        assert web.post(path, fields).status == 409
    refused = web.post(path, {"name": "one", "digest": seen}, HTMX)
    assert 'hx-target="#notice"' in refused.text and "nothing was removed" in refused.text
    assert [note.name for note in look(folder(session)).notes] == ["one", "two"]
    answer = web.post(path, {"name": "one", "digest": digest(session, "one")}, HTMX)
    assert answer.status == 200 and 'hx-target="#notes"' in answer.text and 'data-note="one"' not in answer.text
    answer = web.post(path, {"name": "two", "digest": digest(session, "two")})
    assert (answer.status, answer.headers["location"]) == (303, path)
    assert look(folder(session)).notes == ()


def test_nobody_else_s_page_can_forget_a_note(web: Web) -> None:
    session = web.session()
    keep(folder(session), "One", "1")
    fields = urlencode({"name": "one", "digest": digest(session, "one")})
    for headers in (
        FORM,
        FORM | MINE | {"Origin": "http://evil.example"},
        FORM | MINE | {"Sec-Fetch-Site": "cross-site"},
    ):
        assert web.ask(f"/s/{session.id}/notes", "POST", fields, headers).status == 403
    assert len(look(folder(session)).notes) == 1


def test_what_cannot_be_removed_is_said(web: Web) -> None:
    session = web.session()
    keep(folder(session), "One", "1")
    fields = {"name": "one", "digest": digest(session, "one")}
    (folder(session) / ".lock.db").unlink()
    (folder(session) / ".lock.db").mkdir()
    answer = web.post(f"/s/{session.id}/notes", fields)
    assert answer.status == 409 and "could not be removed and is still there" in answer.text
    assert web.ask("/s/none/notes").status == 404


def test_a_list_that_could_not_be_written_is_said_and_the_note_is_gone(web: Web) -> None:
    session = web.session()
    for number in range(20):
        keep(folder(session), f"Note {number}", "x" * 39)
    for headers in (HTMX, MINE):
        note = look(folder(session)).notes[0]
        with small_files(1024):
            answer = web.post(f"/s/{session.id}/notes", {"name": note.name, "digest": note.digest}, headers)
        assert "The note was removed, but the list of the notes could not be written" in answer.text
        assert look(folder(session)).note(note.name) is None
        assert ('hx-target="#notes"' in answer.text) is (headers is HTMX)
        assert f'data-note="{note.name}"' not in answer.text


def test_a_list_that_left_notes_out_does_not_claim_that_they_are_new(web: Web) -> None:
    place = folder(web.session())
    place.mkdir(parents=True)
    for number in range(150):
        (place / f"note-{number:03}.md").write_text(f"# {'Title' * 12}\n\nwords that fill the whole of a line {number}")
    (place / "a.md").write_text("x")
    part = web.ask(f"/s/{web.session().id}/notes", headers=HTMX).text
    assert "Offered in this session" in part and "Kept since it began" not in part
