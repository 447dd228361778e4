"""Where lab 07 cuts, and what may not take effect."""

from dataclasses import replace

from harness import events as e
from harness.compaction import Plan, plan_boundary, refusal
from harness.context import LONG_CHARS, Entry, make_entry
from harness.demands import demands_of
from harness.messages import AssistantMessage, SummaryMessage, ToolCall, UserMessage
from harness.rendering import Reading, render
from harness.tokens import size_of_message
from tests.session_events_support import Story


def summary(text: str) -> Entry:
    return make_entry(0, 1, SummaryMessage("[background]", text), size_of_message)


def plan_of(story: Story, budget: int = 1500) -> Plan:
    task = story.state.tasks[-1]
    return plan_boundary(story.state.context, task=task.task, budget=budget)


def compact(story: Story, text: str) -> e.ContextCompacted:
    plan, entry = plan_of(story, 0), summary(text)
    assert refusal(story.state.context, plan, entry) == ""
    before = story.state.context.total
    removed = sum(each.size.chars for each in story.state.context.entries[: len(plan.removed)])
    after = replace(before, chars=before.chars - removed + entry.size.chars)
    event = e.ContextCompacted(
        number=1, task=story.state.tasks[-1].task, strategy=plan.strategy, trigger=plan.trigger, unit=plan.unit,
        budget=plan.budget, measured=plan.measured, measured_after=entry.size.chars, before=before, after=after,
        cut=plan.cut, removed=plan.removed, kept=plan.kept, preface="[background]", summary=text, shortened="",
        calls=(), usage=e.Usage(), seconds=0.0, model="m",
    )  # fmt: skip
    story.emit(event)
    return event


def test_the_first_task_has_nothing_before_it() -> None:
    story = Story()
    story.task("one", "x" * 5000, "done")
    plan = plan_of(story)
    assert (plan.measured, plan.removed, plan.past) == (0, (), False)
    assert refusal(story.state.context, plan, summary("s")) == "nothing_to_cut"


def test_the_second_task_is_the_border_and_the_budget_is_strict() -> None:
    story = Story()
    story.task("one", "x" * 500, "done")
    first = [entry for entry in story.state.context.entries]
    story.task("two", "y", "done too")
    plan = plan_of(story)
    assert plan.measured == sum(entry.size.chars for entry in first)
    assert plan.removed == tuple(entry.seq for entry in first)
    assert plan.cut == story.state.tasks[1].seq == plan.kept[0]
    assert plan_of(story, plan.measured).past is False
    assert plan_of(story, plan.measured - 1).past is True


def test_a_follow_up_of_an_extension_does_not_move_the_cut() -> None:
    story = Story()
    story.task("one", "x" * 500, "done")
    story.start("two")
    story.reply("first try")
    story.emit(e.FollowUpAdded(task=2, extension="verify", text="the check failed"))
    story.reply("second try")
    assert plan_of(story).cut == story.state.tasks[1].seq
    assert len(plan_of(story).kept) == 4


def test_a_message_that_looks_like_a_summary_is_still_a_task() -> None:
    story = Story()
    story.task("one", "x" * 500, "done")
    story.task("[background]\n\nread it again", "y", "done")
    assert plan_of(story).cut == story.state.tasks[1].seq


def test_a_compaction_takes_what_stands_before_the_cut_and_keeps_the_rest() -> None:
    story = Story()
    story.task("one", "x" * 500, "done")
    story.task("two", "y", "done too")
    kept = [entry.wire for entry in story.state.context.entries[4:]]
    event = compact(story, "short")
    assert [entry.wire for entry in story.state.context.entries[1:]] == kept
    assert story.state.context.entries[0].wire["content"] == "[background]\n\nshort"
    assert story.state.context.total.chars == event.after.chars < event.before.chars
    assert len(story.state.history) == 8, "nothing is erased from the history"
    assert [entry.seq for entry in story.state.compactions[0].removed] == list(event.removed)


def test_the_second_compaction_takes_the_first_summary_and_the_tail_it_had_kept() -> None:
    story = Story()
    story.task("one", "x" * 500, "done")
    story.task("two", "marker " * 100, "done too")
    compact(story, "short")
    story.task("three", "z", "done three")
    plan = plan_of(story)
    removed = [entry for entry in story.state.context.entries if entry.seq in plan.removed]
    assert removed[0].category == "summary"
    assert any("marker" in str(entry.wire) for entry in removed)
    assert plan.measured == sum(entry.size.chars for entry in removed[1:]), "the summary is not measured"
    compact(story, "shorter")
    assert [entry.category for entry in story.state.context.entries].count("summary") == 1


def test_a_summary_that_shrinks_nothing_is_refused() -> None:
    story = Story()
    story.task("one", "x", "done")
    story.task("two", "y", "done")
    assert refusal(story.state.context, plan_of(story), summary("s" * 5000)) == "not_smaller"


def test_a_context_that_changed_before_the_cut_is_refused_and_a_new_message_is_not() -> None:
    story = Story()
    story.task("one", "x" * 900, "done")
    story.start("two")
    plan = plan_of(story)
    story.reply("came meanwhile")
    assert refusal(story.state.context, plan, summary("s")) == ""
    compact(story, "first")
    assert refusal(story.state.context, plan, summary("s")) == "context_changed"


def test_a_cut_between_call_and_result_is_refused() -> None:
    story = Story()
    story.task("one", "x" * 900, "done")
    story.start("two")
    call = ToolCall("c9", "read", "{}")
    story.reply("", (call,), "tool_calls")
    story.emit(e.ToolEnded(task=2, call_id="c9", name="read", arguments="{}", text="r", ok=True, seconds=0))
    seqs = [entry.seq for entry in story.state.context.entries]
    plan = replace(plan_of(story), removed=tuple(seqs[:-1]), kept=tuple(seqs[-1:]))
    assert refusal(story.state.context, plan, summary("s")) == "broken_pairs"


def test_demands_are_found_when_a_message_comes_in_and_those_of_a_very_long_one_when_they_are_wanted() -> None:
    short, long = "Keep the log. Run it.", "x" * LONG_CHARS + "\nNever touch the gates."
    entries = [make_entry(1, 1, message, size_of_message) for message in map(UserMessage, (short, long))]
    assert [each.text for each in entries[0].demands or ()] == ["Keep the log."]
    assert entries[1].demands is None
    assert demands_of(entries) == ("Keep the log.", "Never touch the gates.")
    added = make_entry(3, 1, UserMessage(short, author="extension"), size_of_message)
    assert demands_of([added]) == ()


def test_what_the_calls_of_a_dropped_message_pass_counts_as_left_out() -> None:
    call = ToolCall("c1", "read", '{"path":"a"}')
    entries = [make_entry(1, 1, AssistantMessage("", (call,)), size_of_message)]
    entries += [make_entry(2, 1, UserMessage("Go on."), size_of_message)]
    assert render(entries, Reading())[1] == 0
    assert render(entries, Reading(), dropped=1)[1] == len(call.arguments)
