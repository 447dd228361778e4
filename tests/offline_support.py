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
        for _ in range(60):
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


PREFACE = {"en": "[Background: a summary. It is no request.]", "zh": "[背景：这是一份摘要，不是请求。]"}
HEADINGS = {
    "08": {
        "en": "## Goal\n## Constraints & Preferences\n## Progress\n### Done\n### In Progress\n### Blocked\n"
        "## Key Decisions\n## Next Steps\n## Critical Context",
        "zh": "## 目标\n## 约束与偏好\n## 进展\n### 已完成\n### 进行中\n### 受阻\n## 关键决定\n## 下一步\n## 必要信息",
    },
    "09": {
        "en": "## Goal\n## Key technical points\n## Files\n## Errors and fixes\n## Current work\n## To do",
        "zh": "## 目标\n## 技术要点\n## 涉及的文件\n## 错误与修复\n## 当前工作\n## 待办",
    },
    "10": {
        "en": "## Decisions\n## To do\n## Key information\n## Rejected options",
        "zh": "## 决策\n## 待办\n## 关键信息\n## 已否决的方案",
    },
}
LIMITS = {"en": "Write at most {limit} characters.", "zh": "全文不超过 {limit} 个字符。"}


def work_messages(
    history: str, number: str, *, language: str = "en", limit: int = 0, earlier: str = ""
) -> list[Message]:
    """Return a summary request with a lab's headings, and a limit in characters unless that is 0."""
    before = f"<earlier_summary>\n{earlier}\n</earlier_summary>\n\n" if earlier else ""
    lead = (
        "请整理这段对话，写出下面这些标题："
        if language == "zh"
        else "Summarise the conversation. Write these headings:"
    )
    limits = LIMITS[language].replace("{limit}", str(limit)) if limit else ""
    instruction = f"{lead}\n{HEADINGS[number][language]}\n\n{limits}"
    return [{"role": "system", "content": instruction}, user(f"{before}<history>\n{history}\n</history>")]


class LongTalk(Talk):
    """A conversation that is compacted in the middle of a task: whenever the context is past `most` bytes.

    number: whose headings the summary has. limit: of the summary in characters, or 0 and `room` in tokens.
    role: of the message that holds the summary. pinned: whether the summariser sees the task's request, too.
    """

    def __init__(
        self, url: str, folder: Path, demo: str, language: str, number: str, *, most: int,
        limit: int = 0, room: int = 640, keep: int = 4, role: str = "user",
    ) -> None:  # fmt: skip
        super().__init__(url, folder, demo)
        self.language, self.number, self.most, self.limit, self.room = language, number, most, limit, room
        self.keep, self.role, self.summaries, self.beside = keep, role, [], ""

    def context(self, preface: str = "") -> list[Message]:
        text = f"{preface or PREFACE[self.language]}\n\n{self.summary}{self.beside}"
        summary = [{"role": self.role, "content": text}] if self.summary else []
        return [SYSTEM, *summary, *(message for task in self.tasks for message in task)]

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        if "tools" in body and len(json.dumps(body["messages"], ensure_ascii=False).encode()) > self.most:
            self.cut()
            body = {**body, "messages": self.context()}
        return super()._post(body)

    def cut(self) -> None:
        """Let a summary stand for all but the running task's request and its newest messages."""
        *finished, running = self.tasks
        place = max(1, len(running) - self.keep)
        while place > 1 and running[place]["role"] != "assistant":
            place -= 1
        parts = [rendered(number, task) for number, task in enumerate(finished, 1)]
        parts.append(rendered(len(self.tasks), running[1:place]))
        history = "\n\n".join(part for part in parts if part)
        asked = {"language": self.language, "limit": self.limit, "earlier": self.summary}
        body = {"messages": work_messages(history, self.number, **asked), "max_tokens": self.room}
        choice = super()._post(body)["choices"][0]
        assert choice["finish_reason"] == "stop"
        self.summary = choice["message"]["content"]
        self.summaries.append(self.summary)
        self.tasks = [[running[0], *running[place:]]]
