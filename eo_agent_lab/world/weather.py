"""Clouds, their shadows and the sun, the same for every sensor of a day."""

from __future__ import annotations

import math
from datetime import date
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.world.terrain import PIXEL_M, smooth

FloatArray = NDArray[np.float64]


class Sky(NamedTuple):
    """The sky of one day over a place, at 10 m.

    Attributes:
        cloud: Opacity of water cloud, 0-1.
        cirrus: Opacity of thin high cloud, 0-1.
        shadow: Share of direct light that a cloud takes away, 0-1.
        haze: Aerosol left over after correction, added to blue most, about -0.01 to 0.02.
        elevation: Sun elevation, degrees; ``azimuth`` likewise, clockwise from north.
    """

    cloud: FloatArray
    cirrus: FloatArray
    shadow: FloatArray
    haze: float
    elevation: float
    azimuth: float


def sun(day: date, latitude: float) -> tuple[float, float]:
    """Return elevation and azimuth in degrees at 10:30 local time (Cooper 1969's declination)."""
    declination = math.radians(
        23.45 * math.sin(math.radians(360 * (284 + day.timetuple().tm_yday) / 365))
    )
    hour, phi = math.radians(-22.5), math.radians(latitude)
    sine = math.sin(phi) * math.sin(declination) + math.cos(phi) * math.cos(declination) * math.cos(
        hour
    )
    elevation = math.asin(sine)
    east = -math.cos(declination) * math.sin(hour)
    north = math.cos(phi) * math.sin(declination) - math.sin(phi) * math.cos(
        declination
    ) * math.cos(hour)
    return max(5.0, math.degrees(elevation)), math.degrees(math.atan2(east, north)) % 360


def make_sky(rng: np.random.Generator, day: date, latitude: float, size: int) -> Sky:
    """Draw the sky of a day: in ten, four clear, three partly cloudy, two cloudy, one shut."""
    from scipy.ndimage import shift

    elevation, azimuth = sun(day, latitude)
    lot = rng.random()
    if lot < 0.4:
        share = rng.uniform(0.0, 0.03)
    elif lot < 0.7:
        share = rng.uniform(0.05, 0.35)
    elif lot < 0.9:
        share = rng.uniform(0.4, 0.9)
    else:
        share = 1.0
    field = smooth(rng, size, size / rng.uniform(9, 22)) + 0.35 * smooth(rng, size, 4.0)
    edge = np.quantile(field, 1 - share) if share < 1 else field.min() - 1
    cloud = np.clip((field - edge) / 0.45, 0.0, 1.0) if share > 0 else np.zeros_like(field)
    if share == 1.0:
        cloud = np.clip(cloud, 0.75, 1.0)
    length = rng.uniform(350, 900) / math.tan(math.radians(elevation)) / PIXEL_M
    dy = length * math.cos(math.radians(azimuth))
    dx = -length * math.sin(math.radians(azimuth))
    moved = shift(cloud, (dy, dx), order=1, mode="constant", cval=0.0)
    cirrus = np.zeros_like(cloud)
    if rng.random() < 0.15:
        veil = smooth(rng, size, size / 5, 2.5)
        cirrus = np.clip(0.12 + 0.1 * veil, 0.0, 0.35)
    return Sky(
        cloud,
        cirrus,
        np.clip(moved, 0, 1) * (1 - cloud),
        rng.normal(0.002, 0.003),
        elevation,
        azimuth,
    )
