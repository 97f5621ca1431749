"""Quality layers: which pixels are nodata, cloud, shadow or cirrus, from each agency's bits.

Sources: Sentinel-2 SCL classes, ESA Level-2A ATBD (S2-PDGS-MPC-ATBD-L2A); Landsat Collection 2
``QA_PIXEL``, USGS LSDS-1619 (Landsat 8-9) and LSDS-1618 (Landsat 4-7); Collection 1 ``BQA``, USGS
LSDS-1656; pre-Collection Landsat 8 ``BQA``, USGS Landsat 8 Data Users Handbook (LSDS-1574 v1.0).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.errors import SceneError

BoolArray = NDArray[np.bool_]


class Flags(NamedTuple):
    """Boolean arrays of one shape; a pixel may carry several flags."""

    nodata: BoolArray
    cloud: BoolArray
    shadow: BoolArray
    cirrus: BoolArray

    @property
    def excluded(self) -> BoolArray:
        """Pixels that no measurement may use."""
        return self.nodata | self.cloud | self.shadow | self.cirrus


RULES = {
    "SCL": "SCL classes 0 (no data), 1 (saturated), 3 (cloud shadow), 8-9 (cloud), 10 (cirrus)",
    "QA_PIXEL": "QA_PIXEL bits 0 (fill), 1 (dilated cloud), 2 (cirrus), 3 (cloud), 4 (shadow)",
    "BQA": "Collection 1 BQA: bit 0 (fill), bit 4 (cloud), shadow confidence (bits 7-8) and "
    "cirrus confidence (bits 11-12) high",
    "BQA_PRE": "pre-Collection BQA: bits 0-1 (fill, dropped frame), cloud confidence (bits 14-15) "
    "and cirrus confidence (bits 12-13) high",
    "CLM": "cloud mask: every value other than 0",
    "CLDPRB": "cloud probability of 65 % or more",
}
"""What each quality layer excludes, in words, for observations and evidence cards."""

PRECEDENCE = ("SCL", "QA_PIXEL", "BQA", "BQA_PRE", "CLM", "CLDPRB")
"""Where a scene has several layers, the first of these decides."""


def decode(kind: str, values: NDArray[np.generic]) -> Flags:
    """Turn a quality layer into flags.

    Args:
        kind: A key of :data:`RULES`.
        values: Integer layer as stored, any shape.

    Raises:
        SceneError: The kind of layer is unknown.
    """
    bits = np.asarray(values).astype(np.int64)
    none = np.zeros(bits.shape, dtype=bool)

    def bit(position: int) -> BoolArray:
        return np.asarray((bits >> position) & 1 == 1)

    def pair(position: int) -> BoolArray:
        return np.asarray((bits >> position) & 3 == 3)

    if kind == "SCL":
        return Flags(np.isin(bits, (0, 1)), np.isin(bits, (8, 9)), bits == 3, bits == 10)
    if kind == "QA_PIXEL":
        return Flags(bit(0), bit(1) | bit(3), bit(4), bit(2))
    if kind == "BQA":
        return Flags(bit(0), bit(4), pair(7), pair(11))
    if kind == "BQA_PRE":
        return Flags(bit(0) | bit(1), pair(14), none, pair(12))
    if kind == "CLM":
        return Flags(none, bits != 0, none, none)
    if kind == "CLDPRB":
        return Flags(none, bits >= 65, none, none)
    raise SceneError(f"unknown quality layer {kind!r}; known: {', '.join(RULES)}")


def bqa_layout(values: NDArray[np.generic]) -> str:
    """Tell Collection 1 ``BQA`` from the pre-Collection layer of the same name.

    Collection 1 uses bits 0-12 alone, so it never exceeds 8191; the earlier layer keeps its
    cloud confidence in bits 14-15, which are set for every observed pixel.
    """
    return "BQA_PRE" if np.asarray(values).size and int(np.max(values)) >= 1 << 13 else "BQA"
