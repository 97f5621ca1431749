"""Percentile bootstrap intervals of means over examples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.errors import RunError

FloatArray = NDArray[np.float64]

RESAMPLES = 1000
"""As EO-Gym, appendix C.3.1."""

CONFIDENCE = 0.95


class Intervals(NamedTuple):
    """Means of columns with the ends of their intervals, each of shape (columns,)."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def bootstrap_means(
    values: FloatArray,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Intervals:
    """Resample rows with replacement and take percentiles of the columns' means.

    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", section 13.3. All columns share
    the resamples, so their intervals belong together.

    Args:
        values: Shape (examples, columns), any unit; NaN is left out of its column's means.
        rng: Where the resamples come from.
        resamples: How many.
        confidence: Level, between 0 and 1.

    Returns:
        NaN in all three places of a column that is NaN throughout.

    Raises:
        RunError: ``values`` is no matrix with rows or holds an infinity, or a setting is out of
            range.
    """
    if values.ndim != 2 or not len(values):
        raise RunError(f"a bootstrap needs a matrix with rows, not one of shape {values.shape}")
    if np.isinf(values).any():
        raise RunError("values hold an infinity; use NaN for what is not defined")
    if resamples < 1 or not 0 < confidence < 1:
        raise RunError(
            f"{resamples} resamples at level {confidence} give no interval; use at least one "
            "resample and a level between 0 and 1"
        )
    examples = len(values)
    weights = rng.multinomial(examples, np.full(examples, 1 / examples), size=resamples)
    seen = np.isfinite(values)
    filled = np.where(seen, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (weights @ filled) / (weights @ seen.astype(np.float64))
        mean = filled.sum(axis=0) / seen.sum(axis=0)
    low, high = np.full((2, values.shape[1]), np.nan)
    defined = seen.any(axis=0)
    if defined.any():
        tail = (1 - confidence) / 2
        low[defined], high[defined] = np.nanquantile(means[:, defined], [tail, 1 - tail], axis=0)
    return Intervals(mean, low, high)
