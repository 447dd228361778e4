"""The command: arguments -> model -> sessions -> app -> uvicorn. Nothing imports this file."""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from harness.discovery import Lab, find, find_labs
from harness.journal import Journal
from harness.library import Library, Setup
from harness.model.errors import ModelError
from harness.model.gateway import Gateway
from harness.model.local_model import LocalModel
from harness.model.provider import Provider, choose, read_environment, settled
from harness.ownership import claim
from harness.problems import Problem
from harness.sandbox.detect import Sandbox, detect
from harness.session import SETTING_MAX
from harness.session_events import ModelChosen
from offline_model.server import WINDOW, OfflineServer
from web.access import is_loopback
from web.app import create_app
from web.catalogue import load
from web.command import read_arguments, terminal_language
from web.listening import announce, listen, run
from web.settings import WebSettings, new_token
from web.words import Words

ROOT = Path(__file__).resolve().parent
DATA = ROOT / ".lab"
# A server that is slow to list its models must not hold up the page. Seconds.
LIST_SECONDS = 5.0


@contextlib.asynccontextmanager
async def model(options: argparse.Namespace, labs: dict[str, Lab]) -> AsyncIterator[Provider]:
    """Choose the model, start the ones that run here, and end them again. Problem: it cannot be used."""
    environment = read_environment(ROOT)
    gguf = str(options.gguf) if options.gguf else None
    provider = choose(environment, model=options.model, base_url=options.base_url, gguf=gguf)
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


def setup(options: argparse.Namespace, labs: dict[str, Lab], provider: Provider, sandbox: Sandbox, data: Path) -> Setup:
    """Return what sessions are made from. Problem: a lab or folder is not there."""
    lab = find(labs, options.lab)
    extensions = tuple(dict.fromkeys(find(labs, name).number for name in options.ext))
    source = options.workspace or ROOT / "demo_workspace" / lab.demo
    if not source.is_dir():
        raise Problem("no_folder", folder=source)
    if options.budget is not None and not 0 <= options.budget <= SETTING_MAX:
        raise Problem("budget_range", budget=options.budget, top=SETTING_MAX)
    if options.budget is not None and not any("budget" in labs[each].settings for each in (lab.number, *extensions)):
        raise Problem("no_budget", lab=lab.number)
    return Setup(
        labs=labs, lab=lab, extensions=extensions, source=source.resolve(), label=source.resolve().name, data=data,
        sandbox=sandbox, settings={} if options.budget is None else {"budget": options.budget},
        model=ModelChosen(
            model=provider.model, provider=provider.kind, reason=provider.reason,
            window=provider.window, window_source=provider.window_source,
        ),
    )  # fmt: skip


async def serve(options: argparse.Namespace, words: Words) -> None:
    """Run the server until it is ended. Problem: it cannot start."""
    labs = find_labs(ROOT / "labs")
    if options.list:
        for lab in labs.values():
            print(f"{lab.number}  {lab.name:24} {lab.title[words.language]}")
        return
    data = data_folder(options.database)
    with contextlib.closing(claim(data)):
        await serve_sessions(options, words, labs, data)


async def serve_sessions(options: argparse.Namespace, words: Words, labs: dict[str, Lab], data: Path) -> None:
    """Run the server over the sessions in `data`. Problem: it cannot start."""
    sandbox = await asyncio.to_thread(detect, [data])
    with contextlib.closing(listen(options.host, options.port)) as listener:
        async with model(options, labs) as provider:
            made = setup(options, labs, provider, sandbox, data)
            journal = Journal(options.database or f"sqlite:///{data / 'journal.db'}")
            gateway = Gateway(provider)
            library = Library(made, journal, gateway)
            settings = web_settings(options, listener.getsockname()[1], sandbox)
            warming = asyncio.ensure_future(gateway.prepare())
            try:
                await run(create_app(library, settings), listener, lambda: announce(words, made, settings))
            finally:
                await asyncio.wait([warming])
                await library.close()
                await gateway.close()


def data_folder(database: str | None) -> Path:
    """Make and return the folder of sessions' workspaces: beside an SQLite journal, else in the project.

    Problem: it cannot be made, or the journal would not outlive the server.
    """
    path = (database or "").removeprefix("sqlite:///")
    if database and database.startswith("sqlite") and path in ("", ":memory:", database):
        raise Problem("journal_memory")
    folder = Path(path).resolve().parent if database and path != database else DATA
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem("folder_not_made", folder=folder, reason=error.strerror) from error
    return folder


def web_settings(options: argparse.Namespace, port: int, sandbox: Sandbox) -> WebSettings:
    """Return what the page needs to know; a host that others can reach needs a token."""
    return WebSettings(
        host=options.host, port=port, token="" if is_loopback(options.host) else new_token(),
        language=options.lang, offline_assets=options.offline_assets, sandbox=sandbox.code,
    )  # fmt: skip


def main() -> int:
    """Start what the command line asks for; return the exit code."""
    words = load(terminal_language())
    options = read_arguments(words)
    try:
        asyncio.run(serve(options, words))
    except Problem as problem:
        print(words.t(f"problem.{problem.code}", **problem.values).unescape(), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
