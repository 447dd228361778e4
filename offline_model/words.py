"""The words of a question and how well a statement answers to them: Latin words, numbers, times, identifiers,
and pairs of Chinese characters. Knows nothing of kinds or sources.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

HAN = re.compile(r"[\u3400-\u9fff]")
HAN_RUN = re.compile(r"[\u3400-\u9fff]+")
# Something exact: a time, a version, a name with a digit, an underscore or a hyphenated number, a line of a file.
EXACT = re.compile(r"(?<![\w.:/-])(?=[\w.:/-]*[\d_])[A-Za-z0-9_][\w.:/-]*[\w]|(?<![\w.])\d+(?:[.,:]\d+)*")
WORD = re.compile(r"[A-Za-z][A-Za-z'’]+")
PATH = re.compile(r"(?<![\w./-])[\w./-]+\.(?:md|txt|log|csv|json|toml|ya?ml|py|sql|cfg|ini|sh|js|ts|html)\b")
STOP = frozenset(
    """a about after all also an and any are as at be been before but by can did do does for from had has have how i
    if in into is it its just may me more most my no not now of on one only or our out please say says so some such
    tell than that the their them then there these they this those to up use was we were what when where which who
    why will with without would you your already again answer have got whole read reading file log exactly returned
    return returns show shows give""".split()
)
STOP_HAN = frozenset(
    "什么 哪些 哪个 多少 怎么 为什 么时 时候 请问 一下 这个 那个 这些 那些 我们 你们 他们 已经 现在 只根 根据 据你 "
    "手上 上的 内容 回答 不要 要再 再读 读文 文件 是什 了什 是多 告诉 诉我 可以 一个 一份 返回 回了 有没 没有 的是 "
    "你现 在手 只看 看你 还是 以及 不用 用再 再去 去读 么是 记录 那份 份记 录里 那次 这次".split()
)
# What makes a question of a Chinese sentence. No pair may reach across it: of 要去哪里找 the pairs 去哪, 哪里 and
# 里找 stand in nothing that answers.
ASKS_HAN = re.compile(
    r"请问|告诉我|为什么|为何|什么(?:时候|时间|地方|样)?|哪(?:里|儿|些|个|天|位|种|边|年|月|一?[间条份台张])?|谁"
    r"|怎么样?|怎样|(?<!任)何[时处地]|多[少久长大远]|几[点号个次天]|是不是|有没有|是否|[吗呢]"
)
ENDING = re.compile(r"(?:ing|ed|es|s|['’]s)$")


@dataclass(frozen=True, slots=True)
class Match:
    """How well one statement fits. covered: share of the question's weight, 0 to 1."""

    index: int
    covered: float
    exact: frozenset[str]


def is_chinese(text: str) -> bool:
    """Whether `text` is mainly Chinese: a quarter of its letters is enough, since names stay Latin."""
    han = len(HAN.findall(text))
    return han > 0 and han * 4 >= len(re.findall(r"[A-Za-z]+", text))


def exact_terms(text: str) -> frozenset[str]:
    """Return times, numbers and identifiers of `text`, in lower case, without the names of files."""
    return frozenset(term.strip(".-:/").lower() for term in EXACT.findall(PATH.sub(" ", text)))


def terms(text: str) -> frozenset[str]:
    """Return what `text` is about: exact terms, stems of its words, pairs of Chinese characters."""
    text = re.sub(r"\b(roll)(?:ed|ing)?[- ]?(back)\b", "rollback", text, flags=re.IGNORECASE)
    words = (stem(word) for word in WORD.findall(text) if word.lower() not in STOP)
    pairs = (run[i : i + 2] for run in HAN_RUN.findall(text) for i in range(len(run) - 1))
    return exact_terms(text) | frozenset(words) | frozenset(pair for pair in pairs if pair not in STOP_HAN)


def stem(word: str) -> str:
    """Return a rough stem: stem("Refused") -> "refus"."""
    word = word.lower()
    cut = ENDING.sub("", word)
    return (cut if len(cut) >= 3 else word).rstrip("e")


def rank(question: str, texts: Sequence[str]) -> list[Match]:
    """Return how well each text fits the question, best first; a rare word weighs more than a common one."""
    wanted = terms(ASKS_HAN.sub(" ", question))
    exact = exact_terms(question)
    found = [terms(text) for text in texts]
    spread = Counter(term for each in found for term in each & wanted)
    weight = {term: _weight(term in exact, spread[term], len(texts)) for term in wanted}
    whole = sum(weight.values()) or 1.0
    matches = [Match(i, sum(weight[t] for t in each & wanted) / whole, each & exact) for i, each in enumerate(found)]
    return sorted(matches, key=lambda match: (-len(match.exact), -match.covered, match.index))


def central(texts: Iterable[str]) -> list[float]:
    """Return for each text how much of it others speak of too, per term: what a summary should keep."""
    found = [terms(text) for text in texts]
    spread = Counter(term for each in found for term in each)
    return [sum(spread[t] - 1 for t in each) / (len(each) + 4) for each in found]


def _weight(exact: bool, spread: int, count: int) -> float:
    return (3.0 if exact else 1.0) * math.log(2 + count / (1 + spread))
