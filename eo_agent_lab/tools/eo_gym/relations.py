"""Relations between boxes and masks, arithmetic, and the theme look-up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.errors import ToolError
from eo_agent_lab.lake.raster import Grid, grid_of, open_raster
from eo_agent_lab.science.expression import calculate
from eo_agent_lab.science.geometry import Box, box_relation, mask_relation
from eo_agent_lab.science.indices import INDICES, MASKS
from eo_agent_lab.tools.observation import Observation
from eo_agent_lab.tools.registry import Context, tool
from eo_agent_lab.tools.scenes import BoxArgument

THEMES = {
    "vegetation": "NDVI",
    "greenness": "NDVI",
    "forest": "NDVI",
    "crop": "NDVI",
    "water": "NDWI",
    "flood": "NDWI",
    "lake": "NDWI",
    "river": "NDWI",
    "urban": "NDBI",
    "built": "NDBI",
    "city": "NDBI",
    "building": "NDBI",
    "snow": "NDSI",
    "ice": "NDSI",
    "glacier": "NDSI",
}
"""Words of a theme, by their beginning, and the index that answers to it."""


@tool(suite="eo_gym")
def theme_index_lookup(context: Context, theme: str) -> Observation:
    """Recommend the spectral index, its expression and its bands for a theme.

    Args:
        theme: What is of interest, such as vegetation, water, urban or snow.
    """
    words = theme.lower().replace("-", " ").split()
    name = next(
        (index for word in words for key, index in THEMES.items() if word.startswith(key)), None
    )
    name = name or next((key for key in INDICES if key.lower() in words), None)
    if name is None:
        raise ToolError(
            f"no index is known for {theme[:60]!r}; ask for vegetation, water, urban or snow"
        )
    index = INDICES[name]
    rule = next((rule for rule in MASKS.values() if rule.index_name == name), None)
    data = {
        "index": name,
        "title": index.title,
        "expression": index.formula,
        "bands": [index.first, index.second],
        "threshold": rule.threshold if rule else None,
        "tool": f"compute_{name.lower()}_by_multispectral",
        "source": index.source,
    }
    above = f"; {index.theme} where it exceeds {rule.threshold:g}" if rule else ""
    text = (
        f"For {index.theme}: {name}, the {index.title}, {index.formula} of the {index.first} and "
        f"{index.second} bands{above} ({index.source}). Tool: {data['tool']}."
    )
    return Observation(text=text, data=data)


@tool(suite="eo_gym")
def get_bbox_geospatial_relationship(
    context: Context, box_a: BoxArgument, box_b: BoxArgument
) -> Observation:
    """Tell where one box or point lies relative to another, in image terms.

    Args:
        box_a: [x0, y0, x1, y1] or a point [x, y]; y downwards.
        box_b: The box or point that is looked from, in the same coordinates.
    """
    relation = box_relation(_box("box_a", box_a), _box("box_b", box_b))
    data = {
        "direction": relation.direction,
        "iou": relation.iou,
        "a_inside_b": relation.a_inside_b,
        "b_inside_a": relation.b_inside_a,
        "distance_px": relation.distance,
        "gap_px": relation.gap,
    }
    text = (
        f"Box a is {_where(relation.direction)} box b in the image; centres "
        f"{relation.distance:.1f} apart, edges {relation.gap:.1f} apart, IoU "
        f"{relation.iou:.3f}; {relation.a_inside_b:.0%} of a lies in b, "
        f"{relation.b_inside_a:.0%} of b in a."
    )
    return Observation(text=text, data=data)


def _where(direction: str) -> str:
    if direction == "same place":
        return "at the same place as"
    return direction if direction in ("above", "below") else f"{direction} of"


def _box(name: str, values: list[float]) -> Box:
    if len(values) == 2:
        return (values[0], values[1], values[0], values[1])
    if len(values) != 4:
        raise ToolError(
            f"{name} has {len(values)} numbers; give [x0, y0, x1, y1] or a point [x, y]"
        )
    x0, y0, x1, y1 = values
    if x1 < x0 or y1 < y0:
        raise ToolError(
            f"{name} {values} is inside out; give [x0, y0, x1, y1] with x0 <= x1, y0 <= y1"
        )
    return (x0, y0, x1, y1)


class _Mask:
    """A mask file: where it is true, where it is known, and its grid."""

    def __init__(self, name: str, path: Path) -> None:
        with open_raster(path) as dataset:
            if dataset.count != 1 or dataset.dtypes[0] not in ("uint8", "int8", "bool"):
                raise ToolError(
                    f"{name} is not a mask; give a file that one of the mask tools has made"
                )
            values = dataset.read(1)
            self.grid: Grid = grid_of(dataset)
            nodata = dataset.nodata
        self.known: NDArray[np.bool_] = (
            np.ones(values.shape, bool) if nodata is None else values != nodata
        )
        self.true: NDArray[np.bool_] = (values != 0) & self.known


@tool(suite="eo_gym")
def get_mask_geospatial_relationship(
    context: Context, mask_a_url: str, mask_b_url: str
) -> Observation:
    """Compare two binary masks: overlap, containment and relative position.

    Args:
        mask_a_url: Mask file made by one of the mask tools.
        mask_b_url: The mask that is looked from.
    """
    a = _Mask("mask_a_url", context.workspace.resolve(mask_a_url))
    b = _Mask("mask_b_url", context.workspace.resolve(mask_b_url))
    true_a, true_b, known, _grid = _common(a, b)
    try:
        relation = mask_relation(true_a & known, true_b & known)
    except ValueError as error:
        raise ToolError(f"{error}; use masks that hold something where both images see") from error
    data: dict[str, Any] = relation._asdict()
    data["distance_px"] = data.pop("distance")
    data["compared_pixels"] = int(known.sum())
    text = (
        f"Mask a ({relation.pixels_a} px) is {_where(relation.direction)} mask b "
        f"({relation.pixels_b} px) by their centres, {relation.distance:.1f} px apart. Overlap "
        f"{relation.pixels_both} px, IoU {relation.iou:.3f}; {relation.a_inside_b:.1%} of a "
        f"lies in b, {relation.b_inside_a:.1%} of b in a. Compared over {int(known.sum())} px that "
        "both know."
    )
    return Observation(text=text, data=data)


def _common(a: _Mask, b: _Mask) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], Grid]:
    """Put two masks on the finer one's pixels, inside the area they share."""
    if a.grid.crs != b.grid.crs:
        raise ToolError(
            "the masks have different coordinate systems; make both from one scene's bands"
        )
    fine = a.grid if abs(a.grid.dx) <= abs(b.grid.dx) else b.grid
    x = fine.x0 + (np.arange(fine.width) + 0.5) * fine.dx
    y = fine.y0 + (np.arange(fine.height) + 0.5) * fine.dy

    def sample(mask: _Mask) -> tuple[NDArray[Any], NDArray[Any]]:
        grid = mask.grid
        cols = np.floor((x - grid.x0) / grid.dx).astype(int)
        rows = np.floor((y - grid.y0) / grid.dy).astype(int)
        inside = ((rows >= 0) & (rows < grid.height))[:, None] & (
            (cols >= 0) & (cols < grid.width)
        )[None]
        cells = np.ix_(np.clip(rows, 0, grid.height - 1), np.clip(cols, 0, grid.width - 1))
        return mask.true[cells] & inside, mask.known[cells] & inside

    true_a, known_a = sample(a)
    true_b, known_b = sample(b)
    known = known_a & known_b
    if not known.any():
        raise ToolError("the masks do not overlap on the ground; make both over the same place")
    return true_a, true_b, known, fine


@tool(suite="eo_gym")
def basic_calculator(context: Context, expression: str) -> Observation:
    """Compute simple arithmetic over counts, areas, ratios or other numbers.

    Args:
        expression: Numbers with + - * / // % **, parentheses, and functions such as sqrt, round,
            min, max, mean; for example (12 - 7) / 12.
    """
    try:
        value = calculate(expression)
    except ValueError as error:
        raise ToolError(f"cannot compute {expression[:80]!r}: {error}") from error
    number: float | int = int(value) if value == int(value) and abs(value) < 1e15 else value
    return Observation(text=f"{expression.strip()} = {number:.12g}", data=number)
