"""What a person changes in the settings drawer: a preset, numbers, extensions, a fault; and the file of them all.

A form of htmx gets its own part of the drawer back; a plain form leads to the page with the drawer open.
"""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from harness import by_hand
from harness.by_hand import SETTING_MAX
from harness.discovery import BASE_LAB
from harness.messages import clean
from harness.offline import FAULTS
from harness.session import Busy, Session
from web.drawer import Opened, Wrong, render_form
from web.errors import PageError
from web.fragments import partials
from web.options import LEAST, MOST
from web.routes import number, open_session
from web.screens import Asked, render_session
from web.settings_file import FileSettings, render_settings
from web.site import site_of
from web.updates import Update
from web.visitor import viewer_of


async def change_numbers(request: Request) -> Response:
    """POST /s/{session}/numbers: any of the session's settings by name. All of them are taken, or none."""
    session, viewer = await open_session(request), viewer_of(request)
    fields: Mapping[str, str] = request.state.form
    typed = {name: clean(fields[name]).strip() for name in session.state.settings if name in fields}
    asked = {name: number(text) for name, text in typed.items()}
    if wrong := {name: why for name, value in asked.items() if (why := _wrong(session, name, value))}:
        opened = Opened(typed, wrong)
        if "hx-request" in request.headers:
            return _part(request, session, "drawer-numbers", opened, said="wrong", status=422)
        sandbox = site_of(request).settings.sandbox
        return HTMLResponse(render_session(session, viewer, Asked(drawer=opened), sandbox=sandbox), 422)
    before = len(session.records)
    for name, value in asked.items():
        assert value is not None, "what is no number is wrong"
        by_hand.change_setting(session, name, value)
    return _changed(request, session, "drawer-numbers", before)


async def choose_preset(request: Request) -> Response:
    """POST /s/{session}/preset: `preset` by its id. All of its numbers are taken, or none."""
    session, wanted = await open_session(request), request.state.form.get("preset", "")
    preset = next((each for each in session.lab.presets if each.id == wanted), None)
    if preset is None:
        raise PageError(404, "no_preset")
    wrong = [why for name, value in preset.settings.items() if (why := _wrong(session, name, value))]
    if wrong:
        raise PageError(409, "preset_busy") if "running" in wrong else PageError(422, "preset_range")
    before, first = len(session.records), preset.id
    for name, value in preset.settings.items():
        if by_hand.change_setting(session, name, value, first):
            first = ""
    return _changed(request, session, "drawer-presets", before)


async def change_extensions(request: Request) -> Response:
    """POST /s/{session}/extensions: `lab-NN`, which is on, for each lab that is to be on."""
    session, site = await open_session(request), site_of(request)
    own, before = (BASE_LAB, session.lab.number), len(session.records)
    asked = tuple(lab for lab in site.pages.labs if lab not in own and request.state.form.get(f"lab-{lab}") == "on")
    if set(asked) != set(session.state.extensions).difference(own):
        try:
            await site.library.change_extensions(session, asked)
        except Busy:
            raise PageError(409, "extensions_busy") from None
    return _changed(request, session, "drawer-extensions", before)


async def choose_fault(request: Request) -> Response:
    """POST /s/{session}/fault: `fault` by its code, empty for none. Only the offline model acts one out."""
    session, fault = await open_session(request), request.state.form.get("fault", "")
    before = len(session.records)
    if fault and fault not in FAULTS:
        raise PageError(422, "no_fault")
    if fault and not session.state.offline:
        raise PageError(409, "fault_model")
    by_hand.choose_fault(session, fault)
    return _changed(request, session, "drawer-faults", before)


async def settings_file(request: Request) -> Response:
    """GET /s/{session}/settings.toml: all that is in force, as a file for --settings."""
    session, viewer = await open_session(request), viewer_of(request)
    state = session.state
    values = FileSettings(
        lab=session.lab.number, extensions=state.extensions, fault=state.fault, settings=state.settings,
        language=viewer.language, theme=viewer.theme, text_size=viewer.text_size,
    )  # fmt: skip
    headers = {"content-disposition": f'attachment; filename="lab-{session.lab.number}-settings.toml"'}
    text = render_settings(values, viewer.words)
    return Response(text, headers=headers, media_type="application/toml; charset=utf-8")


def _wrong(session: Session, name: str, value: int | None) -> Wrong | None:
    """Return why a setting cannot have this value now, or None where it can."""
    known = name in session.state.settings
    if value is None or not known or not LEAST.get(name, 0) <= value <= MOST.get(name, SETTING_MAX):
        return "range"
    if name == "window" and value != session.state.settings[name] and session.status != "idle":
        return "running"
    return None


def _changed(request: Request, session: Session, form: str, before: int) -> Response:
    """Answer a change that was made, or that was none; `before`: how many records there were."""
    if "hx-request" not in request.headers:
        return RedirectResponse(f"/s/{session.id}?drawer=1", 303)
    said = "changed" if len(session.records) > before else "same"
    return _part(request, session, form, Opened(), said=said)


def _part(
    request: Request, session: Session, form: str, opened: Opened, *, said: str, status: int = 200
) -> HTMLResponse:
    """Return one form of the drawer as it is now, and the line below that says what became of it."""
    viewer = viewer_of(request)
    updates = [
        Update(form, render_form(session, viewer, opened, form), "morph"),
        Update("drawer-said", viewer.words.code("drawer_said", said), "inner"),
    ]
    return HTMLResponse(partials(updates), status)
