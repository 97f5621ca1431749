"""The file of scores: every run's rows, and the level of chance beside them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from eo_agent_lab.errors import RunError
from eo_agent_lab.evaluate.bootstrap import CONFIDENCE, RESAMPLES
from eo_agent_lab.evaluate.chance import chance_row
from eo_agent_lab.evaluate.metrics import Aggregate
from eo_agent_lab.evaluate.score import ALL_TYPES, measure, summarise
from eo_agent_lab.paths import write_atomic
from eo_agent_lab.runs.log import LOG_FILE, read_log, read_trajectories
from eo_agent_lab.tasks.task import Task, read_tasks

FORMAT: Literal["eo_agent_lab.scores"] = "eo_agent_lab.scores"
VERSION: Literal[1] = 1

DETERMINISTIC = frozenset({"blind", "heuristic", "expert"})
"""Agents whose samples are the same by construction; the scores check it."""

WITHOUT_TOOLS = frozenset({"blind"})
"""Agents that never call a tool; elsewhere an answer without a call is a failure."""


class Scores(BaseModel):
    """What one evaluation found.

    Attributes:
        tool_call_ratio: How attempts enter the ratio.
        question_types: Questions of each type in the task file.
        rows: Per agent and setting a row over all questions, then one a question type.
        chance: The same for a uniform guess among the stated choices.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["eo_agent_lab.scores"] = FORMAT
    version: Literal[1] = VERSION
    seed: int
    resamples: int
    confidence: float
    tool_call_ratio: Aggregate
    question_types: dict[str, int]
    rows: list[dict[str, Any]]
    chance: list[dict[str, Any]]

    def overall(self) -> list[dict[str, Any]]:
        """Return the rows over all questions."""
        return [row for row in self.rows if row["question_type"] == ALL_TYPES]


def score_runs(
    tasks_path: Path,
    run_dirs: Sequence[Path],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    aggregate: Aggregate = "mean",
    deterministic: Collection[str] = DETERMINISTIC,
    without_tools: Collection[str] = WITHOUT_TOOLS,
) -> Scores:
    """Score runs of one task file.

    Args:
        tasks_path: Task file with gold answers, or a folder with ``test.jsonl`` in it.
        run_dirs: Folders with ``trajectories.jsonl``; each run may have played its first
            ``limit`` tasks, as its header says.
        seed: Of the bootstrap.
        resamples: Bootstrap resamples.
        confidence: Level of the intervals.
        aggregate: How attempts enter the tool-call ratio.
        deterministic: Names of agents whose samples are all alike.
        without_tools: Names of agents whose answers count without a call.

    Raises:
        RunError: A run is unfinished or damaged, or two runs have the same agent and setting.
        TaskError: The task file cannot be used.
    """
    if not run_dirs:
        raise RunError("there is no run to score; name at least one run folder")
    tasks = read_tasks(tasks_path / "test.jsonl" if tasks_path.is_dir() else tasks_path)
    rows: list[dict[str, Any]] = []
    seen: dict[tuple[str, str], Path] = {}
    most = 1
    for run_dir in run_dirs:
        found = _score_run(
            run_dir,
            tasks,
            deterministic=deterministic,
            without_tools=without_tools,
            aggregate=aggregate,
            seed=seed,
            resamples=resamples,
            confidence=confidence,
        )
        key = (found[0]["model"], found[0]["setting"])
        if key in seen:
            raise RunError(
                f"{run_dir} and {seen[key]} are both {key[0]} in {key[1]}; score one at a time"
            )
        seen[key] = run_dir
        most = max(most, found[0]["samples"])
        rows += found
    types = dict(sorted(Counter(task.question_type for task in tasks).items()))
    return Scores(
        seed=seed,
        resamples=resamples,
        confidence=confidence,
        tool_call_ratio=aggregate,
        question_types=types,
        rows=sorted(rows, key=lambda row: (row["model"], row["setting"])),
        chance=_chance(tasks, types, most),
    )


def evaluate_runs(tasks_path: Path, run_dirs: Sequence[Path], out: Path, **options: Any) -> Scores:
    """Score runs and write ``out``; options and errors as :func:`score_runs`."""
    scores = score_runs(tasks_path, run_dirs, **options)
    write_atomic(out, json.dumps(scores.model_dump(), indent=1, allow_nan=False) + "\n")
    return scores


def read_scores(path: Path) -> Scores:
    """Read a file that :func:`evaluate_runs` wrote.

    Raises:
        RunError: It is absent, or is not of this format and version.
    """
    if not path.is_file():
        raise RunError(f"no scores at {path}; make them with `dvc repro evaluate`")
    try:
        return Scores.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise RunError(
            f"{path} is not a {FORMAT} file of version {VERSION}: {error.errors()[0]['msg']}; "
            "score the runs again"
        ) from error


def find_runs(root: Path) -> list[Path]:
    """Return the folders of runs below a folder, or the folder itself when it is one; sorted.

    Raises:
        RunError: There is none.
    """
    found = sorted(path.parent for path in root.rglob(LOG_FILE))
    if not found:
        raise RunError(f"no run in {root}; play one with `eolab run`")
    return found


def find_agent_run(root: Path, agent: str) -> Path:
    """Return the first folder of a run, by name, that an agent played.

    Raises:
        RunError: There is no run, or none of this agent.
    """
    for run_dir in find_runs(root):
        if any(rollout.agent == agent for rollout in read_trajectories(run_dir)):
            return run_dir
    raise RunError(f"no run of {agent} in {root}; play it with `eolab run agent={agent}`")


def _score_run(
    run_dir: Path,
    tasks: Sequence[Task],
    *,
    deterministic: Collection[str],
    without_tools: Collection[str],
    aggregate: Aggregate,
    seed: int,
    resamples: int,
    confidence: float,
) -> list[dict[str, Any]]:
    trajectories = read_trajectories(run_dir)
    agent = trajectories[0].agent if trajectories else ""
    config = read_log(run_dir).config
    measured = measure(
        tasks[: config.get("limit")],
        trajectories,
        samples=config.get("samples"),
        run_seed=config.get("seed"),
        deterministic=agent in deterministic,
        count_zero_call=agent in without_tools,
        aggregate=aggregate,
    )
    return summarise(measured, seed=seed, resamples=resamples, confidence=confidence)


def _chance(tasks: Sequence[Task], types: dict[str, int], samples: int) -> list[dict[str, Any]]:
    rows = [{"question_type": ALL_TYPES} | chance_row(tasks, samples)]
    for name in types:
        group = [task for task in tasks if task.question_type == name]
        rows.append({"question_type": name} | chance_row(group, samples))
    return rows
