"""Reading what tools say: the heuristic sees observations as text, like any language model."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_SCENE = re.compile(
    r"(?P<handle>[\w/]*\b[0-9a-f]{16}) \((?P<when>[^,)]+), (?P<sensor>[^,)]+), (?P<gsd>[^,)]+), "
    r"(?P<level>\w+)\)"
)
_HANDLES = re.compile(
    r"(?<![\w/])(?:(?:EO_GYM_DATA/)?[0-9a-f]{16}|\w+_[0-9a-f]{6,}\.(?:nc|tif))(?!\w)"
)
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
_BANDS = re.compile(
    r"(?P<index>ND\w\w) = (?P<formula>.+?) with (?P<bands>.+?) at (?P<level>\w+) level"
)


class Listed(NamedTuple):
    """One observation named by a look-up; ``date`` is ISO, empty when unknown."""

    handle: str
    date: str
    sensor: str


def read_scenes(text: str) -> list[Listed]:
    """Return the observations that a look-up names, in its order."""
    return [
        Listed(m["handle"], m["when"][:10] if m["when"][:1].isdigit() else "", m["sensor"])
        for m in _SCENE.finditer(text)
    ]


def read_handles(text: str) -> list[str]:
    """Return every scene handle, crop and mask that a text names, each once, in its order."""
    return list(dict.fromkeys(_HANDLES.findall(text)))


def read_index(text: str) -> dict[str, Any] | None:
    """Return the evidence in the text of an index tool, or None when it holds no mean.

    Shares are fractions, 0 to 1; ``mean_se`` is the standard error of the mean. What the text does
    not say is None.
    """
    mean = _number(rf"\bmean {_NUMBER}", text)
    if mean is None:
        return None
    said = _BANDS.search(text)
    return _evidence(text) | {
        "index": said["index"] if said else None,
        "formula": said["formula"] if said else None,
        "bands": said["bands"] if said else None,
        "level": said["level"] if said else None,
        "mean": mean,
        "mean_se": _number(rf"standard error of the mean {_NUMBER}", text),
        "std": _number(rf"\bstd {_NUMBER}", text),
    }


def read_share(text: str) -> dict[str, Any] | None:
    """Return the evidence in the text of a mask tool, or None when it holds no share."""
    share = _number(rf"{_NUMBER}% of the valid pixels", text)
    if share is None:
        return None
    rule = re.search(r"where (ND\w\w > [-\d.]+) \(([^)]*), (\w+)\)", text)
    return _evidence(text) | {
        "formula": rule[1] if rule else None,
        "bands": rule[2] if rule else None,
        "level": rule[3] if rule else None,
        "share": share / 100,
    }


def read_boxes(text: str) -> list[list[float]]:
    """Return the boxes that a detection lists."""
    return [
        [float(part) for part in match.split(",")]
        for match in re.findall(r"\[(-?[\d.]+(?:\s*,\s*-?[\d.]+){3})\]", text)
    ]


def read_count(text: str) -> int | None:
    """Return the number that a detection's text opens with."""
    match = re.match(r"\s*(\d+)\b", text)
    return int(match[1]) if match else None


def read_direction(text: str) -> str | None:
    """Return the direction in the text of the relation tool."""
    match = re.search(r"Box a is (?:to the )?(.+?)(?: of)? box b", text)
    return match[1] if match else None


def read_result(text: str) -> float | None:
    """Return the value in the calculator's text."""
    return _number(rf"= {_NUMBER}\s*$", text)


def _evidence(text: str) -> dict[str, Any]:
    valid = _number(rf"[Vv]alid {_NUMBER}%", text)
    cloud = _number(rf"cloud share {_NUMBER}%", text)
    when = re.search(r"; ([\w-]+), (\d{4}-\d{2}-\d{2})T?[^;]*$", text)
    return {
        "date": when[2] if when else None,
        "sensor": when[1] if when else None,
        "gsd_m": _number(rf"pixels at {_NUMBER} m", text),
        "valid_share": None if valid is None else valid / 100,
        "cloud_share": None if cloud is None else cloud / 100,
    }


def _number(pattern: str, text: str) -> float | None:
    match = re.search(pattern, text, re.IGNORECASE)
    return float(match[1]) if match else None
