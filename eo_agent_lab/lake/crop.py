"""Crops: windows of a scene's bands in one NetCDF file, digital numbers untouched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from eo_agent_lab.errors import SceneError
from eo_agent_lab.lake.raster import (
    Aoi,
    BandSource,
    Grid,
    PixelWindow,
    aoi_window,
    covering_window,
)
from eo_agent_lab.lake.scene import Band, Scene

_GRID_KEYS = ("x0", "y0", "dx", "dy")


def write_crop(source: BandSource, path: Path, aoi: Aoi) -> Scene:
    """Write every band and quality layer inside an area of interest.

    The area is widened to whole pixels of the coarsest band, so that grids of different pixel size
    stay nested. Variables carry CF ``scale_factor``, ``add_offset`` and ``_FillValue``: xarray
    opens them as reflectance.

    Returns:
        The crop's own Scene, with ``parent_id`` and ``window`` in the finest band's pixels.
    """
    import xarray as xr

    scene = source.scene
    grids = {name: source.grid(name) for name in (*scene.bands, *scene.quality)}
    coarsest = max(scene.bands, key=lambda name: abs(grids[name].dx))
    target = grids[coarsest].window(*aoi_window(grids[coarsest], aoi))
    data: dict[str, Any] = {}
    records: dict[str, Band] = {}
    windows: dict[str, PixelWindow] = {}
    for name, grid in grids.items():
        window = covering_window(grid, target)
        local = grid.window(*window)
        band = scene.bands.get(name) or scene.quality[name]
        attributes: dict[str, Any] = {key: getattr(local, key) for key in _GRID_KEYS}
        values = source.read(name, window)
        if band.scale is not None:
            attributes |= {"scale_factor": band.scale, "add_offset": band.offset or 0.0}
        if band.nodata is not None and np.can_cast(np.min_scalar_type(band.nodata), values.dtype):
            attributes["_FillValue"] = values.dtype.type(band.nodata)
        size = f"{abs(grid.dx):g}".replace(".", "p")
        xs = local.x0 + (np.arange(local.width) + 0.5) * local.dx
        ys = local.y0 + (np.arange(local.height) + 0.5) * local.dy
        dims = (f"y_{size}", f"x_{size}")
        data[name] = xr.DataArray(
            values, dims=dims, coords={dims[0]: ys, dims[1]: xs}, attrs=attributes
        )
        records[name] = band.model_copy(update={"path": path.name, "index": 1})
        windows[name] = window
    finest = min(scene.bands, key=lambda name: abs(grids[name].dx))
    crop = scene.model_copy(
        update={
            "bands": {name: records[name] for name in scene.bands},
            "quality": {name: records[name] for name in scene.quality},
            "root": ".",
            "parent_id": scene.parent_id or scene.scene_id,
            "window": tuple(windows[finest]),
            "shape": (windows[finest].height, windows[finest].width),
        }
    )
    dataset = xr.Dataset(data)
    dataset.attrs = {
        "Conventions": "CF-1.10",
        "eolab_format": "eo_agent_lab.crop 1",
        "eolab_scene": crop.model_dump_json(),
        "crs_wkt": grids[finest].crs,
    }
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    dataset.to_netcdf(temporary, engine="h5netcdf")
    os.replace(temporary, path)
    return crop


class CropSource:
    """A crop's pixels, as :class:`~eo_agent_lab.lake.raster.BandSource`."""

    def __init__(self, path: Path) -> None:
        """Read a crop written by :func:`write_crop`.

        Raises:
            SceneError: The file is damaged or is no crop of ours.
        """
        import xarray as xr

        try:
            with xr.open_dataset(path, engine="h5netcdf", mask_and_scale=False) as dataset:
                self._data = dataset.load()
            self.scene = Scene.model_validate_json(str(self._data.attrs["eolab_scene"]))
            self._crs = str(self._data.attrs["crs_wkt"])
        except (OSError, KeyError, ValueError, ValidationError) as error:
            raise SceneError(
                f"{path.name} is not a crop that crop_multispectral_image wrote; make it again"
            ) from error

    def grid(self, name: str) -> Grid:
        """Return the grid of a band."""
        variable = self._data[name]
        x0, y0, dx, dy = (float(variable.attrs[key]) for key in _GRID_KEYS)
        height, width = variable.shape
        return Grid(self._crs, x0, y0, dx, dy, width, height)

    def read(self, name: str, window: PixelWindow) -> NDArray[Any]:
        """Return raw digital numbers of a window."""
        rows = slice(window.row, window.row + window.height)
        cols = slice(window.col, window.col + window.width)
        return np.asarray(self._data[name].values[rows, cols])
