"""What a run is: its settings, and the fingerprints of what it is played on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from eo_agent_lab import __version__
from eo_agent_lab.env.episode import MAX_CALLS
from eo_agent_lab.env.sources import source_digest
from eo_agent_lab.errors import RunError
from eo_agent_lab.tasks.task import Task

SETTINGS = ("verified-simple-skill",)
"""Operation modes that can be played: response, prompt and tool set (EO-Gym, appendix A.3)."""

CODE = ("agents", "env", "lake", "models", "perception", "runs", "science", "tasks", "tools")
"""Packages whose code a rollout depends on."""

FREE = ("run_dir", "lake", "tasks", "train_tasks", "processes")
"""Settings that change no result; what the paths lead to is held by fingerprints instead."""

Count = Annotated[int, Field(ge=1)]


class RunConfig(BaseModel):
    """Settings of one run.

    Attributes:
        run_dir: Folder of the log.
        lake: The lake's folder.
        tasks: Task file; its order is the order of play.
        agent: A name that :func:`eo_agent_lab.agents.make` knows.
        agent_options: Its options, JSON values.
        train_tasks: Where ``blind`` learns its answers; ``train.jsonl`` beside ``tasks`` when None.
        setting: One of :data:`SETTINGS`.
        samples: Rollouts of each task.
        seed: With task id and sample it seeds a rollout.
        processes: Worker processes; with 1 the rollouts are played in the caller's own.
        limit: Only the first so many tasks, None for all.
        max_calls: Budget of calls of one rollout.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_dir: Path
    lake: Path
    tasks: Path
    agent: str
    agent_options: dict[str, Any] = Field(default_factory=dict)
    train_tasks: Path | None = None
    setting: str = SETTINGS[0]
    samples: Count = 3
    seed: int = Field(default=0, ge=0)
    processes: Count = 2
    limit: Count | None = None
    max_calls: Count = MAX_CALLS

    @field_validator("setting")
    @classmethod
    def _known_setting(cls, value: str) -> str:
        if value not in SETTINGS:
            raise ValueError(f"no setting {value!r}; there is {', '.join(SETTINGS)}")
        return value


def parse_config(values: Mapping[str, Any], run_dir: Path) -> RunConfig:
    """Return the settings that a log's header holds, for a run that now lies in ``run_dir``.

    Raises:
        RunError: They are not settings of a run.
    """
    known = {key: value for key, value in values.items() if key in RunConfig.model_fields}
    try:
        return RunConfig.model_validate(known | {"run_dir": str(run_dir)})
    except ValidationError as error:
        raise RunError(
            f"the settings of the run in {run_dir} cannot be read ({error.errors()[0]['msg']}); "
            "delete the folder and play again"
        ) from error


def code_version() -> str:
    """Return the package's version with a digest of the code that rollouts depend on."""
    return f"{__version__}+{source_digest(CODE)}"


def fingerprint_tasks(tasks: Iterable[Task], *, with_answers: bool = False) -> str:
    """Return sixteen hexadecimal digits of tasks; gold answers count only where agents see them."""
    hidden = set() if with_answers else {"gold_answer", "evidence"}
    digest = hashlib.sha256()
    for task in tasks:
        digest.update(task.model_dump_json(exclude=hidden).encode() + b"\n")
    return digest.hexdigest()[:16]


def refuse_other(stored: Mapping[str, Any], now: Mapping[str, Any], run_dir: Path) -> None:
    """Compare what decides results.

    Raises:
        RunError: Something differs; the message names it.
    """
    keys = sorted((set(stored) | set(now)) - set(FREE))
    other = [key for key in keys if stored.get(key) != now.get(key)]
    if other:
        listed = ", ".join(f"{k} ({stored.get(k)!r} there, {now.get(k)!r} here)" for k in other)
        raise RunError(
            f"{run_dir} holds a run that differs in {listed}; give another run_dir, or delete that "
            "folder to play anew"
        )


def rollout_seed(seed: int, task_id: str, sample: int) -> int:
    """Return the seed of one rollout, 63 bits, whatever is played before or beside it."""
    text = f"{seed}\x1f{task_id}\x1f{sample}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
