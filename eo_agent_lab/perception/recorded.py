"""Verified responses: recorded ground truth, filtered by what was asked for."""

from __future__ import annotations

import re

from eo_agent_lab.errors import ToolError
from eo_agent_lab.lake import Lake, Scene
from eo_agent_lab.lake.dota import ObjectLabel, read_label_txt

SYNONYMS: dict[str, tuple[str, ...]] = {
    "plane": ("airplane", "aeroplane", "aircraft", "jet", "airliner"),
    "ship": ("boat", "vessel"),
    "small-vehicle": ("car", "small car", "vehicle"),
    "large-vehicle": ("truck", "lorry", "bus", "vehicle"),
    "storage-tank": ("tank", "oil tank", "fuel tank", "silo"),
    "tennis-court": ("court", "sports court"),
    "swimming-pool": ("pool",),
    "bridge": ("overpass",),
    "roundabout": ("traffic circle", "rotary"),
    "harbor": ("harbour", "pier", "dock"),
}
"""Other words for a category; a word under several categories finds all of them."""


def _normal(text: str) -> str:
    words = re.sub(r"[^a-z0-9]+", " ", text.lower()).split()
    return " ".join(_singular(word) for word in words if word not in ("the", "a", "all", "every"))


def _singular(word: str) -> str:
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def matching_categories(prompt: str, categories: list[str]) -> list[str]:
    """Return the categories that a prompt means: by name, else by synonym, never by guess."""
    wanted = _normal(prompt)
    exact = [category for category in categories if _normal(category) == wanted]
    if exact:
        return exact
    return [
        category
        for category in categories
        if wanted in {_normal(word) for word in SYNONYMS.get(category, ())}
    ]


def known_words() -> list[str]:
    """Return every category that prompts can name."""
    return sorted(SYNONYMS)


def recorded_objects(lake: Lake, scene: Scene, prompt: str) -> tuple[list[str], list[ObjectLabel]]:
    """Return the objects of a scene that a prompt means.

    Args:
        lake: Where the scene's annotation file lies.
        scene: A scene with annotations.
        prompt: A category or a synonym, singular or plural.

    Returns:
        The categories meant, and their objects; none when the category is known but absent.

    Raises:
        ToolError: The scene has no annotations, or the prompt names nothing known.
    """
    if scene.annotations is None:
        raise ToolError(
            f"no objects are recorded for scene {scene.scene_id}; use an image with annotations"
        )
    labels = read_label_txt(lake.root(scene) / scene.annotations)
    present = sorted({label.category for label in labels})
    categories = matching_categories(prompt, sorted({*present, *SYNONYMS}))
    if not categories:
        raise ToolError(
            f"{prompt[:60]!r} names no object category; ask for one of {', '.join(known_words())}"
        )
    return categories, [label for label in labels if label.category in categories]
