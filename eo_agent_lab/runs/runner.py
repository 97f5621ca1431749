"""Plays a policy over tasks x samples in parallel processes; resumes where it stopped."""

from __future__ import annotations

import ctypes
import hashlib
import multiprocessing
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from eo_agent_lab import __version__
from eo_agent_lab.agents import make
from eo_agent_lab.agents.protocol import Policy
from eo_agent_lab.env.episode import MAX_CALLS, Episode
from eo_agent_lab.errors import RunError
from eo_agent_lab.lake import Lake
from eo_agent_lab.runs.log import LOG_FILE, RunLog, read_config, read_trajectories
from eo_agent_lab.tasks.task import Task, read_tasks
from eo_agent_lab.tasks.trajectory import Trajectory

WORK = "work"
_PR_SET_PDEATHSIG = 1


class RunConfig(BaseModel):
    """What a run plays, and how.

    Attributes:
        run_dir: Where its log goes.
        lake: The lake's folder.
        tasks: Task file; ``train.jsonl`` beside it teaches the blind agent.
        agent: A name that :func:`eo_agent_lab.agents.make` knows.
        setting: Operation mode, ``<response>-<prompt>-<toolset>``.
        samples: Rollouts of each task.
        seed: With task and sample it seeds each rollout.
        processes: Rollouts at a time; results do not depend on it.
        limit: Play the first tasks alone.
        max_calls: Actions other than an answer in one rollout.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_dir: Path
    lake: Path
    tasks: Path
    agent: str
    setting: str = "verified-simple-skill"
    samples: int = Field(default=3, ge=1)
    seed: int = Field(default=0, ge=0)
    processes: int = Field(default=2, ge=1)
    limit: int | None = Field(default=None, ge=1)
    max_calls: int = Field(default=MAX_CALLS, ge=1)

    def identity(self, tasks: list[Task]) -> dict[str, Any]:
        """Return what the results depend on, with the questions themselves as a hash."""
        questions = "\n".join(
            task.model_dump_json(exclude={"gold_answer", "evidence"}) for task in tasks
        )
        return {
            **self.model_dump(mode="json", exclude={"run_dir", "processes"}),
            "questions": hashlib.sha256(questions.encode()).hexdigest()[:16],
            "code_version": __version__,
        }


class _Job(NamedTuple):
    index: int
    sample: int


class _Worker(NamedTuple):
    config: RunConfig
    lake: Lake
    tasks: list[Task]
    policy: Policy


_worker: _Worker | None = None


def _start_worker(config: RunConfig, tasks: list[Task]) -> None:
    """Open what one process needs; the process dies with the one that started it."""
    global _worker
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worker = _make_worker(config, tasks)


def _make_worker(config: RunConfig, tasks: list[Task]) -> _Worker:
    options: dict[str, Any] = {}
    if config.agent == "blind":
        options["train_tasks"] = read_tasks(config.tasks.with_name("train.jsonl"))
    return _Worker(config, Lake(config.lake), tasks, make(config.agent, **options))


def rollout_seed(seed: int, task_id: str, sample: int) -> int:
    """Return the seed of one rollout, the same whatever was played before it."""
    digest = hashlib.sha256(f"{seed}\x1f{task_id}\x1f{sample}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def _play(job: _Job) -> Trajectory:
    if _worker is None:
        raise RunError("the worker was not started")
    return play(_worker, job)


def play(worker: _Worker, job: _Job) -> Trajectory:
    """Play one rollout; an exception inside the agent ends it as ``crashed`` and is kept."""
    config, task = worker.config, worker.tasks[job.index]
    seed = rollout_seed(config.seed, task.task_id, job.sample)
    episode = Episode(
        worker.lake,
        max_calls=config.max_calls,
        workspace_root=config.run_dir / WORK,
        seed=seed,
    )
    began = time.perf_counter()
    error: str | None = None
    try:
        view = episode.reset(task)
        handed = task if config.agent == "expert" else None
        worker.policy.start(handed, view, np.random.default_rng(seed))
        ended = False
        while not ended:
            step = episode.step(worker.policy.act(view))
            view, ended = step.observation, step.terminated or step.truncated
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
    finally:
        episode.close()
    return Trajectory(
        task_id=task.task_id,
        sample=job.sample,
        agent=config.agent,
        setting=config.setting,
        seed=seed,
        code_version=__version__,
        messages=episode.messages,
        calls=episode.calls,
        answer=episode.answer,
        ending="crashed" if error is not None else episode.ending or "gave_up",
        error=error,
        seconds=time.perf_counter() - began,
    )


def run(config: RunConfig, *, progress: bool = False) -> Path:
    """Play what is not done yet and return the run's folder.

    Raises:
        RunError: The folder holds a run of other settings, another process writes it, or a worker
            was killed.
        TaskError: The task file cannot be used.
    """
    tasks = read_tasks(config.tasks)[: config.limit]
    with RunLog(config.run_dir, config.identity(tasks)) as log:
        shutil.rmtree(config.run_dir / WORK, ignore_errors=True)
        done = log.done()
        jobs = [
            _Job(index, sample)
            for index, task in enumerate(tasks)
            for sample in range(config.samples)
            if (task.task_id, sample) not in done
        ]
        total = len(tasks) * config.samples
        for trajectory in _shown(_played(config, tasks, jobs), total, len(done), config, progress):
            log.append(trajectory)
        shutil.rmtree(config.run_dir / WORK, ignore_errors=True)
    return config.run_dir


def _played(config: RunConfig, tasks: list[Task], jobs: list[_Job]) -> Iterator[Trajectory]:
    if not jobs:
        return
    if config.processes == 1:
        worker = _make_worker(config, tasks)
        for job in jobs:
            yield play(worker, job)
        return
    context = multiprocessing.get_context("forkserver")
    waiting = iter(jobs)
    with ProcessPoolExecutor(
        config.processes, context, initializer=_start_worker, initargs=(config, tasks)
    ) as pool:
        # A few jobs ahead keep every process busy without queueing the whole run.
        running: set[Future[Trajectory]] = set()
        try:
            for job in waiting:
                running.add(pool.submit(_play, job))
                if len(running) >= 4 * config.processes:
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in finished)
            while running:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in finished)
        except BrokenProcessPool as error:
            raise RunError(
                f"a worker of {config.run_dir} was killed (out of memory?); finished rollouts are "
                f"kept, go on with `eolab runs resume {config.run_dir}`"
            ) from error


def _shown(
    played: Iterator[Trajectory], total: int, done: int, config: RunConfig, progress: bool
) -> Iterator[Trajectory]:
    if not progress:
        yield from played
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        line = bar.add_task(f"{config.agent}, {config.setting}", total=total, completed=done)
        for trajectory in played:
            yield trajectory
            bar.advance(line)


def resume(run_dir: Path, *, progress: bool = False) -> Path:
    """Finish an interrupted run with the settings it was started with.

    Raises:
        RunError: There is no run in the folder.
    """
    stored = read_config(run_dir)
    known = {key: stored[key] for key in RunConfig.model_fields if key in stored}
    return run(RunConfig(run_dir=run_dir, **known), progress=progress)


def list_runs(root: Path) -> list[dict[str, Any]]:
    """Return one row per run below a folder, with how much of it is done."""
    rows = []
    for log in sorted(root.glob(f"*/{LOG_FILE}")):
        config = read_config(log.parent)
        found = read_trajectories(log.parent)
        wanted = len(read_tasks(Path(config["tasks"]))[: config["limit"]]) * config["samples"]
        rows.append(
            {
                "run": str(log.parent),
                "agent": config["agent"],
                "setting": config["setting"],
                "done": len(found),
                "of": wanted,
                "crashed": sum(t.ending == "crashed" for t in found),
                "seed": config["seed"],
            }
        )
    return rows
