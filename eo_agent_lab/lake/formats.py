"""Reading dataset folders in their own format, as counts of what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eo_agent_lab.errors import SceneError
from eo_agent_lab.lake.dota import read_gsd, read_label_txt
from eo_agent_lab.lake.folder import FolderFetcher

Summary = dict[str, Any]


def _dota(folder: Path) -> list[Summary]:
    labels = sorted(folder.rglob("labelTxt*/*.txt"))
    if not labels:
        raise SceneError(f"{folder} holds no labelTxt folder; give the folder above it")
    return [
        {
            "name": path.stem,
            "gsd_m": read_gsd(path),
            "categories": dict(sorted(Counter(o.category for o in read_label_txt(path)).items())),
        }
        for path in labels
    ]


def _multispectral(folder: Path) -> list[Summary]:
    return [
        {"name": scene.product_id, "gsd_m": scene.gsd_m, "categories": {}}
        for scene in FolderFetcher(folder).fetch().scenes
    ]


READERS: dict[str, Callable[[Path], list[Summary]]] = {
    "dota": _dota,
    "multispectral": _multispectral,
}


def read_format(name: str, folder: Path) -> dict[str, list[Summary]]:
    """Return every image of a dataset folder with its objects counted by category.

    Raises:
        SceneError: The format is unknown, or the folder is not in it.
    """
    if name not in READERS:
        raise SceneError(f"no reader for the format {name!r}; there are {', '.join(READERS)}")
    if not folder.is_dir():
        raise SceneError(f"no folder at {folder}; give the folder that holds the dataset")
    return {"images": READERS[name](folder)}
