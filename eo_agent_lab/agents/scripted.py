"""The scripted agent: plays a list of actions, for tests and for teaching."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from eo_agent_lab.agents.protocol import EpisodeView
from eo_agent_lab.tasks.task import Task


class Scripted:
    """A policy that says what it was told to say, then gives up.

    Args:
        actions: Action texts, in order.
    """

    name = "scripted"

    def __init__(self, actions: Sequence[str]) -> None:
        """Keep the script."""
        self._actions = list(actions)
        self._turn = 0

    def start(self, task: Task | None, view: EpisodeView, rng: np.random.Generator) -> None:
        """Go back to the first line."""
        self._turn = 0

    def act(self, observation: EpisodeView) -> str:
        """Return the next line of the script."""
        self._turn += 1
        if self._turn > len(self._actions):
            return json.dumps({"answer": None})
        return self._actions[self._turn - 1]


def make(actions: Sequence[str] = ()) -> Scripted:
    """Return a scripted policy."""
    return Scripted(actions)
