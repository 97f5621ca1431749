"""One rollout: a policy plays a task; whatever goes wrong inside it becomes part of the record."""

from __future__ import annotations

import hashlib
import shutil
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from eo_agent_lab.agents import make
from eo_agent_lab.agents.protocol import Policy
from eo_agent_lab.env.action import replace_surrogates
from eo_agent_lab.env.episode import Episode
from eo_agent_lab.lake import Lake
from eo_agent_lab.paths import PACKAGE
from eo_agent_lab.runs.config import RunConfig, rollout_seed
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tasks.trajectory import Trajectory

SEES_TASK = "expert"
"""The one agent that is handed the task, without its gold answer."""

WORK = "work"
"""Scratch folder inside a run's own."""

_MAX_ERROR_CHARS = 2_000


class Player:
    """Plays rollouts of one run, one after the other, with one policy and one open lake.

    Args:
        config: The run.
        train_tasks: Tasks with answers for an agent that learns from them, else empty.
        code_version: What the records say of the code.

    Raises:
        ConfigError: The agent is unknown or its options do not fit.
        LakeError: There is no lake.
    """

    def __init__(self, config: RunConfig, train_tasks: list[Task], code_version: str) -> None:
        """Open the lake and make the policy."""
        options: dict[str, Any] = dict(config.agent_options)
        if train_tasks:
            options["train_tasks"] = train_tasks
        self._config = config
        self._code_version = code_version
        self._lake = Lake(config.lake)
        self._policy: Policy = make(config.agent, **options)

    def play(self, task: Task, sample: int) -> Trajectory:
        """Play one rollout; an error of the policy or of a tool ends it as crashed."""
        config = self._config
        seed = rollout_seed(config.seed, task.task_id, sample)
        name = hashlib.sha256(task.task_id.encode()).hexdigest()[:16]
        work = config.run_dir / WORK / f"{name}-{sample}"
        shutil.rmtree(work, ignore_errors=True)
        episode = Episode(self._lake, max_calls=config.max_calls, workspace_root=work, seed=seed)
        begin = time.perf_counter()
        error: str | None = None
        try:
            _play(self._policy, episode, task, seed, shown=config.agent == SEES_TASK)
        except Exception as raised:
            error = describe_error(raised)
        finally:
            episode.close()
            shutil.rmtree(work, ignore_errors=True)
        return episode.trajectory(
            sample=sample,
            agent=config.agent,
            setting=config.setting,
            seed=config.seed,
            code_version=self._code_version,
            error=error,
            seconds=time.perf_counter() - begin,
        )


def _play(policy: Policy, episode: Episode, task: Task, seed: int, *, shown: bool) -> None:
    view = episode.reset(task)
    policy.start(task if shown else None, view, np.random.default_rng(seed))
    over = False
    while not over:
        step = episode.step(policy.act(view))
        view, over = step.observation, step.terminated or step.truncated


def describe_error(error: BaseException) -> str:
    """Return an error in words, with the line of our code that it comes from."""
    text = replace_surrogates(f"{type(error).__name__}: {error}")[:_MAX_ERROR_CHARS]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(PACKAGE):
            return f"{text} (at {path.relative_to(PACKAGE).as_posix()}, line {frame.lineno})"
    return text
