"""Sub-metre RGB tiles with oriented objects at true sizes, annotated in DOTA's format."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from eo_agent_lab.world.terrain import smooth

SIDE = 512
GSD = 0.5
_OVER = 2
"""Drawn at twice the resolution and averaged, so that edges are soft."""

Point = tuple[float, float]
Colour = tuple[int, int, int]


class Placed(NamedTuple):
    """One object: category and the corners of its oriented box, (x, y) in pixels."""

    category: str
    corners: list[Point]


class Tile(NamedTuple):
    """A picture, uint8 (512, 512, 3), and the objects in it."""

    image: NDArray[np.uint8]
    objects: list[Placed]
    scene: str


class _Object(NamedTuple):
    category: str
    length_m: tuple[float, float]
    width_of_length: float
    draw: Callable[[_Brush], None]


class _Brush:
    """Draws in an object's own frame: x along its length and y across it, both from -1 to 1."""

    def __init__(
        self, pen: ImageDraw.ImageDraw, centre: Point, half: Point, angle: float, colour: Colour
    ) -> None:
        self.pen, self.colour = pen, colour
        self._centre, self._half = centre, half
        self._cos, self._sin = math.cos(angle), math.sin(angle)

    def at(self, x: float, y: float) -> Point:
        """Return the pixel of a point of the object's frame."""
        u, v = x * self._half[0], y * self._half[1]
        px = self._centre[0] + u * self._cos - v * self._sin
        py = self._centre[1] + u * self._sin + v * self._cos
        return px, py

    def shape(self, points: list[Point], colour: Colour) -> None:
        """Fill a polygon."""
        self.pen.polygon([tuple(_OVER * c for c in self.at(*p)) for p in points], fill=colour)

    def disc(self, x: float, y: float, radius: float, colour: Colour) -> None:
        """Fill a circle whose radius is a share of the object's half width."""
        px, py = self.at(x, y)
        r = radius * self._half[1]
        self.pen.ellipse(
            [_OVER * (px - r), _OVER * (py - r), _OVER * (px + r), _OVER * (py + r)], colour
        )


def _shade(colour: Colour, factor: float) -> Colour:
    red, green, blue = (int(min(255, max(0, c * factor))) for c in colour)
    return red, green, blue


_BOX: list[Point] = [(-1, -1), (1, -1), (1, 1), (-1, 1)]


def _plane(b: _Brush) -> None:
    body: list[Point] = [(-1, -0.06), (0.85, -0.08), (1, 0), (0.85, 0.08), (-1, 0.06)]
    for side in (-1, 1):
        b.shape([(0.25, 0.0), (-0.05, 0.0), (-0.38, side), (-0.22, side)], b.colour)
        b.shape([(-0.72, 0.0), (-0.86, 0.0), (-0.98, 0.38 * side), (-0.88, 0.38 * side)], b.colour)
        b.disc(0.02, 0.34 * side, 0.06, _shade(b.colour, 0.7))
    b.shape(body, _shade(b.colour, 1.05))


def _ship(b: _Brush) -> None:
    b.shape([(-1, -0.85), (0.55, -1), (1, 0), (0.55, 1), (-1, 0.85)], b.colour)
    b.shape([(-0.8, -0.5), (0.2, -0.5), (0.2, 0.5), (-0.8, 0.5)], _shade(b.colour, 0.78))
    b.shape([(-0.75, -0.4), (-0.5, -0.4), (-0.5, 0.4), (-0.75, 0.4)], (235, 235, 235))


def _vehicle(b: _Brush) -> None:
    b.shape(_BOX, b.colour)
    b.shape([(0.15, -0.75), (0.5, -0.75), (0.5, 0.75), (0.15, 0.75)], (45, 50, 58))
    b.shape([(-0.75, -0.7), (-0.5, -0.7), (-0.5, 0.7), (-0.75, 0.7)], (52, 56, 62))


def _truck(b: _Brush) -> None:
    b.shape(_BOX, b.colour)
    b.shape([(0.72, -1), (1, -1), (1, 1), (0.72, 1)], _shade(b.colour, 0.6))


def _tank(b: _Brush) -> None:
    b.disc(0, 0, 1.0, b.colour)
    b.disc(0.1, -0.1, 0.82, _shade(b.colour, 1.06))
    b.disc(0, 0, 0.1, _shade(b.colour, 0.7))


def _court(b: _Brush) -> None:
    b.shape(_BOX, (52, 110, 78))
    b.shape([(-0.65, -0.6), (0.65, -0.6), (0.65, 0.6), (-0.65, 0.6)], b.colour)
    for x in (-0.64, -0.34, 0.0, 0.34, 0.62):
        b.shape([(x, -0.6), (x + 0.03, -0.6), (x + 0.03, 0.6), (x, 0.6)], (238, 238, 232))


def _pool(b: _Brush) -> None:
    b.shape(_BOX, (205, 198, 186))
    b.shape([(-0.8, -0.7), (0.8, -0.7), (0.8, 0.7), (-0.8, 0.7)], b.colour)


def _roundabout(b: _Brush) -> None:
    b.disc(0, 0, 1.0, (92, 92, 95))
    b.disc(0, 0, 0.52, (196, 192, 182))
    b.disc(0, 0, 0.46, (86, 120, 66))


CATALOGUE: dict[str, _Object] = {
    item.category: item
    for item in (
        _Object("plane", (30, 42), 0.92, _plane),
        _Object("ship", (18, 60), 0.2, _ship),
        _Object("small-vehicle", (4.3, 4.9), 0.42, _vehicle),
        _Object("large-vehicle", (9, 15), 0.24, _truck),
        _Object("storage-tank", (14, 28), 1.0, _tank),
        _Object("tennis-court", (34, 37), 0.5, _court),
        _Object("swimming-pool", (9, 14), 0.5, _pool),
        _Object("roundabout", (34, 46), 1.0, _roundabout),
    )
}
"""Length in metres and width as a share of it: aircraft from narrow- to wide-body, ships from
tugs to coasters, vehicles of the street, courts of the ITF's playing area (36.6 m by 18.3 m)."""

_COLOURS: dict[str, tuple[Colour, ...]] = {
    "plane": ((236, 238, 242), (222, 226, 232)),
    "ship": ((160, 66, 52), (72, 84, 104), (196, 196, 190)),
    "small-vehicle": ((228, 228, 230), (60, 62, 66), (150, 36, 34), (44, 74, 128), (170, 172, 176)),
    "large-vehicle": ((240, 240, 238), (206, 178, 60), (70, 96, 140)),
    "storage-tank": ((226, 226, 222), (204, 206, 206)),
    "tennis-court": ((64, 102, 150), (150, 84, 62)),
    "swimming-pool": ((64, 170, 196), (82, 188, 206)),
    "roundabout": ((92, 92, 95),),
}


class _Setting(NamedTuple):
    """A kind of place: ground colours left and right of an edge, and objects with counts."""

    left: Colour
    right: Colour
    objects: tuple[tuple[str, str, int, int], ...]


_GREEN, _TAR, _CONCRETE, _SEA, _SAND = (
    (96, 118, 70),
    (104, 104, 106),
    (168, 166, 160),
    (34, 66, 88),
    (176, 160, 128),
)

SETTINGS: dict[str, _Setting] = {
    "airport": _Setting(
        _CONCRETE,
        _GREEN,
        (("plane", "left", 1, 7), ("large-vehicle", "left", 0, 4), ("storage-tank", "right", 0, 4)),
    ),
    "harbour": _Setting(
        _SEA,
        _CONCRETE,
        (("ship", "left", 1, 8), ("storage-tank", "right", 0, 5), ("large-vehicle", "right", 0, 6)),
    ),
    "suburb": _Setting(
        _GREEN,
        _TAR,
        (
            ("swimming-pool", "left", 0, 6),
            ("tennis-court", "left", 0, 3),
            ("roundabout", "right", 0, 1),
            ("small-vehicle", "right", 0, 12),
        ),
    ),
    "depot": _Setting(
        _TAR,
        _SAND,
        (
            ("large-vehicle", "left", 1, 9),
            ("small-vehicle", "left", 0, 12),
            ("storage-tank", "right", 0, 6),
            ("roundabout", "left", 0, 1),
        ),
    ),
}


def draw_tile(rng: np.random.Generator) -> Tile:
    """Draw a tile; counts of a category reach 12, and often there is exactly one."""
    scene = str(rng.choice(sorted(SETTINGS)))
    setting = SETTINGS[scene]
    edge = SIDE * rng.uniform(0.42, 0.62)
    image = _ground(rng, setting, edge)
    canvas = Image.fromarray(image).resize((SIDE * _OVER, SIDE * _OVER), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(canvas)
    objects: list[Placed] = []
    taken: list[tuple[float, float, float]] = []
    for category, side, low, high in setting.objects:
        count = 1 if rng.random() < 0.35 else int(rng.integers(low, high + 1))
        angle = rng.uniform(0, 2 * math.pi)
        for _ in range(count):
            turned = (
                angle if category.endswith(("vehicle", "court")) else rng.uniform(0, 2 * math.pi)
            )
            placed = _place(rng, pen, CATALOGUE[category], side, edge, turned, taken)
            if placed is not None:
                objects.append(placed)
    small = canvas.resize((SIDE, SIDE), Image.Resampling.BOX)
    noisy = np.asarray(small, dtype=np.float64) + rng.normal(scale=2.5, size=(SIDE, SIDE, 3))
    return Tile(np.clip(np.rint(noisy), 0, 255).astype(np.uint8), objects, scene)


def _ground(rng: np.random.Generator, setting: _Setting, edge: float) -> NDArray[np.uint8]:
    rows, cols = np.mgrid[0:SIDE, 0:SIDE].astype(np.float64)
    border = edge + 12 * np.sin(rows / SIDE * rng.uniform(3, 7) + rng.uniform(0, 6))
    right = (cols > border)[..., None]
    base = np.where(right, np.array(setting.right), np.array(setting.left)).astype(np.float64)
    mottle = 0.035 * smooth(rng, SIDE, 22) + 0.03 * smooth(rng, SIDE, 2.0)
    ground = base * (1 + mottle[..., None])
    road = np.abs(rows - SIDE * rng.uniform(0.1, 0.9)) < 9
    paved = road & right[..., 0] & (setting.right != _SEA)
    ground[paved] = np.array((88, 88, 92)) * (1 + 0.02 * smooth(rng, SIDE, 3)[paved][:, None])
    return np.clip(np.rint(ground), 0, 255).astype(np.uint8)


def _place(
    rng: np.random.Generator,
    pen: ImageDraw.ImageDraw,
    kind: _Object,
    side: str,
    edge: float,
    angle: float,
    taken: list[tuple[float, float, float]],
) -> Placed | None:
    """Find a free spot on the right side of the edge, draw the object and its shadow there."""
    length = rng.uniform(*kind.length_m) / GSD
    half = (length / 2, length * kind.width_of_length / 2)
    reach = math.hypot(*half)
    low, high = (
        (reach + 4, edge - reach - 16) if side == "left" else (edge + reach + 16, SIDE - reach - 4)
    )
    if high <= low:
        return None
    for _ in range(60):
        centre = (float(rng.uniform(low, high)), float(rng.uniform(reach + 4, SIDE - reach - 4)))
        if all(math.hypot(centre[0] - x, centre[1] - y) > reach + r + 3 for x, y, r in taken):
            break
    else:
        return None
    taken.append((*centre, reach))
    colour = _COLOURS[kind.category][int(rng.integers(len(_COLOURS[kind.category])))]
    flat = kind.category in ("tennis-court", "swimming-pool", "roundabout")
    if not flat:
        drop = 3.0 if kind.category != "small-vehicle" else 1.2
        dark = _Brush(pen, (centre[0] + drop, centre[1] + drop), half, angle, (28, 30, 34))
        if kind.category == "plane":
            dark.shape([(-1, -0.06), (1, 0), (-1, 0.06)], (60, 60, 62))
        elif kind.category == "storage-tank":
            dark.disc(0, 0, 1.0, (48, 48, 50))
        else:
            dark.shape([(-1, -0.9), (0.9, -0.9), (0.9, 0.9), (-1, 0.9)], (40, 42, 46))
    brush = _Brush(pen, centre, half, angle, colour)
    kind.draw(brush)
    return Placed(kind.category, [brush.at(x, y) for x, y in _BOX])


def label_text(tile: Tile) -> str:
    """Return the tile's annotation file."""
    lines = ["imagesource:simulated", f"gsd:{GSD}"]
    for item in tile.objects:
        numbers = " ".join(f"{value:.1f}" for corner in item.corners for value in corner)
        lines.append(f"{numbers} {item.category} 0")
    return "\n".join(lines) + "\n"
