"""The Scene contract: one observation of one place at one time by one sensor."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Modality = Literal["rgb", "multispectral", "sar"]
Level = Literal["DN", "TOA", "SR"]


class Band(BaseModel):
    """One band, and how its digital numbers become a physical quantity.

    ``value = DN * scale + offset`` gives reflectance (dimensionless, nominally 0-1) for
    reflective bands and kelvin for thermal bands of surface-temperature products. ``scale`` is
    None when the product does not say: the band then holds digital numbers and nothing else.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    """File, relative to the scene's ``root``."""
    index: int = 1
    """1-based band number inside the file."""
    gsd_m: float | None = None
    """Size of a pixel in metres, None when the file is not georeferenced."""
    scale: float | None = None
    offset: float | None = None
    nodata: float | None = None
    """Digital number that means "nothing here"."""


class Scene(BaseModel):
    """One observation. ``bands`` hold measurements, ``quality`` holds masks (SCL, QA, cloud)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scene_id: str
    """Sixteen hexadecimal digits that leak neither place nor date nor source."""
    source: str
    """Which collection it came from, such as ``simulated`` or the name of an ingested folder."""
    product_id: str
    """The producer's own name; never shown to an agent."""
    sensor: str
    """A key of :data:`eo_agent_lab.lake.sensors.SENSORS`, or ``unknown``."""
    modality: Modality
    level: Level
    """``DN`` when the radiometric level is unknown: absolute quantities are then refused."""
    level_note: str = ""
    """How the level was established, and what was assumed."""
    acquired: datetime | None = None
    """Time of acquisition, UTC; None when no metadata and no product id states it."""
    frame_index: int | None = None
    footprint: list[tuple[float, float]] | None = None
    """Exterior ring in WGS84 (longitude, latitude), closed; None without georeferencing."""
    epsg: int | None = None
    crs: str | None = None
    """WKT, when the CRS has no EPSG code."""
    gsd_m: float | None = None
    shape: tuple[int, int]
    """Rows, columns of the finest band."""
    root: str
    """Folder that band paths start from: absolute, or relative to the lake's folder."""
    bands: dict[str, Band]
    quality: dict[str, Band] = Field(default_factory=dict)
    """Masks by kind: ``SCL``, ``QA_PIXEL``, ``BQA``, ``BQA_PRE``, ``CLDPRB``, ``CLM``."""
    location_id: str | None = None
    """Scenes of one location can be fetched in time from one another."""
    companion_id: str | None = None
    parent_id: str | None = None
    window: tuple[int, int, int, int] | None = None
    """Column, row, width, height of this scene in its parent's pixels."""
    annotations: str | None = None
    """File of object annotations, relative to ``root``."""
    split: Literal["train", "test"] | None = None


def make_scene_id(source: str, product_id: str) -> str:
    """Return the id of a scene: a hash that is stable for one product of one source."""
    return hashlib.sha256(f"{source}\x1f{product_id}".encode()).hexdigest()[:16]


def make_location_id(key: str) -> str:
    """Return the id of a location from whatever names it (path/row, tile, rounded centre)."""
    return "loc_" + hashlib.sha256(key.encode()).hexdigest()[:10]
