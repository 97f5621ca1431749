"""Contracts over the whole tool registry, and the answers of EO-Gym's multispectral family."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rasters import landsat_product, safe_product, write_raster

from eo_agent_lab.errors import ToolError
from eo_agent_lab.lake import Lake
from eo_agent_lab.lake.build import add_scenes
from eo_agent_lab.lake.folder import FolderFetcher
from eo_agent_lab.tools import (
    Context,
    Observation,
    Tool,
    Workspace,
    call_tool,
    list_tools,
    tool,
    validate_call,
)

PAPERS_FIFTEEN = {
    "get_multispectral_list",
    "get_previous_multispectral",
    "get_next_multispectral",
    "crop_multispectral_image",
    "compute_ndvi_by_multispectral",
    "compute_ndwi_by_multispectral",
    "compute_ndbi_by_multispectral",
    "compute_ndsi_by_multispectral",
    "compute_water_mask_by_multispectral",
    "compute_vegetation_mask_by_multispectral",
    "compute_urban_mask_by_multispectral",
    "get_bbox_geospatial_relationship",
    "get_mask_geospatial_relationship",
    "basic_calculator",
    "theme_index_lookup",
}
EVERY = list_tools()
BAD_VALUES: list[Any] = [None, 3, True, "x" * 2000, [], {}, [[1]], "../x", "/etc/passwd", "a\x00b"]


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    for day in ("20210705", "20210721", "20210806"):
        landsat_product(tmp_path / "in", f"LC08_L2SP_013032_{day}_20210813_02_T1")
    add_scenes(tmp_path / "lake", FolderFetcher(tmp_path / "in").fetch().scenes)
    return Workspace(tmp_path / "work", Lake(tmp_path / "lake"))


def scene_on(place: Workspace, day: str) -> str:
    assert place.lake is not None
    lake = place.lake
    return next(s for s in lake.scene_ids() if day in lake.get(s).product_id)


def call(place: Workspace, name: str, **arguments: Any) -> Observation:
    return call_tool(name, arguments, place)


def good(place: Workspace, name: str, **arguments: Any) -> Any:
    seen = call(place, name, **arguments)
    assert not seen.is_error, seen.text
    return seen.data


def test_the_papers_fifteen_are_registered() -> None:
    assert {item.name for item in EVERY if item.suite == "eo_gym"} >= PAPERS_FIFTEEN


@pytest.mark.parametrize("item", EVERY, ids=lambda item: item.name)
def test_every_tool_has_a_schema_that_says_what_each_argument_is(item: Tool) -> None:
    assert len(item.description) > 20
    assert item.parameters["type"] == "object"
    assert item.parameters["additionalProperties"] is False
    for schema in item.parameters["properties"].values():
        assert len(schema["description"]) > 10
    json.dumps(item.parameters)
    assert item.signature().startswith(item.name + "(")


@pytest.mark.parametrize("item", EVERY, ids=lambda item: item.name)
def test_every_tool_answers_bad_arguments_and_writes_nothing(item: Tool, place: Workspace) -> None:
    properties = item.parameters["properties"]
    for value in BAD_VALUES:
        for name in properties:
            arguments = dict.fromkeys(properties, value) | {name: value}
            seen = call_tool(item.name, arguments, place)
            assert seen.is_error, (item.name, value, seen.text)
            assert seen.text.startswith("Error: ")
            assert len(seen.text) < 1500
    for arguments in ({}, {"no_such_argument": 1}, [], "text", None):
        assert call_tool(item.name, arguments, place).is_error  # type: ignore[arg-type]
    assert not list(place.root.iterdir())


def test_an_unknown_tool_is_answered_with_the_nearest_names(place: Workspace) -> None:
    seen = call(place, "compute_ndvi")
    assert seen.is_error
    assert "compute_ndvi_by_multispectral" in seen.text
    with pytest.raises(ToolError, match="there is no tool"):
        validate_call("fly", {})


def test_validate_call_checks_without_running(place: Workspace) -> None:
    validate_call("basic_calculator", {"expression": "1/0"})
    with pytest.raises(ToolError, match="'expression' is missing"):
        validate_call("basic_calculator", {})
    with pytest.raises(ToolError, match=r"got 'abc'.*Call it as compute_ndvi"):
        validate_call("compute_ndvi_by_multispectral", {"multispectral_url": "a", "aoi": "abc"})


def test_a_tool_without_described_arguments_cannot_be_registered() -> None:
    def silent(context: Context, value: float) -> Observation:
        """Do something."""
        return Observation(text=str(value))

    with pytest.raises(ToolError, match="argument 'value' of tool 'silent'"):
        tool(suite="test")(silent)


@pytest.mark.parametrize(
    "url", ["../in", "/etc/passwd", "EO_GYM_DATA/../../in", "~/x", "link", "link/x.tif", "a\\..\\b"]
)
def test_no_handle_leaves_the_workspace(place: Workspace, url: str) -> None:
    (place.root / "link").symlink_to(place.root.parent / "in")
    seen = call(place, "compute_ndvi_by_multispectral", multispectral_url=url)
    assert seen.is_error
    assert "NDVI" not in seen.text


def test_time_moves_and_stops_at_the_ends(place: Workspace) -> None:
    first, second, third = (scene_on(place, day) for day in ("20210705", "20210721", "20210806"))
    rows = good(place, "get_multispectral_list", multispectral_url=second)
    assert [row["handle"] for row in rows] == [first, second, third]
    assert good(place, "get_previous_multispectral", multispectral_url=second)["handle"] == first
    assert good(place, "get_next_multispectral", multispectral_url=second)["handle"] == third
    late = good(place, "get_previous_multispectral", multispectral_url=first, date="2021-08-06")
    assert late["handle"] == second
    end = call(place, "get_next_multispectral", multispectral_url=third)
    assert end.is_error
    assert "no observation of this place after 2021-08-06" in end.text
    wrong = call(place, "get_next_multispectral", multispectral_url=third, date="06/08/2021")
    assert "write it as YYYY-MM-DD" in wrong.text


def test_statistics_by_hand(place: Workspace) -> None:
    data = good(place, "compute_ndvi_by_multispectral", multispectral_url=scene_on(place, "0705"))
    red, nir = 10_909 * 2.75e-5 - 0.2, 18_182 * 2.75e-5 - 0.2
    assert data["mean"] == pytest.approx((nir - red) / (nir + red), abs=1e-12)
    assert (data["valid_pixels"], data["total_pixels"]) == (108, 144)
    assert data["std"] == pytest.approx(0.0, abs=1e-12)
    assert data["level"] == "SR"
    assert "QA_PIXEL bits" in data["excluded"]


def test_a_mask_gives_share_area_and_a_file_that_marks_the_unknown(place: Workspace) -> None:
    import rasterio

    scene = scene_on(place, "0705")
    data = good(place, "compute_vegetation_mask_by_multispectral", multispectral_url=scene)
    assert data["share"] == 1.0
    assert data["area_m2"] == pytest.approx(108 * 900)
    with rasterio.open(place.root / data["mask"]) as dataset:
        values = dataset.read(1)
        assert dataset.crs.to_epsg() == 32618
    assert (values[:3] == 255).all()
    assert (values[3:] == 1).all()
    half = good(
        place,
        "compute_vegetation_mask_by_multispectral",
        multispectral_url=scene,
        aoi=[0.5, 0.0, 1.0, 1.0],
    )
    relation = good(
        place, "get_mask_geospatial_relationship", mask_a_url=half["mask"], mask_b_url=data["mask"]
    )
    assert relation["a_inside_b"] == 1.0
    again = good(place, "compute_vegetation_mask_by_multispectral", multispectral_url=scene)
    assert again == data


def test_masks_that_do_not_overlap_are_an_error(place: Workspace) -> None:
    left = write_raster(place.root / "l.tif", np.ones((4, 4), np.uint8))
    right = write_raster(place.root / "r.tif", np.ones((4, 4), np.uint8), origin=(6e5, 4.5e6))
    seen = call(
        place, "get_mask_geospatial_relationship", mask_a_url=left.name, mask_b_url=right.name
    )
    assert "do not overlap" in seen.text
    other = write_raster(place.root / "o.tif", np.ones((4, 4), np.uint8), epsg=32619)
    seen = call(
        place, "get_mask_geospatial_relationship", mask_a_url=left.name, mask_b_url=other.name
    )
    assert "different coordinate systems" in seen.text


def test_a_folder_and_a_file_of_the_workspace_are_scenes_without_a_lake(tmp_path: Path) -> None:
    safe_product(tmp_path)
    place = Workspace(tmp_path)
    for url in (".", next(tmp_path.rglob("*B08_10m.jp2")).relative_to(tmp_path).as_posix()):
        data = good(place, "compute_ndvi_by_multispectral", multispectral_url=url)
        assert data["mean"] == pytest.approx(0.5)
    assert (
        "no lake is attached" in call(place, "get_multispectral_list", multispectral_url=".").text
    )


def test_ndbi_averages_the_finer_band_over_valid_pixels(tmp_path: Path) -> None:
    name = "S2B_MSIL2A_20230601T100031_N0509_R122_T33TWM_20230601T130000"
    nir = np.full((8, 8), 3000, np.uint16)
    nir[0, 0] = 0
    nir[0, 1] = 5000
    swir = np.full((4, 4), 3000, np.uint16)
    write_raster(tmp_path / f"{name}_B08.tif", nir, gsd=10, epsg=32633)
    write_raster(tmp_path / f"{name}_B11.tif", swir, gsd=20, epsg=32633)
    data = good(Workspace(tmp_path), "compute_ndbi_by_multispectral", multispectral_url=".")
    corner = (5000 + 3000 + 3000) / 3
    expected = ((3000 - corner) / (3000 + corner - 2000)) / 16
    assert data["mean"] == pytest.approx(expected, abs=1e-12)
    assert data["resampling"] == "B8 averaged from 10 m to 20 m over valid pixels"


def test_all_cloud_and_all_nodata_say_which_and_what_to_do(tmp_path: Path) -> None:
    for name, code, digital in (("cloud", 8, 9000), ("nodata", 1, 0)):
        product = landsat_product(tmp_path / name)
        write_raster(next(product.glob("*QA_PIXEL.TIF")), np.full((12, 12), code, np.uint16))
        for path in product.glob("*_B?.TIF"):
            write_raster(path, np.full((12, 12), digital, np.uint16))
        seen = call(
            Workspace(tmp_path / name), "compute_ndvi_by_multispectral", multispectral_url="."
        )
        assert seen.is_error
        assert f"every pixel here is {name}" in seen.text
        assert "another date" in seen.text


def test_a_file_that_breaks_after_ingestion_is_an_error_not_a_number(place: Workspace) -> None:
    scene = scene_on(place, "0705")
    assert place.lake is not None
    path = place.lake.band_path(place.lake.get(scene), "B5")
    path.write_bytes(path.read_bytes()[:300])
    seen = call(place, "compute_ndvi_by_multispectral", multispectral_url=scene)
    assert seen.is_error
    assert "fetch" in seen.text


@pytest.mark.parametrize(
    ("aoi", "message"),
    [
        ([0.5, 0.5, 0.5, 0.9], "no extent"),
        ([0.9, 0.1, 0.1, 0.9], "no extent"),
        ([1.1, 0.0, 1.5, 1.0], "does not overlap"),
        ([0.0, 0.0, 1.0], "at least 4 items"),
        ([0.0, 0.0, 1.0, float("nan")], "finite number"),
        ([0, 0, 1, "1"], "valid number"),
    ],
)
def test_a_bad_area_of_interest_is_explained(
    place: Workspace, aoi: list[Any], message: str
) -> None:
    seen = call(
        place, "compute_ndvi_by_multispectral", multispectral_url=scene_on(place, "0705"), aoi=aoi
    )
    assert seen.is_error
    assert message in seen.text


@pytest.mark.parametrize(
    ("theme", "index"), [("urban growth", "NDBI"), ("Flooding", "NDWI"), ("snow cover", "NDSI")]
)
def test_a_theme_leads_to_its_index(place: Workspace, theme: str, index: str) -> None:
    assert good(place, "theme_index_lookup", theme=theme)["index"] == index
    assert call(place, "theme_index_lookup", theme="sports").is_error
