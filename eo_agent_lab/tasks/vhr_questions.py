"""Questions on objects in sub-metre images: counts, and where one object lies from another."""

from __future__ import annotations

import functools
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eo_agent_lab.errors import TaskError
from eo_agent_lab.lake.scene import Scene
from eo_agent_lab.perception.recorded import known_words
from eo_agent_lab.tasks import independent, wording
from eo_agent_lab.tasks.candidates import Candidate, Drawn, Dropped, Place
from eo_agent_lab.tasks.question_types import DIRECTIONS, MAX_COUNT
from eo_agent_lab.tasks.task import ReferenceCall
from eo_agent_lab.tasks.wording import Split

MIN_DEGREES = 8.0
"""A direction this close to its sector's border is not asked about."""

COUNTING_VARIANTS = ("one", "sum", "difference")
RELATION_VARIANTS = ("pair",)

_Pick = tuple[str, ...]


class _Image(NamedTuple):
    scene: Scene
    objects: list[independent.Labelled]
    root: Path


def draw_counting(rng: np.random.Generator, places: list[Place]) -> Drawn:
    """Draw every counting question once, in random order."""
    images = _images(places)
    known = known_words()
    asked: list[tuple[_Image, str, _Pick]] = []
    for image in images:
        present = sorted({item.category for item in image.objects})
        asked += [(image, "one", (name,)) for name in sorted({*present, *known})]
        for a, b in permutations(present, 2):
            asked.append((image, "difference", (a, b)))
            if a < b:
                asked.append((image, "sum", (a, b)))
    for position in rng.permutation(len(asked)):
        image, variant, names = asked[int(position)]
        yield _counting_candidate(image, variant, names)


def draw_relations(rng: np.random.Generator, places: list[Place]) -> Drawn:
    """Draw every pair of single objects once, in random order."""
    asked: list[tuple[_Image, str, str]] = []
    for image in _images(places):
        counts = Counter(item.category for item in image.objects)
        single = sorted(name for name, count in counts.items() if count == 1)
        for _ in range(len(counts) - len(single)):
            yield Dropped("several objects of the kind")
        asked += [(image, a, b) for a, b in permutations(single, 2)]
    for position in rng.permutation(len(asked)):
        image, a, b = asked[int(position)]
        yield _relation_candidate(image, a, b)


def _images(places: list[Place]) -> list[_Image]:
    found = []
    for place in places:
        for scene in place.scenes:
            if scene.annotations is not None:
                root = place.roots[scene.scene_id]
                objects = independent.read_objects(root / scene.annotations)
                found.append(_Image(scene, objects, root))
    return found


def _detect(image: _Image, category: str) -> ReferenceCall:
    return ReferenceCall(
        name="get_object_bbox_by_optical_image",
        arguments={"image_url": image.scene.scene_id, "prompt": _spoken(category)},
    )


def _spoken(category: str) -> str:
    return category.replace("-", " ").replace("_", " ").lower()


def _plural(category: str) -> str:
    word = _spoken(category)
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2] not in "aeiou" else f"{word}s"


def _counting_candidate(image: _Image, variant: str, names: _Pick) -> Candidate | Dropped:
    counts = [sum(item.category == name for item in image.objects) for name in names]
    reference = [_detect(image, name) for name in names]
    if variant == "one":
        total = counts[0]
    else:
        sign = 1 if variant == "sum" else -1
        total = counts[0] + sign * counts[1]
        expression = "{$1.count} " + ("+" if sign > 0 else "-") + " {$2.count}"
        reference.append(
            ReferenceCall(name="basic_calculator", arguments={"expression": expression})
        )
    if total > MAX_COUNT or max(counts) > MAX_COUNT:
        return Dropped(f"more than {MAX_COUNT} objects")
    if variant == "difference" and total < 1:
        return Dropped("the first kind does not outnumber the second")
    evidence = {
        "variant": variant,
        "counts": dict(zip(names, counts, strict=True)),
        "method": "eo_agent_lab.tasks.independent",
    }
    ask = functools.partial(_ask_count, image.scene, variant, names)
    return Candidate(str(total), variant, [image.scene.scene_id], reference, evidence, ask)


def _header(scene: Scene) -> str:
    return wording.header("optical", scene.scene_id, scene.gsd_m)


def _ask_count(
    scene: Scene, variant: str, names: _Pick, rng: np.random.Generator, split: Split
) -> str:
    return wording.fill(
        wording.pick(rng, split, "counting", variant),
        header=_header(scene),
        form=wording.count_form(rng, split, MAX_COUNT),
        **dict(zip("ab", map(_plural, names), strict=False)),
    )


def _relation_candidate(image: _Image, a: str, b: str) -> Candidate | Dropped:
    by_name = {item.category: item for item in image.objects}
    first, second = by_name[a], by_name[b]
    if first.overlaps(second):
        return Dropped("the two boxes overlap")
    found, margin = independent.direction(first, second)
    if margin < MIN_DEGREES:
        return Dropped(f"within {MIN_DEGREES:g} degrees of a sector's border")
    if found not in DIRECTIONS:
        raise TaskError(f"{found!r} is no direction of the question type; mend the table")
    reference = [
        _detect(image, a),
        _detect(image, b),
        ReferenceCall(
            name="get_bbox_geospatial_relationship",
            arguments={"box_a": "$1.boxes.0", "box_b": "$2.boxes.0"},
        ),
    ]
    evidence = {
        "a": a,
        "b": b,
        "centre_a": list(first.centre),
        "centre_b": list(second.centre),
        "degrees_to_border": margin,
        "north_up": independent.is_north_up(image.scene, image.root),
        "method": "eo_agent_lab.tasks.independent",
    }
    ask = functools.partial(_ask_relation, image.scene, a, b)
    return Candidate(found, "pair", [image.scene.scene_id], reference, evidence, ask)


def _ask_relation(scene: Scene, a: str, b: str, rng: np.random.Generator, split: Split) -> str:
    return wording.fill(
        wording.pick(rng, split, "spatial_relation", "pair"),
        header=_header(scene),
        a=_spoken(a),
        b=_spoken(b),
        form=wording.choice_form(rng, split, DIRECTIONS),
    )
