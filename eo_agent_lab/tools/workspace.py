"""The workspace: the one folder that a tool call may read and write, and handles into it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path, PurePosixPath
from typing import Any

from eo_agent_lab.errors import WorkspaceError
from eo_agent_lab.lake import Lake

LAKE_PREFIX = "EO_GYM_DATA/"


class Workspace:
    """A folder, and optionally a lake whose scenes are addressed by handle.

    Args:
        root: The folder; it is made when absent.
        lake: Where scene handles are looked up.
    """

    def __init__(self, root: str | Path, lake: Lake | None = None) -> None:
        """Make the folder if need be."""
        self.root = Path(root)
        self.root.mkdir(parents=True, exist_ok=True)
        self._real = self.root.resolve()
        self.lake = lake

    def resolve(self, handle: str) -> Path:
        """Return the file or folder that a workspace-relative path names.

        Raises:
            WorkspaceError: The path is absolute, leaves the workspace (by ``..`` or by a link), or
                nothing is there.
        """
        pure = PurePosixPath(handle)
        if not handle or "\x00" in handle or "\\" in handle or len(handle) > 1000:
            raise WorkspaceError(f"{handle[:60]!r} is no path; give a path inside the workspace")
        if pure.is_absolute() or ".." in pure.parts or handle.startswith("~"):
            raise WorkspaceError(
                f"{handle!r} leaves the workspace; give a path relative to it, or a handle"
            )
        path = (self._real / pure).resolve()
        if not path.is_relative_to(self._real):
            raise WorkspaceError(
                f"{handle!r} is a link out of the workspace, which is not followed"
            )
        if not path.exists():
            raise WorkspaceError(
                f"nothing is at {handle!r}; use a handle that the question or a tool result gave"
            )
        return path

    def output(self, kind: str, suffix: str, call: dict[str, Any]) -> tuple[str, Path]:
        """Return the handle and path for a call's result; the same call gives the same name."""
        text = json.dumps(call, sort_keys=True, default=str)
        digest = hashlib.sha256(f"{kind}\x1f{text}".encode()).hexdigest()[:10]
        name = f"{kind}_{digest}{suffix}"
        path = self._real / name
        if path.is_symlink():
            raise WorkspaceError(f"{name} is a link; results are not written through links")
        return name, path
