"""The patterns of single words: addresses, numbers, paths, names. Each says what it takes, with an example.

A text is first cut into words (`TOKEN`), each looked at once; the other patterns only judge one word. Quantifiers
with a second plus (`++`) never give back what they took, so no text, however hostile, makes them slow.
"""

import re

# A letter, digit or _ of a script that has borders between words; not Chinese: "读一读log.md" holds log.md.
_LETTERS = r"0-9A-Za-z_\u00c0-\u1fff\uac00-\ud7af"
WORD = f"[{_LETTERS}]"
# What may stand inside a path or a name: "./src/*.py", "k-19", "os.path", "tests/a.py::test_b".
INSIDE = rf"[{_LETTERS}./\\@+~*:-]"

# An address up to a blank, a quote or Chinese punctuation: "https://example.org/a?b=1".
URL = r"(?:https?|wss?|ftp|file|ssh|git)://[^\s<>\"'`|\\\[\]，。；：！？、（）【】《》「」“”‘’]++"
# Numbers that only count lines or points: "  12\tcode", "3. point", "12: code", "107- code", "@@ -1,4 +1,6 @@".
GUTTER = r"(?m:^)(?:[ \t]*+[0-9]++(?:[.)][ ]|\t|→|[ ]?\||-[ ]|:(?![0-9]))|@@[ ][0-9 ,+-]++@@)"
# Words of plain prose, which need no second look.
PLAIN = rf"(?<!{INSIDE})(?:(?!exit)[A-Za-z]?[a-z]++(?=[ \n,])[ ,]*+)++"
# Chinese and Japanese, up to a word that tells what a number is.
CHINESE = r"(?:(?![退状错])[\u3000-\u9fff\uf900-\ufaff]|退(?!出码)|状(?!态码)|错(?!误码))++"

# 1,500 or 1500
INTEGER = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,3}+(?![0-9])|[0-9]++)"
MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*+"
UNIT = rf"""(?:
    [%％‰°] | 分钟 | 小时 | 毫秒 | 字符 | 字节 | [秒分时点天周年月日号次张名份台条个行位元倍页人件项轮组层步]
    | (?: [kKMGT]?i?B | [kMG]?Hz | [µmn]?s | min | h | px | k?m | k?g | x | (?:milli)?seconds? | minutes? | hours?
        | days? | weeks? | months? | years? | bytes? | char(?:acter)?s? | tokens? | lines? | rows? | files? | tests?
        | errors? | warnings? | messages? | times | retries | attempts | items? | requests? | users? | percent
        | steps? | calls? | passed | failed | skipped
    )(?!{WORD})
)"""
NUMBER = rf"""(?:
    # a date, with a time or without: 2026-11-02, 2026-11-02T08:03:00Z
    [0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}
        (?:[T ][0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}})?(?:[.,][0-9]++)?(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?
    # 2031 年 5 月 6 日, 5月6日
    | (?:[0-9]{{4}}[ ]?年[ ]?)?[0-9]{{1,2}}[ ]?月[ ]?[0-9]{{1,2}}[ ]?日
    # 6 May 2031
    | [0-9]{{1,2}}[ ]{MONTH}[ ][0-9]{{4}}
    # a time of day: 08:03, 12:00:07.5
    | [0-9]{{1,2}}:[0-9]{{2}}(?::[0-9]{{2}})?(?:[.,][0-9]++)?
    # so many of so many: 100/100, 64 of 64
    | {INTEGER}[ ]?(?:/|of)[ ]?{INTEGER}
    # a version or an address: 5.2.0, v2, 127.0.0.1:80
    | v?[0-9]++(?:\.[0-9]++){{2,}}+(?:[-.]?(?:alpha|beta|rc|dev|post)\.?[0-9]*+)?(?::[0-9]++)? | v[0-9]++(?:\.[0-9]++)?
    # money: $12.50
    | [$€£¥][ ]?{INTEGER}(?:\.[0-9]++)?
    # any other number, with its unit: 503, -0.5, 1,500 字符, 4 %, 30 s
    | (?:(?<![^\s(=:，：])[-+±])?{INTEGER}(?:\.[0-9]++)?(?:[ ]?{UNIT})?
# where it ends: not inside a longer word such as 7f3a or 5.2-beta
)(?!{WORD}|[./@:_\\]{WORD}|-[A-Za-z])"""
# A number that is told what it is: "exit code 3", "退出码 3", "retries=3".
NAMED = rf"(?:exit(?:ed)?[ ](?:code|status|with)|退出码|状态码|错误码|{WORD}++=)[ ]?[0-9]++(?!{WORD}|[.,:/-]{WORD})"

# One word of a text, or something that is skipped because it has a group of its own that is no fact.
TOKEN = re.compile(
    rf"(?P<gutter>{GUTTER})"
    rf"|(?P<plain>{PLAIN}|{CHINESE})"
    rf"|(?<!{WORD})(?:(?P<url>{URL})|(?P<number>(?x:{NUMBER})|{NAMED}))"
    # not the end of an HTML element, </div>
    rf"|(?P<other>(?<!{INSIDE})(?!(?<=<)/){INSIDE}++(?:\(\))?)"
)

ENDINGS = (
    "py pyi ipynb js mjs cjs jsx ts tsx vue svelte html htm css scss md rst txt json jsonl toml yaml yml ini cfg conf "
    "env lock log csv tsv xml svg png jpg jpeg gif webp ico pdf sh bash zsh ps1 bat sql db sqlite rs go java kt scala "
    "swift c h cc cpp hpp cs rb php pl lua exs erl hs dart proto tf gz tar tgz zip whl jar so dll exe bin pem crt "
    "patch diff tex bak tmp pid sock gguf"
).replace(" ", "|")
FOLDERS = (
    "src lib libs test tests doc docs web app apps bin etc usr tmp var home opt packages scripts config dist build "
    "node_modules templates static assets public server client api core internal cmd pkg example examples tools utils "
    "components labs"
).replace(" ", "|")
HIDDEN = "env|git|bash|zsh|npm|nvm|ssh|vscode|venv|editorconfig|eslint|prettier|docker"
_PART = r"[^/\\:\s]++"

# A word is a path if one of these takes all of it.
PATH = re.compile(
    rf"""(?:
    # from the root, from home or from here: /etc/hosts, ~/x/, ./run.sh
    (?:~|\.{{1,2}})?/(?:{_PART}/)*+(?:{_PART})?
    # a folder, and what is in a folder that projects have: signer/, src/app
    | [^/\\:\s]{{2,}}+/ | (?:{FOLDERS})/(?:{_PART}/)*+(?:{_PART})?
    # words with slashes that are no plain words as in and/or, and no s/old/new/: web_ui/main
    | (?=[^_.:\s]*+[_.])[A-Za-z_@.]{{2}}[^/:\s]*+(?:/[A-Za-z_@.][^/:\s]++)++
    # a file by its ending, or a well-known one: signer/keys.toml, .gitignore, Makefile
    | (?:{_PART}/)*+(?:[^/:\s]*?[^/:\s.]\.(?i:{ENDINGS}) | \.(?:{HIDDEN})[^/:\s]*+
        | Makefile | Dockerfile | Procfile | Gemfile | LICENSE | README | CHANGELOG)
    # C:\logs\gate.log
    | [A-Za-z]:\\[^\s:]{{3,}}+
    # and in it a line, or a test: :27, :27:5, ::test_b
    )(?::[0-9]++(?:[:-][0-9]++)?|(?:::[^\s:]++)++)?""",
    re.VERBOSE,
)
# What looks like a file or a name and is a product.
BRANDS = frozenset("Node.js Next.js Vue.js React.js Express.js Three.js D3.js GitHub JavaScript TypeScript".split())

# A word is a name if one of these takes all of it.
IDENTIFIER = re.compile(
    rf"""(?:
    # a UUID, a number in hex, a hash: 0x7f, c176039
    [0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}} | 0x[0-9a-fA-F]++
    | (?=[a-f]*+[0-9])(?=[0-9]*+[a-f])[0-9a-f]{{7,64}}
    # snake_case, MAX_CHARS, __init__
    | (?!_++\Z)(?=[^_]*+_){WORD}++
    # camelCase, PascalCase, HTTPError
    | _*+[a-z][a-z0-9]*+(?:[A-Z][a-z0-9]*+)++ | _*+(?:[A-Z]++[a-z0-9]++){{2,}}+[A-Z]*+ | [A-Z]{{3,}}+[a-z]{{3,}}+
    # names with dots, the last of two letters or more, unlike e.g.: os.path.join, m.group, std::vector
    | [A-Za-z_]{WORD}*+(?:\.{WORD}++)++(?<={WORD}{{2}}) | [A-Za-z]{WORD}*+(?:::{WORD}++)++
    # with a hyphen and a digit: E-217, tg-5c91, k-19
    | (?=[^0-9]*+[0-9])[A-Za-z]{WORD}*+(?:-{WORD}++)++
    # letters and digits, or a short code: 7f301, W0212, E217
    | (?=[A-Za-z]*+[0-9])(?=[0-9]*+[A-Za-z])[A-Za-z0-9]{{5,24}}+ | [A-Z]{{1,3}}[0-9]{{2,}}+
    # a code of the operating system: ENOENT
    | E(?:NOENT|ACCES|PERM|EXIST|PIPE|INVAL|NOTDIR|ISDIR|MFILE|NOSPC|AGAIN|TIMEDOUT|ADDRINUSE|CONN[A-Z]++)
    # a call: postage_for()
    | [A-Za-z_]{WORD}*+(?:\.{WORD}++)*+\(\)
    )""",
    re.VERBOSE,
)
# What is stripped from the front of a word: a mark of a diff, the asterisks of bold type; not of **/*.py.
MARKS = re.compile(r"[+:-]++|\*{1,2}+(?=[\w~.])(?!\*\.)")
