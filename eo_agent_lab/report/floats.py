"""The registry of floats: every table and figure, what it holds, and which notebook makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from eo_agent_lab.errors import ConfigError

Form = Literal["table", "figure"]

SUFFIXES: dict[Form, tuple[str, ...]] = {"table": ("csv", "md", "tex"), "figure": ("svg", "png")}
FOLDERS: dict[Form, str] = {"table": "tables", "figure": "figures"}

KINDS = {
    "M": "measured here",
    "R": "replayed from recordings",
    "P": "published values beside measured",
    "S": "structure read from the code",
}


class Float(NamedTuple):
    """One table or figure.

    Attributes:
        id: Stem of its files.
        paper: The system whose float it regenerates, or ``ours``.
        number: Its number there; empty for ours.
        kinds: Letters of :data:`KINDS`.
        form: Table or figure.
        title: What it shows.
        notebook: What makes it, below ``notebooks/``.
    """

    id: str
    paper: str
    number: str
    kinds: str
    form: Form
    title: str
    notebook: str

    def files(self, root: Path = Path()) -> list[Path]:
        """Return its files below a checkout's root."""
        folder = root / FOLDERS[self.form]
        return [folder / f"{self.id}.{suffix}" for suffix in SUFFIXES[self.form]]


MAIN = "10_main_results.ipynb"

FLOATS: dict[str, Float] = {
    entry.id: entry
    for entry in (
        Float(
            "eo_gym_t2",
            "EO-Gym",
            "Table 2",
            "MP",
            "table",
            "Main results: Pass@k, tool-call ratio, illegal calls and tool match",
            MAIN,
        ),
        Float(
            "lab_question_types",
            "ours",
            "",
            "M",
            "table",
            "Pass@1 by question type, beside a blind agent and chance",
            MAIN,
        ),
        Float(
            "eo_gym_fig3",
            "EO-Gym",
            "Figure 3",
            "M",
            "figure",
            "One complete trajectory, with the pictures the agent saw",
            MAIN,
        ),
        Float(
            "lab_pass_at_k",
            "ours",
            "",
            "M",
            "figure",
            "Pass@k of every agent beside chance",
            MAIN,
        ),
    )
}
"""Every float by id."""


def get_float(float_id: str) -> Float:
    """Return one float.

    Raises:
        ConfigError: It is not registered.
    """
    if float_id not in FLOATS:
        raise ConfigError(f"no float {float_id!r}; register it in eo_agent_lab/report/floats.py")
    return FLOATS[float_id]
