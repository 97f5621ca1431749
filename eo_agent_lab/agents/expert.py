"""The expert: carries out a task's reference calls and concludes from what they give.

It solves and does not copy: the gold answer is never read, so it works with answers withheld.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from eo_agent_lab.agents.protocol import EpisodeView
from eo_agent_lab.errors import TaskError
from eo_agent_lab.tasks.question_types import conclude
from eo_agent_lab.tasks.references import resolve
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tasks.trajectory import CallRecord


class Expert:
    """A policy that knows the reference calls of its task."""

    name = "expert"

    def __init__(self) -> None:
        """Wait for a task."""
        self._task: Task | None = None
        self._calls: list[CallRecord] = []
        self._pending: tuple[str, dict[str, Any]] | None = None

    def start(self, task: Task | None, view: EpisodeView, rng: np.random.Generator) -> None:
        """Take the reference of a task, and drop its gold answer unseen.

        Raises:
            TaskError: There is no task, or it has no reference.
        """
        if task is None or not task.reference:
            raise TaskError("the expert needs a task with reference calls; use another agent")
        self._task = task.model_copy(update={"gold_answer": None, "evidence": {}})
        self._calls = []
        self._pending = None

    def act(self, observation: EpisodeView) -> str:
        """Return the next reference call with its references filled in, or the conclusion.

        Raises:
            TaskError: A call failed or its data lack what the next one needs.
        """
        if self._task is None:
            raise TaskError("the expert was not started; call start with a task first")
        if self._pending is not None:
            self._record(self._pending, observation)
        if len(self._calls) == len(self._task.reference):
            return json.dumps({"answer": conclude(self._task, self._calls)})
        call = self._task.reference[len(self._calls)]
        arguments = resolve(call.arguments, [done.data for done in self._calls])
        self._pending = (call.name, arguments)
        return json.dumps({"name": call.name, "arguments": arguments})

    def _record(self, pending: tuple[str, dict[str, Any]], observation: EpisodeView) -> None:
        name, arguments = pending
        if observation.is_error:
            raise TaskError(f"reference call {name} failed: {observation.text[:200]}")
        self._calls.append(
            CallRecord(
                name=name,
                arguments=arguments,
                observation=observation.text,
                data=observation.data,
                is_error=False,
            )
        )
