"""The log of a run: one fsynced JSON line per finished rollout, safe to kill at any instant."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from eo_agent_lab.errors import RunError
from eo_agent_lab.tasks.trajectory import FORMAT, VERSION, Trajectory

LOG_FILE = "trajectories.jsonl"


def _header(run_dir: Path, line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise RunError(
            f"{run_dir / LOG_FILE} is no run log: its first line must name the format {FORMAT}; "
            "remove the folder or give another"
        )
    if header.get("version") != VERSION:
        raise RunError(
            f"{run_dir / LOG_FILE} has version {header.get('version')}; this code reads {VERSION}"
        )
    return header


def _whole_lines(path: Path) -> tuple[list[bytes], int]:
    """Return the complete lines of a file, and how many bytes they take."""
    data = path.read_bytes() if path.is_file() else b""
    end = data.rfind(b"\n") + 1
    return data[:end].splitlines(), end


def _parse(run_dir: Path, lines: list[bytes]) -> list[Trajectory]:
    found: dict[tuple[str, int], Trajectory] = {}
    for number, line in enumerate(lines, start=2):
        try:
            trajectory = Trajectory.model_validate_json(line)
        except ValidationError as error:
            raise RunError(
                f"{run_dir / LOG_FILE}, line {number} is damaged ({error.error_count()} errors); "
                "remove that line, and the run will play it again"
            ) from error
        key = (trajectory.task_id, trajectory.sample)
        if key in found:
            raise RunError(
                f"{run_dir / LOG_FILE}, line {number} repeats task {key[0]}, sample {key[1]}; "
                "remove that line"
            )
        found[key] = trajectory
    return [found[key] for key in sorted(found)]


def read_config(run_dir: Path) -> dict[str, Any]:
    """Return the configuration that a run was started with.

    Raises:
        RunError: There is no run in the folder.
    """
    lines, _ = _whole_lines(run_dir / LOG_FILE)
    if not lines:
        raise RunError(f"no run in {run_dir}; start one with `eolab run`")
    config: dict[str, Any] = _header(run_dir, lines[0])["config"]
    return config


def read_trajectories(run_dir: Path) -> list[Trajectory]:
    """Return a run's rollouts by task and sample; a line torn by a kill is left out.

    Raises:
        RunError: There is no run, or a line in the middle is damaged or repeated.
    """
    lines, _ = _whole_lines(run_dir / LOG_FILE)
    if not lines:
        raise RunError(f"no run in {run_dir}; start one with `eolab run`")
    _header(run_dir, lines[0])
    return _parse(run_dir, lines[1:])


class RunLog:
    """A run's log, open for appending by one process at a time.

    Args:
        run_dir: The run's folder.
        config: What the results depend on; a log of other settings is refused.

    Raises:
        RunError: Another process writes the run, it has other settings, or it is damaged.
    """

    def __init__(self, run_dir: Path, config: dict[str, Any]) -> None:
        """Open or create the log, cut off a torn last line, and read what is done."""
        run_dir.mkdir(parents=True, exist_ok=True)
        self.path = run_dir / LOG_FILE
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise RunError(f"another process is writing {run_dir}; wait for it") from None
        try:
            lines, size = _whole_lines(self.path)
            os.ftruncate(self._file, size)
            if not lines:
                header = {"format": FORMAT, "version": VERSION, "config": config}
                self._write(json.dumps(header, sort_keys=True))
            elif (stored := _header(run_dir, lines[0])["config"]) != config:
                changed = sorted(
                    key for key in {*stored, *config} if stored.get(key) != config.get(key)
                )
                raise RunError(
                    f"{run_dir} holds a run with other settings ({', '.join(changed)}); give "
                    "another run_dir, or remove the folder"
                )
            self._done = {(t.task_id, t.sample) for t in _parse(run_dir, lines[1:])}
        except BaseException:
            os.close(self._file)
            raise

    def _write(self, line: str) -> None:
        data = line.encode("utf-8") + b"\n"
        if os.write(self._file, data) != len(data):
            raise RunError(f"the disk is full while writing {self.path}; free space and resume")
        os.fsync(self._file)

    def done(self) -> set[tuple[str, int]]:
        """Return (task_id, sample) of every finished rollout."""
        return set(self._done)

    def append(self, trajectory: Trajectory) -> None:
        """Add one finished rollout; it is on disk when this returns.

        Raises:
            RunError: It is there already, or the disk is full.
        """
        key = (trajectory.task_id, trajectory.sample)
        if key in self._done:
            raise RunError(f"task {key[0]}, sample {key[1]} is already in {self.path}")
        self._write(trajectory.model_dump_json())
        self._done.add(key)

    def __enter__(self) -> Self:
        """Return the log."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file, which lets others write."""
        os.close(self._file)
