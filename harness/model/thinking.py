"""The least thinking that a model allows, as fields of a request. Knows only what providers document."""

from typing import Any

from harness.session_events import ModelChosen

# platform.openai.com/docs/guides/reasoning: the lowest effort by the beginning of a model's name.
_OPENAI = {"gpt-5": "minimal", "o1": "low", "o3": "low", "o4": "low"}


def least_thinking(model: ModelChosen | None) -> dict[str, Any] | None:
    """Return what to add to a request for the least thinking; None where a model has no lower level or we know none.

    DeepSeek's switch is `thinking` (api-docs.deepseek.com, thinking mode); the offline model knows OpenAI's field.
    """
    match model:
        case ModelChosen(provider="deepseek"):
            return {"thinking": {"type": "disabled"}}
        case ModelChosen(provider="offline"):
            return {"reasoning_effort": "minimal"}
        case ModelChosen(provider="openai", model=name):
            effort = next((effort for start, effort in _OPENAI.items() if name.startswith(start)), None)
            return {"reasoning_effort": effort} if effort else None
        case _:
            return None
