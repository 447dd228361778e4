"""Every problem that the code can raise has its line in both languages, with the values that the line wants."""

import ast
import string
from collections.abc import Iterator

import pytest

from tests.test_house import PRODUCT, name
from web.catalogue import load_all
from web.words import LANGUAGES

RAISERS = ("Problem", "LabError", "JournalError", "WorkspaceError")


def raised() -> Iterator[tuple[str, str, set[str]]]:
    """Yield (file, code, names of the values) for every problem in the code."""
    for path in PRODUCT:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RAISERS:
                assert isinstance(node.args[0], ast.Constant), f"{name(path)}: a code is written out"
                yield name(path), node.args[0].value, {str(keyword.arg) for keyword in node.keywords}


FOUND = list(raised())


@pytest.mark.parametrize(("file", "code", "values"), FOUND, ids=[f"{file}-{code}" for file, code, _ in FOUND])
def test_a_problem_has_its_line(file: str, code: str, values: set[str]) -> None:
    for language in LANGUAGES:
        line = load_all()[language].entries[f"problem.{code}"]
        assert isinstance(line, str)
        wanted = {field for _, field, _, _ in string.Formatter().parse(line) if field}
        assert wanted <= values, f"{file}: {code} in {language}"


def test_no_line_is_left_over() -> None:
    codes = {code for _, code, _ in FOUND}
    lines = {key.partition(".")[2] for key in load_all()["en"].entries if key.startswith("problem.")}
    assert lines == codes
    assert len(codes) > 20
