"""``EOGym-v0``: an episode as a Gymnasium environment."""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from eo_agent_lab import paths
from eo_agent_lab.env.action import MAX_ACTION_CHARS
from eo_agent_lab.env.episode import MAX_CALLS, Episode, EpisodeView, Sight
from eo_agent_lab.env.preview import Image, fit, preview
from eo_agent_lab.env.texts import MAX_OBSERVATION_CHARS
from eo_agent_lab.env.tiny import PER_TYPE, tiny_world
from eo_agent_lab.errors import ConfigError, RunError, TaskError
from eo_agent_lab.lake import Lake
from eo_agent_lab.lake.build import SCENES_FILE
from eo_agent_lab.tasks.task import Task, read_tasks

IMAGE_SIDE = 256
"""Rows and columns of the observed picture."""

Split = Literal["train", "test"]
RenderMode = Literal["ansi", "rgb_array"]

_OUTSIDE = re.compile("[\ud800-\udfff\U00020000-\U0010ffff]")


@cache
def charset() -> frozenset[str]:
    """Return every character of Unicode's planes 0 and 1 but the surrogates: 129,024 of them."""
    return frozenset(map(chr, (*range(0xD800), *range(0xE000, 0x20000))))


class EOGymEnv(gymnasium.Env[dict[str, Any], str]):
    """An agent answers a question about images of the Earth by calling tools.

    ## Action space
    ``Text(0..20000)``, characters of Unicode's planes 0 and 1. An action is one JSON object:

    | Action | Meaning |
    |---|---|
    | ``{"name": str, "arguments": {...}}`` | call a tool that the task offers |
    | ``{"answer": str}`` | answer; numbers and lists count as their text, ``null`` gives up |
    | anything else | an invalid call: answered by an observation, counts as a call |

    ## Observation space
    ``Dict`` of two entries:

    | Key | Space | Content |
    |---|---|---|
    | ``text`` | ``Text(0..8000)``, planes 0 and 1 | what the last action led to |
    | ``image`` | ``Box(0, 255, (256, 256, 3), uint8)`` | the current view: red, green, blue |

    The first text holds the question, the start images (handle, capture date, GSD in metres,
    sensor), the tools and the budget. Longer text is cut and says so; characters outside the space
    become U+FFFD. The image is the start image, then what the last successful call fetched,
    cropped, masked or measured, with the boxes it found; rows run downwards. It is scaled to fit
    on black, stretched from the 2nd to the 98th percentile, and all zeros when there is none.

    ## Rewards
    1.0 for a right answer, 0.0 for everything else. A task whose gold answer was withheld gives
    0.0, and ``info["judged"]`` is False.

    ## Starting state
    ``reset(options={"task_id": ...})`` plays one task; without it a task is drawn with the
    environment's generator, so that ``reset(seed=...)`` fixes it. The same seed and actions give
    the same episode, byte for byte.

    ## Episode end
    *Termination*: an answer. *Truncation*: the last call of the budget (15) was made.

    ## Info
    ``task_id``, ``calls``, ``calls_left``, ``is_error``, ``data`` (the last call's result as a
    JSON value), ``judged``, ``ending`` (None, ``answered``, ``gave_up`` or ``out_of_calls``).
    Neither the gold answer nor the reference calls are ever in an observation or in ``info``.

    ## Arguments
    | Name | Default | Meaning |
    |---|---|---|
    | ``lake`` | None | a lake's folder |
    | ``tasks`` | None | a task file or a list of tasks; generated from ``lake`` when left out |
    | ``max_calls`` | 15 | budget of calls, at least 1 |
    | ``render_mode`` | None | ``ansi`` (text) or ``rgb_array`` (a figure, 960 x 1280 pixels) |
    | ``split`` | ``test`` | which tasks are drawn, ``train`` or ``test`` |

    With neither lake nor tasks, ``data/lake`` and ``data/tasks/<split>.jsonl`` are used where both
    exist, else a tiny simulated world that is built once in the user's cache.

    ## Paper
    EO-Gym, sections 3 (environment) and A.3 (operation modes and budget).

    ## Versions
    * v0: fifteen tools on multispectral scenes, three on sub-metre images; verified responses.
    """

    # not a ClassVar, because Gymnasium declares it otherwise
    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        lake: str | Path | None = None,
        tasks: str | Path | Sequence[Task] | None = None,
        *,
        max_calls: int = MAX_CALLS,
        render_mode: RenderMode | None = None,
        split: Split = "test",
    ) -> None:
        """Open the lake and read the tasks.

        Raises:
            ConfigError: The render mode is unknown, or tasks were given without a lake.
            LakeError: There is no lake, or it is damaged.
            TaskError: There is no task of the split.
        """
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ConfigError(f"no render mode {render_mode!r}; use ansi or rgb_array")
        self.render_mode = render_mode
        opened, found = _open(lake, tasks, split)
        self._tasks = {task.task_id: task for task in found if task.split == split}
        if not self._tasks:
            raise TaskError(f"there is no task of split {split!r}; use another split or task file")
        self.action_space = spaces.Text(MAX_ACTION_CHARS, min_length=0, charset=charset())
        text = spaces.Text(MAX_OBSERVATION_CHARS, min_length=0, charset=charset())
        picture = spaces.Box(0, 255, (IMAGE_SIDE, IMAGE_SIDE, 3), np.uint8)
        self.observation_space = spaces.Dict({"text": text, "image": picture})
        root = tempfile.mkdtemp(prefix="eogym-")
        self._remove_root = weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        self._episode = Episode(opened, max_calls=max_calls, workspace_root=Path(root))
        self._pictures: list[Image | None] = []
        self._reward = 0.0

    @property
    def task_ids(self) -> list[str]:
        """Ids of the tasks that can be played."""
        return list(self._tasks)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode; ``options["task_id"]`` chooses its task.

        Raises:
            ConfigError: An option is unknown.
            TaskError: No task has this id.
        """
        super().reset(seed=seed)
        options = options or {}
        if set(options) - {"task_id"}:
            raise ConfigError(f"no options {sorted(set(options) - {'task_id'})}; there is task_id")
        if "task_id" in options:
            task_id = options["task_id"]
        else:
            task_id = self.task_ids[int(self.np_random.integers(len(self._tasks)))]
        if task_id not in self._tasks:
            raise TaskError(f"no task {task_id!r} in this split; see env.unwrapped.task_ids")
        self._pictures, self._reward = [], 0.0
        return self._observed(self._episode.reset(self._tasks[task_id]))

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Carry out an action.

        Raises:
            RunError: No episode is under way.
        """
        view, self._reward, terminated, truncated = self._episode.step(action)
        observation, info = self._observed(view)
        return observation, self._reward, terminated, truncated, info

    def _observed(self, view: EpisodeView) -> tuple[dict[str, Any], dict[str, Any]]:
        episode = self._episode
        # an answer changes nothing in view, so it adds no picture
        if len(self._pictures) <= len(episode.calls):
            self._pictures.append(self._look(view.sight))
        picture = self._pictures[-1]
        empty = np.zeros((IMAGE_SIDE, IMAGE_SIDE, 3), dtype=np.uint8)
        observation = {
            "text": _OUTSIDE.sub("\ufffd", view.text),
            "image": empty if picture is None else fit(picture, IMAGE_SIDE),
        }
        info = {
            "task_id": episode.task.task_id if episode.task else None,
            "calls": len(episode.calls),
            "calls_left": view.calls_left,
            "is_error": view.is_error,
            "data": view.data,
            "judged": episode.judged,
            "ending": episode.ending,
        }
        return observation, info

    def _look(self, sight: Sight | None) -> Image | None:
        workspace = self._episode.workspace
        if sight is None or workspace is None:
            return None
        seen = self._episode.sights[-2:-1]
        return self._pictures[-1] if seen == [sight] else preview(workspace, sight)

    def render(self) -> str | NDArray[np.uint8] | None:
        """Return the episode so far as text (``ansi``) or as a figure (``rgb_array``).

        Raises:
            RunError: There is no episode yet.
        """
        if self.render_mode is None:
            gymnasium.logger.warn('no render_mode was set; pass render_mode="ansi" or "rgb_array"')
            return None
        from eo_agent_lab.env import render

        episode = self._episode
        if episode.task is None:
            raise RunError("there is nothing to render yet; call reset first")
        shown = render.Shown(episode.task.question, episode.calls, episode.ending, episode.answer)
        if self.render_mode == "ansi":
            return render.as_text(shown, self._reward)
        return render.as_array(shown, self._reward, self._pictures)

    def close(self) -> None:
        """Remove what the episodes wrote; a second call does nothing."""
        self._episode.close()
        self._remove_root()


def _open(
    lake: str | Path | None, tasks: str | Path | Sequence[Task] | None, split: Split
) -> tuple[Lake, list[Task]]:
    if lake is None and tasks is not None:
        raise ConfigError("tasks were given without the lake that they ask about; pass lake, too")
    if lake is None:
        own = paths.TASKS / f"{split}.jsonl"
        if (paths.LAKE / SCENES_FILE).is_file() and own.is_file():
            return Lake(paths.LAKE), read_tasks(own)
        tiny = tiny_world()
        return Lake(tiny.lake_path), tiny.tasks
    opened = Lake(lake)
    if tasks is None:
        from eo_agent_lab.tasks.generate import generate

        return opened, generate(opened, per_type={split: PER_TYPE[split]}, seed=0)
    return opened, read_tasks(Path(tasks)) if isinstance(tasks, str | Path) else list(tasks)
