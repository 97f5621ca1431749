"""Reading raster headers, and telling a whole file from a truncated one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from eo_agent_lab.errors import SceneError
from eo_agent_lab.lake.raster import Grid, grid_of, open_raster
from eo_agent_lab.lake.scene import Band


class Header(NamedTuple):
    """What a raster file's header says.

    ``nodata`` is the file's own; ``tags`` are its GDAL tags; ``colours`` the colour
    interpretation of each band.
    """

    path: Path
    grid: Grid
    band_count: int
    dtype: str
    nodata: float | None
    descriptions: tuple[str | None, ...]
    colours: tuple[str, ...]
    tags: dict[str, str]
    crs: Any


def read_header(path: Path) -> Header:
    """Read a raster's header and check that the file holds all it promises.

    Raises:
        SceneError: The file is empty, damaged, truncated or rotated.
    """
    with open_raster(path) as dataset:
        _check_whole(path, dataset)
        return Header(
            path,
            grid_of(dataset),
            dataset.count,
            dataset.dtypes[0],
            dataset.nodata,
            tuple(dataset.descriptions),
            tuple(colour.name for colour in dataset.colorinterp),
            dict(dataset.tags()),
            dataset.crs,
        )


def _check_whole(path: Path, dataset: Any) -> None:
    """Compare TIFF block offsets with the file's size; read the last block of other formats."""
    import rasterio
    from rasterio.windows import Window

    size = path.stat().st_size
    if dataset.driver in ("GTiff", "COG"):
        rows, cols = dataset.block_shapes[0]
        across, down = -(-dataset.width // cols), -(-dataset.height // rows)
        for column, row in {(0, 0), (across - 1, down - 1), (0, down - 1)} | {
            (column, row) for row in range(down) for column in range(across) if down * across < 4096
        }:
            offset = dataset.get_tag_item(f"BLOCK_OFFSET_{column}_{row}", "TIFF", bidx=1)
            length = dataset.get_tag_item(f"BLOCK_SIZE_{column}_{row}", "TIFF", bidx=1)
            if offset and length and int(offset) + int(length) > size:
                raise SceneError(_truncated(path, size))
        return
    try:
        last = Window(max(0, dataset.width - 1), max(0, dataset.height - 1), 1, 1)
        dataset.read(1, window=last)
    except rasterio.errors.RasterioError as error:
        raise SceneError(_truncated(path, size)) from error


def _truncated(path: Path, size: int) -> str:
    return (
        f"{path.name} is truncated (it has {size} bytes, its header promises more); fetch it again"
    )


class Place(NamedTuple):
    """Where a scene lies: WGS84 ring, EPSG code, WKT when there is no code, metres per pixel."""

    footprint: list[tuple[float, float]] | None
    epsg: int | None
    crs: str | None
    gsd_m: float | None


def place_of(header: Header) -> Place:
    """Return the footprint and pixel size of a header's grid.

    Raises:
        SceneError: The coordinates do not fit the stated coordinate system.
    """
    if header.crs is None:
        return Place(None, None, None, None)
    epsg = header.crs.to_epsg()
    return Place(
        _footprint(header),
        epsg,
        None if epsg else header.crs.to_wkt(),
        pixel_metres(header),
    )


def _footprint(header: Header) -> list[tuple[float, float]]:
    from rasterio.errors import RasterioError
    from rasterio.warp import transform

    grid = header.grid
    x1, y1 = grid.x0 + grid.width * grid.dx, grid.y0 + grid.height * grid.dy
    ring = [(grid.x0, grid.y0), (x1, grid.y0), (x1, y1), (grid.x0, y1), (grid.x0, grid.y0)]
    problem = (
        f"{header.path.name} has the wrong coordinate system: its corner is at ({grid.x0:g}, "
        f"{grid.y0:g}), which is not in {header.crs.to_string()[:40]}; assign the right one "
        "(gdal_edit -a_srs)"
    )
    if header.crs.is_geographic and (
        max(abs(grid.x0), abs(x1)) > 361 or max(abs(grid.y0), abs(y1)) > 90.5
    ):
        raise SceneError(problem)
    try:
        lon, lat = transform(header.crs, "EPSG:4326", [p[0] for p in ring], [p[1] for p in ring])
    except RasterioError as error:
        raise SceneError(problem) from error
    if not all(-180.5 <= value <= 180.5 for value in lon) or not all(
        -90.5 <= value <= 90.5 for value in lat
    ):
        raise SceneError(problem)
    return [(round(x, 7), round(y, 7)) for x, y in zip(lon, lat, strict=True)]


def pixel_metres(header: Header) -> float | None:
    """Return the pixel size in metres at the image's centre; None without a coordinate system."""
    if header.crs is None:
        return None
    grid = header.grid
    if header.crs.is_projected:
        factor = header.crs.linear_units_factor[1]
        return round(abs(grid.dx) * float(factor), 3)
    from pyproj import Geod

    lon, lat = grid.x0 + grid.width * grid.dx / 2, grid.y0 + grid.height * grid.dy / 2
    _, _, across = Geod(ellps="WGS84").inv(lon, lat, lon + abs(grid.dx), lat)
    return round(float(across), 3)


def make_band(
    header: Header,
    root: Path,
    index: int,
    calibration: tuple[float, float] | None,
    fill: float | None,
) -> Band:
    """Return the record of one band of a file."""
    scale, offset = calibration if calibration else (None, None)
    return Band(
        path=header.path.relative_to(root).as_posix(),
        index=index,
        gsd_m=pixel_metres(header),
        scale=scale,
        offset=offset,
        nodata=header.nodata if header.nodata is not None else fill,
    )
