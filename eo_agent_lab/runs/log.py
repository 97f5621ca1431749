"""The log of a run: JSON lines, only ever appended to, one synced record a finished rollout."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from pydantic import ValidationError

from eo_agent_lab.errors import RunError
from eo_agent_lab.tasks.trajectory import FORMAT, VERSION, Trajectory

LOG_FILE = "trajectories.jsonl"

Key = tuple[str, int]
"""Task id and sample."""


class LogContent(NamedTuple):
    """A log as read: the header's settings, and the rollouts in the order they were written."""

    config: dict[str, Any]
    trajectories: list[Trajectory]


class RunLog:
    """Writes a log; one at a time, in one process.

    A record is one ``write`` of a whole line followed by ``fsync``, so a kill leaves at most one
    incomplete last line, which the next opening cuts off. A context manager.

    Args:
        path: The run's folder, or the log itself.
        config: What the header of a new log says; one that holds rollouts keeps its own.

    Raises:
        RunError: Another process writes the log, it is damaged, or there is none and no config.
    """

    def __init__(self, path: Path, config: dict[str, Any] | None = None) -> None:
        """Open or make the log, take its lock, and mend its end."""
        self.path = log_path(path)
        if config is None and not self.path.is_file():
            raise RunError(f"no run at {path}; play one with `eolab run`")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._lock()
            self._cut_torn_line()
            content = self._begin(config)
        except BaseException:
            os.close(self._file)
            raise
        self.config = content.config
        self._done = {(item.task_id, item.sample) for item in content.trajectories}

    def _begin(self, config: dict[str, Any] | None) -> LogContent:
        """Write the header where nothing was played yet, and read the log."""
        if os.fstat(self._file).st_size > 0:
            content = read_log(self.path)
            if content.trajectories or config in (None, content.config):
                return content
            os.ftruncate(self._file, 0)
        if config is None:
            raise RunError(f"{self.path} has no header; delete the folder and play again")
        header = {"format": FORMAT, "version": VERSION, "config": config}
        self._write(json.dumps(header, ensure_ascii=False, allow_nan=False))
        _sync_folder(self.path.parent)
        return read_log(self.path)

    def done(self) -> set[Key]:
        """Return (task id, sample) of every rollout in the log."""
        return set(self._done)

    def append(self, trajectory: Trajectory) -> None:
        """Write one rollout and sync it to disk.

        Raises:
            RunError: The rollout is in the log already, or the disk is full.
        """
        key = (trajectory.task_id, trajectory.sample)
        if key in self._done:
            raise RunError(f"sample {key[1]} of task {key[0]} is in {self.path} already")
        self._write(trajectory.model_dump_json())
        self._done.add(key)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(
                f"another process is playing the run in {self.path.parent}; wait for it, stop it, "
                "or give another run_dir"
            ) from error

    def _cut_torn_line(self) -> None:
        data = self.path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.ftruncate(self._file, data.rfind(b"\n") + 1)
            os.fsync(self._file)

    def _write(self, record: str) -> None:
        line = record.encode() + b"\n"
        size = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, line)
            if written < len(line):
                raise OSError(f"only {written} of {len(line)} bytes could be written")
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, size)
            raise RunError(
                f"{self.path} cannot be written ({error}); what is in it is safe: free some space, "
                f"then `eolab runs resume {self.path.parent}`"
            ) from error

    def close(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        """Return the log."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the log."""
        self.close()


def log_path(path: Path) -> Path:
    """Return the log of a run's folder; a path of a log is returned as it is."""
    return path if path.suffix == ".jsonl" else path / LOG_FILE


def read_log(path: Path) -> LogContent:
    """Read a log, also while it is being written: an incomplete last line is left out.

    Args:
        path: The run's folder, or the log itself.

    Raises:
        RunError: It is absent, not of this format, or a line is malformed or stands twice.
    """
    path = log_path(path)
    if not path.is_file():
        raise RunError(f"no run at {path}; play one with `eolab run`")
    lines = _complete_lines(path.read_bytes())
    header = _parse(path, 1, next(lines, b"null"), json.loads)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise RunError(f"{path} is not a {FORMAT} file: its first line must name the format")
    if header.get("version") != VERSION:
        raise RunError(f"{path} has version {header.get('version')}; this code reads {VERSION}")
    trajectories: list[Trajectory] = []
    seen: dict[Key, int] = {}
    for number, line in enumerate(lines, start=2):
        found: Trajectory = _parse(path, number, line, Trajectory.model_validate_json)
        key = (found.task_id, found.sample)
        if key in seen:
            raise RunError(
                f"{path}, line {number} repeats line {seen[key]} (sample {key[1]} of task "
                f"{key[0]}); the file was edited: delete one of the two lines"
            )
        seen[key] = number
        trajectories.append(found)
    return LogContent(dict(header.get("config") or {}), trajectories)


def read_trajectories(path: Path) -> list[Trajectory]:
    """Return a run's rollouts by task id and sample; arguments and errors as :func:`read_log`."""
    found = read_log(path).trajectories
    return sorted(found, key=lambda item: (item.task_id, item.sample))


def _complete_lines(data: bytes) -> Iterator[bytes]:
    # what follows the last newline is incomplete, or nothing
    yield from data.split(b"\n")[:-1]


def _parse(path: Path, number: int, line: bytes, parse: Callable[[bytes], Any]) -> Any:
    try:
        return parse(line)
    except (ValidationError, ValueError) as error:
        raise RunError(
            f"{path}, line {number} is malformed ({str(error).splitlines()[0]}); the file was "
            "damaged or edited: delete that line and resume, which plays its rollout again"
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make a new file's name survive a power cut, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
