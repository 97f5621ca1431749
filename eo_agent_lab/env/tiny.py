"""A tiny simulated world in the user's cache, for an environment that was given nothing."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from eo_agent_lab.env.sources import source_digest
from eo_agent_lab.errors import LakeError
from eo_agent_lab.paths import cache_dir
from eo_agent_lab.tasks.task import Task, read_tasks
from eo_agent_lab.world.config import TINY

PER_TYPE: dict[Literal["train", "test"], int] = {"train": 6, "test": 6}
"""Tasks asked for of each question type."""

_SOURCES = ("lake", "perception", "science", "tasks", "tools", "world")


class TinyWorld(NamedTuple):
    """A lake and its tasks, of both splits, in one folder."""

    lake_path: Path
    tasks_path: Path

    @property
    def tasks(self) -> list[Task]:
        """The tasks, read from their file."""
        return read_tasks(self.tasks_path)


def tiny_world(root: Path | None = None) -> TinyWorld:
    """Return the tiny world below a folder, building it the first time (a few seconds).

    Its name holds a hash of its settings and of the code that makes it. Two processes may ask at
    once: one builds, the other waits. It stands complete or not at all, whenever one is killed.

    Args:
        root: Defaults to the user's cache, :func:`eo_agent_lab.paths.cache_dir`.

    Raises:
        LakeError: The folder cannot be written to.
    """
    root = cache_dir() if root is None else root
    text = json.dumps([TINY.model_dump_json(), PER_TYPE, source_digest(_SOURCES)])
    place = root / f"tiny-v1-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if not place.is_dir():
        try:
            root.mkdir(parents=True, exist_ok=True)
            with _locked(root / ".tiny.lock"):
                if not place.is_dir():
                    _build(root, place)
        except OSError as error:
            raise LakeError(
                f"the tiny world cannot be written to {root} ({error}); set XDG_CACHE_HOME to a "
                "folder with some megabytes to spare, or pass a lake"
            ) from error
    return TinyWorld(place / "lake", place / "tasks.jsonl")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(root: Path, place: Path) -> None:
    from eo_agent_lab.lake import Lake
    from eo_agent_lab.lake.build import add_scenes
    from eo_agent_lab.tasks.generate import generate
    from eo_agent_lab.tasks.task import write_tasks
    from eo_agent_lab.world.simulate import simulate

    for stale in root.glob(".tiny-*"):
        shutil.rmtree(stale)
    folder = Path(tempfile.mkdtemp(prefix=".tiny-", dir=root))
    try:
        fetched = simulate(folder / "raw", TINY)
        # scenes of a root beside the lake are stored relative to it, so the folder can be renamed
        add_scenes(folder / "lake", fetched.scenes)
        lake = Lake(folder / "lake")
        write_tasks(folder / "tasks.jsonl", generate(lake, per_type=PER_TYPE, seed=TINY.seed))
        os.rename(folder, place)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
