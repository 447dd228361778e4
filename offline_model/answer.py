"""Answers a task from the statements of its request. What the request does not say is not known here."""

from collections.abc import Sequence

from offline_model.chat import ChatRequest
from offline_model.cues import Kind
from offline_model.fitting import NOTE, fitting
from offline_model.phrases import PHRASES, PLACES, TITLES, Language
from offline_model.questions import Question, asks, each_question, only_reads, understand
from offline_model.sources import BESIDE, Item, cut_note, facts_told, gather, summary_of, unique
from offline_model.verdict import read_verdict
from offline_model.words import PATH, Match, exact_terms, is_chinese, rank, terms

ORDER: tuple[Kind, ...] = ("confirmed", "unverified", "rejected", "change", "open", "rule", "plain")
MOST_PER_KIND = 12
MOST_FOUND = 3
# Without an exact term in the question, this share of its weight must stand in one statement.
ENOUGH = 0.4


def language_of(request: ChatRequest) -> Language:
    """Return the language of the last user message."""
    verdict = read_verdict(request.task)
    # What a check printed is nobody's language.
    return "zh" if is_chinese(verdict.told if verdict else request.question) else "en"


def answer(request: ChatRequest) -> str:
    """Return the answer to the task of `request`, as short Markdown in the language of the task."""
    language = language_of(request)
    items = gather(request)
    question = understand(request.question)
    match question.asked:
        case "make":
            return cannot(language)
        case "draft":
            return _draft(items, language)
        case "sort" | "list":
            return _listing(request, items, question, language)
        case "overview":
            return _overview(items, language) or _look_up(request, items, language)
        case "look_up":
            # Beside the name of a file nothing is left that could be looked up.
            named = only_reads(request.question) and not terms(PATH.sub(" ", request.question))
            return _unserved(request, items, language) if named else _look_up(request, items, language)


def _unserved(request: ChatRequest, items: Sequence[Item], language: Language) -> str:
    """Return what was read, where the task was only to read; else the word that this can't be served."""
    read = [item for item in items if item.now and item.place == "result"]
    served = read and only_reads(request.question)
    return _listing(request, read, Question("sort", ()), language) if served else cannot(language)


def cannot(language: Language) -> str:
    """Return the word that this can't be served, and the ways to a model that can."""
    return f"{PHRASES[language]['cant']}\n\n{PHRASES[language]['ways']}"


def cannot_mend(request: ChatRequest) -> str:
    """Return the word that what a check found can't be mended here; the ways to a real model only the first time."""
    words = PHRASES[language_of(request)]
    last = next((turn.text for turn in reversed(request.turns) if turn.role == "assistant"), "")
    if last.startswith((words["cant_check"], words["cant_check_again"])):
        return words["cant_check_again"]
    return joined([words["cant_check"], "" if last.endswith(words["ways"]) else words["ways"]])


def section(title: str, lines: Sequence[str]) -> str:
    """Return a heading with bullets, or "" without lines."""
    return f"### {title}\n\n" + "\n".join(f"- {line}" for line in lines) if lines else ""


def joined(parts: Sequence[str]) -> str:
    """Return the parts that are not empty, with a blank line between."""
    return "\n\n".join(part for part in parts if part)


def _listing(request: ChatRequest, items: Sequence[Item], question: Question, language: Language) -> str:
    words = PHRASES[language]
    now = [item for item in items if item.now]
    pool = now or list(items)
    wanted = question.kinds if question.asked == "list" else ORDER
    chosen = [item for item in pool if item.kind in wanted and (item.place != "user" or "rule" in question.kinds)]
    if not chosen:
        return joined([words["none_of_kind"], again(request, language)]) if items else cannot(language)
    titles = TITLES[language]
    parts = [
        section(titles[kind], [item.text for item in chosen if item.kind == kind][:MOST_PER_KIND]) for kind in ORDER
    ]
    return joined([*parts, *_partly(request, language), source(chosen, language)])


def _draft(items: Sequence[Item], language: Language) -> str:
    words = PHRASES[language]
    by_kind = {kind: [item for item in items if item.kind == kind] for kind in ORDER}
    used = by_kind["confirmed"] + by_kind["change"] + by_kind["open"]
    if not by_kind["confirmed"]:
        return words["draft_empty"] if items else cannot(language)
    left_out = words["draft_left_out"].format(guesses=len(by_kind["unverified"]), rejected=len(by_kind["rejected"]))
    return joined(
        [
            f"## {words['draft']}",
            section(words["draft_known"], [item.text for item in by_kind["confirmed"]]),
            section(words["draft_done"], [item.text for item in by_kind["change"]]),
            section(words["draft_open"], [item.text for item in by_kind["open"]]),
            left_out if by_kind["unverified"] or by_kind["rejected"] else "",
            section(words["rules_kept"], [item.text for item in by_kind["rule"] if item.place in ("user", "summary")]),
            source(used, language),
        ]
    )


def _overview(items: Sequence[Item], language: Language) -> str:
    words = PHRASES[language]
    now = [item for item in items if item.now]
    prose = [item for item in now if item.label.startswith("read")]
    lines = [f"`{item.text}`" for item in now if item.label.startswith("search")]
    if not prose and not lines:
        return ""
    said = section(words["overview"], [item.text for item in prose][:MOST_PER_KIND])
    return joined([said, section(words["definitions"], lines[:MOST_PER_KIND]), source(now, language)])


def _look_up(request: ChatRequest, items: Sequence[Item], language: Language) -> str:
    asked = each_question(request.question)
    pool = [item for item in items if item.kind != "goal" and item.place != "user"] + facts_told(request)
    if len(asked) == 1:
        return _found(request, request.question, pool, language)
    # Each question gets an answer of its own, since one may be known and the other not.
    return joined([f"**{each}**\n\n{_found(request, each, pool, language)}" for each in asked])


def _found(request: ChatRequest, question: str, pool: Sequence[Item], language: Language) -> str:
    words = PHRASES[language]
    if not pool:
        looked = "recall" in request.tools and asks(question)
        return _lost(request, question, frozenset(), language) if looked else cannot(language)
    matches = rank(question, [item.text for item in pool])
    exact = frozenset(term for term in exact_terms(question) if not term.isdigit() or len(term) > 2)
    good = [m for m in matches if (m.exact & exact if exact else m.covered >= ENOUGH)]
    missing = exact - frozenset(term for match in good for term in match.exact)
    strange = matches[0].covered == 0 and "recall" not in request.tools
    if not good and not exact and (strange or not asks(question)):
        return _unserved(request, pool, language)
    lines = [pool[match.index] for match in _best(good)]
    # What stands in two places is one point with two sources.
    points = [item.text for item in unique(lines)]
    found = words["found"] + "\n\n" + "\n".join(f"- {point}" for point in points) if lines else ""
    lost = _lost(request, question, missing, language) if missing or not lines else ""
    return joined([found, source(lines, language) if lines else "", lost])


def _lost(request: ChatRequest, question: str, missing: frozenset[str], language: Language) -> str:
    """Return the word that something is not in the context, why, and what would help."""
    words = PHRASES[language]
    what = ("、" if language == "zh" else ", ").join(f"`{term}`" for term in sorted(missing))
    first = words["missing"].format(what=what) if what else words["missing_this"]
    why = [words["by_summary"]] if summary_of(request) else []
    why += [words["no_note"]] if "recall" in request.tools and fitting(NOTE, request, question) is None else []
    told = ("" if language == "zh" else " ").join([first, *why])
    return joined([told, *_partly(request, language), again(request, language)])


def _best(matches: Sequence[Match]) -> list[Match]:
    """Return the best match and those nearly as good."""
    return [match for match in matches if match.covered >= 0.6 * matches[0].covered][:MOST_FOUND]


def _partly(request: ChatRequest, language: Language) -> list[str]:
    """Return a note for each result of this task that its tool cut."""
    notes = (cut_note(step) for step in request.steps)
    return [PHRASES[language]["partly"].format(note=note) for note in notes if note]


def again(request: ChatRequest, language: Language) -> str:
    """Return the hint that a file can be read again, where one may have been and the request offers a tool for it."""
    read = any(call.name == "read" for turn in request.turns for call in turn.calls)
    # What a summary stands for may have been a file; where notes are offered, it may as well never have been one.
    read = read or (bool(summary_of(request)) and "recall" not in request.tools)
    return PHRASES[language]["read_again"] if read and "read" in request.tools else ""


def source(items: Sequence[Item], language: Language) -> str:
    """Return the line that says where the statements stand."""
    told = [(_place(item), item.label.removeprefix(BESIDE)) for item in items]
    places = dict.fromkeys(PLACES[language][place].format(label=label) for place, label in told)
    return PHRASES[language]["source"].format(places=("、" if language == "zh" else ", ").join(places))


def _place(item: Item) -> str:
    if item.place != "summary":
        return item.place
    return "beside" if item.label.startswith(BESIDE) else "summary_now" if item.now else "summary"
