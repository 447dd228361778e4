"""The rules of the house, held by reading the code: sizes, the direction of imports, one library a file."""

import ast
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PRODUCT = [
    path
    for folder in ("harness", "offline_model", "web", "labs", ".")
    for path in sorted((ROOT / folder).glob("*.py" if folder == "." else "**/*.py"))
]
# What each folder may import of ours; a lab sees the harness and nothing of another lab.
MAY_IMPORT = {
    "harness": {"harness"},
    "offline_model": {"offline_model"},
    "web": {"web", "harness"},
    "labs": {"harness"},
}
ONE_PLACE = {
    "openai": "harness/model/gateway.py",
    "tiktoken": "harness/tokens.py",
    "sqlalchemy": "harness/journal.py",
    "xllamacpp": "harness/model/local_server.py",
    "opentelemetry": "harness/tracing/otlp.py",
    "openinference": "harness/tracing/otlp.py",
}


# Windows lacks these, and there too pytest imports every test before it skips any.
FORKING = ("multiprocessing.forkserver", "multiprocessing.resource_tracker")
POSIX = {"fcntl", "pwd", "grp", "resource", "termios", "pty", *FORKING}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path, *, at_once: bool = False) -> set[str]:
    """Return what a file imports; at_once: only what it does whenever it is imported itself."""
    found: set[str] = set()
    tree = ast.parse(path.read_text("utf-8"))
    for node in tree.body if at_once else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


def folder_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


@pytest.mark.parametrize("path", PRODUCT, ids=name)
def test_a_file_is_short_says_what_it_is_and_has_short_functions(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= 200
    tree = ast.parse(text)
    assert not text or ast.get_docstring(tree), "a module says what it is"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno and node.end_lineno - node.lineno < 40, f"{node.name} is too long"


@pytest.mark.parametrize("path", sorted((ROOT / "tests").glob("*.py")), ids=name)
def test_every_test_can_be_collected_on_windows(path: Path) -> None:
    assert not imported(path, at_once=True) & POSIX


def test_the_median_file_is_short() -> None:
    lines = [path.read_text("utf-8").count("\n") for path in PRODUCT if path.name != "__init__.py"]
    assert len(lines) > 30
    assert statistics.median(lines) <= 120


@pytest.mark.parametrize("path", PRODUCT, ids=name)
def test_imports_run_one_way(path: Path) -> None:
    ours = {each.split(".")[0] for each in imported(path)} & {"harness", "offline_model", "web", "labs", "server"}
    assert "server" not in ours and "labs" not in ours
    if path.parent != ROOT:
        assert ours <= MAY_IMPORT[folder_of(path)]


def test_no_circle_of_imports() -> None:
    modules = {name(path)[:-3].replace("/", "."): path for path in PRODUCT if folder_of(path) != "labs"}
    graph = {module: imported(path) & modules.keys() for module, path in modules.items()}
    finished: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail, module))
        if module not in finished:
            for following in graph[module]:
                visit(following, (*trail, module))
            finished.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize(("library", "place"), ONE_PLACE.items())
def test_a_library_is_imported_in_one_file(library: str, place: str) -> None:
    users = {name(path) for path in PRODUCT if library in {each.split(".")[0] for each in imported(path)}}
    assert users == {place}


def test_only_web_imports_starlette() -> None:
    users = {folder_of(path) for path in PRODUCT if "starlette" in {each.split(".")[0] for each in imported(path)}}
    assert users == {"web"}
