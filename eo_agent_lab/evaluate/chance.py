"""What a uniform guess among the choices that a question states would score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eo_agent_lab.errors import TaskError
from eo_agent_lab.evaluate.metrics import pass_key
from eo_agent_lab.tasks.task import Task

CHANCE = "chance"
"""Stands in the column ``model``."""


def chance_pass_at_k(tasks: Sequence[Task], k: int) -> float:
    """Return the expected Pass@k of ``k`` independent uniform guesses a question.

    The mean over questions of ``1 - (1 - 1/c)^k``, with ``c`` choices.

    Raises:
        TaskError: There is no task, one states no choices, or ``k`` is not positive.
    """
    if not tasks or k < 1:
        raise TaskError(f"chance of {len(tasks)} tasks with {k} guesses is not defined; give both")
    bare = next((task.task_id for task in tasks if not task.choices), None)
    if bare is not None:
        raise TaskError(f"task {bare} states no choices, so chance is not defined; leave it out")
    return sum(1 - (1 - 1 / len(set(task.choices))) ** k for task in tasks) / len(tasks)


def chance_row(tasks: Sequence[Task], samples: int) -> dict[str, Any]:
    """Return the row of a result table for chance: exact, so without an interval.

    Raises:
        TaskError: As :func:`chance_pass_at_k`.
    """
    row: dict[str, Any] = {
        "kind": "measured",
        "model": CHANCE,
        "setting": "uniform-guess",
        "n": len(tasks),
        "temperature": None,
        "seed": None,
        "samples": samples,
    }
    for k in range(1, samples + 1):
        key = pass_key(k)
        row |= {key: chance_pass_at_k(tasks, k), f"{key}_low": None, f"{key}_high": None}
    return row
