"""What the stages of ``dvc.yaml`` do, each read from ``params.yaml``.

``python -m eo_agent_lab.stages tasks|evaluate|report`` runs one; the stages world and runs are
``eolab fetch simulate`` and ``eolab run``, which take their settings from here. This module turns
settings into arguments and holds no logic of its own. Heavy imports happen inside functions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eo_agent_lab import conf, paths
from eo_agent_lab.errors import EOLabError

if TYPE_CHECKING:
    from eo_agent_lab.world.simulate import WorldConfig

REPORTS = paths.DATA / "reports"
SCORES = REPORTS / "scores.json"
NOTEBOOKS = Path("notebooks")


def world_config(params: Path = conf.PARAMS) -> WorldConfig:
    """Return the simulated world's settings.

    Raises:
        ConfigError: ``params.yaml`` cannot be used.
    """
    settings = conf.load_params(params)
    conf.fix_threads(settings.threads)
    from eo_agent_lab.world.simulate import WorldConfig

    return WorldConfig(**settings.world.model_dump())


def make_tasks(params: Path = conf.PARAMS) -> list[Path]:
    """Generate the tasks of both splits into ``data/tasks/<split>.jsonl``.

    Returns:
        The files written. What the lake could not yield is said on standard error.

    Raises:
        ConfigError: ``params.yaml`` cannot be used.
        LakeError: There is no lake.
        TaskError: Not one question can be asked of it.
    """
    settings = conf.load_params(params)
    conf.fix_threads(settings.threads)
    from eo_agent_lab.lake import Lake
    from eo_agent_lab.tasks.generate import generate_with_counts
    from eo_agent_lab.tasks.task import write_tasks

    wanted = settings.tasks.per_type
    made = generate_with_counts(Lake(paths.LAKE), per_type=wanted, seed=settings.tasks.seed)
    for (question_type, split), missing in made.short(wanted).items():
        reasons = ", ".join(f"{why} ({n})" for why, n in made.dropped[question_type, split].items())
        sys.stderr.write(
            f"tasks: {missing} of {wanted[split]} {split} tasks of {question_type} could not be "
            f"asked; candidates dropped: {reasons or 'none, the lake has too few'}\n"
        )
    written = []
    for split in wanted:
        path = paths.TASKS / f"{split}.jsonl"
        write_tasks(path, [task for task in made.tasks if task.split == split])
        written.append(path)
    return written


def run_from_overrides(overrides: Sequence[str], *, progress: bool = False) -> Path:
    """Play one agent in one setting, as ``params.yaml`` and the overrides say.

    Args:
        overrides: Such as ``agent=expert``, ``setting=verified-simple-skill``, ``runs.limit=5``.
        progress: Show a progress bar.

    Returns:
        The run's folder, ``data/runs/<agent>-<setting>`` unless ``runs.run_dir`` names another.

    Raises:
        ConfigError: An override or ``params.yaml`` cannot be used.
        RunError: The folder holds a run of other settings, or its log is damaged.
    """
    settings = conf.override(overrides)
    conf.fix_threads(settings.threads)
    from eo_agent_lab.runs.runner import RunConfig, run

    runs, agent, setting = settings.runs, settings.agent.name, settings.setting.name
    config = RunConfig(
        run_dir=Path(runs.run_dir) if runs.run_dir else _run_dir(agent, setting),
        lake=Path(runs.lake),
        tasks=Path(runs.tasks),
        agent=agent,
        setting=setting,
        samples=runs.samples,
        seed=runs.seed,
        processes=runs.processes,
        limit=runs.limit,
        max_calls=runs.max_calls,
    )
    return run(config, progress=progress)


def evaluate_rows(
    run_dirs: Sequence[Path], tasks: Path, params: Path = conf.PARAMS
) -> list[dict[str, Any]]:
    """Score runs and return one row a run, over all questions.

    The intervals follow ``params.yaml`` where there is one, else EO-Gym's 1,000 resamples at 95 %.

    Raises:
        ConfigError: ``params.yaml`` cannot be used.
        RunError: A run is unfinished or damaged, or two have the same agent and setting.
        TaskError: The task file cannot be used.
    """
    from eo_agent_lab.evaluate.scores import score_runs

    if not params.is_file():
        return score_runs(tasks, run_dirs).overall()
    settings = conf.load_params(params).evaluate
    return score_runs(
        tasks,
        run_dirs,
        seed=settings.seed,
        resamples=settings.bootstrap,
        confidence=settings.confidence,
    ).overall()


def evaluate(params: Path = conf.PARAMS) -> Path:
    """Score every run of the pipeline's matrix into ``data/reports/scores.json``.

    Raises:
        ConfigError: ``params.yaml`` cannot be used.
        RunError: A run is unfinished or damaged.
        TaskError: The task file cannot be used.
    """
    settings = conf.load_params(params)
    conf.fix_threads(settings.threads)
    from eo_agent_lab.evaluate.scores import evaluate_runs

    run_dirs = [
        _run_dir(agent, setting)
        for setting in settings.runs.settings
        for agent in settings.runs.agents
    ]
    evaluate_runs(
        paths.TASKS / "test.jsonl",
        run_dirs,
        SCORES,
        seed=settings.evaluate.seed,
        resamples=settings.evaluate.bootstrap,
        confidence=settings.evaluate.confidence,
    )
    return SCORES


def report(params: Path = conf.PARAMS) -> list[Path]:
    """Render every notebook of the registry of floats into ``tables/`` and ``figures/``.

    Returns:
        The executed copies, under ``data/executed``.

    Raises:
        ConfigError: A notebook is absent or fails.
        RunError: A registered float was not written.
    """
    conf.fix_threads(conf.load_params(params).threads)
    from eo_agent_lab.errors import RunError
    from eo_agent_lab.report.floats import FLOATS
    from eo_agent_lab.report.render import render

    names = sorted({entry.notebook for entry in FLOATS.values()})
    executed = [render(NOTEBOOKS / name, {}, progress=sys.stderr.isatty()) for name in names]
    absent = [path for entry in FLOATS.values() for path in entry.files() if not path.is_file()]
    if absent:
        raise RunError(
            f"{', '.join(map(str, absent))} were not written; look at the notebook that "
            "eo_agent_lab/report/floats.py names for them"
        )
    return executed


def _run_dir(agent: str, setting: str) -> Path:
    return paths.RUNS / f"{agent}-{setting}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one stage; an error of ours is one line and exit code 2."""
    stages = {"tasks": make_tasks, "evaluate": evaluate, "report": report}
    parser = argparse.ArgumentParser(prog="python -m eo_agent_lab.stages")
    parser.add_argument("stage", choices=stages)
    parser.add_argument("--params", type=Path, default=conf.PARAMS)
    chosen = parser.parse_args(arguments)
    try:
        stages[chosen.stage](chosen.params)
    except EOLabError as error:
        sys.stderr.write(f"{chosen.stage}: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
