"""How far a mean over an image may be off by the choice of its pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCKS = 8


def block_standard_error(values: NDArray[np.float64], valid: NDArray[np.bool_]) -> float | None:
    """Return the standard error of a spatial mean, from the spread of block means.

    Neighbouring pixels are alike, so ``std / sqrt(pixels)`` is far too small. The window is cut in
    at most 8 x 8 blocks, whose means are nearly independent once a block is longer than the
    correlation (Carlstein 1986, doi:10.1214/aos/1176350057); blocks weigh by their valid pixels.

    Args:
        values: (rows, columns), any unit.
        valid: The same shape; True where a value counts.

    Returns:
        The standard error in the unit of the values, or None with fewer than four filled blocks.
    """
    rows, cols = values.shape
    row_block = np.arange(rows) * min(BLOCKS, rows) // rows
    col_block = np.arange(cols) * min(BLOCKS, cols) // cols
    labels = (row_block[:, None] * BLOCKS + col_block[None, :])[valid]
    count = np.bincount(labels, minlength=BLOCKS * BLOCKS)
    total = np.bincount(labels, weights=values[valid], minlength=BLOCKS * BLOCKS)
    filled = count > 0
    if filled.sum() < 4:
        return None
    means, weights = total[filled] / count[filled], count[filled] / count.sum()
    centre = float((weights * means).sum())
    effective = 1.0 / float((weights**2).sum())
    variance = (
        float((weights * (means - centre) ** 2).sum()) * effective / max(effective - 1.0, 1.0)
    )
    return float(np.sqrt(variance / effective))
