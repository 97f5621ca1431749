"""DOTA ``labelTxt`` annotations: oriented quadrilaterals in pixels.

Format (Xia et al. 2018, doi:10.1109/CVPR.2018.00418, and the dataset's own page): optional header
lines ``imagesource:`` and ``gsd:``, then one object a line, ``x1 y1 x2 y2 x3 y3 x4 y4 category
difficult``.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from eo_agent_lab.errors import SceneError


class ObjectLabel(NamedTuple):
    """One annotated object: corners (x, y) in pixels, y downwards, in order around the object."""

    category: str
    corners: tuple[tuple[float, float], ...]
    difficult: bool

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Return the upright box [x0, y0, x1, y1] around the object."""
        xs = [corner[0] for corner in self.corners]
        ys = [corner[1] for corner in self.corners]
        return min(xs), min(ys), max(xs), max(ys)


def read_gsd(path: Path) -> float | None:
    """Return the metres per pixel that a label file's header states, None where it does not."""
    for line in path.read_text(encoding="utf-8").splitlines()[:2]:
        key, _, value = line.strip().partition(":")
        if key.lower() == "gsd":
            try:
                return float(value)
            except ValueError:
                return None
    return None


def read_label_txt(path: Path) -> list[ObjectLabel]:
    """Read one label file.

    Raises:
        SceneError: The file is missing or a line is malformed.
    """
    if not path.is_file():
        raise SceneError(f"the annotation file {path.name} is missing; fetch the data again")
    labels = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip()
        if not text or text.lower().startswith(("imagesource:", "gsd:")):
            continue
        parts = text.split()
        try:
            numbers = [float(part) for part in parts[:8]]
            if len(numbers) < 8:
                raise ValueError
            difficult = len(parts) > 9 and int(parts[9]) > 0
        except (ValueError, IndexError):
            raise SceneError(
                f"{path.name}, line {number} is no DOTA object: {text[:60]!r}; expected eight "
                "coordinates, a category and a difficulty"
            ) from None
        if len(parts) < 9:
            raise SceneError(f"{path.name}, line {number} names no category")
        corners = tuple(zip(numbers[::2], numbers[1::2], strict=True))
        labels.append(ObjectLabel(parts[8], corners, difficult))
    return labels
