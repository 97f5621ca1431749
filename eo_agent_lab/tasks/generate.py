"""Tasks from a lake: drawn by seed, answered independently, ambiguous ones dropped by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, get_args

import numpy as np

from eo_agent_lab.errors import TaskError
from eo_agent_lab.lake import Lake
from eo_agent_lab.tasks import multispectral_questions as multispectral
from eo_agent_lab.tasks import vhr_questions as vhr
from eo_agent_lab.tasks.candidates import Candidate, Drawn, Dropped, Place, Pools, places
from eo_agent_lab.tasks.question_types import QUESTION_TYPES
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tasks.wording import Split

TRIES_PER_TASK = 60
"""Candidates that are looked at for each task that is wanted, before giving up on more."""

MIN_TRIES = 400


class Family(NamedTuple):
    """How questions of one type are drawn, from scenes of which modality."""

    modality: str
    variants: tuple[str, ...]
    draw: Callable[[np.random.Generator, list[Place]], Drawn]


FAMILIES: dict[str, Family] = {
    "multispectral_temporal": Family(
        "multispectral", multispectral.TEMPORAL_VARIANTS, multispectral.draw_temporal
    ),
    "area_dominance": Family(
        "multispectral", multispectral.DOMINANCE_VARIANTS, multispectral.draw_dominance
    ),
    "counting": Family("rgb", vhr.COUNTING_VARIANTS, vhr.draw_counting),
    "spatial_relation": Family("rgb", vhr.RELATION_VARIANTS, vhr.draw_relations),
}
"""Question type to family; the keys are those of ``QUESTION_TYPES``."""


class Generated(NamedTuple):
    """Tasks, and how many candidates each rule dropped, by (question type, split)."""

    tasks: list[Task]
    dropped: dict[tuple[str, Split], Counter[str]]

    def short(self, per_type: dict[Split, int]) -> dict[tuple[str, Split], int]:
        """Return how many tasks are missing where the lake did not hold enough."""
        have = Counter((task.question_type, task.split) for task in self.tasks)
        return {
            key: per_type[key[1]] - have[key]
            for key in self.dropped
            if have[key] < per_type[key[1]]
        }


def generate(lake: Lake, *, per_type: dict[Split, int], seed: int) -> list[Task]:
    """Return balanced tasks of every question type that the lake's scenes allow.

    Args:
        lake: Simulated or real scenes.
        per_type: Tasks wanted of each type, by split. Fewer come where the lake lacks candidates.
        seed: The same lake and seed give the same tasks.

    Raises:
        TaskError: Not one question can be asked, or a split is unknown.
    """
    return generate_with_counts(lake, per_type=per_type, seed=seed).tasks


def generate_with_counts(lake: Lake, *, per_type: dict[Split, int], seed: int) -> Generated:
    """Return the tasks of :func:`generate` and what was dropped for which reason."""
    unknown = set(per_type) - set(get_args(Split))
    if unknown:
        raise TaskError(f"no split {sorted(unknown)[0]!r}; use train and test")
    tasks: list[Task] = []
    dropped: dict[tuple[str, Split], Counter[str]] = {}
    by_split = places(lake)
    for number, (name, family) in enumerate(FAMILIES.items()):
        for side, split in enumerate(get_args(Split)):
            if not per_type.get(split):
                continue
            rng = np.random.default_rng([seed, number, side])
            reasons: Counter[str] = Counter()
            dropped[name, split] = reasons
            found = by_split.get((family.modality, split), [])
            chosen = _choose(rng, name, family, found, per_type[split], reasons)
            tasks += [_task(rng, name, split, candidate) for candidate in chosen]
    if not tasks and any(per_type.values()):
        most = sum(dropped.values(), Counter()).most_common(3)
        why = "; ".join(f"{reason} ({count})" for reason, count in most) or "no scene fits"
        raise TaskError(f"no question can be asked of this lake: {why}; add scenes to it")
    return Generated(_interleaved(tasks), dropped)


def _interleaved(tasks: list[Task]) -> list[Task]:
    """Return tasks split by split with the types taking turns, so that the first few show all."""
    turn: Counter[tuple[str, str]] = Counter()
    ranked: list[tuple[str, int, Task]] = []
    for task in tasks:
        ranked.append((task.split, turn[task.split, task.question_type], task))
        turn[task.split, task.question_type] += 1
    order = list(get_args(Split))
    return [item[2] for item in sorted(ranked, key=lambda item: (order.index(item[0]), item[1]))]


def _choose(
    rng: np.random.Generator,
    name: str,
    family: Family,
    found: list[Place],
    wanted: int,
    reasons: Counter[str],
) -> list[Candidate]:
    pools = Pools(QUESTION_TYPES[name].choices, family.variants, wanted)
    tries = MIN_TRIES + TRIES_PER_TASK * wanted
    for count, drawn in enumerate(family.draw(rng, found)):
        if isinstance(drawn, Dropped):
            reasons[drawn.reason] += 1
        elif not pools.add(drawn):
            reasons["asked already"] += 1
        if pools.full() or count + 1 >= tries:
            break
    chosen = pools.choose()
    return [chosen[int(position)] for position in rng.permutation(len(chosen))]


def _task(rng: np.random.Generator, name: str, split: Split, candidate: Candidate) -> Task:
    kind = QUESTION_TYPES[name]
    return Task(
        task_id=f"{name}-{candidate.key()}",
        question=candidate.ask(rng, split),
        images=candidate.images,
        data_source=kind.data_source,
        question_type=name,
        eo_task=kind.eo_task,
        choices=list(kind.choices),
        gold_answer=candidate.label,
        reference=candidate.reference,
        tools=list(kind.tools),
        split=split,
        evidence=candidate.evidence,
    )
