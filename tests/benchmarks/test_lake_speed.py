"""Speed of look-ups and of an index over a window, each beside the library one would use instead.

Run with `make bench`; read the ratios, not the absolute times. Nothing here fails on a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rasters import write_raster

from eo_agent_lab.lake import Lake
from eo_agent_lab.lake.bench import catalogue
from eo_agent_lab.lake.build import read_scenes, write_scenes
from eo_agent_lab.tools import Workspace, call_tool

pytestmark = pytest.mark.benchmark
NAME = "S2B_MSIL2A_20230601T100031_N0509_R122_T33TWM_20230601T130000"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("lake")
    write_scenes(folder, catalogue(6000))
    return Lake(folder)


@pytest.mark.benchmark(group="previous scene of a place, 6,000 scenes")
def test_previous_by_index(benchmark: Any, lake: Lake) -> None:
    scene_id = lake.scene_ids()[3000]
    benchmark(lambda: lake.previous(scene_id))


@pytest.mark.benchmark(group="previous scene of a place, 6,000 scenes")
def test_previous_by_pandas(benchmark: Any, lake: Lake) -> None:
    import pandas as pd

    scenes = read_scenes(lake.path)
    frame = pd.DataFrame(
        [{"id": s.scene_id, "place": s.location_id, "time": s.acquired} for s in scenes]
    ).set_index("id")
    scene_id = lake.scene_ids()[3000]

    def previous() -> Any:
        row = frame.loc[scene_id]
        earlier = frame[(frame["place"] == row["place"]) & (frame["time"] < row["time"])]
        return earlier["time"].idxmax() if len(earlier) else None

    found = lake.previous(scene_id)
    assert (found.scene_id if found else None) == benchmark(previous)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scene")
    rng = np.random.default_rng(0)
    for band in ("B04", "B08"):
        values = rng.integers(1200, 6000, (1024, 1024)).astype(np.uint16)
        write_raster(
            folder / f"{NAME}_{band}.tif",
            values,
            gsd=10,
            epsg=32633,
            tiled=True,
            compress="deflate",
        )
    return folder


@pytest.mark.benchmark(group="NDVI statistics of a 256 x 256 window")
def test_ndvi_by_tool(benchmark: Any, folder: Path, tmp_path: Path) -> None:
    from eo_agent_lab.lake.build import add_scenes
    from eo_agent_lab.lake.folder import FolderFetcher

    add_scenes(tmp_path / "lake", FolderFetcher(folder).fetch().scenes)
    place = Workspace(tmp_path / "work", Lake(tmp_path / "lake"))
    assert place.lake is not None
    arguments = {"multispectral_url": place.lake.scene_ids()[0], "aoi": [0.25, 0.25, 0.5, 0.5]}
    assert not benchmark(
        lambda: call_tool("compute_ndvi_by_multispectral", arguments, place)
    ).is_error


@pytest.mark.filterwarnings("ignore:Use `@`:PendingDeprecationWarning")  # rioxarray's own
@pytest.mark.benchmark(group="NDVI statistics of a 256 x 256 window")
def test_ndvi_by_rioxarray(benchmark: Any, folder: Path) -> None:
    import rioxarray

    def ndvi() -> tuple[float, ...]:
        red, nir = (
            rioxarray.open_rasterio(folder / f"{NAME}_{band}.tif")
            .isel(x=slice(256, 512), y=slice(256, 512))
            .astype("float64")
            * 1e-4
            - 0.1
            for band in ("B04", "B08")
        )
        index = (nir - red) / (nir + red)
        return tuple(float(x) for x in (index.mean(), index.median(), index.std(), index.min()))

    benchmark(ndvi)
