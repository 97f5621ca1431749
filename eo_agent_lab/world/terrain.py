"""What would be there: land cover of a place, and how it changes."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.world.config import Site, WorldConfig
from eo_agent_lab.world.spectra import BUILT, CROP, FOREST, GRASS, LATE_CROP, SAND, SOIL, WATER

CoverMap = NDArray[np.uint8]
PIXEL_M = 10

_MIX = {
    "farm": {"water": 0.05, "forest": 0.18, "town_m": 260.0},
    "forest": {"water": 0.06, "forest": 0.58, "town_m": 150.0},
    "town": {"water": 0.06, "forest": 0.14, "town_m": 680.0},
    "lake": {"water": 0.38, "forest": 0.22, "town_m": 240.0},
}
"""Shares of the area, and the radius of the built-up part in metres, before they cut each other."""


class Event(NamedTuple):
    """One lasting change: from ``day`` on, the pixels of ``where`` are ``cover``."""

    kind: str
    day: date
    cover: int
    where: NDArray[np.bool_]


class Land(NamedTuple):
    """A place's land at 10 m: first cover, brightness texture around 1, and its changes."""

    first: CoverMap
    texture: NDArray[np.float64]
    events: tuple[Event, ...]

    def on(self, day: date) -> CoverMap:
        """Return the land cover of a day, shape (rows, columns)."""
        cover = self.first.copy()
        for event in self.events:
            if day >= event.day:
                cover[event.where] = event.cover
        return cover


def smooth(
    rng: np.random.Generator, size: int, scale: float, anisotropy: float = 1.0
) -> NDArray[np.float64]:
    """Return a random field of unit variance with a correlation length of ``scale`` pixels."""
    from scipy.ndimage import gaussian_filter

    field = gaussian_filter(rng.normal(size=(size, size)), (scale, scale * anisotropy), mode="wrap")
    return np.asarray((field - field.mean()) / field.std())


def make_land(config: WorldConfig, where: Site, rng: np.random.Generator) -> Land:
    """Return the land of a place."""
    size = config.size_m // PIXEL_M
    mix = _MIX[where.character]
    rows, cols = np.mgrid[0:size, 0:size].astype(np.float64)
    cover = _parcels(rng, rows, cols)
    height = smooth(rng, size, size / 7)
    woods = smooth(rng, size, size / 14)
    cover[woods > np.quantile(woods, 1 - mix["forest"])] = FOREST
    cover = _town(rng, cover, rows, cols, mix["town_m"] * config.size_m / 1920 / PIXEL_M)
    water = height < np.quantile(height, mix["water"])
    shore = (height < np.quantile(height, mix["water"] + 0.02)) & ~water
    cover[shore] = SAND
    cover[water | _river(rng, rows, cols)] = WATER
    texture = 1 + 0.05 * smooth(rng, size, 1.2) + 0.06 * smooth(rng, size, size / 10)
    return Land(cover, np.clip(texture, 0.7, 1.35), _events(config, rng, cover, height))


def _parcels(
    rng: np.random.Generator, rows: NDArray[np.float64], cols: NDArray[np.float64]
) -> CoverMap:
    angle = rng.uniform(0, np.pi / 2)
    along = rows * np.cos(angle) + cols * np.sin(angle)
    across = cols * np.cos(angle) - rows * np.sin(angle)
    across += 4000
    along += 4000
    strip = (across // rng.uniform(22, 34)).astype(np.int64)
    block = ((along + 13 * (strip % 3)) // rng.uniform(14, 26)).astype(np.int64)
    kinds = np.array([CROP, CROP, LATE_CROP, LATE_CROP, GRASS, GRASS, SOIL], dtype=np.uint8)
    lottery = rng.integers(0, 2**31)
    return np.asarray(kinds[((strip * 7919 + block * 104_729 + lottery) // 3) % len(kinds)])


def _town(
    rng: np.random.Generator,
    cover: CoverMap,
    rows: NDArray[np.float64],
    cols: NDArray[np.float64],
    radius: float,
) -> CoverMap:
    size = cover.shape[0]
    cy, cx = rng.uniform(0.3, 0.7, 2) * size
    ragged = 1 + 0.25 * smooth(rng, size, size / 16)
    inside = np.hypot(rows - cy, cols - cx) < radius * ragged
    green = smooth(rng, size, 3.0) > 1.1
    result = cover.copy()
    result[inside] = BUILT
    result[inside & green] = GRASS
    return result


def _river(
    rng: np.random.Generator, rows: NDArray[np.float64], cols: NDArray[np.float64]
) -> NDArray[np.bool_]:
    size = rows.shape[0]
    phase, swing = rng.uniform(0, 2 * np.pi), rng.uniform(0.05, 0.14) * size
    middle = rng.uniform(0.25, 0.75) * size + swing * np.sin(
        rows / size * rng.uniform(4, 9) + phase
    )
    return np.asarray(np.abs(cols - middle) < rng.uniform(2.0, 4.0))


def _events(
    config: WorldConfig, rng: np.random.Generator, cover: CoverMap, height: NDArray[np.float64]
) -> tuple[Event, ...]:
    """Draw a building site, a felling, and a reservoir that fills in four steps."""
    size = cover.shape[0]
    rows, cols = np.mgrid[0:size, 0:size]

    def blob(target: tuple[int, ...], share: float) -> NDArray[np.bool_]:
        candidates = np.argwhere(np.isin(cover, target))
        if len(candidates) == 0:
            return np.zeros_like(cover, dtype=bool)
        cy, cx = candidates[int(rng.integers(len(candidates)))]
        distance = np.hypot(rows - cy, cols - cx)
        return np.asarray((distance < share * size) & np.isin(cover, target))

    def when(low: float, high: float) -> date:
        return config.start + timedelta(days=int(rng.uniform(low, high) * config.days))

    land = (CROP, LATE_CROP, GRASS, SOIL)
    events = [
        Event("cleared for building", first := when(0.15, 0.5), SOIL, site := blob(land, 0.13)),
        Event("built", first + timedelta(days=config.days // 6), BUILT, site),
        Event("felled", when(0.3, 0.8), SOIL, blob((FOREST,), 0.14)),
    ]
    begin = when(0.2, 0.5)
    dry = cover != WATER
    if dry.any():
        level = np.quantile(height[dry], (0.02, 0.04, 0.06, 0.08))
        for step, limit in enumerate(level):
            day = begin + timedelta(days=step * max(1, config.days // 12))
            events.append(Event("flooded", day, WATER, dry & (height < limit)))
    return tuple(sorted(events, key=lambda event: event.day))
