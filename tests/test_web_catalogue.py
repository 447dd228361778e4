"""The catalogue: both languages have the same keys and placeholders, and every key is used somewhere."""

import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from harness import events as e
from harness.breaker import TOLD
from harness.checks import NoCheck, Says
from harness.lost import Fate
from harness.model.errors import Kind
from harness.request_diff import Kind as ChangeKind
from harness.result_events import Verdict
from harness.sandbox.detect import Code
from harness.session_events import SourceKind
from harness.stages import TRIGGER as STAGE
from harness.tracing.standing import Fault
from web.catalogue import flatten, load
from web.hand_view import KEEPS
from web.lost import GROUPS
from web.moment import STOPS
from web.pages import TEMPLATES
from web.trust import KNOWN
from web.words import LANGUAGES, Entry, Words, language_of

ROOT = Path(__file__).parent.parent
SOURCES = [*sorted(TEMPLATES.rglob("*.html")), *sorted((ROOT / "web").glob("*.py")), ROOT / "server.py"]
# t("section.key"), t("section." ~ name), t(f"section.{name}"): a literal key, or a whole section.
KEY = re.compile(r"""\bt\(\s*f?["']([a-z_]+(?:\.[a-z_]+)?\.?)(?=["'{])""")
# t("section.key" if this else "section.other"): the other one is a key as well.
OTHER = re.compile(r"""\bt\(\s*["'][a-z_.]+["'] if [\w.]+ else ["']([a-z_]+\.[a-z_]+)["']""")
SECTION = re.compile(r"""\bcode\(\s*["']([a-z_]+)["']""")
# Sections that are read by a name which only the running program knows.
BY_NAME = ("error", "option", "start", "unit", "unit_name")


def literals(kind: type, field: str) -> str:
    return codes(kind.__annotations__[field])


def codes(values: object) -> str:
    return " ".join(code for code in get_args(values) if code)


# The labs' strategies and what triggers them.
TRIGGERS = f"task@ended by@hand threshold overflow {STAGE}"
STRATEGIES = "task@boundary threshold budgets stages"
# Where the harness names its codes as a type, they come from there.
CODES = {
    "model_failed": codes(Kind),
    "sandbox": codes(Code),
    "boundary": literals(e.BoundaryMeasured, "outcome"),
    "border_outcome": literals(e.BoundaryMeasured, "outcome"),
    "shortened": literals(e.ContextCompacted, "shortened"),
    "approval_denied": literals(e.ApprovalAnswered, "by"),
    "task_ended": literals(e.TaskEnded, "reason"),
    "status_ended": literals(e.TaskEnded, "reason"),
    "ended_detail": codes(Kind) + " empty files",
    "resumed": literals(e.TaskResumed, "by"),
    "mark": "empty more_choices calls_in_text no_usage no_finish made_ids refusal thought_in_text adapted_request "
    "endless",
    "refused": "summary_failed summary_empty summary_cut_off summary_only_calls summary_headings not_smaller "
    "nothing_to_cut cut_at_start context_changed stopped broken_pairs running_task declined summary_too_long "
    "little_gain " + " ".join(TOLD.values()),
    "model_reason": "gguf base_url deepseek_key openai_key openai_base_url no_key",
    "window_source": "setting listed table default",
    "trigger": TRIGGERS,
    "refused_again": TRIGGERS,
    "decided_why": codes(Verdict),
    "proposal_not_used": literals(e.SummaryAnswered, "by"),
    "proposal_broken": "summary_empty not_smaller context_changed",
    "diff_kind": codes(ChangeKind),
    "fate": codes(Fate),
    "lost_group": " ".join(GROUPS),
    "by_hand_keep": " ".join([*map(str, KEEPS), "rule"]),
    "step_name": " ".join(kind.__name__ for kind in STOPS),
    "strategy": STRATEGIES,
    "source_kind": codes(SourceKind),
    "source_problem": "problems_many replaced untrusted too_large no_room encoding link_loop outside protected no_file "
    "unreadable skill_header skill_broken skill_no_name skill_no_description skill_name skill_folder skill_twin "
    "skill_path skill_words skills_entries skills_many skills_more "
    + codes(NoCheck)
    + " notes_nowhere notes_folder notes_name notes_link notes_large notes_long notes_encoding notes_many notes_more "
    "role_header role_broken role_no_name role_name role_no_description role_empty role_twin role_words roles_many "
    "tool_missing notes_index_by_hand "
    "notes_index_gone notes_index_no_line notes_index_unreadable notes_cut notes_not_kept notes_not_believed",
    "check_outcome": literals(e.Verified, "outcome"),
    "checked": codes(Says),
    "child_looks": literals(e.TaskEnded, "reason") + " running waiting",
    "child_ended": literals(e.TaskEnded, "reason"),
    "spent": "own inside all",
    "trace_name": "task resumed child turn call summary_call compaction approval tool check",
    "trace_fault": "stopped interrupted error not_run denied timeout step_limit repeated_call failed",
    "trace_mark": "ResultsDecided CheckpointSaved HookFailed BoundaryMeasured ContextMeasured FollowUpAdded StageEnded "
    "CompactionAsked CompactionRefused CompactionUndone ModelChosen InstructionsSet SettingChanged ExtensionsChanged "
    "FaultChosen WorkspaceTrusted SessionForked SessionImported",
    "sending_fault": codes(Fault),
    "trust_would": f"{' '.join(KNOWN)} other",
}


@pytest.fixture(params=LANGUAGES)
def words(request: pytest.FixtureRequest) -> Words:
    return load(request.param)


def placeholders(entry: Entry) -> set[str]:
    texts = [entry] if isinstance(entry, str) else list(entry.values())
    return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}


def used() -> Iterator[str]:
    for path in SOURCES:
        if path.is_file():
            text = path.read_text("utf-8")
            yield from KEY.findall(text)
            yield from OTHER.findall(text)
            yield from (f"{section}." for section in SECTION.findall(text))


def test_both_languages_have_the_same_keys_and_placeholders() -> None:
    english, chinese = load("en").entries, load("zh").entries
    assert english.keys() == chinese.keys()
    # How many there are may be told by the form of a word, as English does.
    differ = {k for k in english if placeholders(english[k]) - {"n"} != placeholders(chinese[k]) - {"n"}}
    assert not differ


def test_no_key_is_missing_and_none_is_unused(words: Words) -> None:
    keys = set(used())
    sections = {key for key in keys if key.endswith(".")} | {f"{name}." for name in BY_NAME}
    assert not {key for key in keys if not key.endswith(".") and key not in words.entries}
    assert not {key for key in words.entries if key not in keys and not key.startswith(tuple(sections))}
    assert all(any(key.startswith(section) for key in words.entries) for section in sections)


@pytest.mark.parametrize(("section", "codes"), CODES.items())
def test_every_code_has_words(section: str, codes: str, words: Words) -> None:
    expected = {code.replace("@", " ") for code in codes.split()}
    assert {key.split(".", 1)[1] for key in words.entries if key.startswith(f"{section}.")} == expected


def test_chinese_has_chinese_words_and_english_has_none() -> None:
    names = {"app.name", "language.tag", "language.gap", "letter.summary"}
    for key, entry in load("en").entries.items():
        assert not re.search("[\u4e00-\u9fff]", str(entry)), key
    plain = [key for key, entry in load("zh").entries.items() if language_of(str(entry)) != "zh-CN"]
    assert len(set(plain) - names) < 20


def test_values_are_escaped_and_numbers_grouped() -> None:
    words = load("en")
    assert words.t("unit.characters", n=1) == "1 character"
    assert words.t("unit.characters", n=12345) == "12,345 characters"
    assert words.t("row.extension", name="<b>") == "extension &lt;b&gt;"
    assert words.code("refused", "<moon>") == "&lt;moon&gt;"
    assert load("zh").t("unit.seconds", n=0.4) == "0.4 秒"
    with pytest.raises(KeyError):
        words.t("no.such_key")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0, "1 ms"), (0.004, "4 ms"), (0.0994, "99 ms"), (0.41, "0.4 s"), (9.96, "10.0 s"), (75.4, "75 s")],
)
def test_seconds(seconds: float, expected: str) -> None:
    assert load("en").seconds(seconds) == expected


def test_an_unknown_number_says_so() -> None:
    words = load("en")
    assert words.percent(1, 1000) == "&lt;1 %" and words.percent(0, 0) == "0 %" and words.percent(1, 2) == "50 %"
    assert ">unknown<" in words.figure("x", None) and 'data-value=""' in words.figure("x", None)
    assert "unknown" in words.counted("x", None, "reported") and "reported" in words.counted("x", None, "reported")


def test_flatten_keeps_the_two_forms_of_a_word_together() -> None:
    tree = {"a": {"b": "x", "c": {"one": "1", "other": "2"}}}
    assert flatten(tree) == {"a.b": "x", "a.c": {"one": "1", "other": "2"}}
