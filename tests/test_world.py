"""The simulated Earth: deterministic, plausible, and read back by the readers of real products."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import rasterio

from eo_agent_lab.lake.dota import read_gsd, read_label_txt
from eo_agent_lab.lake.fetcher import Fetched
from eo_agent_lab.lake.folder import FolderFetcher
from eo_agent_lab.lake.quality import decode
from eo_agent_lab.lake.raster import FileSource, read_stack
from eo_agent_lab.lake.scene import Scene
from eo_agent_lab.world.config import SITES, WorldConfig, is_test, site
from eo_agent_lab.world.simulate import simulate
from eo_agent_lab.world.spectra import FOREST, ROLES, cover_spectra, greenness
from eo_agent_lab.world.terrain import make_land
from eo_agent_lab.world.vhr import CATALOGUE, GSD, SIDE, draw_tile
from eo_agent_lab.world.weather import make_sky, sun

SMALL = WorldConfig(
    locations=2,
    start=date(2023, 6, 1),
    days=60,
    sentinel2_every=15,
    landsat_every=20,
    vhr_per_location=2,
    size_m=480,
    seed=3,
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Fetched]:
    out = tmp_path_factory.mktemp("world")
    return out, simulate(out, SMALL)


def digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            total.update(path.relative_to(folder).as_posix().encode())
            total.update(path.read_bytes())
    return total.hexdigest()


def of(fetched: Fetched, sensor: str) -> list[Scene]:
    return [scene for scene in fetched.scenes if scene.sensor.startswith(sensor)]


def test_the_same_settings_give_the_same_bytes_in_another_process(
    world: tuple[Path, Fetched], tmp_path: Path
) -> None:
    code = (
        "import sys; from pathlib import Path; from eo_agent_lab.world.simulate import *;"
        "import eo_agent_lab.world.simulate as s; s.os.cpu_count = lambda: 1;"
        "simulate(Path(sys.argv[1]), WorldConfig.model_validate_json(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path), SMALL.model_dump_json()]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    assert digest(tmp_path) == digest(world[0])
    other = simulate(tmp_path / "other", SMALL.model_copy(update={"seed": 4}))
    assert digest(tmp_path / "other") != digest(world[0])
    assert len(other.scenes) == len(world[1].scenes)


def test_a_sentinel_2_scene_has_fourteen_files_and_a_landsat_scene_eight(
    world: tuple[Path, Fetched],
) -> None:
    _, fetched = world
    for scene in of(fetched, "sentinel-2"):
        assert len(scene.bands) + len(scene.quality) == 14
        assert scene.shape == (48, 48)
    for scene in of(fetched, "landsat"):
        assert len(scene.bands) + len(scene.quality) == 8
        assert scene.shape == (16, 16)
    assert {scene.sensor for scene in fetched.scenes} == {
        "sentinel-2a",
        "sentinel-2b",
        "landsat-8",
        "landsat-9",
        "simulated-vhr",
    }


def test_the_folder_reader_reads_the_products_as_the_scenes_say(
    world: tuple[Path, Fetched],
) -> None:
    out, fetched = world
    for part, sensor in (("sentinel2", "sentinel-2"), ("landsat", "landsat")):
        read = FolderFetcher(out / part).fetch()
        assert not read.rejected
        assert not read.ignored
        found = {scene.product_id: scene for scene in read.scenes}
        expected = {scene.product_id: scene for scene in of(fetched, sensor)}
        assert set(found) == set(expected)
        for product, scene in found.items():
            known = expected[product]
            assert (scene.sensor, scene.level, scene.epsg, scene.shape) == (
                known.sensor,
                known.level,
                known.epsg,
                known.shape,
            )
            assert scene.acquired == known.acquired
            for name, band in scene.bands.items():
                assert band.scale == pytest.approx(known.bands[name].scale)
                assert band.offset == pytest.approx(known.bands[name].offset)


def test_places_lie_where_they_should_and_splits_share_none(world: tuple[Path, Fetched]) -> None:
    _, fetched = world
    for scene in fetched.scenes:
        assert scene.footprint is not None
        lon = np.mean([point[0] for point in scene.footprint[:4]])
        lat = np.mean([point[1] for point in scene.footprint[:4]])
        nearest = min(SITES, key=lambda s: abs(s.lon - lon) + abs(s.lat - lat))
        assert abs(nearest.lon - lon) + abs(nearest.lat - lat) < 0.02
        zone = int((lon + 180) // 6) + 1
        assert scene.epsg == (32600 if lat > 0 else 32700) + zone
    splits = {(scene.location_id, scene.split) for scene in fetched.scenes}
    assert len(splits) == 2
    assert site(13).lon != site(1).lon
    assert [is_test(index) for index in range(4)] == [False, True, False, False]


def test_reflectance_is_physical_and_cloud_masks_agree(world: tuple[Path, Fetched]) -> None:
    out, fetched = world
    for scene in of(fetched, "sentinel-2"):
        source = FileSource(scene, out)
        stack = read_stack(source, ["B4", "B8"])
        seen = stack.values["B8"][~np.isnan(stack.values["B8"])]
        assert seen.min() > -0.05
        assert seen.max() < 1.3
        with rasterio.open(out / scene.quality["SCL"].path) as scl_file:
            scl = scl_file.read(1)
        with rasterio.open(out / scene.quality["CLDPRB"].path) as probability_file:
            probability = probability_file.read(1)
        assert (probability[scl == 9] > 90).all()
        assert (probability[np.isin(scl, (4, 5, 6))] <= 50).all()
    for scene in of(fetched, "landsat"):
        with rasterio.open(out / scene.quality["QA_PIXEL"].path) as qa_file:
            bits = qa_file.read(1)
        flags = decode("QA_PIXEL", bits)
        confident = (bits >> 8) & 3 == 3
        assert (confident <= flags.cloud).all()
        assert (((bits >> 6) & 1 == 1) <= ~(flags.cloud & ~flags.nodata)).all()


def test_two_sensors_of_one_day_agree() -> None:
    from eo_agent_lab.world.sensors_view import see_landsat, see_sentinel2, surface

    config = WorldConfig(size_m=960)
    where = site(0)
    land = make_land(config, where, np.random.default_rng(1))
    day = date(2023, 7, 1)
    sky = make_sky(np.random.default_rng(4), day, where.lat, 96)
    light = surface(land.on(day), land.texture, sky, 182, where.lat)
    none = np.zeros((96, 96))
    s2 = see_sentinel2(light, land.first, sky, none, np.random.default_rng(0))
    oli = see_landsat(light, land.first, sky, none, np.random.default_rng(0))
    b8a = s2.bands["B8A"].reshape(16, 3, 16, 3).mean(axis=(1, 3)) * 1e-4 - 0.1
    b5 = oli.bands["B5"].reshape(16, 2, 16, 2).mean(axis=(1, 3)) * 2.75e-5 - 0.2
    assert np.abs(b8a - b5).mean() < 0.003


def test_spectra_have_the_index_values_of_the_literature() -> None:
    july = cover_spectra(195, 45.0)
    red, nir, green, swir = (july[:, ROLES.index(r)] for r in ("red", "nir", "green", "swir1"))
    ndvi = (nir - red) / (nir + red)
    ndwi = (green - nir) / (green + nir)
    ndbi = (swir - nir) / (swir + nir)
    assert 0.7 < ndvi[FOREST] < 0.95  # closed temperate forest in leaf
    assert ndvi[0] < 0 < ndwi[0]  # open water
    assert 0.0 < ndbi[6] < 0.2  # built-up
    assert 0.05 < ndvi[5] < 0.25  # bare soil


def test_seasons_turn_with_the_hemisphere() -> None:
    assert greenness(195, 45)[FOREST] > greenness(15, 45)[FOREST] + 0.3
    assert greenness(15, -45)[FOREST] > greenness(195, -45)[FOREST] + 0.3
    north, south = sun(date(2023, 6, 21), 45)[0], sun(date(2023, 6, 21), -45)[0]
    assert north == pytest.approx(60, abs=3)
    assert south < 20


def test_land_changes_and_keeps_the_change() -> None:
    land = make_land(WorldConfig(), site(3), np.random.default_rng(0))
    kinds = {event.kind for event in land.events}
    assert {"felled", "built", "flooded"} <= kinds
    last = land.events[-1].day
    assert (land.on(last) != land.first).mean() > 0.01
    assert (land.on(date(2022, 1, 1)) == land.first).all()


def test_objects_have_true_sizes_and_lie_inside_the_tile(world: tuple[Path, Fetched]) -> None:
    out, fetched = world
    rng = np.random.default_rng(0)
    counts: dict[str, list[int]] = {}
    for _ in range(40):
        tile = draw_tile(rng)
        for item in tile.objects:
            corners = np.array(item.corners)
            assert corners.min() >= 0
            assert corners.max() <= SIDE
            sides = np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1) * GSD
            low, high = CATALOGUE[item.category].length_m
            assert low - 0.01 <= max(sides) <= high + 0.01
        for category in {item.category for item in tile.objects}:
            number = sum(item.category == category for item in tile.objects)
            counts.setdefault(category, []).append(number)
    assert set(counts) == set(CATALOGUE)
    assert any(1 in found for found in counts.values())
    for scene in of(fetched, "simulated-vhr"):
        assert scene.annotations is not None
        labels = read_label_txt(out / scene.annotations)
        assert all(label.category in CATALOGUE for label in labels)
        assert read_gsd(out / scene.annotations) == GSD
        with rasterio.open(out / scene.bands["R"].path) as picture:
            assert picture.shape == (SIDE, SIDE)
            assert picture.res == (GSD, GSD)
