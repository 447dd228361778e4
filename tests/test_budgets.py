"""Decisions about tool results: which go, to what text, when, and that they stand; and the files of whole results."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import spills
from harness.budgets import Budgets, decide, decide_anew, freed_by
from harness.messages import ToolCall
from harness.preview import shortened, stale_note, whole_characters
from harness.read_back import read_back
from harness.replay import State, fold
from harness.result_events import FOLDER, Decision, ResultsDecided
from harness.sizes import Size
from tests.results_support import Told

LIMITS = Budgets(
    result_limit=1_000, preview=100, turn_limit=2_000, stale_turns=2, stale_preview=50, stale_batch=500
)  # fmt: skip
LARGE = Budgets(10**6, 100, 10**6, 2, 50, 500)


def verdicts(decisions: tuple[Decision, ...]) -> list[str]:
    return [decision.verdict for decision in decisions]


def told(*lengths: int) -> Told:
    """A session with one turn whose results have these lengths."""
    made = Told()
    made.turn(*(("read", {"path": f"{place}.md"}, chr(97 + place) * length) for place, length in enumerate(lengths)))
    return made


def test_a_single_result_over_the_limit_gets_a_preview_its_size_and_its_place() -> None:
    made = told(1_001, 1_000)
    large, small = decide(made.state, LIMITS)
    assert small == Decision("c2", "kept", 1_000), "at the limit it stays"
    assert (large.verdict, large.chars, large.file) == ("single", 1_001, ".tool-results/1-read.txt")
    assert large.text == (
        "a" * 100 + "\n[Just the first 100 of 1,001 characters are shown. The whole result of `read` is in "
        "`.tool-results/1-read.txt`; read the part that you need there (offset, limit).]"
    )
    made.decided([large, small])
    assert made.sent[-2:] == [large.text, "b" * 1_000]
    assert made.state.history[-2].message.text == "a" * 1_001, "the history keeps it as it came"


def test_of_several_together_the_largest_go_first_until_they_fit() -> None:
    assert verdicts(decide(told(600, 900, 500).state, LIMITS)) == ["kept", "kept", "kept"], "2,000 are allowed"
    assert verdicts(decide(told(600, 900, 501).state, LIMITS)) == ["kept", "together", "kept"]
    assert verdicts(decide(told(800, 900, 850, 500).state, LIMITS)) == ["kept", "together", "together", "kept"]
    assert verdicts(decide(told(5_000, 900, 800).state, LIMITS)) == ["single", "kept", "kept"], "its preview counts"


def test_turns_are_looked_at_one_by_one() -> None:
    made = told(900, 900)
    made.read("x.md", "x" * 900)
    assert verdicts(decide(made.state, LIMITS)) == ["kept", "kept", "kept"]


def test_what_would_not_become_shorter_stays() -> None:
    tiny = Budgets(10, 100, 10**6, 2, 50, 500)
    assert verdicts(decide(told(150).state, tiny)) == ["kept"]


def test_a_limit_of_zero_switches_its_step_off() -> None:
    made = told(50_000, 50_000)
    for number in range(9):
        made.read(f"{number}.md", "y" * 5_000)
    off = Budgets(0, 100, 0, 0, 0, 0)
    assert set(verdicts(decide(made.state, off))) == {"kept"}
    made.decided(decide(made.state, off))
    assert decide(made.state, off) == () == decide_anew(made.state, off)


def test_what_is_read_back_from_its_file_stays_whole_for_ever() -> None:
    made = told(4_000)
    made.decided(decide(made.state, LIMITS))
    back = made.read(".tool-results/1-read.txt", "a" * 3_000)
    made.turn(("read", {"path": "./.tool-results/1-read.txt"}, "a" * 1_500), ("read", {"path": "d.md"}, "d" * 900))
    wanted = decide(made.state, LIMITS)
    assert verdicts(wanted) == ["kept", "kept", "together"], "of the two it is not the larger one that goes"
    assert [decision.file for decision in wanted[:2]] == [".tool-results/1-read.txt"] * 2
    made.decided(wanted)
    for number in range(6):
        made.read(f"{number}.md", "z")
        made.decided(decide(made.state, LIMITS))
    assert made.state.decisions[back].verdict == "kept"
    assert not [each for each in decide_anew(made.state, LIMITS) if each.call_id == back]


ONE = "".join(f"- {n}. Valve {n} of the first log was tight.\n" for n in range(60))
TWO = "".join(f"{n * 37} {n}\n" for n in range(400))
LINE = "x".join(str(n) for n in range(2_000))
FILES = [f".tool-results/{n}-read.txt" for n in (1, 2, 3)]
NOTE = "[Exit code 0.]"


def numbered(text: str, mark: str) -> str:
    return "".join(f"{mark.format(n)}{line}" for n, line in enumerate(text.splitlines(keepends=True), 1))


@pytest.mark.parametrize(
    ("arguments", "result", "file"),
    [
        ({"command": "cat .tool-results/*"}, f"{ONE}{TWO}{LINE}\n{NOTE}", FILES[2]),
        ({"command": "cd .tool-results && cat 1-read.txt"}, f"{ONE}{NOTE}", FILES[0]),
        ({"command": "tail -n 300 '.tool-results/2-read.txt'"}, f"{TWO[-2_500:]}{NOTE}", FILES[1]),
        ({"command": "head -c 1500 .tool-results/3-read.txt"}, f"{LINE[:1_500]}\n{NOTE}", FILES[2]),
        ({"command": "grep -n Valve .tool-results/1-*"}, numbered(ONE, "{}:"), FILES[0]),
        ({"command": "cat -n .tool-results/1-read.txt"}, numbered(ONE, "{:6}\t"), FILES[0]),
        ({"path": ".tool-results", "pattern": "V"}, numbered(ONE, ".tool-results/1-read.txt:{}: "), FILES[0]),
        ({"path": ".tool-results/1-read.txt", "offset": 9}, f"{ONE[-1_500:]}[Lines 9-60 of 60 are shown.]", FILES[0]),
        ({"commands": ["cd .tool-results", "cat 1-read.txt"]}, ONE, FILES[0]),
        ({"command": "cat other.log # .tool-results/1-read.txt"}, "other " * 300, ""),
        ({"command": "cat .tool-results/1-read.txt other.log"}, ONE[:400] + "other\n" * 300, ""),
        ({"command": "seq 1000 2000 # .tool-results/2-read.txt"}, "\n".join(map(str, range(1_000, 2_000))), ""),
        ({"path": "1.md"}, ONE, ""),
        ({"path": "tool-results/1-read.txt"}, ONE, ""),
    ],
)
def test_what_was_read_back_is_known_by_its_call_and_its_text(
    arguments: dict[str, object], result: str, file: str
) -> None:
    made = Told()
    for number, text in enumerate((ONE, TWO, LINE), 1):
        made.read(f"{number}.md", text)
        made.decided(decide(made.state, LIMITS))
    made.turn(("any", arguments, result))
    [decision] = decide(made.state, LIMITS)
    assert (decision.verdict, decision.file) == (("kept", file) if file else ("single", ".tool-results/4-any.txt"))


def test_a_call_that_names_the_folder_in_escapes_reads_it_all_the_same() -> None:
    files = [(FILES[0], ONE)]
    for arguments in ('{"path": "\\u002etool-results\\/1-read.txt"}', '["\\u002etool-results"]'):
        assert read_back(ToolCall("c1", "read", arguments), ONE, files) == FILES[0]
    for broken in ("{broken .tool-results/1-read.txt", "[" * 100_000 + ".tool-results"):
        assert read_back(ToolCall("c1", "read", broken), ONE, files) == ""
    assert read_back(None, ONE, files) == "" == read_back(ToolCall("c1", "ls", '"ls .tool-results"'), "", files)


def test_a_call_that_does_not_name_the_folder_costs_no_look_at_any_file() -> None:
    def unread() -> Iterator[tuple[str, str]]:
        raise AssertionError("looked at")
        yield "", ""

    assert read_back(ToolCall("c1", "read", '{"path": "a.md"}'), "text", unread()) == ""


def test_a_file_that_the_call_names_is_found_among_many_and_without_a_name_the_newest_are_looked_at() -> None:
    files = [(f".tool-results/{n}-read.txt", f"the whole result {n}\n" * 60) for n in range(1_000, 0, -1)]

    def back(command: str, number: int) -> str:
        call = ToolCall("c1", "bash", json.dumps({"command": command}))
        return read_back(call, f"the whole result {number}\n" * 50, files)

    assert back("cd .tool-results; tail 3-read.txt", 3) == files[-3][0]
    assert back("cat .tool-results/*", 950) == files[50][0]
    assert back("cat .tool-results/*", 3) == ""


def test_old_results_go_in_one_batch_and_only_when_it_is_worth_it() -> None:
    made = Told()
    seen: list[tuple[Decision, ...]] = []
    for number in range(7):
        made.read(f"{number}.md", "r" * 600)
        seen.append(decide(made.state, LIMITS))
        made.decided(seen[-1])
    stale = [[each.call_id for each in step if each.verdict == "stale"] for step in seen]
    # One frees about 400 characters, and 500 are asked for: two at a time.
    assert stale == [[], [], [], [], ["c1", "c2"], [], ["c3", "c4"]]
    first = next(each for each in seen[4] if each.verdict == "stale")
    assert first.text.startswith("r" * 50 + "\n[Just the first 50 of 600 characters are shown.")
    assert first.text.endswith('call it again: {"path": "0.md"}]') and first.file == ""
    assert decide(made.state, LIMITS) == (), "each is decided once"


def test_what_the_model_has_not_seen_never_counts_as_old() -> None:
    always = Budgets(0, 100, 0, 1, 10, 0)
    made = Told()
    for number in range(5):
        made.read(f"{number}.md", "r" * 900)
        for each in (*decide(made.state, always), *decide_anew(made.state, always)):
            assert each.verdict == "kept" or each.call_id != f"c{number + 1}"
        made.decided(decide(made.state, always))
        made.ask("And now?")
    assert made.state.decisions["c5"].verdict == "kept"


def test_a_short_old_result_stays_and_so_does_one_with_a_preview() -> None:
    made = Told()
    for text in ("s" * 300, "l" * 5_000, *["x"] * 5):
        made.read("a.md", text)
        made.decided(decide(made.state, Budgets(1_000, 900, 0, 2, 50, 0)))
    assert [made.state.decisions[call].verdict for call in ("c1", "c2")] == ["kept", "single"]


def test_decisions_stand_whatever_the_limits_become() -> None:
    made = told(1_500, 300)
    made.decided(decide(made.state, LIMITS))
    before = made.sent
    for other in (Budgets(10, 5, 10, 100, 5, 0), LARGE):
        assert decide(made.state, other) == ()
    assert made.sent == before
    again = fold(made.numbered)
    assert again.request().body() == made.state.request().body()
    assert again.decisions == made.state.decisions


def test_anew_every_turn_moves_the_border_in_the_middle() -> None:
    made = Told()
    for number in range(5):
        made.read(f"{number}.md", "r" * 600)
        step = decide_anew(made.state, LIMITS)
        assert [each.call_id for each in step] == ([f"c{number - 2}"] if number >= 3 else []), "one each turn"
        made.decided(step, anew=True)
    made.read("large.md", "l" * 5_000)
    made.decided(decide_anew(made.state, LIMITS), anew=True)
    assert made.state.decisions["c6"].verdict == "single"
    for _ in range(3):
        made.read("x.md", "x")
        made.decided(decide_anew(made.state, Budgets(1_000, 900, 0, 2, 50, 0)), anew=True)
    aged = made.state.decisions["c6"]
    assert aged.verdict == "stale" and aged.file in aged.text, "an old one with a file names it"


def test_a_result_that_left_the_context_is_no_longer_looked_at() -> None:
    made = Told()
    for number in range(4):
        made.read(f"{number}.md", "r" * 600)
    made.decided(decide(made.state, LARGE)[:4])
    made.state.context.put(made.state.context.entries[-2:])
    assert decide(made.state, LIMITS) == ()


def test_a_turn_looks_at_what_is_new_and_not_at_the_history() -> None:
    class Counted(list):
        looked = 0

        def __reversed__(self) -> Iterator[object]:
            for each in super().__reversed__():
                Counted.looked += 1
                yield each

    looked = []
    for length, limits in ((50, LIMITS), (2_000, LIMITS), (2_000, Budgets(0, 1, 0, 0, 0, 0))):
        made = Told()
        for number in range(length):
            made.read(f"{number}.md", "short")
        made.decided(decide(made.state, limits))
        made.read("new.md", "new")
        made.state.context.entries = Counted(made.state.context.entries)
        Counted.looked = 0
        assert len(decide(made.state, limits)) == 1
        looked.append(Counted.looked)
    assert looked[0] == looked[1] < 20 and looked[2] <= looked[0]


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=5), st.booleans())
def test_freed_is_what_the_request_shrinks_by(lengths: list[int], anew: bool) -> None:
    made = told(*lengths)
    for number in range(4):
        made.read(f"{number}.md", "t" * 700)
        wanted = (decide_anew if anew else decide)(made.state, LIMITS)
        before, told_of = made.state.context.total, freed_by(made.state, wanted)
        made.decided(wanted, anew=anew)
        assert before - made.state.context.total == told_of
        assert told_of.chars >= 0 or anew


PIECES = st.sampled_from(["a", "字", "😀", "👩‍🚀", "👍🏽", "é", "e\u0301", "🇩🇪", "🇨🇳", "☀️", "\r\n", "\n"])


@given(st.lists(PIECES, max_size=30), st.integers(0, 40))
def test_a_preview_ends_at_a_whole_character(pieces: list[str], limit: int) -> None:
    text = "".join(pieces)
    first = whole_characters(text, limit)
    assert text.startswith(first) and len(first) <= limit
    assert len(first) == len(text) or limit - len(first) < 4
    ends = {0}
    for piece in pieces:
        ends.add(max(ends) + len(piece))
    assert len(first) in ends


def test_a_character_without_an_end_is_cut_all_the_same() -> None:
    assert 60 < len(whole_characters("e" + "\u0301" * 500, 100)) <= 100
    assert shortened("ab", 0, "x") == "[Just the first 0 of 2 characters are shown. x]"
    assert len(stale_note("read", ToolCall("c", "read", "{" + "x" * 9_000))) < 300
    assert stale_note("read", None).endswith("call it again if you need the rest.")


# The files.


def spilled(number: int = 1) -> Decision:
    return Decision(f"c{number}", "single", 5, "abc [..]", spills.file_name(number, "read"))


def test_a_file_holds_the_whole_result_byte_for_byte(tmp_path: Path) -> None:
    text = "first\r\nzwei 字\u2028😀\n"
    assert spills.keep(tmp_path, [spilled()], {"c1": text}) == (spilled(),)
    assert (tmp_path / FOLDER / "1-read.txt").read_bytes() == text.encode()
    kept = Decision("c2", "kept", 5)
    assert spills.keep(tmp_path, [kept], {"c2": "other"}) == (kept,)
    assert len(list((tmp_path / FOLDER).iterdir())) == 1
    assert spills.file_name(7, "../../etc/pass wd") == ".tool-results/7-_etc_pass_wd.txt"
    assert spills.file_name(8, "字") == ".tool-results/8-_.txt"


def test_where_a_file_cannot_be_written_the_result_stays_and_says_why(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("in the way")
    (one,) = spills.keep(tmp_path, [spilled()], {"c1": "whole"})
    assert (one.verdict, one.text, one.file) == ("kept", "", "")
    assert one.detail.startswith(".tool-results/1-read.txt: ")
    (one,) = spills.keep(None, [spilled()], {"c1": "whole"})
    assert one.verdict == "kept" and "no workspace" in one.detail


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_no_link_leads_a_file_out_of_the_workspace(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "1-read.txt").write_text("not ours")
    (inside / FOLDER).symlink_to(outside)
    (one,) = spills.keep(inside, [spilled()], {"c1": "whole"})
    assert one.verdict == "kept" and "is a link" in one.detail
    spills.sweep(inside, frozenset())
    assert (outside / "1-read.txt").read_text() == "not ours"
    (inside / FOLDER).unlink()
    (inside / FOLDER).mkdir()
    (inside / FOLDER / "1-read.txt").symlink_to(outside / "1-read.txt")
    spills.keep(inside, [spilled()], {"c1": "whole"})
    assert (outside / "1-read.txt").read_text() == "not ours"
    assert (inside / FOLDER / "1-read.txt").read_text() == "whole"


def test_orphans_are_swept_and_nothing_else(tmp_path: Path) -> None:
    spills.sweep(tmp_path, frozenset())
    folder = tmp_path / FOLDER
    folder.mkdir()
    for name in ("1-read.txt", "2-read.txt", "tmpab12_x", "notes.md", "3-read.md"):
        (folder / name).write_text(name)
    spills.sweep(tmp_path, frozenset({".tool-results/1-read.txt"}))
    assert sorted(path.name for path in folder.iterdir()) == ["1-read.txt", "3-read.md", "notes.md"]
    for name in ("1-read.txt", "notes.md", "3-read.md"):
        (folder / name).unlink()
    (folder / "9-bash.txt").write_text("orphan")
    spills.sweep(tmp_path, frozenset())
    assert not folder.exists(), "an empty folder is nothing to list"


def test_every_file_that_any_event_named_is_known() -> None:
    class Line:
        def __init__(self, event: object) -> None:
            self.event = event

    first = ResultsDecided(task=1, decisions=(spilled(1), Decision("c9", "kept", 1)), freed_chars=0, freed_tokens=0)
    second = ResultsDecided(task=1, decisions=(spilled(2),), freed_chars=0, freed_tokens=0, anew=True)
    lines = [Line(first), Line(second), Line("another event")]
    assert spills.named(lines) == {".tool-results/1-read.txt", ".tool-results/2-read.txt"}  # type: ignore[arg-type]


def test_sizes_of_nothing() -> None:
    assert freed_by(State(), ()) == Size()
