"""Drawing functions: data in, a matplotlib Figure out; nothing is read or written here."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab import style
from eo_agent_lab.errors import ConfigError
from eo_agent_lab.evaluate.metrics import pass_key
from eo_agent_lab.tasks.trajectory import CallRecord, Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 10.0
MARGIN = 0.25
LINE = 0.165
"""Height of a line of text in inches."""

PER_ROW = 4
GAP = 0.12
"""Inches between pictures."""

WRAP = 140
MONO_WRAP = 112
MAX_OBSERVATION_LINES = 3

_Row = Sequence[tuple[NDArray[np.uint8], str]]


class _Line(NamedTuple):
    text: str
    indent: float = 0.0
    colour: str = style.INK
    weight: str = "normal"
    mono: bool = False


def trajectory_figure(
    trajectory: Trajectory,
    pictures: Sequence[tuple[NDArray[np.uint8], str]],
    *,
    question: str,
    verdict: str = "",
    caption: str = "",
) -> Figure:
    """Draw one rollout: the question, the pictures, each call with its observation, the answer.

    Args:
        trajectory: The rollout.
        pictures: Images, uint8 of shape (rows, columns, 3), each with its caption.
        question: What was asked.
        verdict: What to say of the answer, such as "right".
        caption: Stands at the foot: what data this is, and what colours mean.
    """
    top = [_Line(line, weight="bold") for line in textwrap.wrap(question, WRAP - 14)]
    steps = [
        line for number, call in enumerate(trajectory.calls, 1) for line in _step(number, call)
    ]
    answer = "no answer" if trajectory.answer is None else trajectory.answer
    end = f"Answer: {answer}" + (f"  ({verdict})" if verdict else "")
    below = [
        *steps,
        *(_Line(line, weight="bold") for line in textwrap.wrap(end, WRAP - 14)),
        _Line(""),
        *(_Line(line, colour=style.QUIET) for line in textwrap.wrap(caption, WRAP)),
    ]
    rows = [pictures[start : start + PER_ROW] for start in range(0, len(pictures), PER_ROW)]
    across = min(PER_ROW, max(3, max(map(len, rows), default=1)))
    cell = (WIDTH - 2 * MARGIN) / across
    heights = [_row_height(row, cell) for row in rows]
    height = 2 * MARGIN + LINE * (len(top) + len(below) + 1) + sum(heights)
    with style.context():
        figure = style.new_figure(WIDTH, height)
        y = _write(figure, top, height - MARGIN) - 0.5 * LINE
        for row, tall in zip(rows, heights, strict=True):
            _draw_pictures(figure, row, y, cell)
            y -= tall
        _write(figure, below, y - 0.5 * LINE)
    return figure


def pass_at_k_figure(
    rows: Sequence[dict[str, Any]], chance: dict[str, Any] | None = None, *, caption: str = ""
) -> Figure:
    """Draw Pass@k against k for every row, with its interval, and chance as a dashed line.

    Args:
        rows: Rows of :func:`eo_agent_lab.evaluate.score.score`, in the order of the legend. A
            deterministic agent has Pass@1 only and is drawn as one point.
        chance: A row of :func:`eo_agent_lab.evaluate.chance.chance_row`.
        caption: Stands at the foot.

    Raises:
        ConfigError: There is no row.
    """
    if not rows:
        raise ConfigError("there is no row to draw; score a run first")
    most = max(row["samples"] for row in rows)
    ks = list(range(1, most + 1))
    notes = textwrap.wrap(caption, 96)
    height = 4.2 + LINE * len(notes)
    with style.context():
        figure = style.new_figure(7.2, height)
        foot = (0.75 + LINE * len(notes)) / height
        axes = figure.add_axes((0.10, foot, 0.62, 1 - foot - 0.35 / height))
        for position, row in enumerate(rows):
            _draw_row(axes, row, ks, position, len(rows))
        if chance is not None:
            axes.plot(
                ks,
                [chance.get(pass_key(k), np.nan) for k in ks],
                color=style.QUIET,
                linestyle="--",
                marker="_" if most == 1 else None,
                label="chance (uniform guess)",
            )
        axes.set_xticks(ks)
        axes.set_xlim(0.6, most + 0.4)
        axes.set_ylim(-0.03, 1.05)
        axes.set_xlabel("k (attempts allowed)")
        axes.set_ylabel("Pass@k (share of questions)")
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)
        for position, line in enumerate(reversed(notes)):
            figure.text(
                0.02, (0.08 + LINE * position) / height, line, color=style.QUIET, fontsize=7.5
            )
    return figure


def _draw_row(axes: Any, row: dict[str, Any], ks: list[int], position: int, count: int) -> None:
    defined = [k for k in ks if row.get(pass_key(k)) is not None]
    values = np.array([row[pass_key(k)] for k in defined])
    ends = np.array([[row[f"{pass_key(k)}_{end}"] for k in defined] for end in ("low", "high")])
    shift = 0.05 * (position - (count - 1) / 2)
    only = " (k = 1 only)" if len(defined) < len([k for k in ks if k <= row["samples"]]) else ""
    axes.errorbar(
        np.array(defined) + shift,
        values,
        yerr=np.clip(np.abs(ends - values), 0, None),
        capsize=3,
        markersize=6,
        label=f"{row['model']}{only}",
        **style.series_style(position),
    )


def _step(number: int, call: CallRecord) -> list[_Line]:
    arguments = ", ".join(f"{key}={json.dumps(value)}" for key, value in call.arguments.items())
    head = textwrap.wrap(f"{call.name or 'not a call'}({arguments})", MONO_WRAP)
    marks = [f"{number:>2}", *["  "] * (len(head) - 1)]
    lines = [
        _Line(f"{mark}  {part}", weight="bold", mono=True)
        for mark, part in zip(marks, head, strict=True)
    ]
    seen = textwrap.wrap(call.observation or "(no observation)", WRAP)
    if len(seen) > MAX_OBSERVATION_LINES:
        seen = [*seen[:MAX_OBSERVATION_LINES], "..."]
    colour = style.PALETTE["vermillion"] if call.is_error else style.QUIET
    lines += [_Line(part, 0.3, colour) for part in seen]
    return [*lines, _Line("")]


def _row_height(row: _Row, cell: float) -> float:
    return 0.15 + max(_tall(image, cell) + LINE * len(_under(text, cell)) for image, text in row)


def _tall(image: NDArray[np.uint8], cell: float) -> float:
    """Return a picture's height in inches; one taller than wide is narrowed to fit."""
    return (cell - GAP) * float(min(image.shape[0] / image.shape[1], 1.0))


def _under(text: str, cell: float) -> list[str]:
    return textwrap.wrap(text, max(12, int(cell * 13)))


def _draw_pictures(figure: Figure, row: _Row, top: float, cell: float) -> None:
    height = figure.get_figheight()
    for position, (image, text) in enumerate(row):
        left, tall = MARGIN + position * cell, _tall(image, cell)
        axes = figure.add_axes(
            (left / WIDTH, (top - tall) / height, (cell - GAP) / WIDTH, tall / height)
        )
        axes.imshow(image, interpolation="nearest", aspect="equal")
        axes.set_anchor("NW")
        axes.set_axis_off()
        for number, line in enumerate(_under(text, cell)):
            y = (top - tall - 0.06 - LINE * number) / height
            figure.text(left / WIDTH, y, line, va="top", fontsize=8.5)


def _write(figure: Figure, lines: Sequence[_Line], y: float) -> float:
    """Write lines downwards from ``y`` inches; return where they end."""
    height = figure.get_figheight()
    for line in lines:
        figure.text(
            (MARGIN + line.indent) / WIDTH,
            y / height,
            line.text,
            va="top",
            color=line.colour,
            fontweight=line.weight,
            fontfamily="DejaVu Sans Mono" if line.mono else "DejaVu Sans",
            fontsize=8.5,
        )
        y -= LINE
    return y
