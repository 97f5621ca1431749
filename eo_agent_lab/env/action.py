"""From the text of an action to a tool call or an answer. The text is hostile input."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

from eo_agent_lab.errors import ToolError

MAX_ACTION_CHARS = 20_000
"""Longer than any honest call; also bounds what one action adds to a log."""

MAX_DEPTH = 32
_LARGEST_INT = 2**63

_SURROGATES = re.compile("[\ud800-\udfff]")


class ToolAction(NamedTuple):
    """A call of a tool."""

    name: str
    arguments: dict[str, Any]


class AnswerAction(NamedTuple):
    """The final answer; None when the agent gives up."""

    answer: str | None


def replace_surrogates(text: str) -> str:
    """Return a text that UTF-8 can hold: lone surrogates become U+FFFD."""
    return _SURROGATES.sub("\ufffd", text)


def parse_action(action: object) -> ToolAction | AnswerAction:
    """Read an action.

    Args:
        action: JSON text, ``{"name": ..., "arguments": {...}}`` or ``{"answer": ...}``, with no
            other key. An answer that is no string is kept as its JSON text; null gives up.

    Raises:
        ToolError: It is anything else; the message says what is wrong with it.
    """
    value = _load(action)
    if not isinstance(value, dict):
        raise ToolError(f"an action is a JSON object, not {_kind(value)}")
    if set(value) == {"answer"}:
        answer = value["answer"]
        if answer is None or isinstance(answer, str):
            return AnswerAction(answer)
        return AnswerAction(json.dumps(answer, ensure_ascii=False))
    if set(value) != {"name", "arguments"}:
        keys = ", ".join(repr(key[:40]) for key in list(value)[:6]) or "none"
        raise ToolError(f"an action has the keys name and arguments, or answer alone; got {keys}")
    name, arguments = value["name"], value["arguments"]
    if not isinstance(name, str):
        raise ToolError(f"a tool's name is a string, not {_kind(name)}")
    if not isinstance(arguments, dict):
        raise ToolError(f"arguments are a JSON object, not {_kind(arguments)}")
    return ToolAction(name, arguments)


def _load(action: object) -> Any:
    if not isinstance(action, str):
        raise ToolError(f"an action is JSON text, not a Python {type(action).__name__}")
    if len(action) > MAX_ACTION_CHARS:
        raise ToolError(
            f"the action has {len(action)} characters, more than the {MAX_ACTION_CHARS} allowed"
        )
    try:
        value = json.loads(action, object_pairs_hook=_object, parse_constant=_refuse_constant)
        return _clean(value, MAX_DEPTH)
    except json.JSONDecodeError as error:
        raise ToolError(f"the action is not JSON: {error}") from error
    except RecursionError as error:
        raise ToolError(f"the action is nested more than {MAX_DEPTH} levels deep") from error
    except ValueError as error:
        raise ToolError("the action holds a number of too many digits") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ToolError(f"the key {replace_surrogates(twice[:40])!r} stands twice in one object")
    return value


def _refuse_constant(name: str) -> Any:
    raise ToolError(f"{name} is no JSON number; give a finite one")


def _clean(value: Any, depth: int) -> Any:
    """Return a parsed value without lone surrogates.

    Raises:
        ToolError: It is nested too deeply, or a number is out of range.
    """
    if depth < 0:
        raise ToolError(f"the action is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {replace_surrogates(key): _clean(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, depth - 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ToolError("a number is too large; give a finite one")
    if isinstance(value, int) and abs(value) >= _LARGEST_INT:
        raise ToolError("a whole number is too large; it must fit 64 bits")
    return value


def _kind(value: Any) -> str:
    names = {str: "a string", bool: "a boolean", list: "an array", dict: "an object"}
    return "null" if value is None else names.get(type(value), "a number")
