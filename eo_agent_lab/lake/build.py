"""Writing the lake: STAC items in GeoParquet, and the index made from them."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eo_agent_lab.errors import LakeError
from eo_agent_lab.lake.index import build_index
from eo_agent_lab.lake.scene import Scene
from eo_agent_lab.lake.sensors import role_of

SCENES_FILE = "scenes.parquet"
INDEX_FILE = "index.sqlite"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_stac_item(scene: Scene) -> dict[str, Any]:
    """Return a scene as a STAC 1.1 item; our own fields ride along under ``eolab:``.

    A scene without a date gets STAC's null ``datetime`` with an open interval, and one without a
    footprint gets an empty polygon, since both are required of every item in GeoParquet.
    """
    stamp = scene.acquired.isoformat().replace("+00:00", "Z") if scene.acquired else None
    properties: dict[str, Any] = {
        "datetime": stamp,
        "start_datetime": stamp or "1970-01-01T00:00:00Z",
        "end_datetime": stamp or "2100-01-01T00:00:00Z",
        "constellation": scene.sensor,
        "gsd": scene.gsd_m,
        "proj:code": f"EPSG:{scene.epsg}" if scene.epsg else None,
        "eolab:modality": scene.modality,
        "eolab:level": scene.level,
        "eolab:location": scene.location_id,
        "eolab:dated": scene.acquired is not None,
        "eolab:scene": scene.model_dump_json(),
    }
    ring = [list(point) for point in scene.footprint or []]
    xs = [point[0] for point in ring] or [0.0]
    ys = [point[1] for point in ring] or [0.0]
    assets = {
        name: {
            "href": f"{scene.root}/{band.path}",
            "type": "image/tiff; application=geotiff",
            "roles": ["data" if name in scene.bands else "metadata"],
            "title": role_of(scene.sensor, name) or name,
        }
        for name, band in {**scene.bands, **scene.quality}.items()
    }
    return {
        "type": "Feature",
        "stac_version": "1.1.0",
        "id": scene.scene_id,
        "collection": scene.source,
        "geometry": {"type": "Polygon", "coordinates": [ring] if ring else []},
        "bbox": [min(xs), min(ys), max(xs), max(ys)],
        "properties": properties,
        "links": [],
        "assets": assets,
    }


@contextmanager
def _locked(lake: Path) -> Iterator[None]:
    lake.mkdir(parents=True, exist_ok=True)
    with (lake / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def stamp_of(path: Path) -> str:
    """Return what identifies one state of the GeoParquet file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


def read_scenes(lake: Path) -> list[Scene]:
    """Read every scene of the GeoParquet file, by id.

    Raises:
        LakeError: The file is absent or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = lake / SCENES_FILE
    if not path.is_file():
        raise LakeError(f"no lake at {lake}; make one with `eolab fetch simulate`")
    try:
        table = pq.read_table(path, columns=["eolab:scene"])
    except (pa.ArrowException, OSError, KeyError) as error:
        raise LakeError(f"{path} is damaged ({error}); fetch its sources again") from error
    scenes = [Scene.model_validate_json(text) for text in table["eolab:scene"].to_pylist()]
    return sorted(scenes, key=lambda scene: scene.scene_id)


def write_scenes(lake: Path, scenes: list[Scene]) -> None:
    """Write the GeoParquet and its index, each by renaming a finished temporary file."""
    import pyarrow.parquet as pq
    import stac_geoparquet.arrow

    ordered = sorted(scenes, key=lambda scene: scene.scene_id)
    path = lake / SCENES_FILE
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    reader = stac_geoparquet.arrow.parse_stac_items_to_arrow(
        [to_stac_item(scene) for scene in ordered]
    )
    stac_geoparquet.arrow.to_parquet(reader, temporary)
    pq.ParquetFile(temporary).close()
    os.replace(temporary, path)
    build_index(lake / INDEX_FILE, ordered, stamp_of(path))


def rebuild_index(lake: Path) -> int:
    """Make the index again from the GeoParquet; return the number of scenes."""
    with _locked(lake):
        scenes = read_scenes(lake)
        build_index(lake / INDEX_FILE, scenes, stamp_of(lake / SCENES_FILE))
    return len(scenes)


def add_scenes(lake: Path, scenes: list[Scene]) -> None:
    """Add scenes to a lake, making it if need be; a scene of a known id replaces the old one.

    Two processes may add at once: they wait for one another. Killed at any instant, the lake is
    as it was before or as it is after.
    """
    with _locked(lake):
        known = {}
        if (lake / SCENES_FILE).is_file():
            known = {scene.scene_id: scene for scene in read_scenes(lake)}
        known.update((scene.scene_id, _relative(scene, lake)) for scene in scenes)
        write_scenes(lake, list(known.values()))


def _relative(scene: Scene, lake: Path) -> Scene:
    """Let a scene's root start from the lake when both lie in one folder, so they can move."""
    root = Path(scene.root)
    if not root.is_absolute():
        return scene
    base = lake.resolve().parent
    if root.resolve().is_relative_to(base):
        return scene.model_copy(update={"root": os.path.relpath(root.resolve(), lake.resolve())})
    return scene
