"""Ground area of pixels, in square metres, whatever the coordinate system."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.lake.raster import Grid

_TRUE_TO_AREA = (
    "Transverse Mercator",
    "Lambert Azimuthal Equal Area",
    "Albers Equal Area",
    "Lambert Cylindrical Equal Area",
    "Sinusoidal",
)
"""Methods whose area error is small against a pixel (UTM: at most 0.2 % inside its zone)."""


def area_m2(mask: NDArray[np.bool_], grid: Grid) -> float | None:
    """Return the ground area of a mask's true pixels in square metres.

    In UTM and equal-area systems a pixel's size is its area. Elsewhere (EPSG:4326, Web Mercator)
    the area of each row's pixel is measured on the WGS84 ellipsoid.

    Returns:
        The area, or None when the grid has no coordinate system.
    """
    if not grid.crs:
        return None
    from pyproj import CRS

    crs = CRS.from_wkt(grid.crs)
    operation = crs.coordinate_operation
    if operation is not None and operation.method_name in _TRUE_TO_AREA:
        metres = crs.axis_info[0].unit_conversion_factor
        return float(mask.sum() * abs(grid.dx * grid.dy) * metres**2)
    return float((mask.sum(axis=1) * _row_areas(grid, crs)).sum())


def _row_areas(grid: Grid, crs: object) -> NDArray[np.float64]:
    from pyproj import Geod, Transformer

    to_degrees = Transformer.from_crs(crs, 4326, always_xy=True)
    geod = Geod(ellps="WGS84")
    middle = grid.x0 + grid.width / 2 * grid.dx
    areas = np.empty(grid.height)
    for row in range(grid.height):
        top, bottom = grid.y0 + row * grid.dy, grid.y0 + (row + 1) * grid.dy
        xs = [middle, middle + grid.dx, middle + grid.dx, middle]
        lon, lat = to_degrees.transform(xs, [top, top, bottom, bottom])
        areas[row] = abs(geod.polygon_area_perimeter(lon, lat)[0])
    return areas
