"""Every path of the house, in one place."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent

DATA = Path("data")
RAW = DATA / "raw"
LAKE = DATA / "lake"
TASKS = DATA / "tasks"
RUNS = DATA / "runs"
TABLES = Path("tables")
FIGURES = Path("figures")


def cache_dir() -> Path:
    """Return the user's cache folder of this package, honouring ``XDG_CACHE_HOME``."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "eo_agent_lab"


def real_data() -> Path:
    """Return the folder of real imagery used by tests; it may be absent."""
    return Path(os.environ.get("EO_AGENT_LAB_REAL_DATA", str(ROOT.parent / "shared" / "real")))


def reference_data() -> Path:
    """Return the folder of recorded facts about the published systems; it may be absent."""
    return Path(os.environ.get("EO_AGENT_LAB_REFERENCE", str(ROOT.parent / "shared" / "reference")))


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name and rename it, so that no reader sees a half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    data = content.encode() if isinstance(content, str) else content
    with temporary.open("wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(temporary, path)
