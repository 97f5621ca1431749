"""Figure style: colours, type sizes, and saving to bytes that never change.

Matplotlib loads inside functions. Figures are made without pyplot, so no global state is touched.
The ground stays white, which is readable beside light and dark pages alike.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eo_agent_lab.errors import ConfigError
from eo_agent_lab.paths import write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PALETTE: dict[str, str] = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
    "yellow": "#F0E442",
}
"""The eight colours of Okabe and Ito (2008), "Color Universal Design", jfly.uni-koeln.de/color;
in the order in which series take them, those that stand out on white first."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""One marker a series, so that no series is told apart by colour alone."""

INK = "#222222"
QUIET = "#666666"

DPI = 150
"""Dots per inch of the PNG files."""

_RC: dict[str, Any] = {
    "svg.hashsalt": "eo_agent_lab",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "text.usetex": False,
    "text.parse_math": False,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "path.simplify": False,
}


@contextmanager
def context() -> Iterator[None]:
    """Apply the house style within a block, whatever a user's matplotlibrc says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        for key, value in _RC.items():
            matplotlib.rcParams[key] = value  # type: ignore[index]
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, its size in inches; draw into it within :func:`context`.

    Raises:
        ConfigError: A side is not positive.
    """
    from matplotlib.figure import Figure

    if width <= 0 or height <= 0:
        raise ConfigError(f"a figure of {width} x {height} inches has no area; give positive sides")
    return Figure(figsize=(width, height), dpi=DPI)


def series_style(position: int) -> dict[str, str]:
    """Return colour and marker of the series at a position, counted from 0."""
    colours = list(PALETTE.values())
    return {
        "color": colours[position % len(colours)],
        "marker": MARKERS[(position + position // len(colours)) % len(MARKERS)],
    }


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem.svg`` and ``stem.png``; the same figure gives the same bytes on one machine.

    Ids in the SVG come from a fixed salt; neither file carries a date or a version of matplotlib.

    Returns:
        The two files, SVG first.
    """
    written: list[Path] = []
    metadata: dict[str, dict[str, Any]] = {
        "svg": {"Date": None, "Creator": None},
        "png": {"Software": None},
    }
    for suffix, tags in metadata.items():
        buffer = io.BytesIO()
        with context():
            figure.savefig(buffer, format=suffix, dpi=DPI, metadata=tags)
        path = stem.with_name(f"{stem.name}.{suffix}")
        write_atomic(path, buffer.getvalue())
        written.append(path)
    return written
