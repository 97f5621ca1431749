"""What every fetcher gives: the scenes it could read, and what it could not, with the reason."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from eo_agent_lab.lake.scene import Scene


class Rejected(NamedTuple):
    """A file or folder that did not become a scene.

    Attributes:
        path: Where it is, relative to what was fetched.
        reason: What was wrong and what to do about it.
    """

    path: str
    reason: str


class Fetched(NamedTuple):
    """The result of one fetch.

    Attributes:
        scenes: What can enter the lake.
        rejected: Damaged or contradictory scenes, left out.
        ignored: Files that are no scene by nature (previews, elevation models), left out.
    """

    scenes: list[Scene]
    rejected: list[Rejected]
    ignored: list[Rejected] = []  # noqa: RUF012 - a NamedTuple default is never mutated


class Fetcher(Protocol):
    """Anything that brings scenes: a folder, the simulated Earth, a remote catalogue."""

    def fetch(self, *, progress: bool = False) -> Fetched:
        """Fetch everything that the fetcher was configured for."""
        ...
