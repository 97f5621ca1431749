"""Spectral indices of EO-Gym, as records.

Normalised differences ``(a - b) / (a + b)``; all are dimensionless and lie in [-1, 1] for
non-negative reflectances. Sources: NDVI, Rouse et al. (1974), NASA SP-351; NDWI, McFeeters (1996),
doi:10.1080/01431169608948714; NDBI, Zha, Gao and Ni (2003), doi:10.1080/01431160304987; NDSI, Hall,
Riggs and Salomonson (1995), doi:10.1016/0034-4257(95)00137-P. Default thresholds are EO-Gym's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Index(NamedTuple):
    """One normalised difference: roles of its two bands, and what a high value means."""

    name: str
    title: str
    first: str
    second: str
    formula: str
    theme: str
    source: str


INDICES: dict[str, Index] = {
    index.name: index
    for index in (
        Index(
            "NDVI",
            "normalised difference vegetation index",
            "nir",
            "red",
            "(NIR - R) / (NIR + R)",
            "vegetation",
            "Rouse et al. (1974)",
        ),
        Index(
            "NDWI",
            "normalised difference water index (McFeeters, open water)",
            "green",
            "nir",
            "(G - NIR) / (G + NIR)",
            "water",
            "McFeeters (1996)",
        ),
        Index(
            "NDBI",
            "normalised difference built-up index",
            "swir1",
            "nir",
            "(SWIR1 - NIR) / (SWIR1 + NIR)",
            "urban",
            "Zha et al. (2003)",
        ),
        Index(
            "NDSI",
            "normalised difference snow index",
            "green",
            "swir1",
            "(G - SWIR1) / (G + SWIR1)",
            "snow",
            "Hall et al. (1995)",
        ),
    )
}


class MaskRule(NamedTuple):
    """A land-cover mask: the pixels where an index exceeds a threshold."""

    name: str
    index_name: str
    threshold: float
    source: str


MASKS: dict[str, MaskRule] = {
    rule.name: rule
    for rule in (
        MaskRule("water", "NDWI", 0.0, "McFeeters (1996): open water has NDWI > 0"),
        MaskRule("vegetation", "NDVI", 0.3, "customary lower bound of closed vegetation"),
        MaskRule("urban", "NDBI", 0.0, "Zha et al. (2003): built-up land has NDBI > 0"),
    )
}


def normalized_difference(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return ``(first - second) / (first + second)``.

    Args:
        first: Reflectances of any shape; NaN where unknown.
        second: The same shape.

    Returns:
        float64 of that shape; NaN where an input is NaN or the sum is not positive, since the ratio
        of a non-positive sum is no index of anything (it comes from over-corrected dark pixels).
    """
    total = np.asarray(first + second, dtype=np.float64)
    result = np.full(total.shape, np.nan)
    np.divide(first - second, total, out=result, where=total > 0)
    return result
