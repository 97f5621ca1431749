"""From the rollouts of one run to rows of a result table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eo_agent_lab.errors import RunError, TaskError
from eo_agent_lab.evaluate.bootstrap import CONFIDENCE, RESAMPLES, FloatArray, bootstrap_means
from eo_agent_lab.evaluate.metrics import (
    METRICS,
    Aggregate,
    attempt_of,
    pass_at_k,
    pass_key,
    question_metrics,
)
from eo_agent_lab.tasks.judging import is_correct
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tasks.trajectory import Trajectory

ALL_TYPES = "all"
"""Stands in ``question_type`` of a row over every question."""

_NAMED = 5


class Measured(NamedTuple):
    """Every question's metrics, before they are averaged.

    Attributes:
        facts: ``kind``, ``model``, ``setting``, ``temperature``, ``seed`` and ``samples``.
        question_types: One a question.
        keys: Names of the columns.
        values: Shape (questions, columns); NaN where a metric is not defined.
        crashed: For each question, how many of its rollouts crashed; they count as wrong.
    """

    facts: dict[str, Any]
    question_types: list[str]
    keys: list[str]
    values: FloatArray
    crashed: list[int]


def score(
    tasks: Sequence[Task],
    trajectories: Sequence[Trajectory],
    *,
    seed: int,
    deterministic: bool,
    count_zero_call: bool = False,
    aggregate: Aggregate = "mean",
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> dict[str, Any]:
    """Score one agent in one setting; arguments and errors as :func:`measure`.

    Returns:
        ``kind``, ``model``, ``setting``, ``n`` (questions), ``temperature``, ``seed``, ``samples``,
        then every metric with ``_low`` and ``_high``; None where one is not defined.
    """
    measured = measure(
        tasks,
        trajectories,
        deterministic=deterministic,
        count_zero_call=count_zero_call,
        aggregate=aggregate,
    )
    return summarise(measured, seed=seed, resamples=resamples, confidence=confidence)[0]


def measure(
    tasks: Sequence[Task],
    trajectories: Sequence[Trajectory],
    *,
    deterministic: bool,
    count_zero_call: bool = False,
    aggregate: Aggregate = "mean",
    kind: str = "measured",
    samples: int | None = None,
    run_seed: int | None = None,
) -> Measured:
    """Judge every rollout and compute every question's metrics.

    Args:
        tasks: What was to be played, with gold answers.
        trajectories: One rollout for every task and sample, in any order.
        deterministic: The agent gives the same answer in every sample; it then has no Pass@k
            beyond 1.
        count_zero_call: Let an answer without any call count; see
            :func:`~eo_agent_lab.evaluate.metrics.attempt_of`.
        aggregate: How attempts enter the tool-call ratio.
        kind: ``measured``, or ``replayed`` for recordings.
        samples: How many were to be drawn for each task; as many as the most there are when left
            out.
        run_seed: The run's seed, from which those of its rollouts come, for the column ``seed``;
            that of the rollouts when left out and they share one.

    Raises:
        RunError: Rollouts are missing, doubled or of unknown tasks, several agents are mixed, or a
            deterministic agent has a temperature or answers that differ.
        TaskError: A task stands twice, there is none, or a gold answer was withheld.
    """
    attempts = _by_task(tasks, trajectories, samples)
    samples = len(attempts[tasks[0].task_id])
    seeds = {rollout.seed for rollout in trajectories}
    only = seeds.pop() if len(seeds) == 1 else None
    facts = {
        "kind": kind,
        **_common(trajectories),
        "seed": only if run_seed is None else run_seed,
        "samples": samples,
    }
    if deterministic:
        _check_deterministic(facts, attempts)
    passes = [pass_key(k) for k in range(1, samples + 1)]
    keys = [*passes, *METRICS]
    rows: list[list[float]] = []
    for task in tasks:
        tried = [
            attempt_of(
                rollout, right=is_correct(task, rollout.answer), count_zero_call=count_zero_call
            )
            for rollout in attempts[task.task_id]
        ]
        right = sum(attempt.correct for attempt in tried)
        row = [
            math.nan if deterministic and k > 1 else pass_at_k(samples, right, k)
            for k in range(1, samples + 1)
        ]
        others = question_metrics(tried, [c.name for c in task.reference], aggregate=aggregate)
        rows.append(row + [others[key] for key in METRICS])
    crashed = [sum(r.ending == "crashed" for r in attempts[task.task_id]) for task in tasks]
    types = [task.question_type for task in tasks]
    return Measured(facts, types, keys, np.array(rows, dtype=np.float64), crashed)


def summarise(
    measured: Measured,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> list[dict[str, Any]]:
    """Average metrics over all questions, then over those of each question type.

    Args:
        measured: From :func:`measure`.
        seed: Of the bootstrap; each row draws from a stream of its own, so that a new question
            type changes no other row.
        resamples: Bootstrap resamples.
        confidence: Level of the intervals.

    Returns:
        One row with ``question_type`` :data:`ALL_TYPES`, then one a type in alphabetical order.
    """
    rows: list[dict[str, Any]] = []
    for name in (ALL_TYPES, *sorted(set(measured.question_types))):
        chosen = [name in (ALL_TYPES, kind) for kind in measured.question_types]
        values = measured.values[chosen]
        rng = np.random.default_rng([seed, *name.encode()])
        found = bootstrap_means(values, rng, resamples=resamples, confidence=confidence)
        facts = measured.facts
        row: dict[str, Any] = {key: facts[key] for key in ("kind", "model", "setting")}
        row |= {"question_type": name, "n": len(values)}
        row |= {key: facts[key] for key in ("temperature", "seed", "samples")}
        row["crashed"] = sum(c for c, keep in zip(measured.crashed, chosen, strict=True) if keep)
        for column, key in enumerate(measured.keys):
            row[key] = _number(found.mean[column])
            row[f"{key}_low"] = _number(found.low[column])
            row[f"{key}_high"] = _number(found.high[column])
        rows.append(row)
    return rows


def _number(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)


def _by_task(
    tasks: Sequence[Task], trajectories: Sequence[Trajectory], samples: int | None
) -> dict[str, list[Trajectory]]:
    """Return every task's rollouts in sample order, having checked that they are all there."""
    twice = [name for name, count in Counter(t.task_id for t in tasks).items() if count > 1]
    if twice or not tasks:
        what = f"tasks {_some(twice)} stand twice" if twice else "there is no task"
        raise TaskError(f"{what}; give each task once")
    if not trajectories:
        raise RunError("there is no rollout to score; finish the run with `eolab runs resume`")
    found = Counter((t.task_id, t.sample) for t in trajectories)
    doubled = [key for key, count in found.items() if count > 1]
    if doubled:
        raise RunError(f"rollouts (task, sample) {_some(doubled)} stand twice; drop the copies")
    strange = {t.task_id for t in trajectories} - {t.task_id for t in tasks}
    if strange:
        raise RunError(
            f"rollouts of tasks {_some(strange)} have no such task; score against the task file "
            "that was played"
        )
    drawn = max(samples or 0, 1 + max(t.sample for t in trajectories))
    wanted = {(task.task_id, sample) for task in tasks for sample in range(drawn)}
    missing = wanted - set(found)
    if missing:
        raise RunError(
            f"{len(missing)} of {len(wanted)} rollouts are missing: (task, sample) "
            f"{_some(missing)}; finish the run with `eolab runs resume`"
        )
    ordered = sorted(trajectories, key=lambda rollout: rollout.sample)
    attempts: dict[str, list[Trajectory]] = {task.task_id: [] for task in tasks}
    for rollout in ordered:
        attempts[rollout.task_id].append(rollout)
    return attempts


def _some(items: Any) -> str:
    ordered = sorted(items)
    more = f" and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
    return ", ".join(map(str, ordered[:_NAMED])) + more


def _common(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """Return what all rollouts of a row must share."""
    facts: dict[str, Any] = {}
    names = {"model": "agent", "setting": "setting", "temperature": "temperature"}
    for column, field in names.items():
        values = {getattr(rollout, field) for rollout in trajectories}
        if len(values) > 1:
            listed = ", ".join(sorted(map(str, values))[:_NAMED])
            raise RunError(f"rollouts have several values of {field} ({listed}); score each alone")
        facts[column] = values.pop()
    return facts


def _check_deterministic(facts: dict[str, Any], attempts: dict[str, list[Trajectory]]) -> None:
    if facts["temperature"] is not None:
        raise RunError(
            f"{facts['model']} samples at temperature {facts['temperature']}, so it is not "
            "deterministic; score it without that flag"
        )
    for task_id, rollouts in attempts.items():
        answers = {rollout.answer for rollout in rollouts}
        if len(answers) > 1:
            raise RunError(
                f"{facts['model']} is flagged deterministic but answered task {task_id} with "
                f"{', '.join(sorted(map(repr, answers)))}; score it without that flag"
            )
