"""Result tables: one CSV, and Markdown and LaTeX rendered from that CSV.

The CSV starts with ``kind``, ``model``, ``setting``, ``n``; then comes each metric with ``_low``
and ``_high`` beside it. An undefined value is empty there and a dash in the rendered forms.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eo_agent_lab.errors import ConfigError
from eo_agent_lab.paths import write_atomic

KINDS = ("measured", "replayed", "published", "absent")
FIRST = ("kind", "model", "setting", "n")
LADDER = ("chance", "random", "blind", "heuristic", "expert", "base", "control", "student")
"""The order of local agents in a table; other models follow by name."""

UNDEFINED = "–"  # noqa: RUF001  the dash that tables show

DECIMALS = 6
"""Kept in the CSV: far beyond what a bootstrap tells, far above rounding noise of sums."""


class Column(NamedTuple):
    """One column as shown.

    Attributes:
        key: Name in the CSV.
        title: Heading.
        decimals: Shown in Markdown and LaTeX; None for text and whole numbers.
        interval: Whether ``_low`` and ``_high`` stand beside it.
    """

    key: str
    title: str
    decimals: int | None = None
    interval: bool = False

    def csv_names(self) -> list[str]:
        """Return the names in the CSV's header."""
        ends = [f"{self.key}_low", f"{self.key}_high"] if self.interval else []
        return [self.key, *ends]


LEADING = (
    Column("kind", "Kind"),
    Column("model", "Model"),
    Column("setting", "Setting"),
    Column("n", "n"),
)


class Text(NamedTuple):
    """What surrounds a rendered table: its title, and notes of one sentence or more."""

    title: str
    notes: Sequence[str] = ()


def sort_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows by kind, local agents from chance to expert, then models by name.

    Published rows keep the paper's order.

    Raises:
        ConfigError: A kind is unknown, or two rows share kind, model and setting.
    """
    seen: set[tuple[Any, ...]] = set()
    keyed = []
    for position, row in enumerate(rows):
        identity = (row["kind"], row["model"], row["setting"])
        if row["kind"] not in KINDS:
            raise ConfigError(f"a row has kind {row['kind']!r}; use one of {', '.join(KINDS)}")
        if identity in seen:
            raise ConfigError(f"two rows are {' / '.join(map(str, identity))}; keep one")
        seen.add(identity)
        model = str(row["model"])
        rung = LADDER.index(model) if model in LADDER else len(LADDER)
        as_printed = row["kind"] in ("published", "absent")
        printed, name = (position, "") if as_printed else (0, model.casefold())
        keyed.append(((KINDS.index(row["kind"]), rung, printed, name, str(row["setting"])), row))
    return [dict(row) for _, row in sorted(keyed, key=lambda pair: pair[0])]


def to_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> str:
    """Return rows as CSV text, every value in a form that does not depend on the machine.

    Raises:
        ConfigError: The columns do not start as every result table does.
    """
    if tuple(column.key for column in columns[: len(FIRST)]) != FIRST:
        raise ConfigError(f"a result table starts with {', '.join(FIRST)}; put these first")
    names = [name for column in columns for name in column.csv_names()]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([format_value(row.get(name)) for name in names])
    return buffer.getvalue()


def format_value(value: Any) -> str:
    """Return a value as a CSV holds it: :data:`DECIMALS` decimals at most, None and NaN empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        text = f"{value:.{DECIMALS}f}".rstrip("0")
        text = f"{text}0" if text.endswith(".") else text
        return "0.0" if text == "-0.0" else text
    return str(value)


def to_markdown(table: str, columns: Sequence[Column], text: Text) -> str:
    """Render CSV text as a Markdown table with its title above and its notes below."""
    head = "| " + " | ".join(column.title for column in columns) + " |"
    rule = "|" + "|".join("---" if _is_text(column) else "--:" for column in columns) + "|"
    lines = [f"# {text.title}", "", head, rule]
    for row in _read(table):
        cells = [_shown(row, column).replace("|", "\\|") for column in columns]
        lines.append("| " + " | ".join(cells) + " |")
    if text.notes:
        lines += ["", *(f"{note}  " for note in text.notes[:-1]), text.notes[-1]]
    return "\n".join(lines) + "\n"


def to_latex(table: str, columns: Sequence[Column], text: Text, label: str) -> str:
    """Render CSV text as a LaTeX ``table`` for the packages booktabs and graphicx, in UTF-8."""
    rows = _read(table)
    lines = [
        "% needs \\usepackage{booktabs,graphicx}",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{_escaped(' '.join((text.title + '.', *text.notes)))}}}",
        f"\\label{{tab:{label}}}",
        "\\resizebox{\\linewidth}{!}{%",
        f"\\begin{{tabular}}{{{''.join('l' if _is_text(c) else 'r' for c in columns)}}}",
        "\\toprule",
        " & ".join(_escaped(column.title) for column in columns) + " \\\\",
        "\\midrule",
    ]
    for position, row in enumerate(rows):
        if position and row["kind"] != rows[position - 1]["kind"]:
            lines.append("\\midrule")
        lines.append(" & ".join(_escaped(_shown(row, column)) for column in columns) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}}", "\\end{table}"]
    return "\n".join(lines) + "\n"


def write_table(
    stem: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], text: Text
) -> list[Path]:
    """Write ``stem.csv``, and ``stem.md`` and ``stem.tex`` rendered from it.

    Raises:
        ConfigError: As :func:`sort_rows` and :func:`to_csv`, or there is no row.
    """
    if not rows:
        raise ConfigError(f"{stem.name} has no row; score a run first")
    table = to_csv(sort_rows(rows), columns)
    contents = {
        "csv": table,
        "md": to_markdown(table, columns, text),
        "tex": to_latex(table, columns, text, stem.name),
    }
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        write_atomic(path, content)
    return paths


def _read(table: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table)))


def _is_text(column: Column) -> bool:
    return column.key in ("kind", "model", "setting")


def _shown(row: Mapping[str, str], column: Column) -> str:
    value = row[column.key]
    if value == "":
        return UNDEFINED
    if column.decimals is None:
        return value
    shown = f"{float(value):.{column.decimals}f}"
    low, high = (row.get(f"{column.key}_{end}", "") for end in ("low", "high"))
    if not low or not high:
        return shown
    return f"{shown} [{float(low):.{column.decimals}f}, {float(high):.{column.decimals}f}]"


def _escaped(text: str) -> str:
    special = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    special |= {char: f"\\{char}" for char in "&%$#_{}"}
    return "".join(special.get(char, char) for char in text)
