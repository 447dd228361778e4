"""One server for one folder of sessions, and a clear line where the folder cannot be used."""

from pathlib import Path

import pytest

from harness.ownership import claim
from harness.problems import Problem


def test_a_second_server_is_refused_until_the_first_one_ends(tmp_path: Path) -> None:
    first = claim(tmp_path)
    with pytest.raises(Problem) as refused:
        claim(tmp_path)
    assert refused.value.code == "journal_in_use"
    first.close()
    claim(tmp_path).close()


def test_a_folder_that_cannot_be_used_is_another_problem(tmp_path: Path) -> None:
    (tmp_path / "owner.db").mkdir()
    with pytest.raises(Problem) as refused:
        claim(tmp_path)
    assert refused.value.code == "folder_not_written"
