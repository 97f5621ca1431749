"""What Sentinel-2 and Landsat record of a place on a day: digital numbers and quality layers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.lake.sensors import SENSORS
from eo_agent_lab.world.spectra import CLOUD, ROLES, WATER, cover_spectra
from eo_agent_lab.world.terrain import PIXEL_M, CoverMap
from eo_agent_lab.world.weather import FloatArray, Sky

SENTINEL2_FILES = ["B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B8A", "B9", "B11", "B12"]
LANDSAT_FILES = ["B1", "B2", "B3", "B4", "B5", "B6", "B7"]
S2_SCALE, S2_OFFSET = 1e-4, -0.1
LANDSAT_SCALE, LANDSAT_OFFSET = 2.75e-5, -0.2
NOISE = 0.003
"""Standard deviation of a pixel's reflectance error, near MSI's signal-to-noise requirement."""

CLOUDY = 0.35
"""Opacity from which the masks call a pixel cloud; thinner cloud is missed, as it is in reality."""

_HAZE = np.array((1.4, 1.0, 0.7, 0.5, 0.45, 0.4, 0.35, 0.3, 0.28, 0.25, 0.08, 0.04))


class View(NamedTuple):
    """Layers by band or quality name, each uint16 or uint8 of its own shape."""

    bands: dict[str, NDArray[np.uint16]]
    quality: dict[str, NDArray[np.uint16] | NDArray[np.uint8]]


def surface(
    cover: CoverMap, texture: FloatArray, sky: Sky, day_of_year: int, latitude: float
) -> FloatArray:
    """Return reflectance seen through the sky at 10 m, shape (12, rows, columns), 0-1."""
    spectra = cover_spectra(day_of_year, latitude)
    land = spectra[cover].transpose(2, 0, 1)
    calm = np.where(cover == WATER, 1.0, texture)
    lit = land * calm * (1 - 0.62 * sky.shadow)
    lit = lit + sky.haze * _HAZE[:, None, None]
    veil = np.maximum(sky.cloud, 0.8 * sky.cirrus)
    seen = lit * (1 - veil) + CLOUD[:, None, None] * veil
    return np.asarray(np.clip(seen, 0.0005, 1.2))


def _coarse(field: FloatArray, factor: int) -> FloatArray:
    rows, cols = field.shape[-2] // factor, field.shape[-1] // factor
    shape = (*field.shape[:-2], rows, factor, cols, factor)
    return np.asarray(field.reshape(shape).mean(axis=(-3, -1)))


def _digital(
    values: FloatArray, rng: np.random.Generator, scale: float, offset: float, outside: FloatArray
) -> NDArray[np.uint16]:
    noisy = values + rng.normal(scale=NOISE, size=values.shape)
    digital = np.clip(np.rint((noisy - offset) / scale), 1, 65_535)
    return np.where(outside > 0, 0, digital).astype(np.uint16)


def see_sentinel2(
    light: FloatArray, cover: CoverMap, sky: Sky, outside: FloatArray, rng: np.random.Generator
) -> View:
    """Return twelve bands, SCL and cloud probability; ``outside`` marks pixels off the swath."""
    specs = SENSORS["sentinel-2a"].bands
    bands = {}
    for name in SENTINEL2_FILES:
        factor = int(specs[name].gsd_m) // PIXEL_M
        values = _coarse(light[ROLES.index(specs[name].role)], factor)
        bands[name] = _digital(values, rng, S2_SCALE, S2_OFFSET, _coarse(outside, factor))
    cloud, cirrus = _coarse(sky.cloud, 2), _coarse(sky.cirrus, 2)
    red, nir = (_coarse(light[ROLES.index(role)], 2) for role in ("red", "nir"))
    ndvi = (nir - red) / (nir + red)
    classes = np.where(ndvi > 0.4, 4, 5).astype(np.uint8)
    classes[_coarse((cover == WATER).astype(np.float64), 2) > 0.5] = 6
    classes[_coarse(sky.shadow, 2) > CLOUDY] = 3
    classes[cirrus > 0.12] = 10
    classes[cloud > CLOUDY] = 8
    classes[cloud > 0.7] = 9
    off = _coarse(outside, 2) > 0
    classes[off] = 0
    probability = np.rint(100 * np.clip(cloud / 0.7, 0, 1) * (cloud > 0.1)).astype(np.uint8)
    return View(bands, {"SCL": classes, "CLDPRB": np.where(off, 0, probability).astype(np.uint8)})


def see_landsat(
    light: FloatArray, cover: CoverMap, sky: Sky, outside: FloatArray, rng: np.random.Generator
) -> View:
    """Return seven bands and QA_PIXEL at 30 m, bits as in Collection 2 (USGS LSDS-1619)."""
    from scipy.ndimage import binary_dilation

    specs = SENSORS["landsat-8"].bands
    off = _coarse(outside, 3)
    bands = {}
    for name in LANDSAT_FILES:
        # OLI's near infrared is as narrow as, and lies where, Sentinel-2's B8A lies.
        role = "nir08" if specs[name].role == "nir" else specs[name].role
        values = _coarse(light[ROLES.index(role)], 3)
        bands[name] = _digital(values, rng, LANDSAT_SCALE, LANDSAT_OFFSET, off)
    cloud = _coarse(sky.cloud, 3) > CLOUDY
    cirrus = _coarse(sky.cirrus, 3) > 0.12
    shadow = (_coarse(sky.shadow, 3) > CLOUDY) & ~cloud
    dilated = binary_dilation(cloud, iterations=1) & ~cloud
    water = _coarse((cover == WATER).astype(np.float64), 3) > 0.5
    bits = np.zeros(cloud.shape, dtype=np.uint16)
    flags = {1: dilated, 2: cirrus, 3: cloud, 4: shadow, 6: ~(cloud | dilated), 7: water}
    for position, flag in flags.items():
        bits |= flag.astype(np.uint16) << np.uint16(position)
    for position, flag in {8: cloud, 10: shadow, 12: np.zeros_like(cloud), 14: cirrus}.items():
        bits |= np.where(flag, 3, 1).astype(np.uint16) << np.uint16(position)
    return View(bands, {"QA_PIXEL": np.where(off > 0, 1, bits).astype(np.uint16)})
