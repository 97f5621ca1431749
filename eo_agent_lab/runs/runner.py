"""Plays an agent over tasks and samples, in parallel, into a log that can be resumed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eo_agent_lab.errors import LakeError, RunError
from eo_agent_lab.lake import Lake
from eo_agent_lab.lake.build import SCENES_FILE, stamp_of
from eo_agent_lab.runs.config import (
    RunConfig,
    code_version,
    fingerprint_tasks,
    parse_config,
    refuse_other,
)
from eo_agent_lab.runs.log import LOG_FILE, RunLog, read_log
from eo_agent_lab.runs.pool import play_all
from eo_agent_lab.runs.rollout import WORK
from eo_agent_lab.tasks.task import Task, read_tasks

__all__ = ["RunConfig", "list_runs", "resume", "run", "show"]

LEARNERS = ("blind",)
"""Agents that learn from the train split's answers."""


def run(config: RunConfig, progress: bool = False) -> Path:
    """Play every rollout that the run's log does not hold yet.

    Gold answers are dropped before anything is played. Results depend neither on the order of play
    nor on the number of processes.

    Args:
        config: The run; a folder that holds a run of the same settings is resumed.
        progress: Show a progress bar, where standard error is a terminal.

    Returns:
        The run's folder.

    Raises:
        RunError: The folder holds a run of other settings or is in use, the log is damaged, the
            tasks are of another lake, or a worker process died.
        ConfigError: The agent cannot be made.
        LakeError: There is no lake.
        TaskError: The task file cannot be used.
    """
    tasks = _read_tasks(config)
    train_tasks = _read_train_tasks(config)
    version = code_version()
    stamps = {
        "code_version": version,
        "tasks_fingerprint": fingerprint_tasks(tasks),
        "train_fingerprint": fingerprint_tasks(train_tasks, with_answers=True),
        "lake_fingerprint": _stamp_of_lake(config, tasks),
        "tasks_played": len(tasks),
    }
    settings = config.model_dump(mode="json") | stamps
    with RunLog(config.run_dir, settings) as log:
        refuse_other(log.config, settings, config.run_dir)
        done = log.done()
        keys = _keys(tasks, config.samples)
        todo = [(task, sample) for (task, sample) in keys if (task.task_id, sample) not in done]
        work = config.run_dir / WORK
        shutil.rmtree(work, ignore_errors=True)
        with _bar(progress, f"{config.agent}, {config.setting}", len(keys), len(done)) as advance:
            for trajectory in play_all(config, train_tasks, version, todo) if todo else ():
                log.append(trajectory)
                advance()
        shutil.rmtree(work, ignore_errors=True)
    return config.run_dir


def resume(run_dir: Path, progress: bool = False, processes: int | None = None) -> Path:
    """Finish a run that was interrupted; errors as :func:`run`.

    Args:
        run_dir: The run's folder, in a working directory from which its lake and tasks are found.
        progress: Show a progress bar, where standard error is a terminal.
        processes: Another number of worker processes; no result depends on it.
    """
    config = parse_config(read_log(run_dir).config, run_dir)
    if processes is not None:
        config = config.model_copy(update={"processes": processes})
    return run(config, progress)


def show(run_dir: Path) -> dict[str, Any]:
    """Return one run in numbers: settings, rollouts done and wanted, endings, mean calls, seconds.

    Raises:
        RunError: There is no run, or its log is damaged.
    """
    content = read_log(run_dir)
    config, found = content.config, content.trajectories
    samples, played = config.get("samples"), config.get("tasks_played")
    wanted = samples * played if isinstance(samples, int) and isinstance(played, int) else None
    endings = Counter(item.ending for item in found)
    return {
        "run": run_dir.name,
        "agent": config.get("agent"),
        "setting": config.get("setting"),
        "tasks": played,
        "samples": samples,
        "done": len(found),
        "wanted": wanted,
        "finished": wanted is not None and len(found) == wanted,
        "crashed": endings["crashed"],
        "endings": dict(sorted(endings.items())),
        "calls_mean": round(sum(len(t.calls) for t in found) / len(found), 2) if found else None,
        "seconds": round(sum(item.seconds for item in found), 1),
        "code_version": config.get("code_version"),
    }


def list_runs(root: Path) -> list[dict[str, Any]]:
    """Return :func:`show` of every run below a folder, by name; none when the folder is absent.

    Raises:
        RunError: A log is damaged.
    """
    return [show(path.parent) for path in sorted(root.rglob(LOG_FILE))]


def _read_tasks(config: RunConfig) -> list[Task]:
    tasks = read_tasks(config.tasks)[: config.limit]
    twice = [task_id for task_id, n in Counter(t.task_id for t in tasks).items() if n > 1]
    if twice:
        raise RunError(f"{config.tasks} holds task {twice[0]!r} twice; make the tasks again")
    if not tasks:
        raise RunError(f"{config.tasks} holds no task; make the tasks again")
    return [task.model_copy(update={"gold_answer": None, "evidence": {}}) for task in tasks]


def _read_train_tasks(config: RunConfig) -> list[Task]:
    if config.agent not in LEARNERS or "table" in config.agent_options:
        return []
    path = config.train_tasks or config.tasks.with_name("train.jsonl")
    return [task for task in read_tasks(path) if task.split == "train"]


def _stamp_of_lake(config: RunConfig, tasks: Iterable[Task]) -> str:
    lake = Lake(config.lake)
    try:
        for handle in {handle for task in tasks for handle in task.images}:
            lake.get(handle)
    except LakeError as error:
        raise RunError(
            f"the tasks of {config.tasks} are not of the lake {config.lake}: {error}"
        ) from error
    return stamp_of(config.lake / SCENES_FILE)


def _keys(tasks: list[Task], samples: int) -> list[tuple[Task, int]]:
    return [(task, sample) for sample in range(samples) for task in tasks]


@contextmanager
def _bar(progress: bool, title: str, total: int, done: int) -> Iterator[Any]:
    if not progress:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=total, completed=done)
        yield lambda: bar.advance(task)
