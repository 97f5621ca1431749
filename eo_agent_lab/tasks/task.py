"""The Task contract: one question, what it starts from, and how it can be solved."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from eo_agent_lab.errors import TaskError
from eo_agent_lab.paths import write_atomic

FORMAT = "eo_agent_lab.tasks"
VERSION = 1


class ReferenceCall(BaseModel):
    """One call of the reference solution."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    arguments: dict[str, Any]


class Task(BaseModel):
    """One question. ``gold_answer`` and ``reference`` never reach an observation or ``info``.

    Attributes:
        task_id: Stable id.
        question: What the agent is asked, with the form of answer it should give.
        images: Handles of the start images (scene ids).
        data_source: ``multispectral`` or ``vhr`` here; names a skill toolset.
        question_type: A key of the question-type table.
        eo_task: One of EO-Gym's six tasks.
        choices: The answer space that the question itself states.
        gold_answer: The right answer, or None when it was withheld: then nothing is judged.
        reference: Calls that gather the evidence.
        tools: Names of the tools offered (the skill subset).
        split: ``train`` or ``test``; no location is in both.
        evidence: How the gold answer was computed, for people.
    """

    model_config = ConfigDict(extra="forbid")

    task_id: str
    question: str
    images: list[str]
    data_source: str
    question_type: str
    eo_task: str
    choices: list[str]
    gold_answer: str | None
    reference: list[ReferenceCall]
    tools: list[str]
    split: Literal["train", "test"]
    evidence: dict[str, Any] = Field(default_factory=dict)


def write_tasks(path: Path, tasks: Iterable[Task]) -> None:
    """Write tasks as JSON lines, the first of which names the format and its version."""
    lines = [json.dumps({"format": FORMAT, "version": VERSION})]
    lines += [task.model_dump_json() for task in tasks]
    write_atomic(path, "\n".join(lines) + "\n")


def read_tasks(path: Path) -> list[Task]:
    """Read tasks written by :func:`write_tasks`.

    Raises:
        TaskError: The file is absent, is not of this format, or a row is malformed.
    """
    return list(_iterate(path))


def _iterate(path: Path) -> Iterator[Task]:
    if not path.is_file():
        raise TaskError(f"no task file at {path}; make one with `dvc repro tasks`")
    with path.open(encoding="utf-8") as handle:
        try:
            header = json.loads(handle.readline() or "null")
        except json.JSONDecodeError:
            header = None
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise TaskError(f"{path} is not a {FORMAT} file: its first line must name the format")
        if header.get("version") != VERSION:
            raise TaskError(
                f"{path} has version {header.get('version')}; this code reads {VERSION}"
            )
        for number, line in enumerate(handle, start=2):
            try:
                yield Task.model_validate_json(line)
            except ValidationError as error:
                raise TaskError(f"{path}, line {number} is not a task: {error}") from error
