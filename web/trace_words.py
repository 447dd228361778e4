"""What a line of a trace says in words: how it went, and what it was that took no time."""

from markupsafe import Markup

from harness import events as e
from web.trace_tree import Node
from web.words import Words


def said_of(node: Node, words: Words) -> Markup:
    """Return what went wrong, or how a check or an approval went; nothing where there is nothing to say."""
    if isinstance(node.event, e.CompactionRefused):
        return words.code("refused", node.event.reason)
    if node.span is None:
        return Markup()
    match node.what:
        case "task" | "resumed" if node.fault:
            return words.code("status_ended", node.fault, task=node.number)
        case "child" if node.fault:
            return words.code("child_looks", node.fault)
        case "check" if isinstance(node.span.ended, e.Verified):
            return words.code("check_outcome", node.span.ended.outcome, exit=node.span.ended.exit)
        case _ if words.has("trace_fault", node.fault):
            return words.t(f"trace_fault.{node.fault}")
        case "compaction" if node.fault:
            return words.code("refused", node.fault)
        case "approval" if isinstance(node.span.ended, e.ApprovalAnswered) and node.span.ended.allowed:
            return words.t("trace.allowed")
        case "approval" if isinstance(node.span.ended, e.SummaryAnswered) and node.span.ended.used:
            return words.t("trace.used")
        case _ if node.fault:
            return words.code("ended_detail", node.fault)
        case _:
            return Markup()


def named(node: Node, words: Words) -> Markup:
    """Return what a line is called; a tool has its own name."""
    if node.span is None:
        return words.code("trace_mark", node.what, **_values(node.event, words))
    if node.what == "approval" and isinstance(node.event, e.SummaryProposed):
        return words.t("trace.asks_summary")
    return words.code("trace_name", node.what, n=node.number, tool=getattr(node.event, "name", ""))


def _values(event: e.Event, words: Words) -> dict[str, object]:
    match event:
        case e.ContextMeasured(estimate=measured, threshold=limit):
            return {"measured": words.quantity(measured, "estimated"), "limit": limit}
        case e.BoundaryMeasured(measured=measured, budget=limit, unit=unit):
            return {"measured": words.quantity(measured, "estimated" if unit == "tokens" else unit), "limit": limit}
        case e.ResultsDecided(decisions=decisions):
            return {"n": sum(1 for each in decisions if each.text)}
        case e.HookFailed(extension=name, hook=hook):
            return {"name": name, "hook": hook}
        case e.FollowUpAdded(extension=name) | e.SettingChanged(name=name):
            return {"name": name}
        case e.ModelChosen(model=name):
            return {"name": name}
        case _:
            return {"n": getattr(event, "number", 0)}
