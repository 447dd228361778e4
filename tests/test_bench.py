"""The benches run, in a tiny size, and print what they are for. No time is held to anything; peers may be missing."""

import re
from pathlib import Path

import pytest

from bench import cache_break, call_overhead, count_cost, cut_cost, lost_cost, turn_cost
from bench.conversation import labs
from bench.peers import PEERS
from harness.model.local_model import LocalModel
from offline_model.server import OfflineServer


def lines(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return what was printed, by the name that begins each line."""
    printed = capsys.readouterr().out.splitlines()
    return {line[:36].strip(): line[36:] for line in printed}


def test_the_overhead_of_a_call_has_a_ratio_for_each_lab_and_a_line_for_each_peer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call_overhead.main((20, 40), turns=3)
    printed = lines(capsys)
    assert {f"lab {number}" for number in labs()} == {name for name in printed if name.startswith("lab")}
    assert all(re.fullmatch(r"(?: +[\d.]+){3}", printed[f"lab {number}"]) for number in labs())
    for peer in PEERS:
        if peer.turn:
            assert printed[peer.name].strip() == "not installed" or re.search(r" [\d.]+$", printed[peer.name])


def test_a_cut_is_made_in_each_lab_and_stands_beside_the_peers(capsys: pytest.CaptureFixture[str]) -> None:
    cut_cost.main(400, repeats=1)
    printed = lines(capsys)
    for number in labs():
        assert float(printed[f"lab {number}"].split()[0]) > 0
        assert float(printed[f"lab {number}, with the user's limits"].split()[0]) > 0
    assert {peer.name for peer in PEERS if peer.cut} <= printed.keys()


def test_no_message_is_encoded_twice_and_the_speed_of_counting_has_a_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    count_cost.main(400, turns=3)
    printed = lines(capsys)
    assert re.search(r"ratio [\d.]+$", printed["a text, counted"])
    assert re.search(r"ratio [\d.]+$", printed["a message, with its JSON"])
    assert all("none of them twice" in printed[f"lab {number}"] for number in labs())


def test_the_benches_of_a_turn_and_of_lost_facts_print_a_ratio(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_cost, "TURNS", 2)
    monkeypatch.setattr(lost_cost, "REPEATS", {100: 1, 10_000: 1})
    turn_cost.main()
    lost_cost.main()
    assert len(re.findall(r"^ratio: [\d.]+$", capsys.readouterr().out, re.MULTILINE)) == 2


def test_what_a_broken_cache_costs_has_a_ratio_and_no_time_where_none_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # The offline model counts what it did not have in its cache, as llama.cpp's server does, but tells no time.
    cache_break.main(lambda: OfflineServer(delay=0), repeats=1)
    printed = lines(capsys)
    kept, anew = (printed[name].split() for name in cache_break.NAMES)
    assert kept[3:] == anew[3:] == ["not", "told"]
    assert int(kept[0]) == int(anew[0]) > 7, "neither was compacted, which would be a call more"
    (ratio,) = printed["ratio, anew ÷ for good"].split()
    assert float(ratio) > 1.3
    cache_break.main(lambda: LocalModel(tmp_path / "none.gguf"), repeats=1)
    assert re.fullmatch(r"not measured: .*none\.gguf.*\n", capsys.readouterr().out)
