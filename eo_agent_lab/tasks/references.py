"""References from one call of a solution to what an earlier call gave.

``"$1.handle"`` stands for the field ``handle`` of the data of the first call; a path may go through
lists, ``"$1.0.handle"`` or ``"$2.-1"`` counting from the end. The value keeps its type. Inside a
longer text, ``"{$1.count} + {$2.count}"``, numbers and strings are written out in place.
"""

from __future__ import annotations

import re
from typing import Any

from eo_agent_lab.errors import TaskError

_WHOLE = re.compile(r"\$(\d+)((?:\.[\w-]+)*)")
_INSIDE = re.compile(r"\{\$(\d+)((?:\.[\w-]+)*)\}")


def resolve(arguments: dict[str, Any], data: list[Any]) -> dict[str, Any]:
    """Return arguments with every reference replaced by what it stands for.

    Args:
        arguments: A call's arguments; lists and objects are searched to any depth.
        data: The data of the calls made so far, first call first.

    Raises:
        TaskError: A reference points to a call not yet made, or to nothing in its data.
    """
    return {key: _value(value, data) for key, value in arguments.items()}


def references_in(arguments: dict[str, Any]) -> set[int]:
    """Return the 1-based numbers of the calls that arguments refer to."""
    found: set[int] = set()
    _collect(arguments, found)
    return found


def _collect(value: Any, found: set[int]) -> None:
    if isinstance(value, str):
        whole = _WHOLE.fullmatch(value)
        found.update(int(m[1]) for m in ([whole] if whole else _INSIDE.finditer(value)))
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _collect(item, found)


def _value(value: Any, data: list[Any]) -> Any:
    if isinstance(value, dict):
        return {key: _value(item, data) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item, data) for item in value]
    if not isinstance(value, str):
        return value
    whole = _WHOLE.fullmatch(value)
    if whole:
        return _look_up(whole, data)
    return _INSIDE.sub(lambda match: _written(_look_up(match, data), match[0]), value)


def _written(found: Any, reference: str) -> str:
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        raise TaskError(
            f"{reference} is {type(found).__name__}; only numbers and text fit in a text"
        )
    return str(found)


def _look_up(match: re.Match[str], data: list[Any]) -> Any:
    number = int(match[1])
    if not 1 <= number <= len(data):
        raise TaskError(
            f"{match[0]} means call {number}, but {len(data)} were made; refer to an earlier one"
        )
    found = data[number - 1]
    for part in match[2].split(".")[1:]:
        try:
            found = found[int(part)] if isinstance(found, list) else found[part]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise TaskError(
                f"{match[0]} points to nothing: call {number} gave no {part!r}"
            ) from error
    return found
