"""Which model answers: the order of the choices, bad keys and addresses, and windows."""

from pathlib import Path

import pytest

from harness.model.provider import (
    NO_KEY,
    Provider,
    choose,
    is_loopback,
    read_environment,
    settled,
)
from harness.model.windows import Listed, read_list, window_of
from harness.problems import Problem

DEEPSEEK = {"DEEPSEEK_API_KEY": "sk-deep"}
OPENAI = {"OPENAI_API_KEY": "sk-open"}
URL = "http://127.0.0.1:11434/v1"


def pick(environment: dict[str, str], **options: str) -> Provider:
    return choose(environment, **{"model": None, "base_url": None, "gguf": None} | options)


def problem(environment: dict[str, str], **options: str) -> tuple[str, dict[str, object]]:
    with pytest.raises(Problem) as caught:
        pick(environment, **options)
    return caught.value.code, caught.value.values


def test_the_order_of_the_choices() -> None:
    both = DEEPSEEK | OPENAI | {"OPENAI_BASE_URL": URL}
    chosen = [
        pick(both, gguf="/m/small.gguf", base_url=URL),
        pick(both, base_url="http://host:1/v1"),
        pick(both),
        pick(OPENAI | {"OPENAI_BASE_URL": URL}),
        pick(OPENAI),
        pick({"OPENAI_BASE_URL": URL}),
        pick({}),
    ]
    assert [(each.kind, each.reason, each.base_url, each.api_key) for each in chosen] == [
        ("local", "gguf", "", NO_KEY),
        ("compatible", "base_url", "http://host:1/v1", "sk-open"),
        ("deepseek", "deepseek_key", "https://api.deepseek.com", "sk-deep"),
        ("compatible", "openai_base_url", URL, "sk-open"),
        ("openai", "openai_key", "https://api.openai.com/v1", "sk-open"),
        ("compatible", "openai_base_url", URL, NO_KEY),
        ("offline", "no_key", "", NO_KEY),
    ]


def test_the_name_of_the_model() -> None:
    assert pick(DEEPSEEK).model == "deepseek-flash"
    assert pick(DEEPSEEK | {"DEEPSEEK_MODEL": "deepseek-v4-pro"}).model == "deepseek-v4-pro"
    assert pick(DEEPSEEK | {"DEEPSEEK_MODEL": "a"}, model="b").model == "b"
    assert pick(OPENAI).model == "gpt-4.1-mini"
    assert pick(OPENAI | {"OPENAI_MODEL": "gpt-5"}).model == "gpt-5"
    assert pick({}, base_url=URL).model == ""
    assert pick({"OPENAI_MODEL": "qwen"}, base_url=URL).model == "qwen"
    assert pick({}, gguf="/m/small.Q4.gguf").model == "small.Q4"
    assert pick({}).model == "offline"


def test_a_model_without_a_way_to_it_is_an_error_and_not_the_offline_model() -> None:
    assert problem({}, model="big") == ("no_way_to_model", {"model": "big"})


def test_an_empty_variable_is_as_none() -> None:
    empty = {"DEEPSEEK_API_KEY": "", "OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "DEEPSEEK_BASE_URL": ""}
    assert pick(empty).kind == "offline"
    assert pick(DEEPSEEK | {"DEEPSEEK_BASE_URL": "", "DEEPSEEK_MODEL": " "}).model == "deepseek-flash"


@pytest.mark.parametrize("name", ["DEEPSEEK_API_KEY", "OPENAI_API_KEY"])
@pytest.mark.parametrize(
    "key", ["   ", '"sk-secret1"', "'sk-secret1", "sk secret1", "sk-secret1\nx", "sk-secret1é", "<sk-secret1>"]
)
def test_a_bad_key_is_a_problem_that_does_not_hold_the_key(name: str, key: str) -> None:
    assert problem({name: key}) == ("bad_key" if key.strip() else "blank_key", {"name": name})


def test_blanks_around_a_key_are_no_fault_and_a_key_is_never_shown() -> None:
    provider = pick({"DEEPSEEK_API_KEY": " sk-deep\n"})
    assert provider.api_key == "sk-deep"
    assert "sk-deep" not in repr(provider)


@pytest.mark.parametrize(
    "address",
    [
        *("", "localhost:11434", "ftp://host/v1", "http://", "http:///v1", "http://host:99999/v1", "http://host:x/v1"),
        *("http://ho st/v1", "http://host/v1?key=1", "http://host/v1#a", "http://[::1/v1", "file:///etc/passwd"),
    ],
)
def test_a_bad_address_is_a_problem(address: str) -> None:
    assert problem({}, base_url=address) == ("bad_address", {"name": "--base-url", "address": address})
    if address:
        code, values = problem(DEEPSEEK | {"DEEPSEEK_BASE_URL": address})
        assert (code, values["name"]) == ("bad_address", "DEEPSEEK_BASE_URL")


def test_an_address_with_a_password_is_refused_and_not_repeated() -> None:
    assert problem({}, base_url="https://me:geheim@host/v1") == ("password_in_address", {"name": "--base-url"})
    assert problem({}, base_url="ftp://me:geheim@host/v1")[1]["address"] == "ftp:[key]host/v1"


def test_an_address_is_tidied() -> None:
    assert pick({}, base_url=" http://host:1/v1/ ").base_url == "http://host:1/v1"
    assert pick({}, base_url="http://host:1/v1/chat/completions").base_url == "http://host:1/v1"


def test_the_window_by_four_steps() -> None:
    listed = (Listed("deepseek-flash", 5000),)
    by_hand = pick(DEEPSEEK | {"MODEL_WINDOW": "4000"})
    assert (by_hand.window, by_hand.window_source) == (4000, "setting")
    assert settled(by_hand, listed) == by_hand
    from_list = settled(pick(DEEPSEEK), listed)
    assert (from_list.window, from_list.window_source) == (5000, "listed")
    known = pick(DEEPSEEK)
    assert (known.window, known.window_source) == (1_000_000, "table")
    unknown = pick({}, base_url=URL, model="deepseek-flash")
    assert (unknown.window, unknown.window_source) == (8192, "default")
    assert pick({}).window is None and pick({}, base_url=URL).window is None


@pytest.mark.parametrize("setting", ["many", "-5", "0", "3.5", "٣"])
def test_a_bad_window_is_a_problem(setting: str) -> None:
    assert problem({"MODEL_WINDOW": setting}) == ("bad_window", {"value": setting})


def test_the_longest_known_name_counts() -> None:
    def window(name: str) -> int:
        return window_of(name, (), known=True)[0]

    assert [window(name) for name in ("gpt-4", "gpt-4-turbo", "gpt-4o-mini", "gpt-4.1-mini")] == [
        *(8_192, 128_000, 128_000, 1_047_576),
    ]
    assert [window(name) for name in ("deepseek-chat", "deepseek-v4-pro", "gpt-5-chat-latest", "other")] == [
        *(131_072, 1_000_000, 128_000, 8_192),
    ]


def test_the_lists_of_servers() -> None:
    assert read_list({"data": [{"id": "a", "max_model_len": 4096}]}) == (Listed("a", 4096),)
    assert read_list({"data": [{"id": "a", "context_length": 7}, {"id": "b"}]}) == (Listed("a", 7), Listed("b", None))
    llama = {"id": "a", "meta": {"n_ctx": 2048, "n_ctx_train": 8192}}
    assert read_list({"models": [{"name": "x"}], "data": [llama]}) == (Listed("a", 2048),)
    assert read_list([{"id": "a", "context_length": 0, "max_context_length": 9}]) == (Listed("a", 9),)
    for odd in (None, "text", {}, {"data": None}, {"data": ["a", {"id": 3}, {}]}, {"data": {"id": "a"}}):
        assert read_list(odd) == ()


def test_a_model_is_taken_from_the_list_only_where_none_is_named() -> None:
    listed = (Listed("first", None), Listed("second", 77))
    assert settled(pick({}, base_url=URL), listed).model == "first"
    named = settled(pick({}, base_url=URL, model="second"), listed)
    assert (named.model, named.window) == ("second", 77)
    assert settled(pick({}, base_url=URL), ()).model == ""


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/v1", "http://localhost/v1", "http://[::1]:1", "http://a.localhost"]
)
def test_this_machine(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize("address", ["https://api.deepseek.com", "http://10.0.0.1", "http://localhost.example.com", ""])
def test_another_machine(address: str) -> None:
    assert not is_loopback(address)


def test_the_env_file_lies_under_the_real_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["DEEPSEEK_API_KEY=sk-file", "OPENAI_API_KEY=sk-${HOME}", "export OPENAI_MODEL=m # why", "LONELY"]
    text = "\ufeff" + "\n".join([*lines, "COLOR_X=file", ""])
    (tmp_path / ".env").write_text(text, "utf-8")
    for name in ("DEEPSEEK_API_KEY", "OPENAI_API_KEY", "OPENAI_MODEL", "LONELY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLOR_X", "real")
    found = read_environment(tmp_path)
    assert (found["DEEPSEEK_API_KEY"], found["OPENAI_API_KEY"], found["OPENAI_MODEL"]) == ("sk-file", "sk-${HOME}", "m")
    assert found["COLOR_X"] == "real" and "LONELY" not in found
    assert read_environment(tmp_path / "nowhere")["COLOR_X"] == "real"
    monkeypatch.setenv("DEEPSEEK_API_KEY", "")
    assert read_environment(tmp_path)["DEEPSEEK_API_KEY"] == ""


def test_an_env_file_in_another_encoding_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes("DEEPSEEK_API_KEY=é".encode("utf-16"))
    with pytest.raises(Problem) as caught:
        read_environment(tmp_path)
    assert caught.value.code == "env_file"
