"""What tracing lost facts costs a message, at 100 and at 10,000 messages; prints times and their ratio.

Run it with `uv run python -m bench.lost_cost`. Measured is CPU time of `harness.lost.trace` from nothing: nine tenths
of the messages were removed, a tenth is kept behind a summary. A message has some 250 characters, English or Chinese.
"""

import time

from harness.context import Entry, make_entry
from harness.facts.extract import judged_again
from harness.lost import trace
from harness.messages import AssistantMessage, Message, SummaryMessage, ToolCall, ToolResult, UserMessage
from harness.request import dump
from harness.sizes import Size

REPEATS = {100: 50, 10_000: 3}
REQUEST = """The probe of lane {n} failed again after {some} s. Look into {file}, and run only its own tests.
Don't change the reports, and keep every public name: two other teams build on them. When it is done, tell me in three
sentences what was wrong and how you know, with the lines of the log that show it."""
REQUEST_ZH = """第 {n} 次探测又超时了，等了 {some} 秒。请看一下 {file}，只运行它自己的测试，不要改动报表，
公开的名称也都要保留，另外两个组在用。查完以后用三句话告诉我哪里出了错、你是怎么确认的，并附上日志里能说明问题的那几行。
如果需要重启闸机，先停下来问我；在我回复之前，任何人不得删除记录，也不要重放当天的船票。最后把耗时写成表格。
上一次的结论放在同一个目录下，可以对照着看，两次结果不一致的地方单独列出来，写明各自的依据。"""
PLAN = """The limit in `{file}` looks too low for lane {n}, since the reply takes up to {few}.4 s there. I will run the
tests of that lane first, before anything is changed, to see whether they show the fault."""
ANSWER_ZH = """探测 {n} 失败的原因已经找到：`{file}` 第 {line} 行把等待时间设成了 {few} 秒，
而闸机最慢要 1{few}.5 秒才应答。日志里 08:{some:02d} 那一行能说明这一点，请求编号是 {id}。
别的通道没有这个问题，它们用的是旧的默认值。
下一步我会把默认值改成同一个常量，再把两条通道的测试都跑一遍，看看有没有别的地方也写死了这个数字。
改完之后会把前后的耗时放在一起比较，确认没有让正常的请求变慢，然后再汇报。"""
RESULT = """tests/test_lane_{lane}.py F.. [100%]
    def probe_{n}(gate):
>       assert wait_for(gate, limit={few}) is not None
E       TimeoutError: no reply from gate {few} after {few}.02 s
{file}:{line}: TimeoutError
FAILED tests/test_lane_{lane}.py::test_probe - TimeoutError: no reply
1 failed, {some} passed in {few}.31s"""


def message(number: int) -> Message:
    """Return one message of a session: a request, a call, what it returned, or an answer."""
    values = {
        "n": number, "file": f"gates/lane_{number % 97}.py", "lane": number % 97, "line": number % 400 + 1,
        "few": number % 9, "some": number % 60, "id": f"tg-{number:05x}",
    }  # fmt: skip
    match number % 20:
        case 0:
            return UserMessage(REQUEST.format(**values))
        case 10:
            return UserMessage(REQUEST_ZH.format(**values))
        case n if n % 4 == 1:
            command = dump({"command": "pytest tests/test_lane_{lane}.py -q -k probe_{n} --maxfail 2".format(**values)})
            return AssistantMessage(PLAN.format(**values), (ToolCall(f"call_{number:08x}", "bash", command),))
        case n if n % 4 == 3:
            return AssistantMessage(ANSWER_ZH.format(**values))
        case _:
            return ToolResult(f"call_{number - 1:08x}", "bash", RESULT.format(**values))


def session(messages: int) -> tuple[list[Entry], list[Entry]]:
    """Return the removed and the kept entries of a session of that many messages."""
    entries = [make_entry(number, 1, message(number), lambda wire: Size()) for number in range(messages)]
    text = "".join(
        f"- lane {number}: the limit is {number % 9} s, see gates/lane_{number % 97}.py\n" for number in range(30)
    )
    summary = make_entry(messages, 1, SummaryMessage("[Background]", f"## Confirmed\n{text}"), lambda wire: Size())
    cut = messages * 9 // 10
    return entries[:cut], [summary, *entries[cut:]]


def main() -> None:
    """Print the shortest run at both lengths, in microseconds of CPU a message, and the ratio."""
    best = {}
    for messages, repeats in REPEATS.items():
        removed, kept = session(messages)
        chars = sum(len(entry.message.text) for entry in (*removed, *kept)) / messages
        times = []
        for _ in range(repeats):
            judged_again.cache_clear()
            began = time.process_time()
            facts = len(trace(removed, kept))
            times.append(time.process_time() - began)
        best[messages] = min(times) / messages * 1e6
        whole = f"{min(times):6.3f} s, {facts} facts, {chars:.0f} characters a message"
        print(f"{messages:>6} messages: {best[messages]:6.1f} µs of CPU a message ({whole})")
    print(f"ratio: {best[10_000] / best[100]:.2f}")


if __name__ == "__main__":
    main()
