"""The command tool with real processes: output, limits, and that nothing is left when it ends or is stopped."""

import asyncio
import os
import sys
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.coding_tools.files import file_tools
from harness.coding_tools.shell import bash_tool
from harness.sandbox.detect import Kind, Sandbox, detect
from harness.sandbox.excerpt import Excerpt
from harness.tools import Arguments, ToolError
from harness.workspace import Workspace

HERE: tuple[Kind, ...] = ("sandbox-exec", "none") if sys.platform == "darwin" else ("bubblewrap", "landlock", "none")
# Every way to get away from a parent: own session, double fork, ignored signals.
ESCAPES = "(setsid bash -c 'trap \"\" TERM HUP; setsid sleep {mark} & nohup sleep {mark} & sleep {mark}' &) ;"


@pytest.fixture(scope="module", params=HERE)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    found = detect(kinds=[request.param])
    if found.kind != request.param:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"no {request.param} here: {found.detail}")
    return found


@pytest.fixture
def workspace(tmp_path: Path, sandbox: Sandbox) -> Workspace:
    (tmp_path / "work").mkdir()
    return Workspace(tmp_path / "work", "work", sandbox)


async def bash(workspace: Workspace, **arguments: object) -> str:
    return await bash_tool(workspace, workspace.sandbox).run(Arguments(arguments))


def run(workspace: Workspace, **arguments: object) -> str:
    return asyncio.run(bash(workspace, **arguments))


def running(mark: str) -> list[str]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "sleep" in line[:1] and mark in line:
            found.append(f"{process.pid} {line}")
    return found


BEFORE: set[int] = set()


@pytest.fixture(autouse=True)
def _others() -> None:
    """Remember which processes other tests' servers and helpers still have: they are not this test's."""
    BEFORE.clear()
    BEFORE.update(process.pid for process in psutil.Process().children(recursive=True))


def supervisors() -> list[int]:
    mine = [each for each in psutil.Process().children(recursive=True) if each.pid not in BEFORE]
    return [process.pid for process in mine if process.status() != psutil.STATUS_ZOMBIE]


async def until_running(mark: str) -> None:
    async with asyncio.timeout(20):
        while len(running(mark)) < 3:
            await asyncio.sleep(0.05)


def test_output_and_exit_code(workspace: Workspace) -> None:
    tool = bash_tool(workspace, workspace.sandbox)
    assert (tool.name, tool.asks) == ("bash", True)
    assert tool.preview and tool.preview({"command": "ls -l"}) == "ls -l"
    assert run(workspace, command="echo out; echo err >&2; exit 3") == "out\nerr\n[Exit code 3]"
    assert run(workspace, command="true") == "[No output. Exit code 0]"
    assert run(workspace, command="printf x") == "x\n[Exit code 0]"
    assert "not found" in run(workspace, command="no-such-program") and supervisors() == []
    assert "syntax error" in run(workspace, command="if")


def test_a_signal_is_named(workspace: Workspace) -> None:
    shown = run(workspace, command="kill -SEGV $$")
    # bubblewrap tells a signal as a shell does, by 128 and its number.
    assert shown in ("[No output. Ended by signal 11 (SIGSEGV)]", "[No output. Exit code 139]")


def test_there_is_no_input(workspace: Workspace) -> None:
    assert run(workspace, command="cat; read x; echo end $?") == "end 1\n[Exit code 0]"


def test_bytes_that_are_no_text(workspace: Workspace) -> None:
    assert run(workspace, command=r"printf '\xff\xfe\0ok 你好'") == "\ufffd\ufffd\ufffdok 你好\n[Exit code 0]"


def test_long_output_keeps_head_and_tail(workspace: Workspace) -> None:
    shown = run(workspace, command="seq 1 200000")
    assert shown.startswith("1\n2\n3\n")
    assert shown.endswith("199999\n200000\n[Exit code 0]")
    assert "are left out here]" in shown
    assert len(shown) < 20_200


def test_endless_output_is_stopped_and_does_not_fill_memory(workspace: Workspace) -> None:
    before, began = psutil.Process().memory_info().rss, time.monotonic()
    with pytest.raises(ToolError, match=r"(?s)^y\ny\n.*Stopped: it printed over 16,777,216 bytes"):
        run(workspace, command="yes", timeout=60)
    assert time.monotonic() - began < 30
    assert psutil.Process().memory_info().rss - before < 60 * 1024**2
    assert supervisors() == []


def test_a_time_out_ends_everything_and_keeps_the_output(workspace: Workspace) -> None:
    mark = f"86{os.getpid()}1"
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"(?s)begun\n\[Stopped after 2 s\..*`timeout` of up to 120"):
        run(workspace, command=ESCAPES.format(mark=mark) + "echo begun; sleep 60", timeout=2)
    assert 2 <= time.monotonic() - began < 10
    assert running(mark) == [] and supervisors() == []


def test_stop_ends_everything_at_once(workspace: Workspace) -> None:
    mark = f"86{os.getpid()}2"

    async def go() -> float:
        task = asyncio.create_task(bash(workspace, command=ESCAPES.format(mark=mark) + "sleep 60", timeout=60))
        await until_running(mark)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - began

    assert asyncio.run(go()) < 3
    assert running(mark) == [] and supervisors() == []


def test_a_second_stop_does_not_leave_the_first_half_done(workspace: Workspace) -> None:
    mark = f"86{os.getpid()}3"

    async def go() -> None:
        task = asyncio.create_task(bash(workspace, command=ESCAPES.format(mark=mark) + "sleep 60", timeout=60))
        await until_running(mark)
        for _ in range(5):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert running(mark) == [] and supervisors() == []


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13, 21])
def test_stop_at_any_moment_of_the_start(workspace: Workspace, turns: int) -> None:
    mark = f"86{os.getpid()}4"

    async def go() -> None:
        task = asyncio.create_task(bash(workspace, command=f"sleep {mark}"))
        for _ in range(turns):
            await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert running(mark) == [] and supervisors() == []


def test_what_runs_in_the_background_ends_with_the_command(workspace: Workspace) -> None:
    mark = f"86{os.getpid()}5"
    began = time.monotonic()
    assert "[Exit code 0]" in run(workspace, command=ESCAPES.format(mark=mark) + "echo done", timeout=30)
    assert time.monotonic() - began < 10
    assert running(mark) == []


def test_a_killed_harness_leaves_nothing(workspace: Workspace, tmp_path: Path) -> None:
    mark = f"86{os.getpid()}6"
    child = os.fork()
    if not child:
        try:
            run(workspace, command=ESCAPES.format(mark=mark) + "sleep 60", timeout=60)
        finally:
            os._exit(0)
    try:
        asyncio.run(until_running(mark))
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    deadline = time.monotonic() + 10
    while running(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running(mark) == []


def test_too_many_processes_are_ended(workspace: Workspace) -> None:
    # A bounded number on purpose: a real fork bomb that gets away would take the whole machine with it.
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"Stopped: it had over 256 processes"):
        run(workspace, command="for i in $(seq 300); do sleep 60 & done; wait", timeout=60)
    assert time.monotonic() - began < 40
    assert supervisors() == []


def test_too_much_memory_in_all_is_ended(workspace: Workspace) -> None:
    if sys.platform == "darwin":
        pytest.skip("macOS has no /proc")
    hold = "python3 -c 'import time; x = b\"x\" * 900_000_000; time.sleep(60)'"
    with pytest.raises(ToolError, match="over 2 GiB of memory"):
        run(workspace, command=f"{hold} & {hold} & {hold} & wait", timeout=60)


def test_the_loop_goes_on_meanwhile(workspace: Workspace) -> None:
    async def go() -> float:
        task = asyncio.create_task(bash(workspace, command="yes | head -c 10M; sleep 1"))
        worst, last = 0.0, time.monotonic()
        while not task.done():
            await asyncio.sleep(0.01)
            worst, last = max(worst, time.monotonic() - last), time.monotonic()
        return worst

    assert asyncio.run(go()) < 0.5


def test_a_link_made_by_a_command_leads_nowhere(workspace: Workspace) -> None:
    outside = workspace.root.parent / "outside.txt"
    outside.write_text("not yours")
    run(workspace, command=f"ln -s '{outside}' link; ln -s / all; ln -s /etc/passwd users")
    read, write, edit = file_tools(workspace)
    for path in ("link", f"all{outside}", "users"):
        for tool, more in ((read, {}), (write, {"content": "x"}), (edit, {"old": "not", "new": "now"})):
            with pytest.raises(ToolError, match="outside"):
                asyncio.run(tool.run({"path": path, **more}))
    assert outside.read_text() == "not yours"


@pytest.mark.parametrize("command", ["", "  \n", "echo \0", "x" * 100_001])
def test_commands_that_cannot_be_run_say_so(workspace: Workspace, command: str) -> None:
    with pytest.raises(ToolError, match="empty, too long"):
        run(workspace, command=command)


def test_a_workspace_that_is_gone_is_a_result(workspace: Workspace) -> None:
    workspace.root.rmdir()
    shown = run(workspace, command="echo x")
    assert "[Exit code" in shown and "x\n" not in shown


def test_the_time_limit_is_kept_in_bounds(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match="Stopped after 1 s"):
        run(workspace, command="sleep 30", timeout=-5)


@given(pieces=st.lists(st.binary(max_size=50_000), max_size=12), limit=st.integers(10, 2000))
def test_an_excerpt_is_bounded_and_counts_right(pieces: list[bytes], limit: int) -> None:
    excerpt = Excerpt()
    for piece in pieces:
        excerpt.add(piece)
    data = b"".join(pieces)
    text = excerpt.text(limit)
    assert excerpt.size == len(data)
    assert len(text) <= limit + 80
    whole = data.decode("utf-8", "replace").replace("\0", "\ufffd")
    if len(whole) <= limit:
        assert text == whole
    else:
        assert "left out here]" in text
        assert text.startswith(whole[: limit // 2])
