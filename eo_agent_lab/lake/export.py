"""Writing results for QGIS: cloud-optimised GeoTIFF and GeoJSON in WGS84."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.errors import SceneError
from eo_agent_lab.lake.raster import Grid
from eo_agent_lab.paths import write_atomic


def write_index_cog(
    path: Path,
    values: NDArray[np.float64],
    valid: NDArray[np.bool_],
    grid: Grid,
    tags: dict[str, str],
) -> None:
    """Write one float32 band as COG; invalid pixels are NaN, which is its nodata value."""
    import rasterio
    from rasterio.transform import Affine

    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp.tif")
    profile: dict[str, Any] = {
        "driver": "COG",
        "width": grid.width,
        "height": grid.height,
        "count": 1,
        "dtype": "float32",
        "nodata": float("nan"),
        "crs": grid.crs or None,
        "transform": Affine(grid.dx, 0, grid.x0, 0, grid.dy, grid.y0),
        "compress": "deflate",
    }
    with rasterio.open(temporary, "w", **profile) as target:
        target.write(np.where(valid, values, np.nan).astype(np.float32), 1)
        target.update_tags(**tags)
    os.replace(temporary, path)


def write_geojson(path: Path, items: list[dict[str, Any]]) -> None:
    """Write footprints of grids as GeoJSON polygons (RFC 7946: WGS84, longitude first).

    Args:
        path: The file.
        items: Each with a ``grid`` and its ``properties``.

    Raises:
        SceneError: A grid has no coordinate system.
    """
    from pyproj import CRS, Transformer

    features = []
    for item in items:
        grid: Grid = item["grid"]
        if not grid.crs:
            raise SceneError("the image has no coordinate system, so it has no place on a map")
        x1, y1 = grid.x0 + grid.width * grid.dx, grid.y0 + grid.height * grid.dy
        to_degrees = Transformer.from_crs(CRS.from_wkt(grid.crs), 4326, always_xy=True)
        corners = [(grid.x0, y1), (x1, y1), (x1, grid.y0), (grid.x0, grid.y0), (grid.x0, y1)]
        ring = [list(to_degrees.transform(x, y)) for x, y in corners]
        features.append(
            {
                "type": "Feature",
                "geometry": {"type": "Polygon", "coordinates": [ring]},
                "properties": item["properties"],
            }
        )
    collection = {"type": "FeatureCollection", "features": features}
    write_atomic(path, json.dumps(collection, indent=1) + "\n")
