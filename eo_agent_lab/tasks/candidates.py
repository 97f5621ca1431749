"""What every family of questions shares: places, candidates, and the balanced choice among them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eo_agent_lab.errors import TaskError
from eo_agent_lab.lake import Lake
from eo_agent_lab.lake.scene import Scene
from eo_agent_lab.tasks.task import ReferenceCall
from eo_agent_lab.tasks.wording import Split

MIN_VALID_SHARE = 0.7
"""Below this share of valid pixels an area is too cloudy to ask about."""

Ask = Callable[[np.random.Generator, Split], str]


class Place(NamedTuple):
    """A location's scenes of one modality, oldest first, and where their files lie."""

    location_id: str
    scenes: list[Scene]
    roots: dict[str, Path]


class Candidate(NamedTuple):
    """A question that could be asked; ``ask`` words it."""

    label: str
    variant: str
    images: list[str]
    reference: list[ReferenceCall]
    evidence: dict[str, Any]
    ask: Ask

    def key(self) -> str:
        """Return what makes two questions the same, however they are worded."""
        calls = [call.model_dump() for call in self.reference]
        text = json.dumps([self.variant, self.images, calls], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class Dropped(NamedTuple):
    """A question that is not asked, and the rule that says why."""

    reason: str


Drawn = Iterator[Candidate | Dropped]


def places(lake: Lake) -> dict[tuple[str, Split], list[Place]]:
    """Return the places of each modality and split, in the order of their ids.

    A location without a split of its own gets one by a hash of its id, one in five for test.

    Raises:
        TaskError: A location's scenes stand in both splits.
    """
    grouped: dict[tuple[str, str], list[Scene]] = {}
    stated: dict[str, Split] = {}
    for scene_id in lake.scene_ids():
        scene = lake.get(scene_id)
        location = scene.location_id or scene.scene_id
        split = scene.split or _hashed_split(location)
        if stated.setdefault(location, split) != split:
            raise TaskError(f"location {location} is in both splits; build the lake again")
        grouped.setdefault((scene.modality, location), []).append(scene)
    found: dict[tuple[str, Split], list[Place]] = {}
    for modality, location in sorted(grouped):
        scenes = sorted(grouped[modality, location], key=lambda s: (str(s.acquired), s.scene_id))
        place = Place(location, scenes, {s.scene_id: lake.root(s) for s in scenes})
        found.setdefault((modality, stated[location]), []).append(place)
    return found


def _hashed_split(location: str) -> Split:
    return "test" if hashlib.sha256(location.encode()).digest()[0] % 5 == 0 else "train"


class Pools:
    """Candidates by label and variant, each once, until there are enough of all."""

    def __init__(self, labels: tuple[str, ...], variants: tuple[str, ...], wanted: int) -> None:
        """Say which labels and variants there are and how many tasks are wanted in all."""
        self.wanted = wanted
        self._enough = -(-wanted // (len(labels) * len(variants)))
        self._pools: dict[str, dict[str, list[Candidate]]] = {
            label: {variant: [] for variant in variants} for label in labels
        }
        self._seen: set[str] = set()

    def add(self, candidate: Candidate) -> bool:
        """Keep a candidate unless the same question is there already."""
        key = candidate.key()
        if key in self._seen:
            return False
        self._seen.add(key)
        self._pools[candidate.label][candidate.variant].append(candidate)
        return True

    def full(self) -> bool:
        """Tell whether every cell holds its even part."""
        return all(
            len(pool) >= self._enough for cell in self._pools.values() for pool in cell.values()
        )

    def choose(self) -> list[Candidate]:
        """Return up to ``wanted`` candidates, labels as even as the pools allow, then variants."""
        available = {label: sum(map(len, cell.values())) for label, cell in self._pools.items()}
        chosen: list[Candidate] = []
        for label, count in even_parts(available, self.wanted).items():
            cell = self._pools[label]
            parts = even_parts({variant: len(pool) for variant, pool in cell.items()}, count)
            for variant, part in parts.items():
                chosen += cell[variant][:part]
        return chosen


def even_parts(available: dict[str, int], wanted: int) -> dict[str, int]:
    """Split a number over groups as evenly as their sizes allow; the first get the odd ones."""
    parts = dict.fromkeys(available, 0)
    left = min(wanted, sum(available.values()))
    while left:
        open_groups = [key for key in available if parts[key] < available[key]]
        step = max(1, left // len(open_groups))
        for key in open_groups:
            take = min(step, available[key] - parts[key], left)
            parts[key] += take
            left -= take
    return parts
