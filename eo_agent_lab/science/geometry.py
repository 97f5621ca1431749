"""Relations between boxes and between binary masks, in image coordinates (y downwards)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]
BoolArray = NDArray[np.bool_]

DIRECTIONS = (
    "right",
    "below right",
    "below",
    "below left",
    "left",
    "above left",
    "above",
    "above right",
)
"""Eight sectors of 45 degrees, clockwise from the positive x axis."""


class BoxRelation(NamedTuple):
    """How box a lies to box b; lengths in the boxes' own unit.

    ``direction`` is that of a's centre seen from b's. ``a_inside_b`` is the share of a's area that
    lies in b, 0 to 1; ``distance`` is between centres, ``gap`` between the nearest edges (0 when
    they touch).
    """

    direction: str
    iou: float
    a_inside_b: float
    b_inside_a: float
    distance: float
    gap: float


def direction_between(x: float, y: float, from_x: float, from_y: float) -> str:
    """Return the sector of point (x, y) seen from another, ``same place`` when they coincide."""
    dx, dy = x - from_x, y - from_y
    if math.hypot(dx, dy) < 1e-9:
        return "same place"
    sector = round(math.degrees(math.atan2(dy, dx)) / 45.0) % 8
    return DIRECTIONS[sector]


def box_relation(a: Box, b: Box) -> BoxRelation:
    """Return the relation of two boxes [x0, y0, x1, y1]; a box of no extent is a point."""
    ax, ay = (a[0] + a[2]) / 2, (a[1] + a[3]) / 2
    bx, by = (b[0] + b[2]) / 2, (b[1] + b[3]) / 2
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    overlap = max(0.0, width) * max(0.0, height)
    area_a = (a[2] - a[0]) * (a[3] - a[1])
    area_b = (b[2] - b[0]) * (b[3] - b[1])
    union = area_a + area_b - overlap
    return BoxRelation(
        direction_between(ax, ay, bx, by),
        overlap / union if union > 0 else 0.0,
        overlap / area_a if area_a > 0 else float(b[0] <= ax <= b[2] and b[1] <= ay <= b[3]),
        overlap / area_b if area_b > 0 else float(a[0] <= bx <= a[2] and a[1] <= by <= a[3]),
        math.hypot(ax - bx, ay - by),
        math.hypot(max(0.0, -width), max(0.0, -height)),
    )


class MaskRelation(NamedTuple):
    """How mask a lies to mask b; shares 0 to 1, areas in pixels of the common grid."""

    direction: str
    iou: float
    a_inside_b: float
    b_inside_a: float
    pixels_a: int
    pixels_b: int
    pixels_both: int
    distance: float


def mask_relation(a: BoolArray, b: BoolArray) -> MaskRelation:
    """Return the relation of two masks of one shape.

    Raises:
        ValueError: The shapes differ, or a mask is empty: nothing has no place.
    """
    if a.shape != b.shape:
        raise ValueError(f"masks of shape {a.shape} and {b.shape} cannot be compared")
    for name, mask in (("a", a), ("b", b)):
        if not mask.any():
            raise ValueError(f"mask {name} is empty: nothing has no place")
    both = int((a & b).sum())
    count_a, count_b = int(a.sum()), int(b.sum())
    (ay, ax), (by, bx) = (np.argwhere(mask).mean(axis=0) for mask in (a, b))
    return MaskRelation(
        direction_between(float(ax), float(ay), float(bx), float(by)),
        both / (count_a + count_b - both),
        both / count_a,
        both / count_b,
        count_a,
        count_b,
        both,
        float(math.hypot(ax - bx, ay - by)),
    )
