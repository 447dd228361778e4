"""The estimate: the right encoding, from the repository alone, also for the texts that break tiktoken."""

import gzip
import inspect
from pathlib import Path

import pytest
import tiktoken_ext.openai_public as public
from hypothesis import given
from hypothesis import strategies as st

from harness import tokens


def test_pattern_and_specials_are_those_of_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda *_args, **_kinds: {})
    theirs = public.o200k_base()
    assert theirs["pat_str"] == tokens.PATTERN
    assert theirs["special_tokens"] == tokens.SPECIAL_TOKENS
    assert tokens.RANKS_SHA256 in inspect.getsource(public.o200k_base)


@pytest.mark.parametrize(("text", "expected"), [("", 0), ("hello world", 2), ("上下文已整理", 4), ("<|endoftext|>", 7)])
def test_known_counts(text: str, expected: int) -> None:
    assert tokens.count(text) == expected


def test_a_million_blanks_are_counted() -> None:
    assert 5_000 < tokens.count(" " * 1_200_000) < 20_000


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=300))
def test_tokens_carry_the_text(text: str) -> None:
    encoding = tokens.encoding()
    assert encoding.decode(encoding.encode_ordinary(text)) == text


def test_pieces_cost_almost_nothing() -> None:
    text = Path(tokens.__file__).read_text("utf-8") * 60
    whole = len(tokens.encoding().encode_ordinary(text))
    assert len(text) > tokens.PIECE_CHARS
    assert 0 <= tokens.count(text) - whole <= 5


def test_calls_and_thoughts_are_counted() -> None:
    plain = {"role": "assistant", "content": ""}
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"path": "notes.md"}'}}
    assert tokens.size_of_message(plain).tokens == tokens.MESSAGE_TOKENS
    with_call = tokens.size_of_message(plain | {"tool_calls": [call]}).tokens
    assert with_call == tokens.MESSAGE_TOKENS + tokens.count("read") + tokens.count('{"path": "notes.md"}')
    with_thought = tokens.size_of_message(plain | {"tool_calls": [call], "reasoning_content": "hm, well"}).tokens
    assert with_thought > with_call


def test_a_damaged_rank_file_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (b"not gzip", gzip.compress(b"AA== 0\n")):
        bad = tmp_path / "o200k_base.tiktoken.gz"
        bad.write_bytes(content)
        monkeypatch.setattr(tokens, "RANKS", bad)
        with pytest.raises(tokens.RanksDamaged, match="Restore it"):
            tokens.encoding.__wrapped__()
