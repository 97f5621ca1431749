"""Judging an answer against the gold answer, deterministically."""

from __future__ import annotations

import re
from typing import Any

from eo_agent_lab.errors import TaskError
from eo_agent_lab.tasks import answers
from eo_agent_lab.tasks.task import Task


def is_correct(task: Task, answer: Any) -> bool:
    """Tell whether an answer is right.

    Case, punctuation and synonyms do not count ("rose" is "increased", "upper left" is "above
    left", "3 planes" and "three" are 3). An answer that negates, hedges, names several choices, or
    gives a unit where a count is asked is wrong. Numbers and one-element lists are read as text.

    Raises:
        TaskError: The task's gold answer was withheld, so that nothing can be judged.
    """
    if task.gold_answer is None:
        raise TaskError(
            f"task {task.task_id} has no gold answer; judge with the original task file"
        )
    gold = read_answer(task, task.gold_answer)
    if gold is None:
        raise TaskError(f"the gold answer {task.gold_answer!r} of task {task.task_id} is no choice")
    return read_answer(task, answer) == gold


def read_answer(task: Task, answer: Any) -> str | None:
    """Return the choice that an answer commits to, or None when it commits to none."""
    text = answers.plain(answer)
    if text is None:
        return None
    if task.question_type == "multispectral_temporal":
        return answers.read_trend(text)
    if task.question_type == "area_dominance":
        return answers.read_cover(text)
    if task.question_type == "spatial_relation":
        subject, origin = _objects(task)
        north_up = task.evidence.get("north_up") is True
        return answers.read_direction(text, subject=subject, origin=origin, north_up=north_up)
    if task.question_type == "counting":
        nouns = set(re.findall(r"[a-z]+", task.question.lower())) | {"objects", "such", "object"}
        return answers.read_count(text, nouns=lambda word: word in nouns or f"{word}s" in nouns)
    return _choice(text, task.choices)


def _objects(task: Task) -> tuple[str, str]:
    """Return what a spatial question asks the place of, and what it is seen from."""
    prompts = [str(call.arguments.get("prompt", "")).lower() for call in task.reference]
    named = [prompt for prompt in prompts if prompt]
    return (named[0], named[1]) if len(named) >= 2 else ("", "")


def _choice(text: str, choices: list[str]) -> str | None:
    """Return the choice that a text is, by letters and digits alone; without choices the text."""
    plain = " ".join(re.findall(r"\w+", answers.committed(text)))
    if not choices:
        return plain or None
    by_words = {" ".join(re.findall(r"\w+", choice.lower())): choice for choice in choices}
    return by_words.get(plain)
