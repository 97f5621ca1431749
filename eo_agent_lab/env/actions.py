"""Reading an action: the JSON text that an agent sends. It is hostile input."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

MAX_ACTION = 20_000
MAX_ANSWER = 2_000

HOW = (
    'send JSON text: {"name": TOOL, "arguments": {...}} to call a tool, or {"answer": TEXT} to end'
)


class Action(NamedTuple):
    """A parsed action: a tool call, a final answer, or neither, with the reason in ``problem``."""

    name: str | None = None
    arguments: dict[str, Any] | None = None
    answer: str | None = None
    problem: str | None = None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:40]!r} stands twice")
        found[key] = value
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def parse_action(text: object) -> Action:
    """Parse an action; whatever is wrong with it ends up in ``problem``, never in an exception."""
    if not isinstance(text, str):
        return Action(problem=f"an action is text, not {type(text).__name__}; {HOW}")
    if len(text) > MAX_ACTION:
        return Action(
            problem=f"the action has {len(text)} characters, at most {MAX_ACTION} are read; {HOW}"
        )
    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        return Action(problem=f"the action is not valid JSON ({reason[:120]}); {HOW}")
    if not isinstance(value, dict):
        return Action(problem=f"the action is no JSON object; {HOW}")
    if set(value) == {"answer"}:
        return _answer(value["answer"])
    if set(value) == {"name", "arguments"}:
        if not isinstance(value["name"], str) or not isinstance(value["arguments"], dict):
            return Action(problem=f"name must be text and arguments an object; {HOW}")
        return Action(name=value["name"][:200], arguments=value["arguments"])
    keys = ", ".join(repr(key[:30]) for key in list(value)[:6])
    return Action(problem=f"the action has the keys {keys or 'none'}; {HOW}")


def _answer(value: Any) -> Action:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return Action(problem=f"an answer is text or a number; {HOW}")
    answer = str(value).strip()
    if not answer or len(answer) > MAX_ANSWER:
        return Action(problem=f"an answer has 1 to {MAX_ANSWER} characters; {HOW}")
    return Action(answer=printable(answer))


def printable(text: str) -> str:
    """Return text that JSON, files and a terminal can hold: lone surrogates become U+FFFD."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
