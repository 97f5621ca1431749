"""Wordings as data: the phrasings file, and how one is filled in."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
import yaml

from eo_agent_lab.errors import TaskError
from eo_agent_lab.paths import PACKAGE

Split = Literal["train", "test"]

FAMILIES = {"sentinel-2": "Sentinel-2", "landsat": "Landsat"}
"""Sensor families as questions name them, by the prefix that look-ups take."""


@cache
def phrasings() -> dict[str, Any]:
    """Return the contents of ``phrasings.yaml``.

    Raises:
        TaskError: A wording stands in both splits.
    """
    text = (PACKAGE / "tasks" / "phrasings.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.safe_load(text)
    for path, node in _leaves(table, ""):
        if set(node["train"]) & set(node["test"]):
            raise TaskError(f"a wording of {path} is both for training and for test; remove one")
    return table


def _leaves(node: dict[str, Any], path: str) -> list[tuple[str, dict[str, list[str]]]]:
    if set(node) == {"train", "test"}:
        return [(path, node)]
    return [
        leaf for key, value in node.items() for leaf in _leaves(value, f"{path}.{key}".strip("."))
    ]


def wordings(split: Split, *keys: str) -> list[str]:
    """Return the wordings of one split under a path of keys.

    Raises:
        TaskError: Nothing stands there.
    """
    node: Any = phrasings()
    for key in (*keys, split):
        if not isinstance(node, dict) or key not in node:
            raise TaskError(f"phrasings.yaml has nothing under {'.'.join((*keys, split))}; add it")
        node = node[key]
    return [str(item) for item in node]


def pick(rng: np.random.Generator, split: Split, *keys: str) -> str:
    """Return one wording of a split, drawn evenly."""
    found = wordings(split, *keys)
    return found[int(rng.integers(len(found)))]


def fill(template: str, **fields: object) -> str:
    """Return a wording with its fields filled in.

    Raises:
        TaskError: The wording names a field that is not given.
    """
    try:
        return template.format(**fields)
    except KeyError as error:
        raise TaskError(
            f"the wording {template[:60]!r} names {error}, which is not known"
        ) from error


def choice_form(rng: np.random.Generator, split: Split, choices: tuple[str, ...]) -> str:
    """Return the sentence that states the answer's form and its choices."""
    return fill(pick(rng, split, "answer_forms", "choices"), choices=", ".join(choices))


def count_form(rng: np.random.Generator, split: Split, most: int) -> str:
    """Return the sentence that asks for a whole number."""
    return fill(pick(rng, split, "answer_forms", "counts"), most=most)


def header(kind: str, handle: str, gsd_m: float | None, date: str | None = None) -> str:
    """Return the bracketed line that gives handle, capture date and pixel size."""
    gsd = f"GSD {gsd_m:g} m" if gsd_m else "GSD unknown"
    captured = f" captured: {date};" if date else ""
    return f"[{kind} image; handle: {handle};{captured} {gsd}]"
