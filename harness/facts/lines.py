"""The patterns of lines and sentences: commands, error lines, demands. Each says what it takes, with an example.

Demands are taken in two widths. What a user says counts as one at the slightest sign, since a demand that is missed
misleads; what a file or a model says only where it forbids or commands.
"""

import re
from collections.abc import Mapping, Sequence

Signs = Sequence[tuple[str, re.Pattern[str]]]


def patterns_by_sign(table: Mapping[str, str]) -> Signs:
    """Return pairs of a sign and its pattern; without a pattern the sign alone tells enough."""
    return [(sign, re.compile(pattern or re.escape(sign), re.MULTILINE)) for sign, pattern in table.items()]


def signs_in(text: str, signs: Signs) -> Signs:
    """Return those of `signs` that stand in `text`: only their patterns are worth to look for.

    Of what has no sign the pattern itself is looked for.
    """
    return [(sign, pattern) for sign, pattern in signs if (sign in text if sign else pattern.search(text))]


# A name between backticks, a command between backticks: `ticket-gate`, `gatectl replay --ticket 88213`.
SPAN = re.compile(r"(?<!`)`(?!`)([^`\n]++)`(?!`)")
# A line that opens or closes a block of code, with the language: ```bash
FENCE = re.compile(r"^[ \t]*+```[ \t]*+(\w*+)", re.MULTILINE)
SHELLS = frozenset(("bash", "sh", "shell", "zsh"))
# A line of a shell, also over several lines with a backslash at their ends: $ pytest -q
PROMPT = re.compile(r"^[ \t]*+\$ ++((?:\\\n|[^\n])++)", re.MULTILINE)
LINE = re.compile(r"(?:\\\n|[^\n])++")
# A program that a command may start with; before it may stand sudo or a variable: CI=1 git push
PROGRAM = re.compile(
    r"""(?:[A-Z_]++=\S*+[ ]++)*+(?:sudo[ ]++)?
    (?:git|gh|npm|npx|yarn|pnpm|pip3?|uvx?|poetry|python3?|node|deno|bun|cargo|rustc|go|make|cmake|docker(?:-compose)?
    |kubectl|helm|terraform|curl|wget|ssh|scp|rsync|ls|cat|cd|cp|mv|rm|mkdir|touch|chmod|chown|grep|rg|find|sed|awk
    |head|tail|wc|sort|diff|patch|tar|unzip|echo|export|source|apt|apt-get|brew|systemctl|journalctl|psql|sqlite3
    |redis-cli|pytest|ruff|mypy|tox|jest|vitest|tsc|eslint|prettier|java|javac|mvn|gradle|gcc|clang|ps|kill|df|du|bash|sh
    |\./\S++)(?=[ ]++\S)""",
    re.VERBOSE,
)
# Any other program, if it has an option: gatectl replay --ticket 88213
WITH_OPTION = re.compile(r"[a-z][\w./-]*+ (?:.* )?--?[A-Za-z]")

# What an error line holds. Before each pattern stands what it needs at least: looking for that alone is quick.
ERRORS = patterns_by_sign(
    {
        "Traceback (most recent": r"",  # Traceback (most recent call last):
        # ValueError: bad, KeyError('a'), a.py:12: AssertionError
        "Error": r"\b(?:[A-Z]\w{0,60}?)?Error(?::[ ]|\((?=[\"'0-9]))|(?:^|: )\w{0,60}Error[ \t]*+$",
        "Exception": r"\b(?:[A-Z]\w{0,60}?)?Exception(?::[ ]|\((?=[\"'0-9]))",  # http.client.HTTPException: bad
        "\nE  ": r"^E[ ]{3,}\S",  # E       assert 3 == 4
        "error": r"(?<![\w\"'`(])error(?:\[\w++\])?:[ ]",  # error[E0382]: borrow of moved value
        "ERROR": r"\bERROR\b",  # 12:00:07 ERROR in main
        "FAILED": r"\bFAILED\b",  # FAILED tests/a.py::test_b
        "FATAL": r"\bFATAL\b",  # FATAL: password authentication failed
        "fatal": r"\bfatal:[ ]",  # fatal: not a git repository
        "panic": r"\bpanic(?:ked|:)[ ]",  # panic: runtime error
        "npm ERR!": r"",  # npm ERR! missing script
        "错误": r"错误[ ]?[：:]",  # 错误：找不到文件
        "异常": r"异常[ ]?[：:]",  # 连接异常：超时
        "报错": r"报错[ ]?[：:]",  # 报错：权限不够
        "No such file or": r"",  # cat: a.txt: No such file or directory
        "command not found": r"",  # bash: gatectl: command not found
        "ermission denied": r"",  # Permission denied (publickey)
    }
)
# A line of source that only names an error: raise ValueError("bad"); that only speaks of a demand: print("must ...").
SOURCE = re.compile(
    r"\b(?:raise|except|class|def|import|isinstance|new|throw|catch|return|print)\b|[,;{(]\s*+$|=[ ]?[\"']"
)
CODE = re.compile(r"\w\(f?[\"']|[\"']\)|[;{}]\s*+$|[=:] ?[\"']")

# Where a sentence ends: "." before a blank but not after e.g. or i.e., "。", a new line; with the quotes that follow.
_STOP = r"""[.!?;。！？；\n](?:(?<=[。！？；])|(?<=\n){line}|(?<!e\.g\.)(?<!i\.e\.)(?=[\"'”’)]*+\s))[\"'”’」』）)]*+"""
END = re.compile(_STOP.format(line=""))
# In a user's own text a line that goes on in small letters belongs to the one before it.
END_OF_USER = re.compile(_STOP.format(line=r"(?![ \t]*+[a-z])"))
# What stands before a sentence and is none of it: the mark of a list, a heading or a comment, a line's number, quotes.
BEFORE = re.compile(r"(?:[\s\"'“”‘’「『*#>•/]|[-+] |[0-9]++(?:[.)、:-]\s|[\t→]| \|))*+")

# Somebody commands or forbids. Looked for in one sentence in small letters.
DEMANDS = patterns_by_sign(
    {
        "must": r"\bmust(?:n['’]t)?\b",  # Every change must be tested.
        "never": r"\bnever\b(?![ ]\w+ed\b)",  # Never touch the reports; unlike "it never passed 11 %"
        "always": r"\Aalways\b",  # Always use snake_case.
        "shall": r"\bshall\b",
        # Not allowed; unlike "`bash x` was not allowed, so I stop here", which tells what happened
        "forbidden": r"(?<!\bwas )(?<!\bwere )forbidden",
        "prohibited": r"(?<!\bwas )(?<!\bwere )prohibited",
        "not allowed": r"(?<!\bwas )(?<!\bwere )not allowed",
        "may not": r"",
        "should not": r"",
        "shouldn": r"\bshouldn['’]t\b",
        "may": r"\b(?:nobody|no[ ]one|none)[ ]may\b",  # Nobody may delete rows.
        "only": r"\A[^\w]*+only\b|\b(?:may|can|should)[ ]only\b|\bonly[ ](?:if|when|after|use|change|edit|read|run)\b",
        # Don't change any file; and do not as a demand, unlike "we do not know"
        "do": r"(?:\A|[,:(—–-][ ]?|\b(?:and|but|please|so|then|also|or|just)[ ])do(?:[ ]not|n['’]t)\b",
        "不要": r"(?<!要)不要(?!紧)",  # 不要改动任何文件; not 要不要
        "不能": r"(?<!能)不能",  # 不能改接口; not 能不能
        "不得": r"(?<![恨舍巴怪顾由了])不得(?![不已了])",  # 任何人不得删除; not 不得不, 舍不得
        "不可以": r"(?<!可)不可以",
        "不准": r"",
        "不许": r"",
        "必须": r"",  # 改动必须经过测试
        "禁止": r"",
        "严禁": r"",
        "请勿": r"",
        "切勿": r"",
        "务必": r"",
        "仅限": r"",
        # 只改 README, 只能读, 只有主管可以重启; not 只有三台, 只是, 不只, 一只猫
        "只": r"(?<![不船几两这那每各一二三四五六七八九十百0-9])只(?:能|可|准|许|允许|应|需|用|改|读|写|看|在|输出)"
        r"|只有[^，。]{1,30}?(?:才|可以|允许|能)",
    }
)
# A user may mean a demand too. Looked for in one sentence of a user in small letters. Most signs are whole words, so
# that hardly a pattern is looked for in vain.
DEMANDS_OF_USER = [
    *DEMANDS,
    *patterns_by_sign(
        {
            "only": r"\bonly\b(?![ ](?:an?[ ])?(?:gues|suspe|assum))",  # Change only the README; not "only suspected"
            "n't": r"\b(?:do|ca|wo|need)n't\b",
            "n’t": r"\b(?:do|ca|wo|need)n’t\b",
            "cannot": r"\bcannot\b",
            "no": r"\b(?:no|nothing|nobody|none)\b",
            "neither": r"\bneither\b",
            "never": r"\bnever\b",
            "without": r"\bwithout\b",
            "unless": r"\bunless\b",
            # Not in the tests folder; unlike "it is not running"
            "not": r"(?<!is )(?<!are )(?<!was )(?<!were )(?<!does )(?<!did )(?<!has )(?<!have )(?<!will )\bnot\b",
            # Keep every public name. Make sure that it compiles. It should be quick.
            "keep": r"\bkeep\b",
            "leave": r"\bleave\b",
            "ensure": r"\bensure\b",
            "make sure": r"\bmake sure\b",
            "except": r"\bexcept\b",
            "require": r"\brequired?\b",
            "limited": r"\blimited\b",
            "instead of": r"\binstead of\b",
            "avoid": r"\bavoid(?:ed)?\b",
            "should": r"\bshould\b",
            # It has to be quick. At most three sentences, within a minute.
            " to": r"\b(?:ha[vs]e?|needs?|stick) to\b",
            "at least": r"\bat least\b",
            "at most": r"\bat most\b",
            " than": r"\bnot? \w+ than\b",
            "just": r"\bjust\b",
            "within": r"\bwithin\b",
            "always": r"\balways\b",
            "as is": r"\bas is\b",
            "alone": r"\balone\b",
            "stop": r"(?<!\bi )\bstop\b",  # Stop at page 3; unlike "I stop here"
            # 只 in any use but 只有, 只是, 只好 and the measure word
            "只": r"(?<![不船几两这那每各一二三四五六七八九十百0-9])(?<![0-9] )只(?![有是好见怕]|不过)",
            "别": r"(?<![分特个区类级性识告辨鉴判派])别(?![的人处名墅扭致])",  # 别动它; not 分别, 别的
            # 不 in any use but a set phrase: 不重新读文件; not 不知道, 是不是
            "不": r"不(?![是过错同行知了止仅但管论对一])(?<!是不)(?<!差不)(?<!要不)(?<!能不)",
            # 最多三句话, 应该先问我, 一页之内
            "": r"应该|应当|避免|无需|一定要|保持|保留|最多|至少|以内|之内|控制在|仅|除了|勿|要求",
        }
    ),
]
