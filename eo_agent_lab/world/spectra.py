"""Reflectance of pure covers, and how green they are through the year.

Values are surface reflectance (0-1), rounded by us to the typical shapes of the USGS Spectral
Library 7 (Kokaly et al. 2017, doi:10.3133/ds1035: lawn grass, dry grass, soil, concrete and
asphalt mixes, sand) and, for water, of moderately turbid inland water (Spyrakos et al. 2018,
doi:10.1002/lno.10674). They are plausible, not measured here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

ROLES = (
    "coastal",
    "blue",
    "green",
    "red",
    "rededge1",
    "rededge2",
    "rededge3",
    "nir",
    "nir08",
    "watervapour",
    "swir1",
    "swir2",
)
"""Order of every spectrum; the names are those of the sensor table."""

COVERS = ("water", "forest", "grass", "crop", "late crop", "soil", "built-up", "sand")
WATER, FOREST, GRASS, CROP, LATE_CROP, SOIL, BUILT, SAND = range(len(COVERS))

_ENDMEMBERS = {
    "leaf": (0.020, 0.025, 0.065, 0.030, 0.110, 0.290, 0.370, 0.390, 0.410, 0.400, 0.170, 0.075),
    "needle": (0.015, 0.018, 0.038, 0.022, 0.060, 0.180, 0.220, 0.235, 0.245, 0.240, 0.095, 0.045),
    "straw": (0.070, 0.085, 0.125, 0.165, 0.195, 0.225, 0.250, 0.275, 0.290, 0.295, 0.330, 0.240),
    "soil": (0.075, 0.090, 0.130, 0.175, 0.195, 0.215, 0.235, 0.255, 0.270, 0.275, 0.330, 0.290),
    "water": (0.045, 0.048, 0.050, 0.034, 0.030, 0.024, 0.022, 0.019, 0.017, 0.014, 0.008, 0.006),
    "built": (0.105, 0.120, 0.140, 0.160, 0.170, 0.180, 0.188, 0.195, 0.202, 0.205, 0.245, 0.225),
    "sand": (0.170, 0.205, 0.265, 0.325, 0.345, 0.365, 0.385, 0.400, 0.415, 0.420, 0.480, 0.450),
}

CLOUD = np.array(
    (0.62, 0.61, 0.60, 0.60, 0.60, 0.60, 0.60, 0.60, 0.60, 0.45, 0.42, 0.34), dtype=np.float64
)
"""Thick water cloud, seen from above after surface correction."""


def endmember(name: str) -> NDArray[np.float64]:
    """Return one pure spectrum, shape (12,), reflectance 0-1."""
    return np.array(_ENDMEMBERS[name], dtype=np.float64)


def greenness(day_of_year: int, latitude: float) -> NDArray[np.float64]:
    """Return the green fraction (0-1) of every cover on a day, shape (8,).

    Seasons are a bell around mid-summer, half a year later in the south and flat near the equator;
    the two crops peak ten weeks apart (bell curves in place of Fisher's double logistic, 1994).
    """
    shift = 0 if latitude >= 0 else 182
    day = (day_of_year - shift) % 365
    seasonal = min(1.0, abs(latitude) / 35.0)

    def bell(peak: float, width: float, low: float, high: float) -> float:
        distance = min(abs(day - peak), 365 - abs(day - peak))
        value = low + (high - low) * math.exp(-0.5 * (distance / width) ** 2)
        return seasonal * value + (1 - seasonal) * 0.5 * (low + high)

    result = np.zeros(len(COVERS))
    result[FOREST] = bell(195, 65, 0.45, 0.95)
    result[GRASS] = bell(150, 70, 0.30, 0.80)
    result[CROP] = bell(150, 35, 0.05, 0.95)
    result[LATE_CROP] = bell(222, 35, 0.05, 0.95)
    result[SOIL] = 0.03
    result[BUILT] = 0.08 + 0.06 * bell(180, 70, 0.2, 1.0)
    return result


def cover_spectra(day_of_year: int, latitude: float) -> NDArray[np.float64]:
    """Return the spectrum of every cover on a day, shape (8, 12), reflectance 0-1."""
    green = greenness(day_of_year, latitude)
    leaf, needle, straw = endmember("leaf"), endmember("needle"), endmember("straw")
    bases = {
        FOREST: 0.5 * endmember("soil") + 0.5 * straw,
        GRASS: straw,
        CROP: endmember("soil"),
        LATE_CROP: endmember("soil"),
        SOIL: endmember("soil"),
        BUILT: endmember("built"),
    }
    spectra = np.empty((len(COVERS), len(ROLES)))
    for cover, base in bases.items():
        plant = 0.55 * needle + 0.45 * leaf if cover == FOREST else leaf
        spectra[cover] = green[cover] * plant + (1 - green[cover]) * base
    spectra[WATER] = endmember("water")
    spectra[SAND] = endmember("sand")
    return spectra
