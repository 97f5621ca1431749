"""Answers computed from the files themselves, by a path of its own.

Nothing here comes from ``tools``, ``science`` or the lake's raster code: band files are opened with
rasterio, quality bits are decoded here, and label files are read here, so that an error on either
path shows as a disagreement. What both keep to is written down:

* ``value = DN * scale + offset`` of the scene's band record; ``DN == nodata`` is no measurement;
* SCL classes 0, 1, 3, 8, 9, 10 are left out (ESA, Sentinel-2 Level-2A ATBD); ``QA_PIXEL`` bits 0
  fill, 1 dilated cloud, 2 cirrus, 3 cloud, 4 shadow (USGS LSDS-1619); ``BQA`` of Collection 1 bit 0
  fill, bit 4 cloud, bits 7-8 shadow and 11-12 cirrus where both are set (USGS LSDS-1656);
* the finer of two bands is averaged over its measured pixels inside each coarser pixel;
* water is NDWI > 0 (McFeeters 1996), vegetation NDVI > 0.3, built-up NDBI > 0 (Zha et al. 2003).
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.errors import TaskError
from eo_agent_lab.lake.scene import Band, Scene

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Aoi = tuple[float, float, float, float]

_MSI = {"green": "B3", "red": "B4", "nir": "B8", "swir1": "B11"}
_OLI = {"green": "B3", "red": "B4", "nir": "B5", "swir1": "B6"}
_TM = {"green": "B2", "red": "B3", "nir": "B4", "swir1": "B5"}
_BANDS = {"landsat-5": _TM, "landsat-7": _TM, "landsat-8": _OLI, "landsat-9": _OLI}

_PAIRS = {"NDVI": ("nir", "red"), "NDWI": ("green", "nir"), "NDBI": ("swir1", "nir")}
_SECTORS = (
    "right",
    "above right",
    "above",
    "above left",
    "left",
    "below left",
    "below",
    "below right",
)
"""Counter-clockwise as the image is seen, from the right."""

COVER_RULES = {"water": ("NDWI", 0.0), "vegetation": ("NDVI", 0.3), "built-up": ("NDBI", 0.0)}


class Measured(NamedTuple):
    """An index over an area: ``mean`` and ``std`` in [-1, 1], share of its pixels that count."""

    mean: float
    std: float
    valid_share: float
    pixels: int


class Shares(NamedTuple):
    """Share of the valid pixels that each cover takes, and the lowest valid share of the three."""

    shares: dict[str, float]
    valid_share: float


class Labelled(NamedTuple):
    """One labelled object: its category as the file writes it, and its upright box in pixels."""

    category: str
    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def centre(self) -> tuple[float, float]:
        """Return the middle of the box, (x, y) with y downwards."""
        return (self.x0 + self.x1) / 2, (self.y0 + self.y1) / 2

    def overlaps(self, other: Labelled) -> bool:
        """Tell whether the two boxes share any area."""
        return min(self.x1, other.x1) > max(self.x0, other.x0) and min(self.y1, other.y1) > max(
            self.y0, other.y0
        )


def measure(scene: Scene, root: Path, index: str, aoi: Aoi | None = None) -> Measured:
    """Return an index over a scene or a part of it.

    Args:
        scene: The scene, for paths, scale, offset and nodata.
        root: Folder that its band paths start from.
        index: ``NDVI``, ``NDWI`` or ``NDBI``.
        aoi: (x0, y0, x1, y1) as fractions, y downwards; every pixel that it touches counts.

    Raises:
        TaskError: A band or the quality layer is missing, or the grids do not nest.
    """
    values, valid = _index(scene, root, index)
    values, valid = _cut(values, aoi), _cut(valid, aoi)
    inside = values[valid]
    if not inside.size:
        return Measured(math.nan, math.nan, 0.0, 0)
    return Measured(
        float(inside.mean()), float(inside.std()), inside.size / valid.size, inside.size
    )


def cover_shares(scene: Scene, root: Path, aoi: Aoi | None = None) -> Shares:
    """Return the shares of water, vegetation and built-up land (NaN where nothing is valid)."""
    shares: dict[str, float] = {}
    lowest = 1.0
    for cover, (index, threshold) in COVER_RULES.items():
        values, valid = _index(scene, root, index)
        values, valid = _cut(values, aoi), _cut(valid, aoi)
        inside = values[valid]
        shares[cover] = float((inside > threshold).mean()) if inside.size else math.nan
        lowest = min(lowest, inside.size / valid.size)
    return Shares(shares, lowest)


def is_north_up(scene: Scene, root: Path) -> bool:
    """Tell whether up in a scene's image is north: georeferenced and not rotated."""
    import rasterio

    record = next(iter(scene.bands.values()))
    try:
        with rasterio.open(root / record.path) as dataset:
            grid = dataset.transform
            return dataset.crs is not None and grid.a > 0 > grid.e and grid.b == grid.d == 0
    except rasterio.errors.RasterioError as error:
        raise TaskError(f"{record.path} cannot be read; fetch the scene again") from error


def read_objects(path: Path) -> list[Labelled]:
    """Return the objects of a DOTA label file (``x1 y1 .. x4 y4 category difficult``).

    Raises:
        TaskError: The file is missing or is not of that format.
    """
    if not path.is_file():
        raise TaskError(f"the label file {path.name} is missing; fetch the data again")
    found = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        fields = line.split()
        if len(fields) < 9:
            if fields and not fields[0].startswith(("imagesource:", "gsd:")):
                raise TaskError(f"{path.name} holds {line[:50]!r}, which is no DOTA object")
            continue
        corners = np.array(fields[:8], dtype=np.float64).reshape(4, 2)
        low, high = corners.min(axis=0), corners.max(axis=0)
        found.append(Labelled(fields[8], *map(float, (*low, *high))))
    return found


def direction(a: Labelled, b: Labelled) -> tuple[str, float]:
    """Return the sector of object a seen from b, and the degrees to that sector's nearer border."""
    (ax, ay), (bx, by) = a.centre, b.centre
    turns = math.degrees(math.atan2(by - ay, ax - bx)) / 45.0
    nearest = math.floor(turns + 0.5)
    return _SECTORS[nearest % 8], 22.5 - abs(turns - nearest) * 45.0


@lru_cache(maxsize=4)
def _index_of(text: str, root: Path, index: str) -> tuple[Array, Mask]:
    """Return the index of a whole scene, and the pixels that count; cached by the record."""
    scene = Scene.model_validate_json(text)
    names = _BANDS.get(scene.sensor, _MSI if scene.sensor.startswith("sentinel-2") else {})
    roles = _PAIRS[index]
    if any(names.get(role) not in scene.bands for role in roles):
        raise TaskError(f"a {scene.sensor} scene lacks a band for {index}; choose another scene")
    records = [scene.bands[names[role]] for role in roles]
    first, second = (_values(root, record) for record in records)
    rows, cols = (min(first.shape[axis], second.shape[axis]) for axis in (0, 1))
    first, second = _shrink(first, rows, cols), _shrink(second, rows, cols)
    total = first + second
    usable = np.isfinite(total)
    usable[usable] = total[usable] > 0
    result = np.full(total.shape, np.nan)
    result[usable] = (first[usable] - second[usable]) / total[usable]
    return result, usable & ~_excluded(scene, root, rows, cols)


def _index(scene: Scene, root: Path, index: str) -> tuple[Array, Mask]:
    return _index_of(scene.model_dump_json(), root, index)


def _open(root: Path, record: Band) -> NDArray[Any]:
    import rasterio

    try:
        with rasterio.open(root / record.path) as dataset:
            return np.asarray(dataset.read(record.index))
    except rasterio.errors.RasterioError as error:
        raise TaskError(f"{record.path} cannot be read; fetch the scene again") from error


def _values(root: Path, record: Band) -> Array:
    """Return a band as physical values, NaN where nothing was measured."""
    if record.scale is None:
        raise TaskError(f"{record.path} has no scale: its radiometric level is unknown")
    numbers = _open(root, record)
    values = numbers * np.float64(record.scale) + np.float64(record.offset or 0.0)
    if record.nodata is not None:
        values[numbers == record.nodata] = np.nan
    return np.asarray(values, dtype=np.float64)


def _shrink(values: Array, rows: int, cols: int) -> Array:
    """Average blocks of measured pixels until an array has the asked shape."""
    down, across = values.shape[0] // rows, values.shape[1] // cols
    if values.shape != (rows * down, cols * across):
        raise TaskError("the bands' grids do not nest; choose a scene with nested grids")
    if down == across == 1:
        return values
    blocks = values.reshape(rows, down, cols, across)
    seen = np.isfinite(blocks)
    count = seen.sum(axis=(1, 3))
    total = np.where(seen, blocks, 0.0).sum(axis=(1, 3))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _excluded(scene: Scene, root: Path, rows: int, cols: int) -> Mask:
    """Return the pixels that the quality layer takes out, on a grid of the asked shape."""
    if "SCL" in scene.quality:
        out = np.isin(_open(root, scene.quality["SCL"]), (0, 1, 3, 8, 9, 10))
    elif "QA_PIXEL" in scene.quality:
        out = (_open(root, scene.quality["QA_PIXEL"]) & 0b11111) != 0
    elif "BQA" in scene.quality:
        bits = _open(root, scene.quality["BQA"]).astype(np.int64)
        out = (bits & 0b10001) != 0
        for low in (7, 11):
            out |= (bits & (3 << low)) == (3 << low)
    else:
        raise TaskError("the scene has no quality layer, so its clouds are unknown; choose another")
    if out.shape[0] >= rows:
        return np.asarray(_shrink(out.astype(np.float64), rows, cols) > 0)
    if rows % out.shape[0] or cols % out.shape[1]:
        raise TaskError("the quality layer's grid does not nest; choose another scene")
    return np.repeat(np.repeat(out, rows // out.shape[0], 0), cols // out.shape[1], 1)


def _cut(array: NDArray[Any], aoi: Aoi | None) -> NDArray[Any]:
    if aoi is None:
        return array
    rows, cols = array.shape
    left, right = (math.floor(aoi[0] * cols + 1e-9), math.ceil(aoi[2] * cols - 1e-9))
    top, bottom = (math.floor(aoi[1] * rows + 1e-9), math.ceil(aoi[3] * rows - 1e-9))
    return array[max(top, 0) : bottom, max(left, 0) : right]
