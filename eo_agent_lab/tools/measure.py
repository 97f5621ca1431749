"""Measuring a spectral index over a window of a scene, with all that makes it evidence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.errors import NoDataError
from eo_agent_lab.lake.raster import Aoi, BandSource, Stack, quality_rule, read_stack
from eo_agent_lab.lake.sensors import band_for_role
from eo_agent_lab.science.indices import INDICES, normalized_difference
from eo_agent_lab.science.uncertainty import block_standard_error


class Measured(NamedTuple):
    """An index over one window.

    Attributes:
        values: float64 (rows, columns), NaN where undefined.
        valid: Pixels that count.
        stack: The bands it was made from, with their grid.
        source: Where they were read.
        data: Everything that makes the index evidence; JSON values only.
    """

    values: NDArray[np.float64]
    valid: NDArray[np.bool_]
    stack: Stack
    source: BandSource
    data: dict[str, Any]


def measure_index(source: BandSource, name: str, aoi: Aoi | None = None) -> Measured:
    """Compute an index over the valid pixels of a scene.

    Args:
        source: The scene's pixels.
        name: A key of :data:`eo_agent_lab.science.indices.INDICES`.
        aoi: (x0, y0, x1, y1) as fractions of the image, y downwards; None for all of it.

    Raises:
        MissingBandError: The scene lacks a band.
        NoDataError: Nothing valid is left.
        SceneError: A file is damaged.
    """
    index = INDICES[name]
    scene = source.scene
    first = band_for_role(scene.sensor, list(scene.bands), index.first)
    second = band_for_role(scene.sensor, list(scene.bands), index.second)
    stack = read_stack(source, [first, second], aoi)
    values = normalized_difference(stack.values[first], stack.values[second])
    valid = stack.valid & np.isfinite(values)
    total = int(valid.size)
    if not valid.any():
        _refuse(stack)
    level = scene.level if stack.calibrated else "DN"
    data: dict[str, Any] = {
        "index": name,
        "formula": index.formula,
        "bands": {
            role: {"name": band, **_calibration(source, band, stack.calibrated)}
            for role, band in ((index.first, first), (index.second, second))
        },
        "level": level,
        "level_note": scene.level_note,
        "valid_pixels": int(valid.sum()),
        "total_pixels": total,
        "valid_share": float(valid.sum() / total),
        "cloud_share": stack.cloud_share,
        "excluded": quality_rule(scene),
        "window": list(stack.window),
        "gsd_m": _gsd(source, (first, second)),
        "resampling": stack.resampling or "none",
        "datetime": scene.acquired.isoformat() if scene.acquired else None,
        "sensor": scene.sensor,
        "scene": scene.parent_id or scene.scene_id,
    }
    inside = values[valid]
    data |= {
        "mean": float(inside.mean()),
        "median": float(np.median(inside)),
        "std": float(inside.std()),
        "min": float(inside.min()),
        "max": float(inside.max()),
        "mean_se": block_standard_error(values, valid),
    }
    return Measured(values, valid, stack, source, data)


def _calibration(source: BandSource, band: str, calibrated: bool) -> dict[str, float | None]:
    record = source.scene.bands[band]
    scale, offset = (record.scale, record.offset) if calibrated else (1.0, 0.0)
    return {"scale": scale, "offset": offset, "nodata": record.nodata}


def _gsd(source: BandSource, bands: tuple[str, str]) -> float | None:
    sizes = [source.scene.bands[band].gsd_m for band in bands]
    known = [size for size in sizes if size is not None]
    return max(known) if known else None


def _refuse(stack: Stack) -> None:
    if stack.nodata.all() or (
        stack.flags is not None and (stack.nodata | stack.flags.nodata).all()
    ):
        raise NoDataError(
            "every pixel here is nodata (outside the swath); choose another aoi or another date"
        )
    if stack.flags is not None and not stack.valid.any():
        raise NoDataError(
            "every pixel here is cloud, shadow, cirrus or nodata; choose another date with "
            "get_previous_multispectral or get_next_multispectral"
        )
    raise NoDataError("no pixel here gives a value for this index; choose another aoi or date")
