"""The command: arguments -> model -> sessions -> app -> uvicorn. Nothing imports this file."""

import argparse
import asyncio
import contextlib
import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036
    # The words stand here, for an older Python cannot read the catalogue.
    sys.exit("Python 3.11 or newer is needed. 需要 Python 3.11 或更新的版本。 -> uv run server.py")

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from harness.discovery import Lab, find_labs
from harness.journal import Journal
from harness.library import Library, Setup
from harness.masking import learn, secrets_in
from harness.model.errors import ModelError
from harness.model.gateway import Gateway
from harness.model.local_model import LocalModel
from harness.model.provider import Provider, choose, read_environment, settled
from harness.ownership import claim
from harness.problems import Problem
from harness.sandbox.detect import Sandbox, detect
from harness.session_events import ModelChosen
from harness.storage import make_folder, sessions_folder
from offline_model.faults import FAULTS
from offline_model.server import WINDOW, OfflineServer
from web.access import is_loopback
from web.app import create_app
from web.catalogue import load
from web.command import problem_line, read_arguments, terminal_language
from web.doctor import Place, look
from web.export_command import hand_on
from web.listening import announce, listen, run
from web.options import Chosen, check_fault, decide
from web.settings import WebSettings, new_token
from web.words import Words

ROOT = Path(__file__).resolve().parent
DATA, LABS, DEMOS = ROOT / ".lab", ROOT / "labs", ROOT / "demo_workspace"
# A server that is slow to list its models must not hold up the page. Seconds.
LIST_SECONDS = 5.0


def provider_for(options: argparse.Namespace) -> Provider:
    """Return which model is to answer, and why; starts and asks nothing. Problem: it cannot be used."""
    gguf = str(options.gguf) if options.gguf else None
    environment = read_environment(ROOT)
    learn(secrets_in(environment))
    return choose(environment, model=options.model, base_url=options.base_url, gguf=gguf)


@contextlib.asynccontextmanager
async def model(options: argparse.Namespace, labs: dict[str, Lab]) -> AsyncIterator[Provider]:
    """Choose the model, start the ones that run here, and end them again. Problem: it cannot be used."""
    provider = provider_for(options)
    started: OfflineServer | LocalModel | None = None
    if provider.kind == "offline":
        started = offline(labs)
    elif provider.kind == "local":
        started = LocalModel(options.gguf, window=provider.window or 0)
    try:
        if started:
            provider = replace(provider, base_url=await asyncio.to_thread(started.start))
        if provider.kind == "offline":
            provider = replace(provider, window=WINDOW, window_source="listed")
        elif provider.kind in ("compatible", "local"):
            provider = await asked(provider)
        yield provider
    finally:
        if started:
            await asyncio.to_thread(started.stop)


def offline(labs: dict[str, Lab]) -> OfflineServer:
    """Return the offline model with every lab's script. Problem: a script is broken."""
    try:
        return OfflineServer([path for lab in labs.values() if (path := lab.folder / "offline.toml").is_file()])
    except ValueError as error:
        raise Problem("lab_broken", file="offline.toml", reason=str(error)) from error


async def asked(provider: Provider) -> Provider:
    """Return the provider with what its server's model list tells. Problem: no model is known."""
    gateway = Gateway(provider, connect_seconds=LIST_SECONDS, stall_seconds=LIST_SECONDS, retries=0)
    try:
        found = settled(provider, await gateway.list_models())
    except ModelError as error:
        if provider.model:
            return provider
        raise Problem("no_model_list", address=provider.base_url, reason=f"{error.kind}: {error.detail}") from error
    finally:
        await gateway.close()
    if not found.model:
        raise Problem("no_model_list", address=provider.base_url, reason="empty")
    return found


def setup(chosen: Chosen, labs: dict[str, Lab], provider: Provider, sandbox: Sandbox, data: Path) -> Setup:
    """Return what sessions are made from. Problem: the model cannot act out the fault that is asked for."""
    check_fault(chosen.fault, provider)
    return Setup(
        labs=labs, lab=chosen.lab, extensions=chosen.extensions, source=chosen.source, label=chosen.source.name,
        data=data, sandbox=sandbox, settings=chosen.settings, fault=chosen.fault,
        model=ModelChosen(
            model=provider.model, provider=provider.kind, reason=provider.reason,
            window=provider.window, window_source=provider.window_source,
        ),
    )  # fmt: skip


async def serve(options: argparse.Namespace, words: Words) -> None:
    """Run the server until it is ended. Problem: it cannot start."""
    labs = find_labs(LABS)
    if options.list:
        width = max(len(lab.name) for lab in labs.values())
        for lab in labs.values():
            print(f"{lab.number}  {lab.name:{width}}  {lab.title[words.language]}")
        return
    chosen = decide(options, labs, faults=FAULTS, demos=DEMOS)
    data = sessions_folder(options.database, DATA)
    make_folder(data)
    with contextlib.closing(claim(data)):
        await serve_sessions(options, chosen, load(chosen.language or words.language), labs, data)


async def serve_sessions(
    options: argparse.Namespace, chosen: Chosen, words: Words, labs: dict[str, Lab], data: Path
) -> None:
    """Run the server over the sessions in `data`. Problem: it cannot start."""
    sandbox = await asyncio.to_thread(detect, [data])
    with contextlib.closing(listen(options.host, options.port)) as listener:
        async with model(options, labs) as provider:
            made = setup(chosen, labs, provider, sandbox, data)
            journal = Journal(options.database or f"sqlite:///{data / 'journal.db'}")
            gateway = Gateway(provider)
            library = Library(made, journal, gateway)
            settings = web_settings(options, chosen, listener.getsockname()[1], sandbox)
            warming = asyncio.ensure_future(gateway.prepare())
            try:
                await run(create_app(library, settings), listener, lambda: announce(words, made, settings))
            finally:
                await asyncio.wait([warming])
                await library.close()
                await gateway.close()


def web_settings(options: argparse.Namespace, chosen: Chosen, port: int, sandbox: Sandbox) -> WebSettings:
    """Return what the page needs to know; a host that others can reach needs a token."""
    return WebSettings(
        host=options.host, port=port, token="" if is_loopback(options.host) else new_token(),
        language=chosen.language, theme=chosen.theme, text_size=chosen.text_size,
        offline_assets=options.offline_assets, sandbox=sandbox.code,
    )  # fmt: skip


def doctor(options: argparse.Namespace, words: Words) -> NoReturn:
    """Check what a server with these options would need, and end with the exit code."""
    place = Place(ROOT, LABS, DEMOS, DATA, FAULTS)
    code = look(options, words, place, lambda: provider_for(options), lambda: model(options, find_labs(LABS)))
    # The look-up of a name may hang in a thread that Python would wait for; nothing else is still open.
    os._exit(code)


def main() -> int:
    """Start what the command line asks for; return the exit code."""
    words = load(terminal_language())
    options = read_arguments(words)
    try:
        if options.command == "doctor":
            doctor(options, words)
        if options.command == "export":
            learn(secrets_in(read_environment(ROOT)))
            return hand_on(options, find_labs(LABS), sessions_folder(options.database, DATA), words)
        asyncio.run(serve(options, words))
    except Problem as problem:
        print(problem_line(words, problem), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
