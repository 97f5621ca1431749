"""Ingesting folders: layouts people have, and everything that can be wrong with them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from rasters import LANDSAT_C2, SAFE_NAME, landsat_product, safe_product, write_raster

from eo_agent_lab.errors import SceneError
from eo_agent_lab.lake import Lake
from eo_agent_lab.lake.build import add_scenes
from eo_agent_lab.lake.fetcher import Fetched
from eo_agent_lab.lake.folder import FolderFetcher
from eo_agent_lab.tools import Workspace, call_tool


def fetch(folder: Path) -> Fetched:
    return FolderFetcher(folder).fetch()


def only_reason(folder: Path) -> str:
    fetched = fetch(folder)
    assert not fetched.scenes
    assert len(fetched.rejected) == 1
    return fetched.rejected[0].reason


def ndvi(folder: Path, workspace: Path) -> dict[str, object]:
    add_scenes(workspace / "lake", fetch(folder).scenes)
    lake = Lake(workspace / "lake")
    place = Workspace(workspace / "work", lake)
    (scene_id,) = lake.scene_ids()
    seen = call_tool("compute_ndvi_by_multispectral", {"multispectral_url": scene_id}, place)
    assert not seen.is_error, seen.text
    data: dict[str, object] = seen.data
    return data


def test_landsat_level_2_takes_its_own_group_of_an_mtl_that_holds_two(tmp_path: Path) -> None:
    landsat_product(tmp_path / "in")
    data = ndvi(tmp_path / "in", tmp_path)
    assert data["level"] == "SR"
    # red 10909 * 2.75e-5 - 0.2 = 0.1000, nir 18182 * 2.75e-5 - 0.2 = 0.3000
    assert data["mean"] == pytest.approx(0.5, abs=2e-4)
    assert data["valid_share"] == pytest.approx(9 / 12)
    assert data["cloud_share"] == pytest.approx(2 / 11)


def test_landsat_level_2_without_mtl_has_the_standard_factors(tmp_path: Path) -> None:
    landsat_product(tmp_path / "in", mtl=False)
    assert ndvi(tmp_path / "in", tmp_path)["mean"] == pytest.approx(0.5, abs=2e-4)


@pytest.mark.parametrize(("offset", "expected"), [(-1000.0, 0.5), (None, 1 / 3), (0.0, 1 / 3)])
def test_the_sentinel_2_offset_is_applied_exactly_once(
    tmp_path: Path, offset: float | None, expected: float
) -> None:
    safe_product(tmp_path / "in", offset=offset)
    (scene,) = fetch(tmp_path / "in").scenes
    assert (scene.sensor, scene.level, scene.gsd_m) == ("sentinel-2b", "SR", 10.0)
    assert list(scene.bands) == ["B4", "B8", "B8A"]
    assert scene.bands["B4"].gsd_m == 10.0
    assert scene.acquired is not None
    assert scene.acquired.isoformat() == "2023-06-01T10:00:31+00:00"
    data = ndvi(tmp_path / "in", tmp_path)
    assert data["mean"] == pytest.approx(expected, abs=1e-12)
    assert data["valid_share"] == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [(SAFE_NAME, 0.5), (SAFE_NAME.replace("N0509", "N0301"), 1 / 3)],
    ids=["baseline 05.09", "baseline 03.01"],
)
def test_without_metadata_the_baseline_in_the_name_decides(
    tmp_path: Path, name: str, expected: float
) -> None:
    red, nir = np.full((8, 8), 2000, np.uint16), np.full((8, 8), 4000, np.uint16)
    write_raster(tmp_path / "in" / f"{name}_B04.tif", red, gsd=10)
    write_raster(tmp_path / "in" / f"{name}_B08.tif", nir, gsd=10)
    assert ndvi(tmp_path / "in", tmp_path)["mean"] == pytest.approx(expected)


def test_a_late_sentinel_2_product_of_unknown_baseline_stays_in_digital_numbers(
    tmp_path: Path,
) -> None:
    stack = np.full((13, 8, 8), 2000, np.uint16)
    write_raster(tmp_path / "S2A_L1C_20230711_stack.tif", stack, gsd=10)
    (scene,) = fetch(tmp_path).scenes
    assert scene.level == "DN"
    assert "baseline" in scene.level_note


def test_a_stack_is_read_by_its_descriptions_whatever_their_order(tmp_path: Path) -> None:
    stack = np.stack([np.full((8, 8), value, np.uint16) for value in (4000, 2000)])
    write_raster(
        tmp_path / "in" / "S2A_L2A_20200711.tif", stack, gsd=10, descriptions=("B08", "B04")
    )
    data = ndvi(tmp_path / "in", tmp_path)
    assert data["mean"] == pytest.approx(1 / 3)


def test_a_truncated_tiff_is_named_and_the_good_scene_still_loads(tmp_path: Path) -> None:
    good = landsat_product(tmp_path)
    bad = landsat_product(tmp_path, LANDSAT_C2.replace("20210705", "20210721"))
    target = next(bad.glob("*B5.TIF"))
    target.write_bytes(target.read_bytes()[: target.stat().st_size // 2])
    fetched = fetch(tmp_path)
    assert [scene.product_id for scene in fetched.scenes] == [good.name]
    assert len(fetched.rejected) == 1
    assert "truncated" in fetched.rejected[0].reason
    assert "B5" in fetched.rejected[0].reason


def test_a_truncated_jpeg_2000_is_found(tmp_path: Path) -> None:
    safe_product(tmp_path)
    target = next(tmp_path.rglob("*B08_10m.jp2"))
    target.write_bytes(target.read_bytes()[:-40])
    reason = only_reason(tmp_path)
    assert "truncated" in reason or "not a raster" in reason


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    product = landsat_product(tmp_path)
    next(product.glob("*B4.TIF")).write_bytes(b"")
    assert "empty (0 bytes)" in only_reason(tmp_path)


@pytest.mark.parametrize("date", ["20211332", "19700101", "20990101"])
def test_a_scene_with_a_wrong_date_is_rejected(tmp_path: Path, date: str) -> None:
    product = LANDSAT_C2.replace("20210705", date)
    landsat_product(tmp_path, product, mtl=False)
    fetched = fetch(tmp_path)
    assert not fetched.scenes
    assert "date" in fetched.rejected[0].reason


def test_a_date_that_the_metadata_contradict_is_rejected(tmp_path: Path) -> None:
    product = landsat_product(tmp_path)
    mtl = next(product.glob("*MTL.txt"))
    mtl.write_text(
        mtl.read_text().replace("DATE_ACQUIRED = 2021-07-05", "DATE_ACQUIRED = 2020-07-05")
    )
    assert "different dates (2020-07-05, 2021-07-05)" in only_reason(tmp_path)


def test_a_broken_off_mtl_is_rejected(tmp_path: Path) -> None:
    product = landsat_product(tmp_path)
    mtl = next(product.glob("*MTL.txt"))
    mtl.write_text(mtl.read_text()[:900])
    assert "breaks off" in only_reason(tmp_path)


def test_a_duplicated_product_is_loaded_once_and_named(tmp_path: Path) -> None:
    product = landsat_product(tmp_path / "a")
    shutil.copytree(product, tmp_path / "b" / product.name)
    fetched = fetch(tmp_path)
    assert len(fetched.scenes) == 1
    assert "duplicate of" in fetched.rejected[0].reason


def test_bands_in_different_coordinate_systems_are_rejected(tmp_path: Path) -> None:
    product = landsat_product(tmp_path)
    write_raster(next(product.glob("*B5.TIF")), np.full((12, 12), 9, np.uint16), epsg=32619)
    assert "different coordinate systems" in only_reason(tmp_path)


def test_coordinates_that_do_not_fit_the_coordinate_system_are_rejected(tmp_path: Path) -> None:
    product = landsat_product(tmp_path)
    for path in product.glob("*.TIF"):
        write_raster(path, np.full((12, 12), 9, np.uint16), epsg=4326)
    assert "wrong coordinate system" in only_reason(tmp_path)


def test_bands_that_do_not_overlap_are_rejected(tmp_path: Path) -> None:
    product = landsat_product(tmp_path)
    far = (900_000.0, 4_500_000.0)
    write_raster(next(product.glob("*B5.TIF")), np.full((12, 12), 9, np.uint16), origin=far)
    assert "do not overlap" in only_reason(tmp_path)


def test_a_link_out_of_the_folder_is_rejected(tmp_path: Path) -> None:
    outside = write_raster(tmp_path / "secret_B4.tif", np.ones((4, 4), np.uint16))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "l8_B4.tif").symlink_to(outside)
    assert "link" in only_reason(tmp_path / "in")


def test_a_missing_folder_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match="no folder at"):
        fetch(tmp_path / "absent")


def test_ingesting_twice_changes_nothing(tmp_path: Path) -> None:
    landsat_product(tmp_path / "in")
    for _ in range(2):
        add_scenes(tmp_path / "lake", fetch(tmp_path / "in").scenes)
    assert len(Lake(tmp_path / "lake").scene_ids()) == 1


def test_a_modification_time_is_never_a_date(tmp_path: Path) -> None:
    write_raster(
        tmp_path / "l8_B4.tif",
        np.ones((4, 4), np.uint16),
        tags={"TIFFTAG_DATETIME": "2020:01:01 00:00:00"},
    )
    (scene,) = fetch(tmp_path).scenes
    assert scene.acquired is None
