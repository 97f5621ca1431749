"""What an agent is to the rest of the house."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from eo_agent_lab.env.episode import EpisodeView
from eo_agent_lab.tasks.task import Task

__all__ = ["EpisodeView", "Policy"]


class Policy(Protocol):
    """Chooses actions. A policy plays one episode at a time and may be used for many."""

    name: str

    def start(self, task: Task | None, view: EpisodeView, rng: np.random.Generator) -> None:
        """Begin an episode.

        Args:
            task: The task for ``expert``, None for every other agent.
            view: What the agent sees first.
            rng: The only source of randomness the policy may use.
        """
        ...

    def act(self, observation: EpisodeView) -> str:
        """Return the next action as JSON text."""
        ...
