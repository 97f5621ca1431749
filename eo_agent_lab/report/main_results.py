"""The floats of the main results: EO-Gym's Table 2 and Figure 3, question types, Pass@k."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eo_agent_lab import style
from eo_agent_lab.errors import RunError
from eo_agent_lab.evaluate.metrics import METRICS, metric_of, pass_key
from eo_agent_lab.evaluate.score import ALL_TYPES
from eo_agent_lab.evaluate.scores import Scores
from eo_agent_lab.report import tables
from eo_agent_lab.report.figures import pass_at_k_figure, trajectory_figure
from eo_agent_lab.report.floats import get_float
from eo_agent_lab.report.papers import join_published, load_published
from eo_agent_lab.tasks.judging import is_correct
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tasks.trajectory import Trajectory

EO_GYM_SAMPLES = 3
"""EO-Gym draws three samples a question in its main results."""

LONGEST_EXAMPLE = 8
"""Calls that still fit one figure."""


def data_note(sources: Sequence[str]) -> str:
    """Say in one sentence what scenes measured numbers come from."""
    if "simulated" in sources:
        rest = [source for source in sources if source != "simulated"]
        also = f", and on real ones ({', '.join(rest)})" if rest else ""
        return f"Measured on simulated scenes{also}."
    return f"Measured on the scenes of {', '.join(sources)}."


def write_main_table(scores: Scores, folder: Path, sources: Sequence[str]) -> list[Path]:
    """Write ``eo_gym_t2``: the agents played here, then the paper's models as published.

    Args:
        scores: From :func:`~eo_agent_lab.evaluate.scores.read_scores`.
        folder: Where the table goes.
        sources: Collections of the scenes, for the notes.
    """
    measured = scores.overall()
    most = max([EO_GYM_SAMPLES, *(row["samples"] for row in measured)])
    keys = [*(pass_key(k) for k in range(1, most + 1)), *METRICS]
    columns = [*tables.LEADING]
    for key in keys:
        metric = metric_of(key)
        columns.append(tables.Column(key, metric.title, metric.decimals, interval=True))
    columns += [
        tables.Column("samples", "Samples"),
        tables.Column("temperature", "Temp."),
        tables.Column("seed", "Seed"),
        tables.Column("crashed", "Crashed"),
    ]
    published = [load_published(name) for name in ("eo_gym_t2", "eo_gym_t4", "eo_gym_t24")]
    rows = measured + join_published(*published)
    notes = [
        f"{data_note(sources)} {_interval_note(scores)}",
        "Tool-call ratio: calls of consumed attempts, "
        f"{'averaged' if scores.tool_call_ratio == 'mean' else 'summed'} over attempts, by "
        "reference calls. A rollout without a call is a failure, but for the blind agent, which "
        "has no tools. Crashed rollouts count as wrong.",
        f"{tables.UNDEFINED}: not defined or not stated. A deterministic agent has no Pass@k "
        "beyond 1; its interval covers the choice of questions only.",
        "Published rows: EO-Gym, Tables 2, 4 (zero-call rate) and 24 (exact, in-order), other "
        "questions on other images: not to be compared number by number.",
    ]
    entry = get_float("eo_gym_t2")
    text = tables.Text(f"EO-Gym, {entry.number}. {entry.title}", notes)
    return tables.write_table(folder / entry.id, rows, columns, text)


def write_question_types(scores: Scores, folder: Path, sources: Sequence[str]) -> list[Path]:
    """Write ``lab_question_types``: Pass@1 of every agent and of chance, a column a type."""
    types = list(scores.question_types)
    key = pass_key(1)
    columns = [*tables.LEADING, tables.Column(key, "Pass@1, all", 2, interval=True)]
    columns += [
        tables.Column(f"{key}_{name}", name.replace("_", " "), 2, interval=True) for name in types
    ]
    columns += [tables.Column(f"n_{name}", f"n, {name.replace('_', ' ')}") for name in types]
    rows = [_wide(row, scores.rows, types) for row in scores.overall()]
    chance = next(row for row in scores.chance if row["question_type"] == ALL_TYPES)
    rows.append(_wide(chance, scores.chance, types))
    notes = [
        f"{data_note(sources)} {_interval_note(scores)}",
        "Blind: reads the question only and gives the majority answer of its type in the train "
        "split. Chance: a uniform guess among the choices that the question states, exact and "
        "therefore without an interval.",
    ]
    entry = get_float("lab_question_types")
    return tables.write_table(folder / entry.id, rows, columns, tables.Text(entry.title, notes))


def draw_pass_at_k(scores: Scores, folder: Path, sources: Sequence[str]) -> list[Path]:
    """Draw ``lab_pass_at_k``."""
    rows = tables.sort_rows(scores.overall())
    chance = next(row for row in scores.chance if row["question_type"] == ALL_TYPES)
    counts = sorted({row["n"] for row in rows})
    asked = " or ".join(map(str, counts))
    caption = f"{asked} questions. {data_note(sources)} {_interval_note(scores)}"
    figure = pass_at_k_figure(rows, chance, caption=caption)
    return style.save_figure(figure, folder / get_float("lab_pass_at_k").id)


def draw_example(task: Task, trajectory: Trajectory, lake_path: Path, folder: Path) -> list[Path]:
    """Draw ``eo_gym_fig3``: one rollout with the pictures the agent saw.

    Raises:
        RunError: The lake is not the one that was played on.
    """
    from eo_agent_lab.lake import Lake
    from eo_agent_lab.report.pictures import pictures_of, sources_of

    lake = Lake(lake_path)
    simulated = "simulated" in sources_of([task], lake)
    caption = (
        f"Agent: {trajectory.agent}, {trajectory.setting}. "
        f"{'Simulated scenes' if simulated else 'Real scenes'} in true colour; reflectance 0 to "
        "0.3 is stretched linearly, pixels of 8 bits are as they are. Boxes: areas of interest, "
        "and objects found. Grey: no data."
    )
    if any("mask" in str(call.name) for call in trajectory.calls):
        caption += " Masks: colour is inside, light grey outside, grey without a valid pixel."
    figure = trajectory_figure(
        trajectory,
        pictures_of(trajectory, task, lake),
        question=task.question,
        verdict="right" if is_correct(task, trajectory.answer) else f"gold: {task.gold_answer}",
        caption=caption,
    )
    return style.save_figure(figure, folder / get_float("eo_gym_fig3").id)


def choose_example(
    tasks: Sequence[Task],
    trajectories: Sequence[Trajectory],
    question_type: str | None = None,
    *,
    shortest: bool = False,
) -> tuple[Task, Trajectory]:
    """Choose a rollout to show: right, without an error, the longest that fits a figure.

    Args:
        tasks: The tasks played.
        trajectories: One agent's rollouts.
        question_type: Prefer this type; another is taken when it has no such rollout.
        shortest: Take the shortest instead.

    Raises:
        RunError: No rollout fits.
    """
    by_id = {task.task_id: task for task in tasks}
    fitting = [
        rollout
        for rollout in trajectories
        if rollout.task_id in by_id
        and 0 < len(rollout.calls) <= LONGEST_EXAMPLE
        and not any(call.is_error for call in rollout.calls)
        and is_correct(by_id[rollout.task_id], rollout.answer)
    ]
    if not fitting:
        raise RunError(
            "no rollout is right, free of errors and short enough to draw; play another agent"
        )

    def rank(rollout: Trajectory) -> tuple[Any, ...]:
        other = question_type not in (None, by_id[rollout.task_id].question_type)
        length = len(rollout.calls) if shortest else -len(rollout.calls)
        return other, length, rollout.task_id, rollout.sample

    chosen = min(fitting, key=rank)
    return by_id[chosen.task_id], chosen


def _interval_note(scores: Scores) -> str:
    return (
        f"Intervals: {100 * scores.confidence:g} % percentile bootstrap over questions, "
        f"{scores.resamples} resamples."
    )


def _wide(
    row: dict[str, Any], rows: Sequence[dict[str, Any]], types: Sequence[str]
) -> dict[str, Any]:
    """Return one row with its Pass@1 of each question type beside it."""
    identity = ("kind", "model", "setting")
    key = pass_key(1)
    names = (key, f"{key}_low", f"{key}_high")
    wide = {name: row[name] for name in (*identity, "n", *names)}
    for part in rows:
        kind = part["question_type"]
        if kind in types and all(part[name] == row[name] for name in identity):
            for end in ("", "_low", "_high"):
                wide[f"{key}_{kind}{end}"] = part[f"{key}{end}"]
            wide[f"n_{kind}"] = part["n"]
    return wide
