"""Rendering the simulated Earth: products on disk, scenes for the lake, and the truth."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eo_agent_lab.lake.fetcher import Fetched
from eo_agent_lab.lake.scene import Band, Scene, make_location_id, make_scene_id
from eo_agent_lab.paths import write_atomic
from eo_agent_lab.world.config import TINY, Site, WorldConfig, is_test, site
from eo_agent_lab.world.products import (
    Ground,
    Written,
    as_uint8,
    write_landsat,
    write_raster,
    write_sentinel2,
)
from eo_agent_lab.world.sensors_view import see_landsat, see_sentinel2, surface
from eo_agent_lab.world.spectra import COVERS
from eo_agent_lab.world.terrain import PIXEL_M, Land, make_land
from eo_agent_lab.world.vhr import GSD, SIDE, draw_tile, label_text
from eo_agent_lab.world.weather import make_sky

__all__ = ["TINY", "WorldConfig", "simulate"]

SOURCE = "simulated"
_NOTES = {
    "sentinel-2": "simulated surface reflectance, processing baseline 05.10, offset -1000",
    "landsat": "simulated surface reflectance, scale and offset of Collection 2 Level-2",
}


class _Place(NamedTuple):
    config: WorldConfig
    number: int
    where: Site
    ground: Ground
    land: Land
    out: Path

    @property
    def name(self) -> str:
        return f"place_{self.number:04d}"


def _rng(config: WorldConfig, *key: int) -> np.random.Generator:
    return np.random.default_rng([config.seed, *key])


def ground_of(config: WorldConfig, where: Site) -> Ground:
    """Return the UTM square centred on a site, its corner on multiples of 60 m."""
    from pyproj import Transformer

    zone = int((where.lon + 180) // 6) + 1
    epsg = (32600 if where.lat >= 0 else 32700) + zone
    east, north = Transformer.from_crs(4326, epsg, always_xy=True).transform(where.lon, where.lat)
    west = round((east - config.size_m / 2) / 60) * 60
    top = round((north + config.size_m / 2) / 60) * 60
    return Ground(epsg, float(west), float(top), config.size_m)


def simulate(out: Path, config: WorldConfig, progress: bool = False) -> Fetched:
    """Render a world below a folder.

    The same settings give the same bytes, whatever the number of processes. Truth (land cover at
    the start and the changes) goes to ``truth/``, which no scene refers to.

    Args:
        out: Folder for the products; what it holds already is overwritten by name.
        config: The world.
        progress: Show a progress bar.

    Returns:
        The scenes, whose roots are the absolute path of ``out``; nothing is ever rejected.
    """
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / "world.json", config.model_dump_json(indent=1) + "\n")
    jobs = [(str(out.resolve()), config, index) for index in range(config.locations)]
    scenes: list[Scene] = []
    for found in _shown(_rendered(jobs), len(jobs), progress):
        scenes += found
    return Fetched(scenes, [])


def _rendered(jobs: list[tuple[str, WorldConfig, int]]) -> Iterator[list[Scene]]:
    processes = min(os.cpu_count() or 1, len(jobs), 4)
    if processes == 1 or multiprocessing.current_process().daemon:
        yield from (_render_place(*job) for job in jobs)
        return
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(processes, context) as pool:
        yield from pool.map(_render_place, *zip(*jobs, strict=True))


def _shown(found: Iterator[list[Scene]], total: int, progress: bool) -> Iterator[list[Scene]]:
    if not progress:
        yield from found
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(
        found, total=total, description="rendering places", console=Console(stderr=True)
    )


def _render_place(out: str, config: WorldConfig, index: int) -> list[Scene]:
    where = site(index)
    land = make_land(config, where, _rng(config, index, 0))
    place = _Place(config, index, where, ground_of(config, where), land, Path(out))
    _write_truth(place)
    scenes = []
    for turn, day in enumerate(_days(config, config.sentinel2_every, index % 7)):
        scenes.append(_sentinel2(place, day, "AB"[turn % 2]))
    for turn, day in enumerate(_days(config, config.landsat_every, (3 * index) % 11)):
        scenes.append(_landsat(place, day, 8 + turn % 2))
    scenes += [_tile(place, number) for number in range(config.vhr_per_location)]
    return scenes


def _days(config: WorldConfig, every: int, phase: int) -> list[date]:
    count = range(min(phase, every - 1), config.days, every)
    return [config.start + timedelta(days=offset) for offset in count]


def _write_truth(place: _Place) -> None:
    folder = place.out / "truth"
    write_raster(folder / f"{place.name}_cover.tif", place.land.first, place.ground, PIXEL_M)
    changes = [
        {
            "kind": event.kind,
            "day": event.day.isoformat(),
            "cover": COVERS[event.cover],
            "pixels": int(event.where.sum()),
        }
        for event in place.land.events
    ]
    record = {"lon": place.where.lon, "lat": place.where.lat, "covers": COVERS, "changes": changes}
    write_atomic(folder / f"{place.name}.json", json.dumps(record, indent=1) + "\n")


def _light(place: _Place, day: date) -> tuple[Any, ...]:
    """Return what a sensor looks at: reflectance, cover, sky and the pixels off the swath."""
    size = place.config.size_m // PIXEL_M
    rng = _rng(place.config, place.number, 1, day.toordinal())
    cover = place.land.on(day)
    sky = make_sky(rng, day, place.where.lat, size)
    light = surface(cover, place.land.texture, sky, day.timetuple().tm_yday, place.where.lat)
    outside = np.zeros((size, size))
    if rng.random() < 0.06:
        rows, cols = np.mgrid[0:size, 0:size]
        outside[(cols + 0.2 * rows) < size * rng.uniform(0.1, 0.5)] = 1
    return light, cover, sky, outside


def _sentinel2(place: _Place, day: date, satellite: str) -> Scene:
    light, cover, sky, outside = _light(place, day)
    rng = _rng(place.config, place.number, 2, day.toordinal())
    view = see_sentinel2(light, cover, sky, outside, rng)
    when = _local(place, day, 10, 30)
    written = write_sentinel2(
        place.out, f"sentinel2/{place.name}", view, place.ground, satellite, when
    )
    return _scene(place, written, f"sentinel-2{satellite.lower()}", when, 10, _NOTES["sentinel-2"])


def _landsat(place: _Place, day: date, satellite: int) -> Scene:
    light, cover, sky, outside = _light(place, day)
    rng = _rng(place.config, place.number, 3, day.toordinal())
    view = see_landsat(light, cover, sky, outside, rng)
    when = _local(place, day, 10, 15)
    written = write_landsat(
        place.out,
        f"landsat/{place.name}",
        view,
        place.ground,
        satellite,
        when,
        (1 + place.number % 233, 20 + place.number // 233),
        (sky.elevation, sky.azimuth),
    )
    return _scene(place, written, f"landsat-{satellite}", when, 30, _NOTES["landsat"])


def _local(place: _Place, day: date, hour: int, minute: int) -> datetime:
    """Return the UTC time of a local solar time."""
    local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
    return local - timedelta(seconds=round(place.where.lon * 240))


def _scene(
    place: _Place, written: Written, sensor: str, when: datetime, gsd: int, note: str
) -> Scene:
    size = place.ground.size_m // gsd
    return Scene(
        scene_id=make_scene_id(SOURCE, written.product_id),
        source=SOURCE,
        product_id=written.product_id,
        sensor=sensor,
        modality="multispectral",
        level="SR",
        level_note=note,
        acquired=when,
        footprint=_footprint(
            place.ground, place.ground.west, place.ground.north, place.ground.size_m
        ),
        epsg=place.ground.epsg,
        gsd_m=float(gsd),
        shape=(size, size),
        root=str(place.out),
        bands=written.bands,
        quality=written.quality,
        location_id=_location(place),
        split="test" if is_test(place.number) else "train",
    )


def _location(place: _Place) -> str:
    return make_location_id(f"{SOURCE}/{place.config.seed}/{place.number}")


def _footprint(ground: Ground, west: float, north: float, size: float) -> list[tuple[float, float]]:
    from pyproj import Transformer

    to_degrees = Transformer.from_crs(ground.epsg, 4326, always_xy=True)
    corners = [(0, 0), (size, 0), (size, -size), (0, -size), (0, 0)]
    points = [to_degrees.transform(west + dx, north + dy) for dx, dy in corners]
    return [(round(lon, 7), round(lat, 7)) for lon, lat in points]


def _tile(place: _Place, number: int) -> Scene:
    rng = _rng(place.config, place.number, 4, number)
    tile = draw_tile(rng)
    spare = max(0, place.config.size_m - int(SIDE * GSD))
    west = place.ground.west + int(rng.integers(0, spare + 1))
    north = place.ground.north - int(rng.integers(0, spare + 1))
    day = place.config.start + timedelta(days=int(rng.integers(0, place.config.days)))
    name = f"{place.name}_{number:03d}"
    image, label = f"vhr/images/{name}.tif", f"vhr/labelTxt/{name}.txt"
    corner = Ground(place.ground.epsg, float(west), float(north), int(SIDE * GSD))
    picture = as_uint8(tile.image.astype(np.float64)).transpose(2, 0, 1)
    write_raster(place.out / image, picture, corner, GSD, photometric="RGB", interleave="pixel")
    write_atomic(place.out / label, label_text(tile))
    return Scene(
        scene_id=make_scene_id(SOURCE, name),
        source=SOURCE,
        product_id=name,
        sensor="simulated-vhr",
        modality="rgb",
        level="DN",
        level_note="simulated true-colour picture, 8-bit display values",
        acquired=_local(place, day, 11, 0),
        footprint=_footprint(place.ground, west, north, SIDE * GSD),
        epsg=place.ground.epsg,
        gsd_m=GSD,
        shape=(SIDE, SIDE),
        root=str(place.out),
        bands={
            band: Band(path=image, index=position, gsd_m=GSD)
            for position, band in enumerate("RGB", start=1)
        },
        location_id=_location(place),
        annotations=label,
        split="test" if is_test(place.number) else "train",
    )
