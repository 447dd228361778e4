"""Tells which parts of a question only ask, and demand nothing: "What does the crew need to know?". Pure.

A request in the form of a question is none of them: "Could you never delete a row?". In doubt a part is no such one,
since a demand that is missed misleads.
"""

import re

# Where a part ends: "From what you have: which are confirmed, and which must be checked?"
_PARTS = re.compile(r"(?<=[,;:—–]\s)|(?<=[(，；：（])")
# A part that begins so asks; behind a comma only with "and" before it: "…, which must stay" tells of what stands there.
_BE = r"(?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|should|shall|must|may|might|am)\b"
_ASKS = re.compile(
    rf"""\W*(?:(?P<also>and|or|but|so|then)\W+)?(?:(?:in|at|on|from|to|of|for|by|with|since|until|after|before)\s+)?
    (?:
        what(?!\s+(?:about|if)\b)\b | which\b | who(?:m|se)?\b | why(?!\s+(?:not|do(?:es)?n|do\s+(?:\w+\s+)?not))\b
        | when\s+{_BE} | where\s+{_BE} | how(?!\s+about\b)\s
        | (?:is|are|was|were|does|did|has|had|must|should)\s+(?!not\b|it\s+(?:ok|okay|fine|possible|all\s+right)\b)
        | (?:do|have)\s+(?:i|you|we|they)\s+(?!not\b)
    )""",
    re.VERBOSE,
)
# What bounds how the question is to be answered, or asks for something in passing.
_BOUNDS = re.compile(
    r"\b(?:without|unless|instead of|at most|within|please|mind|not? (?:more|less|fewer|longer) than)\b"
    r"|\b(?:and|but|so|then|also) (?:do not|don['’]t|never|only|just|keep|leave|make sure)\b"
)
# In Chinese the word that asks stands anywhere in its part; 什么都不要动 asks nothing.
_ASKS_CHINESE = re.compile(
    r"什么|哪|谁|怎么|怎样|为何|多[少久长大远]|几[个条次点人天名份]|吗|是不是|有没有|是否|何时|何处"
)
_ASKS_NOTHING = re.compile(
    r"(?:什么|谁|哪|怎么)[^，。？?]{0,6}[都也]|(?:能|可以|可否|行|好)[^，。]{0,30}吗|[能可行好]不[能可行好]|能否|请|麻烦"
)
_DEMANDS_CHINESE = re.compile(
    r"[\W那就先而但和]*(?:不|别|只|勿|仅|禁止|严禁|切勿|务必|必须|一定|最多|至少|除了|保持|保留|避免|应)"
)
_NOTHING = frozenset(("none", "nothing", "无"))


def says_nothing(sentence: str) -> bool:
    """Whether a sentence in small letters is a word that only fills an empty place: "none"."""
    return sentence.strip(" .。`*_()（）") in _NOTHING


def without_questions(sentence: str) -> str:
    """Return a sentence, in small letters, without the parts of it that only ask.

    without_questions("what is it, only one word?") -> "only one word?"
    """
    if not sentence.endswith(("?", "？")):
        return sentence
    rest, before = [], ""
    for part in _PARTS.split(sentence):
        if not _only_asks(part, first=not before or before.rstrip().endswith((":", "—", "–", "："))):
            rest.append(part)
        before = part
    return "".join(rest)


def _only_asks(part: str, *, first: bool) -> bool:
    if _ASKS_CHINESE.search(part):
        return not (_ASKS_NOTHING.search(part) or _DEMANDS_CHINESE.match(part))
    asks = _ASKS.match(part)
    return bool(asks) and (first or bool(asks["also"])) and not _BOUNDS.search(part)
