"""Worker processes of a run: each opens the lake itself, and none outlives the run."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from eo_agent_lab.errors import RunError
from eo_agent_lab.runs.config import RunConfig
from eo_agent_lab.runs.rollout import Player
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tasks.trajectory import Trajectory

_PR_SET_PDEATHSIG = 1
"""From ``linux/prctl.h``."""

_AHEAD = 4
"""Rollouts handed out to each worker in advance."""

Todo = tuple[Task, int]


class _Worker:
    """What one worker process keeps between rollouts."""

    arguments: tuple[RunConfig, list[Task], str] | None = None
    player: Player | None = None


def play_all(
    config: RunConfig, train_tasks: list[Task], code_version: str, todo: Sequence[Todo]
) -> Iterator[Trajectory]:
    """Play rollouts and yield each as it ends, in any order.

    Worker processes are spawned, not forked: a fork of a program with threads can hang. A script
    that plays with more than one process therefore needs ``if __name__ == "__main__":``.

    Raises:
        RunError: A worker process was killed.
        ConfigError: The agent cannot be made.
    """
    arguments = (config, train_tasks, code_version)
    if config.processes == 1 or len(todo) == 1:
        player = Player(*arguments)
        for task, sample in todo:
            yield player.play(task, sample)
        return
    workers = min(config.processes, len(todo))
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(os.getpid(), *arguments),
    )
    try:
        yield from _drain(pool, iter(todo), workers * _AHEAD)
    except BrokenProcessPool as error:
        raise RunError(
            "a worker process died (killed, or out of memory); what is logged is safe: finish with "
            f"`eolab runs resume {config.run_dir}`, with fewer processes if memory was short"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _drain(pool: ProcessPoolExecutor, todo: Iterator[Todo], ahead: int) -> Iterator[Trajectory]:
    pending: set[Future[str]] = set()
    exhausted = False
    while pending or not exhausted:
        while not exhausted and len(pending) < ahead:
            item = next(todo, None)
            if item is None:
                exhausted = True
            else:
                pending.add(pool.submit(_play, *item))
        finished, pending = wait(pending, return_when=FIRST_COMPLETED)
        for future in finished:
            yield Trajectory.model_validate_json(future.result())


def _start(parent: int, config: RunConfig, train_tasks: list[Task], code_version: str) -> None:
    """Prepare a worker process. Its player is made later, where an error can be reported."""
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Worker.arguments = (config, train_tasks, code_version)


def _play(task: Task, sample: int) -> str:
    if _Worker.player is None:
        if _Worker.arguments is None:
            raise RunError("this process is no worker of a run; play through runner.run")
        _Worker.player = Player(*_Worker.arguments)
    return _Worker.player.play(task, sample).model_dump_json()


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies (Linux; elsewhere nothing is done).

    Args:
        parent: The parent's process id; when it is gone already, this process exits at once.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
