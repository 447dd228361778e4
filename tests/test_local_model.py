"""A GGUF file served by a child of ours. The real model is used only where one is given."""

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import psutil
import pytest

from harness.events import ModelCallEnded
from harness.model.errors import ModelError
from harness.model.gateway import Gateway
from harness.model.local_model import LocalModel, check_file
from harness.model.provider import Provider, choose, settled
from harness.problems import Problem
from harness.request import Request
from harness.sizes import Usage
from tests.harness_support import Recorder, events, run
from tests.web_html import figure
from tests.web_support import serving

ROOT = Path(__file__).parent.parent
GGUF = os.environ.get("LAB_TEST_GGUF", "")
HAS_PACKAGE = importlib.util.find_spec("xllamacpp") is not None
needs_package = pytest.mark.skipif(not HAS_PACKAGE, reason="xllamacpp is missing: uv sync --group local")
needs_model = pytest.mark.skipif(
    not (HAS_PACKAGE and GGUF), reason="needs xllamacpp, and LAB_TEST_GGUF with the path of a small GGUF file"
)


@dataclass(frozen=True)
class Address:
    """A model that runs already, for a server that asks only where."""

    address: str


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_file_that_is_no_model_is_one_clear_line(tmp_path: Path) -> None:
    text = tmp_path / "model.txt"
    text.write_text("hello")
    with pytest.raises(Problem) as caught:
        check_file(text)
    assert caught.value.code == "gguf_no_model"
    for missing in (tmp_path / "missing.gguf", tmp_path):
        with pytest.raises(Problem) as caught:
            LocalModel(missing).start()
        assert caught.value.code == "gguf_not_read"
    good = tmp_path / "good.gguf"
    good.write_bytes(b"GGUF\x03")
    check_file(good)


@needs_package
def test_a_damaged_model_is_one_clear_line_and_leaves_no_child(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF and then nothing that makes sense")
    model = LocalModel(damaged)
    with pytest.raises(Problem) as caught:
        model.start()
    assert (caught.value.code, caught.value.values["file"]) == ("gguf_not_loaded", "damaged.gguf")
    assert caught.value.values["reason"] and "\n" not in str(caught.value.values["reason"])
    assert model.pid is None


def test_a_missing_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # None is how Python itself notes that a module is not to be found.
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(Problem) as caught:
        LocalModel(file).start()
    assert caught.value.code == "gguf_package"


async def listed(provider: Provider) -> Provider:
    gateway = Gateway(provider)
    try:
        return settled(provider, await gateway.list_models())
    finally:
        await gateway.close()


@pytest.fixture(scope="module")
def served() -> Iterator[Provider]:
    model = LocalModel(Path(GGUF), window=2048)
    chosen = choose({}, model=None, base_url=None, gguf=GGUF)
    address = model.start()
    yield asyncio.run(listed(replace(chosen, base_url=address)))
    pid = model.pid
    model.stop()
    assert pid and not alive(pid)


async def ask(provider: Provider, text: str, limit: int) -> tuple[str, str, int | None, int | None]:
    gateway = Gateway(provider)
    pieces: list[str] = []
    try:
        request = Request(provider.model, ({"role": "user", "content": text},), max_tokens=limit)
        reply = await gateway.stream(request, lambda piece, kind: pieces.append(piece))
    finally:
        await gateway.close()
    assert "".join(pieces) == reply.text
    return reply.text, reply.finish, reply.usage.prompt, reply.usage.cached


@needs_model
def test_a_real_model_streams_and_counts(served: Provider) -> None:
    assert (served.model, served.window, served.window_source) == (Path(GGUF).stem, 2048, "listed")
    question = "What is rain? " * 20
    text, finish, prompt, _ = asyncio.run(ask(served, question, 8))
    assert text and finish == "length" and prompt and prompt > 40
    _, _, again, cached = asyncio.run(ask(served, question, 8))
    assert again == prompt and cached and cached > 0


async def told(provider: Provider, *texts: str) -> list[Usage]:
    gateway = Gateway(provider)
    try:
        requests = [Request(provider.model, ({"role": "user", "content": text},), max_tokens=1) for text in texts]
        return [(await gateway.stream(each, lambda piece, kind: None)).usage for each in requests]
    finally:
        await gateway.close()


@needs_model
def test_of_a_request_that_begins_as_the_last_one_only_the_rest_is_read(served: Provider) -> None:
    start = "The pump in the third house has run since Monday. " * 12
    first, longer, other = asyncio.run(told(served, start, f"{start} And now?", f"No. {start}"))
    assert first.prompt and longer.prompt and other.prompt and first.prompt < longer.prompt
    read = [(each.prompt or 0) - (each.cached or 0) for each in (first, longer, other)]
    assert read[1] * 5 < read[0], "the start came from the cache"
    assert read[2] * 5 > read[0] * 4, "behind another beginning nothing does"
    assert all(each.prompt_ms for each in (first, longer, other))


@needs_model
def test_the_row_of_a_real_call_says_how_long_the_prompt_was_read(served: Provider, tmp_path: Path) -> None:
    with serving(tmp_path, lab="09", model=cast("Recorder", Address(served.base_url))) as web:
        session = web.session()
        web.run(run(session, "Say yes."), 90)
        usage = events(session, ModelCallEnded)[0].usage
        assert usage.prompt_ms
        for language, words in (("en", "prompt read in"), ("zh", "读提示用了")):
            html = web.ask(f"/s/{session.id}", headers={"Accept-Language": language}).text
            assert figure(html, "call.prompt_ms.reported") == str(round(usage.prompt_ms, 1))
            assert words in html


@needs_model
def test_a_real_overflow_is_one(served: Provider) -> None:
    with pytest.raises(ModelError) as caught:
        asyncio.run(ask(served, "word " * 4000, 8))
    assert caught.value.kind == "overflow" and "2048" in caught.value.detail


@needs_model
def test_only_who_knows_the_address_may_ask_it(served: Provider) -> None:
    address = urlsplit(served.base_url)
    assert len(address.path) > 32
    with pytest.raises(ModelError) as caught:
        asyncio.run(ask(replace(served, base_url=f"http://{address.netloc}/v1"), "Hello", 4))
    assert caught.value.kind == "refused"


@needs_model
def test_the_child_ends_when_we_are_killed() -> None:
    script = (
        "import sys, time; from pathlib import Path; from harness.model.local_model import LocalModel\n"
        "model = LocalModel(Path(sys.argv[1])); model.start(); print(model.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, GGUF], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    for _ in range(100):
        if not alive(pid):
            return
        time.sleep(0.05)
    pytest.fail("the model server outlived its parent")
