"""Published numbers: one YAML file a table in ``published/``, as printed, with its source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from eo_agent_lab.errors import ConfigError

FOLDER = Path(__file__).parent / "published"

Cell = float | tuple[float, float, float]
"""An estimate, or an estimate with the ends of its interval."""


class PublishedRow(BaseModel):
    """One model's values by column; every other key of the YAML row is a column."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, Cell] = Field(init=False)

    model: str

    @property
    def values(self) -> dict[str, Cell]:
        """The cells that are printed."""
        return dict(self.__pydantic_extra__)

    @model_validator(mode="after")
    def _in_order(self) -> PublishedRow:
        for key, cell in self.values.items():
            ends = cell if isinstance(cell, tuple) else (cell, cell, cell)
            if not 0 <= ends[1] <= ends[0] <= ends[2]:
                raise ValueError(f"{self.model}, {key}: {cell} is no [estimate, low, high]")
        return self


class Published(BaseModel):
    """One published table.

    Attributes:
        paper: The system.
        table: Its number there.
        title: What it shows.
        setting: Operation mode of all its rows.
        n: Questions behind each row; None when the paper does not say.
        note: What a reader must know of the numbers.
        rows: In the paper's order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    paper: str
    table: str
    title: str
    setting: str
    n: Annotated[int, Field(ge=1)] | None = None
    note: str = ""
    rows: Annotated[list[PublishedRow], Field(min_length=1)]

    @model_validator(mode="after")
    def _once(self) -> Published:
        names = [row.model for row in self.rows]
        if len(set(names)) < len(names):
            raise ValueError("a model stands twice")
        return self

    def table_rows(self) -> list[dict[str, Any]]:
        """Return rows of a result table, ``kind`` published, ends of intervals beside values."""
        return [
            {"kind": "published", "model": row.model, "setting": self.setting, "n": self.n}
            | _spread(row.values)
            for row in self.rows
        ]


def load_published(float_id: str, folder: Path = FOLDER) -> Published:
    """Read the published table of a float, such as ``eo_gym_t2``.

    Raises:
        ConfigError: There is no such file, or it does not hold what a table needs.
    """
    import yaml

    path = folder / f"{float_id}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(found.stem for found in folder.glob("*.yaml")))
        raise ConfigError(f"no published values for {float_id!r}; there are {known}")
    try:
        return Published.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError) as error:
        raise ConfigError(
            f"{path} is no published table: {error}; write it as printed in the paper"
        ) from error


def join_published(*tables: Published) -> list[dict[str, Any]]:
    """Join tables of the same models and setting into one row a model, in the first one's order.

    A column that stands in several is taken from the first.

    Raises:
        ConfigError: The tables differ in setting or in size.
    """
    first = tables[0]
    if any((table.setting, table.n) != (first.setting, first.n) for table in tables):
        raise ConfigError("tables of different settings cannot be joined; show them apart")
    later = [{row["model"]: row for row in table.table_rows()} for table in tables[1:]]
    joined = []
    for row in first.table_rows():
        for table in later:
            row = table.get(row["model"], {}) | row
        joined.append(row)
    return joined


def _spread(values: dict[str, Cell]) -> dict[str, float]:
    cells: dict[str, float] = {}
    for key, cell in values.items():
        if isinstance(cell, tuple):
            cells[key], cells[f"{key}_low"], cells[f"{key}_high"] = cell
        else:
            cells[key] = cell
    return cells
