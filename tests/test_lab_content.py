"""The labs' texts and demos, and both labs run by hand over the wire, in both languages."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from harness import combining
from harness.discovery import LabError, find_labs
from harness.discovery import load as load_lab
from harness.masking import MASK
from harness.replay import State
from harness.tracing import messages, place, sender, sending
from offline_model.server import OfflineServer
from offline_model.statements import split
from tests.offline_support import ROOT, SCRIPTS, Talk, lab, log, samples
from web.catalogue import load
from web.lab_text import read_lab_text

LANGUAGES = ["en", "zh"]
LABS = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10"]
HAN = re.compile(r"[\u3400-\u9fff]")


@pytest.fixture(scope="module")
def server() -> Iterator[OfflineServer]:
    with OfflineServer(SCRIPTS, delay=0) as running:
        yield running


@pytest.fixture
def talk(server: OfflineServer, tmp_path: Path) -> Iterator[Talk]:
    made = Talk(server.address, tmp_path, "incident-log")
    yield made
    made.close()


def readme(number: str, language: str) -> str:
    folder = next((ROOT / "labs").glob(f"{number}-*"))
    return (folder / ("README.zh.md" if language == "zh" else "README.md")).read_text("utf-8")


def texts(value: object) -> Iterator[dict[str, str]]:
    """Yield every pair of languages in a lab.toml."""
    if isinstance(value, dict):
        if "en" in value:
            yield value
        else:
            for each in value.values():
                yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


@pytest.mark.parametrize("number", LABS)
def test_every_text_of_a_lab_is_there_in_both_languages(number: str) -> None:
    pairs = list(texts(lab(number)))
    assert len(pairs) >= 16
    for pair in pairs:
        assert set(pair) == {"en", "zh"}
        assert not HAN.search(pair["en"].replace("“", "").replace("”", "")) and HAN.search(pair["zh"])
    ids = [sample["id"] for sample in samples(number)]
    assert len(set(ids)) == len(ids)
    assert (ROOT / "demo_workspace" / lab(number)["demo"]).is_dir()


def test_lab_07_has_its_numbers_and_samples_in_order() -> None:
    assert lab("07")["settings"] == {"budget": 1500, "summary_limit": 900, "keep_demands": 0}
    assert lab("07")["compacts"] is True
    assert [sample["id"] for sample in samples("07")] == ["sort", "confirmed", "draft", "detail", "again"]


@pytest.mark.parametrize("number", LABS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_lab_text_ends_in_a_question_and_an_answer(number: str, language: str) -> None:
    tokens = MarkdownIt("commonmark", {"html": False}).parse(readme(number, language))
    heads = [(a.tag, b.content) for a, b in zip(tokens, tokens[1:], strict=False) if a.type == "heading_open"]
    think = {"en": [("h2", "Think"), ("h3", "One answer")], "zh": [("h2", "想一想"), ("h3", "参考思路")]}[language]
    assert heads[-2:] == think
    question = readme(number, language).split(f"## {think[0][1]}\n")[1].split("###")[0]
    assert "?" in question or "？" in question


def test_both_languages_of_a_lab_text_have_the_same_parts() -> None:
    for number in LABS:
        shapes = [re.findall(r"^(#+|- |\d\. )", readme(number, each), re.MULTILINE) for each in LANGUAGES]
        assert shapes[0] == shapes[1]


@pytest.mark.parametrize("number", LABS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_lab_text_names_things_as_the_page_does(number: str, language: str) -> None:
    parsed = MarkdownIt("commonmark", {"html": False}).parse(readme(number, language))
    pieces = [piece for token in parsed for piece in token.children or []]
    assert not any("*" in piece.content for piece in pieces if piece.type == "text"), "a mark that is none"
    named = [b.content for a, b in zip(pieces, pieces[1:], strict=False) if a.type == "em_open"]
    assert len(named) >= 6
    assert set(named) <= {str(entry) for entry in load(language).entries.values()}


@pytest.mark.parametrize("number", LABS)
def test_a_lab_has_its_parts_a_drawing_and_ticks(number: str) -> None:
    parts = [len(read_lab_text(readme(number, language)).sections) for language in LANGUAGES]
    assert parts == [8, 8], "the idea, words, how it works, try, watch, goes wrong, limits, question"
    assert len(lab(number)["picture"]["bars"]) == 4
    ticks = lab(number)["ticks"]
    assert 5 <= len(ticks) == len({tick["id"] for tick in ticks})
    assert any("proof" in tick for tick in ticks) and not all("proof" in tick for tick in ticks)


def test_a_proof_that_nobody_knows_is_named_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "07-copy"
    shutil.copytree(next((ROOT / "labs").glob("07-*")), folder)
    file = folder / "lab.toml"
    file.write_text(file.read_text("utf-8").replace('proof = "reread"', 'proof = "moon"'), "utf-8")
    with pytest.raises(LabError) as raised:
        find_labs(tmp_path)
    assert raised.value.code == "lab_broken" and raised.value.values["file"] == "07-copy/lab.toml"
    reason = str(raised.value.values["reason"])
    assert reason.startswith("ticks.4.proof: ") and "'reread'" in reason and "\n" not in reason


def test_the_summariser_s_limits_are_those_of_the_text() -> None:
    labs = find_labs(ROOT / "labs")
    settings = combining.DEFAULTS | labs["07"].settings
    strategy = load_lab(labs["07"]).compaction
    assert strategy
    _, job = strategy(State(), settings, "", 1)
    reading = job.asked.reading
    limits = (reading.message, reading.arguments, reading.whole, settings["budget"], job.asked.limit)
    assert limits == (4_000, 1_000, 24_000, 1_500, 900)
    assert combining.DEFAULTS["step_limit"] == 30, "what lab 01 tells to set it back to"


@pytest.mark.parametrize("language", LANGUAGES)
def test_lab_07_states_its_numbers(language: str) -> None:
    for number in ("1,500", "900", "4,000", "1,000", "24,000"):
        assert number in readme("07", language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_lab_06_states_the_numbers_and_names_that_hold(language: str) -> None:
    text, forty, three = readme("06", language), {"en": "forty", "zh": "四十"}, {"en": "three seconds", "zh": "等三秒"}
    assert (sending.BATCH, sender.CLOSING) == (40, 3.0) and forty[language] in text and three[language] in text
    for number in (sender.MOST_SPANS, messages.TEXT_CHARS):
        assert f"{number:,}" in text
    for name in (place.ADDRESS, place.PROJECT, MASK, *(f"PHOENIX_{each}" for each in place._NAMES)):
        assert name in text
    assert (ROOT / "static/pictures/lab-06.webp").stat().st_size < 150_000


@pytest.mark.parametrize(("language", "shortest"), [("en", 1900), ("zh", 1750)])
def test_the_log_has_its_size_and_its_mix(language: str, shortest: int) -> None:
    assert shortest <= len(log(language)) <= 2300
    kinds = [statement.kind for statement in split(log(language))]
    for kind, least in {"confirmed": 4, "unverified": 3, "rejected": 1, "open": 3, "rule": 1, "plain": 3}.items():
        assert kinds.count(kind) >= least, kind
    for detail in ("E-217", "tg-5c91", "k-19", "signer/keys.toml:27", "refunds-0506.csv", "PB-3307"):
        assert detail in log(language)


def test_the_offline_model_holds_no_fact_of_the_demo() -> None:
    sources = [*sorted((ROOT / "offline_model").glob("*.py")), *SCRIPTS]
    own = "\n".join(path.read_text("utf-8") for path in sources)
    squeezed = re.sub(r"\s+", " ", own)
    for language in LANGUAGES:
        for statement in split(log(language)):
            body = re.sub(r"^[\d:\- ]+", "", statement.text)
            for part in re.split(r"[.。；;，,]", body):
                if len(part.strip()) >= 8:
                    assert part.strip() not in squeezed
        for name in re.findall(r"`([^`]+)`|\b([A-Z]-\d+|\d\d:\d\d)\b", log(language)):
            assert (name[0] or name[1]) not in own


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_four_samples(talk: Talk, language: str) -> None:
    sort, confirmed, draft, detail, again = (sample["task"][language] for sample in samples("07"))
    path = "incident-log.zh.md" if language == "zh" else "incident-log.md"
    wish = {"en": "Don't change any file.", "zh": "不要改动任何文件。"}[language]

    first = talk.ask(sort)
    assert talk.calls == [("read", {"path": path})]
    assert "tg-5c91" in first and talk.measured() == 0, "nothing to compact after the first task"

    second = talk.ask(confirmed)
    assert len(talk.calls) == 1, "answered from the context"
    assert "k-19" in second and "08:21" not in second and "tg-5c91" not in second
    assert talk.measured() > 1500
    summary = talk.compact(language)
    assert len(summary) <= 900 and wish in summary and "08:03" not in summary

    third = talk.ask(draft)
    assert "k-18" in third and wish in third, "what only the summary kept"
    assert "k-18" not in second.replace("`k-18`", "") or "08:30" in third
    assert len(talk.calls) == 1
    without = [line for line in summary.splitlines() if "k-18" in line and "08:30" in line]
    talk.tasks.pop()
    talk.summary = summary.replace(without[0], "- x")
    assert without[0][2:] not in talk.ask(draft), "it is not known from anywhere else"
    talk.summary = summary

    fourth = talk.ask(detail)
    assert len(talk.calls) == 1, "the task says not to read again"
    assert "08:03" in fourth and "E-217" not in fourth and "tg-5c91" not in fourth
    assert ("says nothing about" if language == "en" else "没有提到") in fourth

    fifth = talk.ask(again)
    assert talk.calls[1:] == [("read", {"path": path})]
    assert "E-217" in fifth and "tg-5c91" in fifth
    assert len(talk.compact(language)) <= 900 and wish in talk.summary


@pytest.mark.parametrize("language", LANGUAGES)
def test_lab_01_reads_and_explains(server: OfflineServer, tmp_path: Path, language: str) -> None:
    talk = Talk(server.address, tmp_path, "failing-test")
    text = talk.ask(samples("01")[0]["task"][language])
    talk.close()
    assert [name for name, _ in talk.calls] == ["read", "search"]
    assert "def price" in text and "def total" in text
    assert ("what a letter costs" if language == "en" else "一封信要付多少邮资") in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_lab_01_finds_fixes_and_proves(server: OfflineServer, tmp_path: Path, language: str) -> None:
    talk = Talk(server.address, tmp_path, "failing-test")
    text = talk.ask(samples("01")[1]["task"][language])
    assert [name for name, _ in talk.calls] == ["bash", "read", "edit", "bash"]
    assert text.startswith("The tests pass" if language == "en" else "最后一次运行，测试全部通过")
    assert "FAILED (failures=1)" in text and "Ran 6 tests" in text and "`if grams < limit:`" in text
    run = subprocess.run([sys.executable, "-m", "unittest"], cwd=talk.folder, capture_output=True, text=True)
    assert run.returncode == 0
    text = talk.ask(samples("01")[2]["task"][language])
    talk.close()
    assert text.startswith("The tests pass" if language == "en" else "最后一次运行，测试全部通过")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("tool", ["bash", "edit"])
def test_lab_01_stops_when_a_call_is_denied(server: OfflineServer, tmp_path: Path, language: str, tool: str) -> None:
    talk = Talk(server.address, tmp_path, "failing-test", deny=tool)
    text = talk.ask(samples("01")[1]["task"][language])
    talk.close()
    assert talk.calls[-1][0] == tool
    assert ("was not allowed" if language == "en" else "没有获得允许") in text
    assert "grams < limit" in (talk.folder / "postage.py").read_text("utf-8")


def test_lab_01_edits_only_what_it_has_seen(server: OfflineServer, tmp_path: Path) -> None:
    talk = Talk(server.address, tmp_path, "failing-test")
    path = talk.folder / "postage.py"
    path.write_text(path.read_text("utf-8").replace("grams < limit", "limit > grams"), "utf-8")
    text = talk.ask(samples("01")[1]["task"]["en"])
    talk.close()
    assert [name for name, _ in talk.calls] == ["bash", "read"]
    assert "No run in this task shows whether it works." in text


def test_the_demo_fails_with_one_readable_failure(tmp_path: Path) -> None:
    folder = ROOT / "demo_workspace/failing-test"
    command = [sys.executable, "-B", "-m", "unittest"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert run.returncode == 1
    assert "FAILED (failures=1)" in run.stderr and "120 != 95" in run.stderr


def test_scripts_that_are_none_are_refused_with_their_name(tmp_path: Path) -> None:
    for text in ("flows = 5", "[[flows]]\nunless = 'x'", "[[flows]]\nwhen = '('", "[[flows"):
        path = tmp_path / "offline.toml"
        path.write_text(text)
        with pytest.raises(ValueError, match="offline.toml` is not a script"):
            OfflineServer([path])
    for path in SCRIPTS:
        assert tomllib.loads(path.read_text("utf-8"))["flows"]
