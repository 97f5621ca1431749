"""Settings of the simulated Earth, and where its sites lie."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field


class WorldConfig(BaseModel):
    """A world is its settings: the same settings give the same bytes.

    Attributes:
        locations: Number of places; every third one, from the second, is held out for tests.
        start: First day.
        days: Length in days.
        sentinel2_every: Days between Sentinel-2 captures of a place (A and B take turns).
        landsat_every: Days between Landsat captures (8 and 9 take turns).
        vhr_per_location: Sub-metre RGB tiles of each place.
        size_m: Edge of a place in metres, a multiple of 120 so that 10 to 60 m pixels nest.
        seed: Everything random comes from it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    locations: int = Field(default=12, ge=1)
    start: date = date(2023, 1, 1)
    days: int = Field(default=730, ge=1)
    sentinel2_every: int = Field(default=20, ge=1)
    landsat_every: int = Field(default=32, ge=1)
    vhr_per_location: int = Field(default=10, ge=0)
    size_m: int = Field(default=1920, ge=240, le=24_000, multiple_of=120)
    seed: int = Field(default=0, ge=0)


TINY = WorldConfig(
    locations=2,
    start=date(2023, 4, 1),
    days=160,
    sentinel2_every=20,
    landsat_every=40,
    vhr_per_location=4,
    size_m=960,
    seed=7,
)
"""Two places and five months: what an environment without data falls back on."""


class Site(NamedTuple):
    """A real place on land: longitude and latitude in degrees, and what its land looks like."""

    lon: float
    lat: float
    character: str


SITES = (
    Site(-93.60, 42.00, "farm"),
    Site(4.95, 52.30, "lake"),
    Site(-121.50, 38.55, "town"),
    Site(-51.90, -11.00, "forest"),
    Site(14.60, 46.10, "forest"),
    Site(31.20, 30.60, "farm"),
    Site(113.40, 23.20, "town"),
    Site(-58.55, -34.80, "town"),
    Site(77.40, 28.60, "farm"),
    Site(36.30, -0.75, "lake"),
    Site(139.50, 35.90, "town"),
    Site(150.60, -33.70, "lake"),
)
"""Coordinates are real, pixels invented; later places lie a fraction of a degree from these."""


def site(index: int) -> Site:
    """Return the place of an index; beyond the table, neighbours of the table's places."""
    turn, base = divmod(index, len(SITES))
    found = SITES[base]
    return found._replace(lon=found.lon + 0.11 * turn, lat=found.lat + 0.07 * (turn % 5))


def is_test(index: int) -> bool:
    """Tell whether a place is held out for tests."""
    return index % 3 == 1
