"""An episode drawn for people: as text, and as a figure of fixed size."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab import style
from eo_agent_lab.tasks.trajectory import CallRecord

Image = NDArray[np.uint8]

WIDTH, HEIGHT = 1280, 960
"""Pixels of the figure; fixed, so that frames of an episode make a film."""

_DPI = 100
_QUESTION_LINES = 4
_KEY_LINES = 3
_TOP, _FOOT = 0.16, 0.08

_NUMBERS = {
    "mean": "mean {:.3f}",
    "share": "share {:.1%}",
    "count": "count {}",
    "category": "{}",
    "direction": "{}",
    "threshold": "threshold {:g}",
    "valid_share": "valid {:.0%}",
    "cloud_share": "cloud {:.0%}",
    "iou": "IoU {:.2f}",
    "datetime": "{:.10}",
    "sensor": "{}",
    "gsd_m": "{:g} m",
    "level": "{}",
}
"""Which fields of a result are its key numbers, in this order, and how they are written."""


class Shown(NamedTuple):
    """What is drawn of an episode."""

    question: str
    calls: Sequence[CallRecord]
    ending: str | None
    answer: str | None

    def foot(self, reward: float) -> str:
        """Return the last line: the answer, or why there is none."""
        if self.ending == "answered":
            return f"Answer: {self.answer}   (reward {reward:g})"
        why = {"gave_up": "the agent gave up", "out_of_calls": "out of calls"}
        return f"No answer: {why[self.ending]}" if self.ending in why else "Under way"


def key_numbers(call: CallRecord) -> str:
    """Return the numbers of a result that matter, on one line; of an error its text."""
    if call.is_error:
        return call.observation.removeprefix("Error: ")
    data = call.data
    if isinstance(data, dict):
        parts = [
            form.format(data[key]) for key, form in _NUMBERS.items() if data.get(key) is not None
        ]
        return ", ".join(parts) or call.observation
    if isinstance(data, list):
        return f"{len(data)} found"
    return call.observation if data is None else str(data)


def as_text(shown: Shown, reward: float) -> str:
    """Return the episode as text."""
    lines = [f"Question: {shown.question}"]
    for number, call in enumerate(shown.calls, start=1):
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        lines += [
            f"{number:>2}. {call.name or 'not a call'} {arguments}",
            f"    {call.observation}",
        ]
    return "\n".join([*lines, shown.foot(reward)])


def as_array(shown: Shown, reward: float, pictures: Sequence[Image | None]) -> Image:
    """Draw the episode.

    Args:
        shown: The episode.
        reward: Of the last step.
        pictures: The start image, then what was in view after each call, uint8 (rows, columns, 3).

    Returns:
        An array of shape (960, 1280, 3), uint8.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style.context():
        figure = Figure(figsize=(WIDTH / _DPI, HEIGHT / _DPI), dpi=_DPI)
        canvas = FigureCanvasAgg(figure)
        _write_question(figure, shown.question)
        cards = [("start", "", False), *(_card(n, call) for n, call in enumerate(shown.calls, 1))]
        columns = _columns(len(cards))
        rows = math.ceil(len(cards) / columns)
        for position, (card, picture) in enumerate(zip(cards, pictures, strict=True)):
            _draw_card(figure, card, picture, position, columns, rows)
        colour = style.QUIET if shown.ending is None else style.INK
        foot = textwrap.shorten(shown.foot(reward), 110, placeholder=" ...")
        figure.text(
            0.02, _FOOT / 2, foot, fontsize=14, fontweight="bold", color=colour, va="center"
        )
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
        return pixels[..., :3].astype(np.uint8)


def _columns(cards: int) -> int:
    """Return how many cards stand in a row, so that their pictures are as large as can be."""
    high = HEIGHT * (1 - _TOP - _FOOT)

    def side(columns: int) -> float:
        rows = math.ceil(cards / columns)
        return min(WIDTH / columns, high / rows - 85)

    return max(range(1, cards + 1), key=side)


def _write_question(figure: Any, question: str) -> None:
    lines = textwrap.wrap(question, 138)
    if len(lines) > _QUESTION_LINES:
        lines = [*lines[: _QUESTION_LINES - 1], f"{lines[_QUESTION_LINES - 1][:134]} ..."]
    figure.text(0.02, 0.98, "\n".join(lines), fontsize=11.5, va="top", linespacing=1.4)


def _card(number: int, call: CallRecord) -> tuple[str, str, bool]:
    return f"{number}  {call.name or 'not a call'}", key_numbers(call), call.is_error


def _draw_card(
    figure: Any,
    card: tuple[str, str, bool],
    picture: Image | None,
    position: int,
    columns: int,
    rows: int,
) -> None:
    title, text, is_error = card
    width, height = 1 / columns, (1 - _TOP - _FOOT) / rows
    left = (position % columns) * width + 0.02 / columns + 0.005
    top = 1 - _TOP - (position // columns) * height
    inner = width - 0.04 / columns - 0.01
    characters = max(8, int(inner * WIDTH / 6.4))
    colour = style.PALETTE["vermillion"] if is_error else style.QUIET
    figure.text(
        left,
        top - 0.004,
        textwrap.shorten(title, characters, placeholder="...") or title[:characters],
        fontsize=9.5,
        fontweight="bold",
        va="top",
        color=style.PALETTE["vermillion"] if is_error else style.INK,
    )
    lines = textwrap.wrap(text, characters)
    if len(lines) > _KEY_LINES:
        lines = [*lines[: _KEY_LINES - 1], f"{lines[_KEY_LINES - 1][: characters - 4]} ..."]
    figure.text(left, top - 0.026, "\n".join(lines), fontsize=8.5, va="top", color=colour)
    if picture is None:
        return
    below = 0.075
    axes = figure.add_axes((left, top - height + 0.01, inner, height - below - 0.015))
    axes.imshow(picture, interpolation="nearest")
    axes.set_anchor("NW")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.8)
