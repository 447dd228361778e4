"""Plays the harness against a running offline model: a conversation over the wire, its tools, its compaction.

It is written apart from the harness, so that the wire is tested and not our own idea of it.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx2

from offline_model.chat import ChatRequest, Reply
from offline_model.checks import parse
from offline_model.respond import respond
from offline_model.script import load_flows

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "labs").glob("*/offline.toml"))
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("read", "write", "edit", "bash", "search")
]
SYSTEM = {"role": "system", "content": "You are a coding agent."}
Message = dict[str, Any]


def lab(number: str) -> dict[str, Any]:
    """Return a lab's lab.toml."""
    path = next((ROOT / "labs").glob(f"{number}-*/lab.toml"))
    return tomllib.loads(path.read_text("utf-8"))


def samples(number: str) -> list[dict[str, Any]]:
    """Return the lab's samples, in order."""
    return [sample for group in lab(number)["groups"] for sample in group["samples"]]


def wording(language: str) -> dict[str, Any]:
    """Return what lab 07 says to the summariser."""
    path = ROOT / "labs/07-context-management/wording.toml"
    return tomllib.loads(path.read_text("utf-8"))[language]


def log(language: str) -> str:
    """Return the incident log of the demo."""
    name = "incident-log.zh.md" if language == "zh" else "incident-log.md"
    return (ROOT / "demo_workspace/incident-log" / name).read_text("utf-8")


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def called(name: str, arguments: dict[str, Any], result: str, call_id: str = "call_1") -> list[Message]:
    """Return a call and its result."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def request(*messages: Message, tools: list[Message] | None = None) -> ChatRequest:
    """Return these messages as the server sees them, after a system prompt."""
    body: dict[str, Any] = {"model": "offline", "messages": [SYSTEM, *messages]}
    if tools is None or tools:
        body["tools"] = TOOLS if tools is None else tools
    return parse(json.dumps(body).encode())


def reply(*messages: Message, tools: list[Message] | None = None) -> Reply:
    """Return the reply to these messages, with the scripts of all labs."""
    return respond(request(*messages, tools=tools), load_flows(SCRIPTS))


def summary_messages(history: str, *, language: str = "en", limit: int = 900, earlier: str = "") -> list[Message]:
    """Return a summary request as lab 07 sends it."""
    before = f"<earlier_summary>\n{earlier}\n</earlier_summary>\n\n" if earlier else ""
    instruction = wording(language)["instruction"].replace("{limit}", str(limit))
    return [{"role": "system", "content": instruction}, user(f"{before}<history>\n{history}\n</history>")]


def rendered(task: int, messages: list[Message]) -> str:
    """Return messages as the data of a summary request: each under a line that names its author."""
    parts, names = [], {}
    for message in messages:
        calls = message.get("tool_calls", [])
        names |= {call["id"]: call["function"]["name"] for call in calls}
        asked = [f"calls {c['function']['name']} with {c['function']['arguments']}" for c in calls]
        who = f"result of {names[message['tool_call_id']]}" if message["role"] == "tool" else message["role"]
        text = "\n".join([message["content"] or "", *asked]).strip()
        parts.append(f"[task {task} · {who}]\n{text}")
    return "\n\n".join(parts)


class Talk:
    """A conversation of lab 01 or 07 with a server at `url`, on a copy of a demo project."""

    def __init__(self, url: str, folder: Path, demo: str, *, deny: str = "") -> None:
        self.folder = folder / demo
        shutil.copytree(ROOT / "demo_workspace" / demo, self.folder)
        self.client = httpx2.Client(base_url=url, timeout=20)
        self.tasks: list[list[Message]] = []
        self.summary = ""
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._deny = deny

    def close(self) -> None:
        self.client.close()

    def context(self, preface: str = "[Background: a summary of earlier tasks.]") -> list[Message]:
        """Return what the next call carries."""
        summary = [user(f"{preface}\n\n{self.summary}")] if self.summary else []
        return [SYSTEM, *summary, *(message for task in self.tasks for message in task)]

    def ask(self, text: str) -> str:
        """Run one task to its end and return the answer."""
        self.tasks.append([user(text)])
        for _ in range(10):
            message = self._post({"messages": self.context(), "tools": TOOLS})["choices"][0]["message"]
            if not message.get("tool_calls"):
                self.tasks[-1].append(said(message["content"]))
                return message["content"]
            call = message["tool_calls"][0]
            arguments = json.loads(call["function"]["arguments"])
            self.calls.append((call["function"]["name"], arguments))
            self.tasks[-1].append({"role": "assistant", "content": "", "tool_calls": [call]})
            result = self._run(call["function"]["name"], arguments)
            self.tasks[-1].append({"role": "tool", "tool_call_id": call["id"], "content": result})
        raise AssertionError("the task does not end")

    def measured(self) -> int:
        """Return the characters of JSON of the finished tasks before the last one."""
        finished = (message for task in self.tasks[:-1] for message in task)
        return sum(len(json.dumps(each, ensure_ascii=False, separators=(",", ":"))) for each in finished)

    def compact(self, language: str) -> str:
        """Replace all tasks but the last by a summary, and return it."""
        history = "\n\n".join(rendered(number, task) for number, task in enumerate(self.tasks[:-1], 1))
        messages = summary_messages(history, language=language, earlier=self.summary)
        self.summary = self._post({"messages": messages, "max_tokens": 4000})["choices"][0]["message"]["content"]
        self.tasks = self.tasks[-1:]
        return self.summary

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.client.post("chat/completions", json={"model": "offline", **body})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def _run(self, name: str, arguments: dict[str, Any]) -> str:
        if name == self._deny:
            return "The user did not allow this call, so nothing was run."
        if name == "read":
            return (self.folder / arguments["path"]).read_text("utf-8")
        if name == "edit":
            path = self.folder / arguments["path"]
            text = path.read_text("utf-8")
            assert text.count(arguments["old"]) == 1
            path.write_text(text.replace(arguments["old"], arguments["new"]), "utf-8")
            return f"Replaced one place in `{arguments['path']}`."
        if name == "search":
            return self._search(re.compile(arguments["pattern"]))
        assert arguments["command"] == "python3 -m unittest"
        done = subprocess.run([sys.executable, "-m", "unittest"], cwd=self.folder, capture_output=True, text=True)
        return f"{done.stdout}{done.stderr}[Exit code {done.returncode}]"

    def _search(self, pattern: re.Pattern[str]) -> str:
        lines = [
            f"{path.name}:{number}: {line}"
            for path in sorted(self.folder.glob("*.py"))
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
            if pattern.search(line)
        ]
        return "\n".join([*lines, f"[{len(lines)} matching lines.]"])
