"""The blind baseline: answers from the question's wording alone, without a look at any image."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from eo_agent_lab.agents.protocol import EpisodeView
from eo_agent_lab.agents.reading import read_question
from eo_agent_lab.errors import ConfigError
from eo_agent_lab.tasks.task import Task


class Blind:
    """A policy that gives the most frequent training answer to a kind of question, and no call.

    Args:
        table: Kind of question, as :func:`~eo_agent_lab.agents.reading.read_question` tells it, to
            answer.
    """

    name = "blind"

    def __init__(self, table: Mapping[str, str]) -> None:
        """Take the table."""
        self.table = dict(table)
        self._answer = ""

    def start(self, task: Task | None, view: EpisodeView, rng: np.random.Generator) -> None:
        """Read the kind of question off its wording; a kind not trained on gets no answer."""
        kind = read_question(view.question).kind
        self._answer = self.table.get(kind, "unknown")

    def act(self, observation: EpisodeView) -> str:
        """Return the answer."""
        return json.dumps({"answer": self._answer})


def majority_answers(tasks: Iterable[Task]) -> dict[str, str]:
    """Return the most frequent gold answer of training tasks, by the kind of their wording.

    A tie goes to the answer that stands first among the question's choices.

    Raises:
        ConfigError: No training task has a gold answer.
    """
    counts: dict[str, Counter[str]] = {}
    order: dict[str, list[str]] = {}
    for task in tasks:
        if task.split == "train" and task.gold_answer is not None:
            kind = read_question(task.question).kind
            counts.setdefault(kind, Counter())[task.gold_answer] += 1
            order.setdefault(kind, task.choices)
    if not counts:
        raise ConfigError("no training task with an answer to learn from; pass the train split")
    return {
        kind: min(found, key=lambda answer: (-found[answer], _place(answer, order[kind])))
        for kind, found in counts.items()
    }


def _place(answer: str, choices: list[str]) -> tuple[int, str]:
    return (choices.index(answer) if answer in choices else len(choices), answer)
