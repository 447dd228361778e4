"""Updates of the page as htmx reads them, and as server-sent events carry them. Pure text."""

from collections.abc import Iterable

from markupsafe import escape

from web.updates import Mode, Update

SWAPS: dict[Mode, str] = {
    "replace": "outerHTML",
    "append": "beforeend",
    "before": "beforebegin",
    "remove": "delete",
    "morph": "outerMorph",
    "inner": "innerHTML",
}


def partial(update: Update) -> str:
    """Return one update as htmx 4 reads it, whatever the element that asked for it."""
    target = escape(f"#{update.target_id}")
    return f'<hx-partial hx-target="{target}" hx-swap="{SWAPS[update.mode]}">{update.html}</hx-partial>'


def partials(updates: Iterable[Update]) -> str:
    """Return several updates; they are done in order."""
    return "".join(partial(update) for update in updates)


def message(data: str, number: int | None = None) -> bytes:
    """Return one server-sent event. `number` becomes its id, where the browser reads on after a break.

    message("a\\nb", 7) -> b"id: 7\\ndata: a\\ndata: b\\n\\n"
    """
    # A bare carriage return would end the line too; in HTML it means the same as a line feed.
    lines = data.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    head = "" if number is None else f"id: {number}\n"
    return (head + "".join(f"data: {line}\n" for line in lines) + "\n").encode("utf-8", "replace")


# The page's stream element names this event: after it, it does not connect again.
OVER = b"event: over\n\n"
COMMENT = b": still here\n\n"
