"""The sentences around what is extracted, in English and Chinese. They hold no fact about any content."""

from typing import Literal

Language = Literal["en", "zh"]

TITLES: dict[Language, dict[str, str]] = {
    "en": {
        "confirmed": "Confirmed",
        "unverified": "Suspected, not verified",
        "rejected": "Ruled out",
        "change": "Changed or decided",
        "open": "Still open",
        "rule": "Rules that it names",
        "plain": "Noted with no verdict",
    },
    "zh": {
        "confirmed": "已确认",
        "unverified": "只是怀疑，还没有验证",
        "rejected": "已排除",
        "change": "改动与决定",
        "open": "还没查清",
        "rule": "其中提到的规定",
        "plain": "有记录，但没有标明是否核实",
    },
}
PLACES: dict[Language, dict[str, str]] = {
    "en": {
        "result": "what `{label}` returned",
        "summary": "the summary of earlier tasks",
        "summary_now": "the summary",
        "beside": "`{label}`, beside the summary",
        "answer": "an earlier answer",
        "user": "your own message",
    },
    "zh": {
        "result": "`{label}` 的结果",
        "summary": "早先任务的摘要",
        "summary_now": "摘要",
        "beside": "摘要旁边的 `{label}`",
        "answer": "之前的回答",
        "user": "你的消息",
    },
}
PHRASES: dict[Language, dict[str, str]] = {
    "en": {
        "source": "Taken from: {places}.",
        "partly": "The tool adds: {note}",
        "none_of_kind": "The context I was sent holds nothing of this kind.",
        "found": "This is what the context says:",
        "missing": "The context I was sent says nothing about {what}.",
        "missing_this": "The context I was sent does not contain the answer to this.",
        "by_summary": "The earlier tasks stand in it only as a summary, and the summary does not hold this.",
        "no_note": "No note in the list fits it either.",
        "read_again": "Reading the file again would help: name it, and I will read it.",
        "draft": "Draft",
        "draft_known": "What is confirmed",
        "draft_done": "What was changed or decided",
        "draft_open": "What is still being checked",
        "draft_left_out": "Left out of the draft because nothing confirms it:"
        " {guesses} suspected, {rejected} ruled out.",
        "draft_empty": "I can't draft this: the context I was sent holds no confirmed fact.",
        "rules_kept": "Limits that still hold",
        "denied": "`{call}` was not allowed, so I stop here. It was not carried out.",
        "tool_missing": "The next step needs the tool `{tool}`, and this request does not offer it. I stop here.",
        "tool_said": "`{label}` answered:",
        "noted": "The note is kept, and the next session has it in its list. `{label}` answered:",
        "forgotten": "The note is removed for good; this session's list still names it. `{label}` answered:",
        "note_twin": "A note that says just this was there already, so nothing was written. `{label}` answered:",
        "note_gone": "The list of this session names a note that fits, but it can't be had now. `{label}` answered:",
        "none_to_forget": "There is nothing to forget: no note in the list fits this, and none was kept in what I see"
        " of this session.",
        "passed_on": "This is what `{label}` answered:",
        "did": "What I did",
        "last_run": "What the last run says",
        "passes": "The tests pass in the last run.",
        "passes_other": "The last run reports no failure.",
        "fails": "The last run still reports a failure.",
        "no_run": "No run in this task shows whether it works.",
        "no_run_since": "Since the check failed I have run nothing that shows whether it works now.",
        "cant_check": "The check failed, and I can't mend what it found: I am the offline model, I have no weights, and"
        " my script knows only the faults of the sample tasks. What the check printed stands above.",
        "cant_check_again": "The check still fails. As I said, I can't mend what it found, so I have changed nothing.",
        "sent_back": "The check `{command}` failed and sent the work back: {what}",
        "lines": "{count} lines",
        "overview": "What it says about itself",
        "definitions": "What is defined",
        "cant": "I am the offline model: I have no weights. I follow a script for the sample tasks, and I can read a"
        " text file that you name, sort what it says, list what is confirmed and what is not, draft a note from it, and"
        " look up a detail in the context. I can't serve this request.",
        "ways": "Three ways to a real model:\n\n- set `DEEPSEEK_API_KEY`\n- set `OPENAI_API_KEY`, or point"
        " `OPENAI_BASE_URL` or `--base-url` at any compatible server\n- start with `--gguf FILE` for a model on this"
        " machine",
    },
    "zh": {
        "source": "出处：{places}。",
        "partly": "工具另外说明：{note}",
        "none_of_kind": "发给我的上下文里没有这一类内容。",
        "found": "上下文里是这样写的：",
        "missing": "发给我的上下文里没有提到 {what}。",
        "missing_this": "发给我的上下文里没有这个问题的答案。",
        "by_summary": "早先的任务在上下文里只剩一份摘要，而摘要没有保留这一点。",
        "no_note": "笔记清单里也没有对得上的。",
        "read_again": "重新读一遍文件会有帮助：说出文件名，我就去读。",
        "draft": "草稿",
        "draft_known": "已确认的情况",
        "draft_done": "已做的改动与决定",
        "draft_open": "还在查的问题",
        "draft_left_out": "没有得到确认，所以没写进草稿：怀疑 {guesses} 条，已排除 {rejected} 条。",
        "draft_empty": "写不了：发给我的上下文里没有任何已确认的事实。",
        "rules_kept": "仍然有效的限制",
        "denied": "`{call}` 没有获得允许，我就停在这里；这一步没有执行。",
        "tool_missing": "下一步要用工具 `{tool}`，但这次请求没有提供它，我只能停在这里。",
        "tool_said": "`{label}` 的返回：",
        "noted": "笔记已记下，从下一个会话起列入清单。`{label}` 的返回：",
        "forgotten": "笔记已永久删除；这个会话的清单里还留着它那一行。`{label}` 的返回：",
        "note_twin": "一模一样的笔记早就有了，所以什么都没有写。`{label}` 的返回：",
        "note_gone": "这个会话的清单里有一条对得上的笔记，可是现在取不到了。`{label}` 的返回：",
        "none_to_forget": "没有可忘的：清单里没有对得上的笔记，在我看到的这段会话里也没有记下过。",
        "passed_on": "`{label}` 的回答是：",
        "did": "做了什么",
        "last_run": "最后一次运行的结果",
        "passes": "最后一次运行，测试全部通过。",
        "passes_other": "最后一次运行没有报告失败。",
        "fails": "最后一次运行仍然报告失败。",
        "no_run": "这次任务里没有运行结果能说明它是否有效。",
        "no_run_since": "检查没通过之后，我还没有再运行过什么，说不准现在是否有效。",
        "cant_check": "检查没有通过，而它查出的问题我改不了：我是离线模型，没有任何权重，"
        "脚本里只有示例任务中的那些错误。检查打印了什么，原样写在上面。",
        "cant_check_again": "检查还是没有通过。前面说过，它查出的问题我改不了，所以什么都没有改。",
        "sent_back": "检查 `{command}` 没有通过，退回重做：{what}",
        "lines": "{count} 行",
        "overview": "项目自己的说明",
        "definitions": "定义了什么",
        "cant": "我是离线模型，没有任何权重。示例任务由脚本决定下一步做什么；除此之外，我能读你点名的文本文件、"
        "把内容归类、列出哪些已确认哪些没有、据此起草一份说明，以及在上下文里查一个细节。这个请求我做不了。",
        "ways": "想用真正的模型，有三条路：\n\n- 设置 `DEEPSEEK_API_KEY`\n"
        "- 设置 `OPENAI_API_KEY`，或用 `OPENAI_BASE_URL`"
        "、`--base-url` 指向任何兼容的服务\n- 用 `--gguf 文件` 在本机运行一个模型",
    },
}
