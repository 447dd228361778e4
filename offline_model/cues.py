"""The words that tell what kind of statement a sentence is, in English and Chinese. Knows language, no content.

A sentence that nothing marks is "plain": it is never passed off as confirmed.
"""

import re
from typing import Literal

Kind = Literal[
    "confirmed", "unverified", "rejected", "rule", "change", "open", "goal", "plain",
    # What only a summary holds: the calls that worked, on files and otherwise, those that failed, what is going on.
    "file", "done", "failed", "doing",
]  # fmt: skip

# Nobody writes such a sentence: it is data on one line.
FAR_TOO_LONG = 1_000
# The order decides: "the guess was ruled out" is rejected, "not confirmed yet" is no confirmation.
CUES: tuple[tuple[Kind, str], ...] = (
    (
        "rejected",
        r"\bruled? out\b|\brejected\b|\bdisprove[nd]\b|\bfalse alarm\b|\b(?:is|was|are|were) not the (?:cause|reason)\b"
        r"|(?<!没有)(?<!无法)(?<!不能)(?:已|被)?排除(?!故障)|已?否[定决]|不是(?:真正的?)?(?:原因|起因)|不成立|被推翻|已推翻",
    ),
    (
        "open",
        r"\b(?:open|still) (?:check|question|point|issue|to (?:do|check))s?\b|\bto[- ]check\b"
        r"|\bto be (?:checked|clarified)\b|\bto-?do\b|\bunknown\b|\bunclear\b|\bunresolved\b|\bstill open\b"
        r"|^\W*open\s*:"
        r"|待查|待办|待解决|未解决|尚不清楚|还不清楚|不清楚|未知|没查清|还没查|有待查明|待确认",
    ),
    (
        "unverified",
        r"\bsuspect(?:s|ed|ion)?\b|\bmay (?:be|have|also|well|run|cause|hold|not be|come|lead)\b"
        r"|\bmight\b|\bcould (?:be|have)\b"
        r"|\bmaybe\b|\bperhaps\b|\bpossibl[ey]\b|\bprobabl[ey]\b|\b(?:un)?likely\b|\bguess(?:es|ed)?\b|\bhypothes[ie]s\b"
        r"|\bassum(?:e|ed|ption)\b|\bun(?:verified|confirmed|proven)\b|\brumou?r"
        r"|\bnot (?:yet )?(?:been )?(?:confirmed|verified|reproduced|proven|checked)\b"
        r"|\bnobody has (?:confirmed|verified|reproduced|proven|checked)\b"
        r"|怀疑|可能|推测|猜测|猜想|也许|或许|大概|疑似|估计|待验证|待证实|未经(?:验证|证实)|未(?:验证|证实|复现|核实|确认)"
        r"|没有(?:人)?(?:[^，。]{0,12})(?:验证|证实|复现|核实)|还没有?(?:验证|证实|复现|核实|确认)|尚未(?:验证|证实|复现|核实|确认)",
    ),
    (
        "rule",
        r"\bmust(?: not|n't)?\b|^\W*never\b|\bmay never\b|\bnobody may\b|\bno one may\b|\bmay (?:not|only)\b"
        r"|\bdo(?: not|n't|n’t) (?!know\b|have\b|seem\b|see\b)|\bnot allowed\b|\bforbidden\b"
        r"|\bonly (?:use|read|change|edit|answer|touch|look|write)\b"
        r"|\bwithout (?:changing|editing|deleting|touching|writing)\b|^\W*(?:rule|constraint|limit)\s*:"
        r"|(?<!要)不要|不得|必须|禁止|不准|不许|请勿|不可以|不允许|切勿|严禁|只(?:能|许|准|用|读|看|改|可)"
        r"|别(?:改|动|删|碰|再)|^\W*(?:规定|要求|限制|约束)\s*[:：]",
    ),
    (
        "change",
        r"\broll(?:ed|ing)?[- ]?back\b|\bchanged\b|\brestarted\b|\bdeployed\b|\bswitched\b|\bedited\b|\breverted\b"
        r"|\bfixed\b|\bdecided\b|\bdecision\b|\bupgraded\b|\bdowngraded\b|\breplaced\b|\binstalled\b|\bremoved the\b"
        r"|回滚|重启|变更|决定|退回|改成|改为|换上|修复|已?升级|已?降级|上线|更换了|切换到|恢复了",
    ),
    (
        "confirmed",
        r"\bconfirmed\b|\bverified\b|\bproven\b|\breproduced\b|\bmeasured\b|\bchecked (?:twice|by hand)\b"
        r"|\bestablished\b|\b(?:it is|is) certain\b|\bfacts?\s*:"
        r"|已?确认|证实|实测|已?复现|查明|测得|核实|确凿",
    ),
)  # fmt: skip
PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in CUES
)
LABEL = re.compile(
    r"^(confirmed|verified|facts?|suspected|suspicion|unverified|guess|hypothesis|ruled out|rejected"
    r"|open(?: (?:check|question|point))?|to check|changed|decided|decision|rule|constraint"
    r"|已确认|确认|证实|怀疑|猜测|推测|待验证|已排除|排除|已否[定决]|待查|未解决|待办|变更|已?决定|规定|要求)\s*[:：]\s*",
    re.IGNORECASE,
)
HEADINGS: tuple[tuple[Kind, str], ...] = (
    ("goal", r"goal|task|目标|任务"),
    ("plain", r"no verdict|not marked|没有标明|未标明"),
    ("open", r"open\b|unresolved|to check|still being|\bto do\b|next steps?\b|未解决|待查|待办|没查清|还在查|下一步"),
    ("unverified", r"unverified|suspect|guess|hypothes|unconfirmed|待验证|猜测|怀疑|推测|未确认|未证实"),
    ("rejected", r"reject|ruled out|否定|否决|排除"),
    ("change", r"change|decision|decided|what i did|做了什么|改动|变更|决定|决策"),
    ("confirmed", r"confirm|fact|certain|verified|已确认|确认|事实"),
    ("rule", r"rule|constraint|limit|限制|规定|约束|要求"),
)


def kind_of(sentence: str) -> Kind:
    """Return the kind of one sentence: kind_of("It may be the fuse.") -> "unverified"."""
    sentence = sentence[:FAR_TOO_LONG]
    label = LABEL.match(sentence)
    # A label is the writer's own verdict, so it outweighs the words after it.
    for kind, pattern in PATTERNS:
        if pattern.search(label.group(0) if label else sentence):
            return kind
    if sentence.rstrip("\"'”’)） ").endswith(("?", "？")):
        return "open"
    return "plain"


def kind_of_heading(heading: str) -> Kind | None:
    """Return the kind that a heading gives to what stands below it, or None when it says nothing."""
    for kind, pattern in HEADINGS:
        if re.search(pattern, heading, re.IGNORECASE):
            return kind
    return None


def without_label(sentence: str) -> str:
    """Return `sentence` without a leading label: without_label("Confirmed: it rained.") -> "it rained."."""
    return LABEL.sub("", sentence, count=1)
