"""Tool calls that a model, or the layer in front of it, left in the text of a reply. Pure; never raises.

The text is the model's own reply, never a tool's result. It is untrusted all the same: a call is taken
only if nothing follows it, it is whole, it stands in no code fence and it names an offered tool.
Anything else stays text, so that an answer which only shows such markup runs nothing.
"""

import json
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from harness.messages import ToolCall, clean
from harness.model.reply import Reply

Found = tuple[str, dict[str, Any]]
Parsed = tuple[int, list[Found]]

# DeepSeek's bars are full-width; proxies turn them into others, double them, or add a blank.
_DSML = re.compile(r"<(/?)[｜|‖]{1,2}DSML[｜|‖]{1,2}\s?([a-z_]*)([^<>]*)>")
_SECTIONS = ("function_calls", "tool_calls", "calls")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOKEN = re.compile(r"<[｜|]tool[▁_](calls[▁_]begin|calls[▁_]end|call[▁_]begin|sep|call[▁_]end)[｜|]>")
_TAGGED = re.compile(r"<tool_call>\s*")
_TAG_END = re.compile(r"\s*(?:</tool_call>\s*)?")
_FENCE = re.compile(r"^[ \t]*```[^\n`]*$", re.MULTILINE)
_NOTHING = re.compile(r"(?:<[｜|]end▁of▁sentence[｜|]>|\s)*\Z")
_KEYS = {"id", "type", "name", "arguments", "parameters"}


def take_calls(reply: Reply, offered: Collection[str], new_id: Callable[[], str]) -> Reply:
    """Return `reply` with the calls that stand in its text as calls, marked "calls_in_text".

    Unchanged if it has real calls, if no tool is offered, or if there is none to take.
    """
    if reply.calls or not offered:
        return reply
    text, found = find_calls(reply.text, offered)
    if not found:
        return reply
    texts = [(name, clean(json.dumps(arguments, ensure_ascii=False))) for name, arguments in found]
    calls = tuple(ToolCall(new_id(), name, arguments, from_text=True) for name, arguments in texts)
    return replace(reply, text=text, calls=calls, marks=tuple(sorted({*reply.marks, "calls_in_text"})))


def find_calls(text: str, offered: Collection[str]) -> tuple[str, list[Found]]:
    """Return the text before the calls, and the calls; the whole text and none if there is nothing to take.

    find_calls('Now. <tool_call>{"name": "read", "arguments": {}}</tool_call>', ["read"])
        -> ("Now.", [("read", {})])
    """
    for parse in (_dsml, _tokens, _tagged, _fenced, _bare):
        try:
            start, found = parse(text)
        except (ValueError, RecursionError):
            continue
        # Fences come in pairs: after an odd number of them the markup is inside one, and only shown.
        shown = len(_FENCE.findall(text[:start])) % 2
        if found and not shown and all(name in offered for name, _ in found):
            return text[:start].rstrip(), found
    return text, []


def _dsml(text: str) -> Parsed:
    """Read `<｜DSML｜invoke name="…">` with its parameters, with or without a section around."""
    found: list[Found] = []
    start, end = -1, 0
    call: Found | None = None
    parameter: re.Match[str] | None = None
    for tag in _DSML.finditer(text):
        closing, kind = bool(tag[1]), tag[2]
        if parameter is not None:
            # Whatever stands up to the closing tag is the value, also what looks like other markup.
            if closing and kind == "parameter" and call is not None:
                _parameter(parameter[3], text[parameter.end() : tag.start()], call[1])
                parameter, end = None, tag.end()
            continue
        start, between = (tag.start(), "") if start < 0 else (start, text[end : tag.start()].strip())
        end = tag.end()
        if call is not None and closing and kind == "invoke":
            _direct(between, call[1])
            found.append(call)
            call = None
        elif between:
            raise ValueError("text between the tags")
        elif call is not None and kind == "parameter":
            parameter = tag
        elif call is None and kind == "invoke" and not closing:
            call = (_attributes(tag[3]).get("name", ""), {})
            if tag[3].endswith("/"):
                found.append(call)
                call = None
        elif call is not None or kind not in _SECTIONS:
            raise ValueError("an unknown tag")
    if call is not None:
        raise ValueError("a call that does not end")
    _must_end(text, end)
    return start, found


def _attributes(text: str) -> dict[str, str]:
    return dict(_ATTRIBUTE.findall(text))


def _parameter(attributes: str, raw: str, into: dict[str, Any]) -> None:
    named = _attributes(attributes)
    if "name" not in named or named["name"] in into:
        raise ValueError("a parameter without a name of its own")
    into[named["name"]] = _load(raw) if named.get("string") == "false" else raw


def _direct(body: str, into: dict[str, Any]) -> None:
    """Take what stands in a call beside its parameters: one JSON object instead of them, or nothing."""
    if body and into:
        raise ValueError("text beside the parameters")
    into.update(_object(body) if body else {})


def _tokens(text: str) -> Parsed:
    """Read DeepSeek's older form, `<｜tool▁call▁begin｜>…<｜tool▁sep｜>…<｜tool▁call▁end｜>`."""
    tokens = [(match[1].replace("▁", "_"), match) for match in _TOKEN.finditer(text)]
    inner = [match for kind, match in tokens if not kind.startswith("calls_")]
    kinds = [kind for kind, _ in tokens if not kind.startswith("calls_")]
    if not inner or kinds != ["call_begin", "sep", "call_end"] * (len(kinds) // 3):
        raise ValueError("not three tokens a call")
    found: list[Found] = []
    for begin, middle, end in zip(inner[::3], inner[1::3], inner[2::3], strict=True):
        name, body = text[begin.end() : middle.start()].strip(), text[middle.end() : end.start()]
        if name == "function":
            name, body = body.split("\n", 1)
        found.append((name.strip(), _object(body.strip().removeprefix("```json").removesuffix("```"))))
    _must_end(text, tokens[-1][1].end())
    return tokens[0][1].start(), found


def _tagged(text: str) -> Parsed:
    """Read `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, one or more."""
    found: list[Found] = []
    decoder = json.JSONDecoder(parse_constant=_no_number)
    tag = first = _TAGGED.search(text)
    end = 0
    while tag:
        value, end = decoder.raw_decode(text, tag.end())
        found.append(_named(value))
        closing = _TAG_END.match(text, end)
        end = closing.end() if closing else end
        tag = _TAGGED.match(text, end)
    _must_end(text, end)
    return (first.start() if first else 0), found


def _fenced(text: str) -> Parsed:
    """Read the last block between two fence lines. JSON has no line break in a string, so no fence either."""
    fences = list(_FENCE.finditer(text))
    if len(fences) < 2 or fences[-2][0].strip() not in ("```json", "```"):
        raise ValueError("no such block")
    _must_end(text, fences[-1].end())
    return fences[-2].start(), [_named(_load(text[fences[-2].end() : fences[-1].start()]))]


def _bare(text: str) -> Parsed:
    """Read a reply that is the JSON of one call and nothing else."""
    return 0, [_named(_load(text))]


def _named(value: object) -> Found:
    if not isinstance(value, dict) or not value.keys() <= _KEYS or not isinstance(value.get("name"), str):
        raise ValueError("not a call")
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        arguments = _load(arguments)
    if not isinstance(arguments, dict):
        raise ValueError("no arguments")
    return value["name"], arguments


def _must_end(text: str, end: int) -> None:
    if not _NOTHING.match(text, end):
        raise ValueError("text after the call")


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _load(text: str) -> Any:
    return json.loads(text, parse_constant=_no_number)


def _object(text: str) -> dict[str, Any]:
    value = _load(text)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value
