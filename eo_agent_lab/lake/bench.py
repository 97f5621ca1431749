"""Timing the lake: building a catalogue of a given size, and its look-ups."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from eo_agent_lab.errors import ConfigError
from eo_agent_lab.lake.build import write_scenes
from eo_agent_lab.lake.lake import Lake
from eo_agent_lab.lake.scene import Band, Scene, make_location_id, make_scene_id
from eo_agent_lab.lake.sensors import SENSORS

SCENES_PER_LOCATION = 60
LOOKUPS = 2000


def catalogue(count: int) -> list[Scene]:
    """Return scenes that exist in the catalogue alone, 60 a location, each with a companion."""
    scenes = []
    start = datetime(2020, 1, 1, tzinfo=UTC)
    names = ("sentinel-2a", "sentinel-2b", "landsat-8", "landsat-9")
    for number in range(count):
        place, turn = divmod(number, SCENES_PER_LOCATION)
        sensor = names[turn % len(names)]
        lon, lat = -179.0 + (place * 7.31) % 357.0, -60.0 + (place * 3.77) % 120.0
        ring = [(lon, lat), (lon + 0.02, lat), (lon + 0.02, lat + 0.02), (lon, lat + 0.02)]
        product = f"{sensor}-{place}-{turn}"
        bands = {
            name: Band(path=f"{product}/{name}.tif", scale=1e-4) for name in SENSORS[sensor].bands
        }
        partner = number ^ 1 if number ^ 1 < count else number
        partner_place, partner_turn = divmod(partner, SCENES_PER_LOCATION)
        companion = f"{names[partner_turn % len(names)]}-{partner_place}-{partner_turn}"
        scenes.append(
            Scene(
                scene_id=make_scene_id("bench", product),
                source="bench",
                product_id=product,
                sensor=sensor,
                modality="multispectral",
                level="SR",
                acquired=start + timedelta(days=12 * turn, seconds=place),
                footprint=[*ring, ring[0]],
                epsg=32633,
                gsd_m=10.0,
                shape=(256, 256),
                root=".",
                bands=bands,
                location_id=make_location_id(str(place)),
                companion_id=make_scene_id("bench", companion),
            )
        )
    return scenes


def run_bench(count: int, keep: Path | None = None) -> dict[str, Any]:
    """Build a lake of ``count`` scenes and time its look-ups on it.

    Args:
        count: How many scenes.
        keep: Folder to leave the lake in; a temporary one is removed when left out.

    Returns:
        ``build_s``, ``bytes`` on disk, and ``lookup_us`` with median and p99 per look-up.

    Raises:
        ConfigError: The count is not positive, or ``keep`` holds something already.
    """
    if count < 1:
        raise ConfigError(f"{count} scenes cannot be built; give a positive number")
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise ConfigError(f"{keep} is not empty; give a new folder to keep the lake in")
    folder = keep or Path(tempfile.mkdtemp(prefix="eolab-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        scenes = catalogue(count)
        began = time.perf_counter()
        write_scenes(folder, scenes)
        built = time.perf_counter() - began
        lake = Lake(folder)
        drawn = random.Random(0)
        ids = [drawn.choice(scenes).scene_id for _ in range(LOOKUPS)]
        for scene_id in ids:
            lake.list(scene_id)
        lookups: dict[str, Callable[[str], Any]] = {
            "previous": lake.previous,
            "next": lake.next,
            "list": lake.list,
            "companion": lake.companion,
        }
        return {
            "build_s": built,
            "bytes": sum(path.stat().st_size for path in folder.iterdir() if path.is_file()),
            "lookup_us": {name: _timed(function, ids) for name, function in lookups.items()},
        }
    finally:
        if keep is None:
            shutil.rmtree(folder)


def _timed(function: Callable[[str], Any], ids: list[str]) -> dict[str, float]:
    times = []
    for scene_id in ids:
        began = time.perf_counter_ns()
        function(scene_id)
        times.append((time.perf_counter_ns() - began) / 1000)
    times.sort()
    return {"median": times[len(times) // 2], "p99": times[int(len(times) * 0.99)]}
