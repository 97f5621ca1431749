"""The lake's look-ups against brute force, its files as others read them, and damage to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eo_agent_lab.errors import ConfigError, LakeError
from eo_agent_lab.lake import Lake, Scene
from eo_agent_lab.lake.bench import catalogue, run_bench
from eo_agent_lab.lake.build import INDEX_FILE, SCENES_FILE, add_scenes, rebuild_index
from eo_agent_lab.lake.info import summarise


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    return catalogue(300)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, scenes: list[Scene]) -> Lake:
    folder = tmp_path_factory.mktemp("lake")
    undated = scenes[0].model_copy(update={"scene_id": "undated0", "acquired": None})
    add_scenes(folder, [*scenes, undated])
    return Lake(folder)


families = st.sampled_from([None, "sentinel-2", "sentinel-2a", "landsat", "landsat-9", "landsat-5"])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 299), families, st.one_of(st.none(), st.integers(-50, 800)))
def test_neighbours_in_time_equal_brute_force(
    lake: Lake, scenes: list[Scene], number: int, sensor: str | None, day: int | None
) -> None:
    here = scenes[number]
    assert here.acquired is not None
    when = here.acquired if day is None else datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=day)
    argument = None if day is None else when
    same = [
        s
        for s in scenes
        if s.location_id == here.location_id and (sensor is None or s.sensor.startswith(sensor))
    ]
    before = [s for s in same if s.acquired and s.acquired < when]
    after = [s for s in same if s.acquired and s.acquired > when]
    expected = max(before, key=lambda s: str(s.acquired)) if before else None
    assert lake.previous(here.scene_id, before=argument, sensor=sensor) == expected
    expected = min(after, key=lambda s: str(s.acquired)) if after else None
    assert lake.next(here.scene_id, after=argument, sensor=sensor) == expected


def test_a_list_is_in_order_with_the_undated_last_and_dates_inclusive(
    lake: Lake, scenes: list[Scene]
) -> None:
    here = scenes[5]
    found = lake.list(here.scene_id)
    assert [s.acquired for s in found[:-1]] == sorted(s.acquired for s in found[:-1] if s.acquired)
    assert found[-1].scene_id == "undated0"
    assert here.acquired is not None
    day = here.acquired.date().isoformat()
    assert lake.list(here.scene_id, start=day, end=day) == [here]


def test_a_point_finds_the_scenes_that_cover_it(lake: Lake, scenes: list[Scene]) -> None:
    ring = scenes[70].footprint
    assert ring is not None
    lon, lat = ring[0][0] + 0.01, ring[0][1] + 0.01
    place = scenes[70].location_id
    assert {s.scene_id for s in lake.at(lon, lat)} == {
        s.scene_id for s in scenes if s.location_id == place
    }
    assert lake.at(lon + 0.02, lat) == []
    assert len(lake.at(lon, lat, sensor="landsat", limit=3)) == 3
    with pytest.raises(LakeError, match="not a longitude and latitude"):
        lake.at(500_000, 4_500_000)


def test_companions_are_mutual(lake: Lake, scenes: list[Scene]) -> None:
    partner = lake.companion(scenes[8].scene_id)
    assert partner == scenes[9]
    assert lake.companion(scenes[9].scene_id) == scenes[8]


def test_unknown_scenes_and_dates_are_explained(lake: Lake) -> None:
    with pytest.raises(LakeError, match="use a handle"):
        lake.get("nothing")
    with pytest.raises(LakeError, match="no acquisition date"):
        lake.previous("undated0")
    with pytest.raises(LakeError, match="YYYY-MM-DD"):
        lake.list("undated0", start="yesterday")


def test_geopandas_and_pystac_read_the_catalogue(lake: Lake, scenes: list[Scene]) -> None:
    import geopandas
    import pyarrow.parquet as pq
    import pystac
    import stac_geoparquet.arrow

    frame = geopandas.read_parquet(lake.path / SCENES_FILE)
    assert len(frame) == 301
    assert frame.crs.to_epsg() == 4326
    table = pq.read_table(lake.path / SCENES_FILE)
    item = next(iter(stac_geoparquet.arrow.stac_table_to_items(table)))
    read = pystac.Item.from_dict(item)
    known = {scene.scene_id for scene in scenes} | {"undated0"}
    assert read.id in known
    assert "B8" in read.assets or "B5" in read.assets


def test_a_missing_or_stale_index_is_made_again_and_a_damaged_one_says_so(tmp_path: Path) -> None:
    first = catalogue(40)
    add_scenes(tmp_path, first[:20])
    old = (tmp_path / INDEX_FILE).read_bytes()
    (tmp_path / INDEX_FILE).unlink()
    assert len(Lake(tmp_path).scene_ids()) == 20
    add_scenes(tmp_path, first[20:])
    (tmp_path / INDEX_FILE).write_bytes(old)
    assert len(Lake(tmp_path).scene_ids()) == 40
    (tmp_path / INDEX_FILE).write_bytes(b"not a database at all")
    with pytest.raises(LakeError, match="eolab lake build"):
        Lake(tmp_path)
    assert rebuild_index(tmp_path) == 40
    (tmp_path / SCENES_FILE).write_bytes(b"PAR1")
    with pytest.raises(LakeError, match="damaged"):
        rebuild_index(tmp_path)
    with pytest.raises(LakeError, match="no lake at"):
        Lake(tmp_path / "absent")


def test_a_lake_and_its_files_can_move_together(tmp_path: Path) -> None:
    root = tmp_path / "data" / "raw"
    root.mkdir(parents=True)
    scene = catalogue(1)[0].model_copy(update={"root": str(root)})
    add_scenes(tmp_path / "data" / "lake", [scene])
    (tmp_path / "data").rename(tmp_path / "moved")
    lake = Lake(tmp_path / "moved" / "lake")
    assert lake.root(lake.get(scene.scene_id)).resolve() == tmp_path / "moved" / "raw"


WRITER = """
import sys
from pathlib import Path
from eo_agent_lab.lake.bench import catalogue
from eo_agent_lab.lake.build import add_scenes
scenes = catalogue(400)
for start in range(40, 400, 20):
    add_scenes(Path(sys.argv[1]), scenes[start:start + 20])
    print(start, flush=True)
"""


def test_killed_while_adding_the_lake_is_whole(tmp_path: Path) -> None:
    add_scenes(tmp_path, catalogue(400)[:40])
    for delay in (0.0, 0.03, 0.07):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(delay)
            writer.send_signal(signal.SIGKILL)
        lake = Lake(tmp_path)
        count = len(lake.scene_ids())
        assert count % 20 == 0
        assert count > 40
        assert sum(row["scenes"] for row in summarise(tmp_path)) == count


def test_bench_has_the_shape_of_the_contract(tmp_path: Path) -> None:
    measured = run_bench(200, tmp_path / "kept")
    assert set(measured) == {"build_s", "bytes", "lookup_us"}
    assert set(measured["lookup_us"]) == {"previous", "next", "list", "companion"}
    assert all(set(row) == {"median", "p99"} for row in measured["lookup_us"].values())
    json.dumps(measured)
    assert len(Lake(tmp_path / "kept").scene_ids()) == 200
    with pytest.raises(ConfigError, match="not empty"):
        run_bench(10, tmp_path / "kept")
    with pytest.raises(ConfigError, match="positive"):
        run_bench(0)
