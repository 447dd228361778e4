"""What is a secret, or looks like one, becomes `[masked]` wherever text leaves the session: in traces and exports.

The text is untrusted, so every pattern is linear in its length: what repeats is bounded, or gives nothing back (`++`).
Reads no environment: who starts the server says which keys it was started with.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "[masked]"
# A shorter value of the server's own may be a common word, which is not hidden everywhere.
LEAST_CHARS = 8

# Keys whose makers gave them a beginning of their own. Where that is a common one too, a digit must follow.
_DIGIT = r"(?=[A-Za-z_-]{0,60}+\d)"
_KEY = re.compile(
    rf"""(?<![A-Za-z0-9_-])(?:
      sk-{_DIGIT}[A-Za-z0-9_-]{{20,}}+ | [srp]k_(?:live|test)_[A-Za-z0-9]{{16,}}+ | whsec_[A-Za-z0-9+/=]{{20,}}+
    | gh[opusr]_[A-Za-z0-9]{{30,}}+ | github_pat_[A-Za-z0-9_]{{30,}}+ | gl(?:pat|rt|dt|ptt)-[A-Za-z0-9_.-]{{20,}}+
    | xox[a-z]-{_DIGIT}[A-Za-z0-9-]{{10,}}+ | xapp-\d-[A-Za-z0-9-]{{20,}}+ | (?:hf|r8|gsk)_[A-Za-z0-9]{{30,}}+
    | A(?:KIA|SIA|GPA|ROA)[A-Z0-9]{{16}}(?![A-Za-z0-9]) | AIza[A-Za-z0-9_-]{{35}} | ya29\.[A-Za-z0-9_-]{{20,}}+
    | GOCSPX-[A-Za-z0-9_-]{{20,}}+ | (?:xai|nvapi|pplx|tvly)-{_DIGIT}[A-Za-z0-9_-]{{24,}}+
    | (?:npm|dckr_pat|dop_v1|lsv2_[a-z]{{2}})_[A-Za-z0-9_-]{{24,}}+ | pypi-[A-Za-z0-9_-]{{50,}}+
    | SG\.[A-Za-z0-9_-]{{16,}}+\.[A-Za-z0-9_-]{{16,}}+ | shp(?:at|ca|pa|ss)_[a-f0-9]{{32}}
    | eyJ[A-Za-z0-9_-]{{8,}}+\.[A-Za-z0-9_-]{{8,}}+(?:\.[A-Za-z0-9_-]*+)?
    )""",
    re.VERBOSE,
)
# A private key: up to its last line, or as far as lines of it follow where that was cut off. A line may end as JSON
# writes it, and may have its number in front.
_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_BLOCK = re.compile(
    rf"-----BEGIN {_NAME}(?:(?:[^-]|-(?!----))*+-----END {_NAME}"
    r"|(?:(?:\s|\\[nr])++(?:\d{1,6}+[\t|: ]{1,3}+)?[A-Za-z0-9+/=]{24,}+)++)"
)
# User and password between a scheme and a host.
_IN_ADDRESS = re.compile(r"(?<=://)[^\s/@:\"'<>{}$\[\]]{0,200}+:[^\s/@\"'<>{}$\[\]]{1,400}+(?=@)")
# A value: in quotes, which JSON may have escaped, or bare, and then no call and no index of code.
_VALUE = (
    r"(?:(?P<quote>\\{0,3}[\"'`])(?P<quoted>[!#-&(-\[\]-_a-~]{6,}+)"
    r"|(?P<bare>[!#%*+\-./0-9:=?@A-Z^_a-z~]{6,}+)(?![(\[{<]))"
)
_BEARER = re.compile(
    r"(?P<before>(?i:\bauthorization[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}(?:bearer|basic|token)|\bbearer)\s{1,4})"
    + _VALUE
)
# Names of what is secret. Behind those of the first kind any value counts that is no plain word; code uses those of
# the second kind for other things as often, so their value must look like chance.
_STRONG = "pass(?:word|wd|phrase)|pwd|secret|(?:api|access|account|private)[_-]?key|密码|口令|密钥"
_WEAK = "token(?!s|iz)|credentials?|(?<=[a-z0-9])[_-]key|令牌"
_ASSIGNED = re.compile(
    rf"(?P<before>(?:(?P<strong>(?i:{_STRONG}))|(?i:{_WEAK}))(?![a-z])[A-Za-z0-9_-]{{0,40}}+[\"'\\\]*]{{0,5}}+"
    rf"(?P<by>\s{{0,8}}+(?::=|=>|[:=：])[\s*]{{0,8}}+)){_VALUE}"
)
# As the shell takes them: --api-key VALUE, -u NAME:VALUE.
_OPTION = re.compile(
    rf"(?P<before>(?<![\w-])(?:--(?:[a-z]{{1,20}}-){{0,3}}(?:{_STRONG}|token) {{1,2}}"
    rf"|(?:-u|--user) {{1,2}}[\w.@-]{{1,60}}+:)){_VALUE}"
)
# Words, names, numbers, paths and addresses; and what a person writes in the place of a secret.
_PLAIN = re.compile(r"[A-Za-z]+(?:[ _./:-]+[A-Za-z]+)*[.:!?]*|[\d.,:_%/=+-]+|(?:[A-Za-z_]\w*\.)+\w+|[./~].*|\w+://.*")
_STAND_IN = re.compile(r"(?i)your|example|change|placeholder|xxx|\*\*\*|\.\.\.|[{}<>$]|^(?:none|null|true|false)")
_SWITCH = re.compile(r"(?<=[A-Za-z])\d|(?<=\d)[A-Za-z]|(?<=[a-z])[A-Z]")

_own: re.Pattern[str] | None = None
_values: frozenset[str] = frozenset()


def learn(values: Iterable[str]) -> None:
    """Hide these values from now on, wherever they stand; those of less than `LEAST_CHARS` characters are left out."""
    global _own, _values
    _values |= {value for value in map(str.strip, values) if len(value) >= LEAST_CHARS}
    # The longest first, for one may be the beginning of another.
    longest = sorted(_values, key=len, reverse=True)
    _own = re.compile("|".join(map(re.escape, longest))) if longest else None


def secrets_in(environment: Mapping[str, str]) -> list[str]:
    """Return the values of the variables whose names say that they are secret, such as OPENAI_API_KEY."""
    return [value for name, value in environment.items() if re.search(r"(?i)(key|token|secret|password|passwd)$", name)]


def mask(text: str) -> str:
    """Return `text` with every secret in it replaced: mask("token=ghp_1a2b…") -> "token=[masked]".

    What is masked stays as it is when it is masked again.
    """
    # The shortest are a value of the server's own, or a name with its value.
    if len(text) < LEAST_CHARS:
        return text
    if _own:
        text = _own.sub(MASK, text)
    for pattern in (_KEY, _BLOCK, _IN_ADDRESS):
        text = pattern.sub(MASK, text)
    for pattern in (_BEARER, _OPTION, _ASSIGNED):
        text = pattern.sub(_without_value, text)
    return text


def mask_all(value: Any) -> Any:
    """Return a value of JSON with every text in it masked, names too."""
    match value:
        case str():
            return mask(value)
        case dict():
            return {mask(name): _beside(name, each) for name, each in value.items()}
        case list() | tuple():
            return [mask_all(each) for each in value]
        case _:
            return value


def _beside(name: str, value: Any) -> Any:
    """Mask what stands behind a name that may say by itself that it is secret."""
    if not isinstance(value, str):
        return mask_all(value)
    begin = f'{name}="'
    found = mask(f'{begin}{value}"')
    return found[len(begin) : -1] if found.startswith(begin) else mask(value)


def _without_value(found: re.Match[str]) -> str:
    value, quote = found["quoted"] or found["bare"], found["quote"] or ""
    named = found.re.groupindex
    strong = "strong" not in named or found["strong"] is not None
    # NAME_KEY=value without a blank is the shell's, and no code: there even a plain word is a secret.
    shell = "by" in named and found["by"] == "=" and not quote and found["before"].isupper()
    return f"{found['before']}{quote}{MASK}" if _is_secret(value, strong=strong, shell=shell) else found[0]


def _is_secret(value: str, *, strong: bool, shell: bool) -> bool:
    if _STAND_IN.search(value):
        return False
    if shell and strong:
        return len(value) >= LEAST_CHARS and not value.startswith(("/", "./", "~"))
    if _PLAIN.fullmatch(value):
        return False
    return strong or (len(value) >= 10 and len(_SWITCH.findall(value)) >= 3)
