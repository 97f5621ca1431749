"""Reading windows of bands: a common grid, valid pixels, and physical values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.errors import NoDataError, SceneError
from eo_agent_lab.lake.quality import PRECEDENCE, RULES, Flags, decode
from eo_agent_lab.lake.scene import Band, Scene

FloatArray = NDArray[np.float64]
Aoi = tuple[float, float, float, float]

MAX_PIXELS = 130_000_000
"""Just above a full Sentinel-2 tile at 10 m (10,980 squared)."""


class Grid(NamedTuple):
    """A north-up pixel grid: origin of the top-left corner and pixel size, in CRS units."""

    crs: str
    x0: float
    y0: float
    dx: float
    dy: float
    """Negative for a north-up image."""
    width: int
    height: int

    def window(self, col: int, row: int, width: int, height: int) -> Grid:
        """Return the grid of a window of this one."""
        return self._replace(
            x0=self.x0 + col * self.dx, y0=self.y0 + row * self.dy, width=width, height=height
        )


class PixelWindow(NamedTuple):
    """Columns and rows of a window in its band's own pixels."""

    col: int
    row: int
    width: int
    height: int


class BandSource(Protocol):
    """A scene whose pixels can be read, from files or from a crop."""

    scene: Scene

    def grid(self, name: str) -> Grid:
        """Return the grid of a band or quality layer."""
        ...

    def read(self, name: str, window: PixelWindow) -> NDArray[Any]:
        """Return raw digital numbers of a window, shape (height, width)."""
        ...


class FileSource:
    """A scene's files, opened with rasterio when they are needed."""

    def __init__(self, scene: Scene, root: Path) -> None:
        """Name the scene and the folder its band paths start from."""
        self.scene = scene
        self.root = root
        self._grids: dict[str, Grid] = {}

    def _band(self, name: str) -> Band:
        return self.scene.bands.get(name) or self.scene.quality[name]

    def grid(self, name: str) -> Grid:
        """Return the grid of a band; its header is read once."""
        if name not in self._grids:
            with open_raster(self.root / self._band(name).path) as dataset:
                grid = grid_of(dataset)
            if not grid.crs and (self.scene.epsg or self.scene.crs):
                raise SceneError(
                    f"band {name} of scene {self.scene.scene_id} has lost its coordinate system: "
                    "the file is damaged; fetch the product again"
                )
            self._grids[name] = grid
        return self._grids[name]

    def read(self, name: str, window: PixelWindow) -> NDArray[Any]:
        """Return raw digital numbers of a window.

        Raises:
            SceneError: The file is missing, truncated or damaged.
        """
        import rasterio
        from rasterio.windows import Window

        band = self._band(name)
        with open_raster(self.root / band.path) as dataset:
            try:
                values = dataset.read(band.index, window=Window(*window))
            except rasterio.errors.RasterioError as error:
                raise SceneError(
                    f"band {name} of scene {self.scene.scene_id} cannot be read: the file is "
                    "truncated or damaged; fetch the product again or choose another scene"
                ) from error
        return np.asarray(values)


def open_raster(path: Path) -> Any:
    """Open a raster without listing its folder.

    Raises:
        SceneError: The file is missing, empty, or no raster.
    """
    import rasterio

    if not path.is_file():
        raise SceneError(f"{path.name} is missing; fetch the product again")
    if path.stat().st_size == 0:
        raise SceneError(f"{path.name} is empty (0 bytes); fetch the product again")
    try:
        with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR", CPL_LOG="/dev/null"):
            return rasterio.open(path)
    except rasterio.errors.RasterioError as error:
        raise SceneError(
            f"{path.name} is not a raster that GDAL can read (damaged or truncated?); fetch the "
            "product again"
        ) from error


def grid_of(dataset: Any) -> Grid:
    """Return a dataset's grid.

    Raises:
        SceneError: The grid is rotated.
    """
    transform = dataset.transform
    if transform.b or transform.d:
        raise SceneError(f"{Path(dataset.name).name} is rotated; warp it to a north-up grid first")
    crs = dataset.crs.to_wkt() if dataset.crs else ""
    return Grid(
        crs, transform.c, transform.f, transform.a, transform.e, dataset.width, dataset.height
    )


def aoi_window(grid: Grid, aoi: Aoi | None) -> PixelWindow:
    """Return the pixels that an area of interest touches.

    Args:
        grid: The grid of the band.
        aoi: (x0, y0, x1, y1) as fractions of width and height, y downwards; None for all.

    Raises:
        NoDataError: The area has no extent or does not overlap the image.
    """
    if aoi is None:
        return PixelWindow(0, 0, grid.width, grid.height)
    x0, y0, x1, y1 = aoi
    if not all(math.isfinite(value) for value in aoi) or x1 <= x0 or y1 <= y0:
        raise NoDataError(
            f"aoi {list(aoi)} has no extent; give [x0, y0, x1, y1] with x0 < x1 and y0 < y1"
        )
    if x1 <= 0 or y1 <= 0 or x0 >= 1 or y0 >= 1:
        raise NoDataError(
            f"aoi {list(aoi)} does not overlap the image; its fractions must lie between 0 and 1"
        )
    epsilon = 1e-9
    left = max(0, math.floor(x0 * grid.width + epsilon))
    top = max(0, math.floor(y0 * grid.height + epsilon))
    right = min(grid.width, math.ceil(x1 * grid.width - epsilon))
    bottom = min(grid.height, math.ceil(y1 * grid.height - epsilon))
    return PixelWindow(left, top, max(1, right - left), max(1, bottom - top))


class Stack(NamedTuple):
    """Bands of one scene on one grid.

    Attributes:
        values: Band name to float64 (rows, columns): reflectance, kelvin or digital numbers; NaN
            where that band has nothing.
        valid: Pixels that every band saw and no quality flag excludes.
        nodata: Pixels that some band did not see.
        flags: Decoded quality flags, or None when the scene has no quality layer.
        grid: Grid of the window.
        window: Where it lies in the grid of the coarsest band.
        resampling: What was resampled and how, in words; empty when nothing was.
        calibrated: True when values are physical, False when they are digital numbers.
    """

    values: dict[str, FloatArray]
    valid: NDArray[np.bool_]
    nodata: NDArray[np.bool_]
    flags: Flags | None
    grid: Grid
    window: PixelWindow
    resampling: str
    calibrated: bool

    @property
    def valid_share(self) -> float:
        """Share of the window's pixels that are valid, 0 to 1."""
        return float(self.valid.mean())

    @property
    def cloud_share(self) -> float | None:
        """Share of the seen pixels flagged cloud, shadow or cirrus; None when not known."""
        if self.flags is None:
            return None
        seen = ~(self.nodata | self.flags.nodata)
        flagged = (self.flags.cloud | self.flags.shadow | self.flags.cirrus) & seen
        return float(flagged.sum() / seen.sum()) if seen.any() else None


def read_stack(source: BandSource, names: list[str], aoi: Aoi | None = None) -> Stack:
    """Read bands on the grid of the coarsest of them.

    Finer bands are averaged over the valid pixels inside each coarse pixel. Digital numbers become
    physical values by the scene's scale and offset, here and nowhere else.

    Raises:
        SceneError: A file is damaged, the bands have different CRS, or the window is too large.
        NoDataError: The area does not overlap the image.
    """
    grids = {name: source.grid(name) for name in names}
    if len({grid.crs for grid in grids.values()}) > 1:
        raise SceneError(
            f"the bands {', '.join(names)} have different coordinate systems; warp them to one"
        )
    coarsest = max(names, key=lambda name: abs(grids[name].dx))
    window = aoi_window(grids[coarsest], aoi)
    if window.width * window.height > MAX_PIXELS:
        raise SceneError(
            f"{window.width} x {window.height} pixels are too many to read at once; give a smaller "
            "aoi"
        )
    target = grids[coarsest].window(*window)
    bands = source.scene.bands
    calibrated = all(bands[name].scale is not None for name in names)
    notes: list[str] = []
    values: dict[str, FloatArray] = {}
    for name in names:
        raw, note = _on_grid(source, name, grids[name], target)
        if note:
            notes.append(note)
        band = bands[name]
        if calibrated and band.scale is not None:
            raw = raw * band.scale + (band.offset or 0.0)
        values[name] = raw
    nodata = np.zeros((target.height, target.width), dtype=bool)
    for array in values.values():
        nodata |= np.isnan(array)
    flags = _flags(source, target)
    valid = ~nodata if flags is None else ~(nodata | flags.excluded)
    return Stack(values, valid, nodata, flags, target, window, "; ".join(notes), calibrated)


def quality_rule(scene: Scene) -> str:
    """Say which quality layer excludes what, in words."""
    kind = next((kind for kind in PRECEDENCE if kind in scene.quality), None)
    return RULES[kind] if kind else "no quality layer: clouds are not excluded"


def _flags(source: BandSource, target: Grid) -> Flags | None:
    kind = next((kind for kind in PRECEDENCE if kind in source.scene.quality), None)
    if kind is None:
        return None
    grid = source.grid(kind)
    if grid.crs != target.crs:
        raise SceneError(f"the {kind} layer has another coordinate system than the bands")
    window = covering_window(grid, target)
    flags = decode(kind, source.read(kind, window))
    local = grid.window(*window)
    if abs(target.dx) > 1.5 * abs(grid.dx):
        return Flags(*(_any_inside(array, local, target) for array in flags))
    rows, cols = _nearest(local, target)
    return Flags(*(array[np.ix_(rows, cols)] for array in flags))


def covering_window(grid: Grid, target: Grid) -> PixelWindow:
    """Return the window of ``grid`` that covers ``target``, within its bounds."""
    slack = 1e-6
    left = math.floor((target.x0 - grid.x0) / grid.dx + slack)
    top = math.floor((target.y0 - grid.y0) / grid.dy + slack)
    right = math.ceil((target.x0 + target.width * target.dx - grid.x0) / grid.dx - slack)
    bottom = math.ceil((target.y0 + target.height * target.dy - grid.y0) / grid.dy - slack)
    left, top = (min(max(left, 0), grid.width - 1), min(max(top, 0), grid.height - 1))
    right, bottom = (min(max(right, left + 1), grid.width), min(max(bottom, top + 1), grid.height))
    return PixelWindow(left, top, right - left, bottom - top)


def _nearest(grid: Grid, target: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    x = target.x0 + (np.arange(target.width) + 0.5) * target.dx
    y = target.y0 + (np.arange(target.height) + 0.5) * target.dy
    cols = np.clip(np.floor((x - grid.x0) / grid.dx), 0, grid.width - 1).astype(np.int64)
    rows = np.clip(np.floor((y - grid.y0) / grid.dy), 0, grid.height - 1).astype(np.int64)
    return rows, cols


def _any_inside(array: NDArray[np.bool_], grid: Grid, target: Grid) -> NDArray[np.bool_]:
    return np.asarray(_aggregate(array.astype(np.float64), grid, target) > 0)


def _on_grid(source: BandSource, name: str, grid: Grid, target: Grid) -> tuple[FloatArray, str]:
    """Read a band on a target grid; nodata becomes NaN."""
    window = covering_window(grid, target)
    raw = source.read(name, window).astype(np.float64)
    nodata = source.scene.bands[name].nodata
    if nodata is not None:
        raw[raw == nodata] = np.nan
    local = grid.window(*window)
    if _same(local, target):
        return raw, ""
    band = source.scene.bands[name]
    coarse = f"{abs(target.dx):g}" if band.gsd_m is None else f"{_metres(band, grid, target):g} m"
    fine = f"{abs(grid.dx):g}" if band.gsd_m is None else f"{band.gsd_m:g} m"
    return _aggregate(
        raw, local, target
    ), f"{name} averaged from {fine} to {coarse} over valid pixels"


def _metres(band: Band, grid: Grid, target: Grid) -> float:
    return round((band.gsd_m or 0.0) * abs(target.dx / grid.dx), 3)


def _same(a: Grid, b: Grid) -> bool:
    tolerance = 1e-3 * abs(b.dx)
    return (
        (a.width, a.height) == (b.width, b.height)
        and abs(a.x0 - b.x0) < tolerance
        and abs(a.y0 - b.y0) < tolerance
        and abs(a.dx - b.dx) * b.width < tolerance
        and abs(a.dy - b.dy) * b.height < tolerance
    )


def _aggregate(values: FloatArray, grid: Grid, target: Grid) -> FloatArray:
    """Average fine pixels into coarse ones by where their centres fall; NaN is left out."""
    x = grid.x0 + (np.arange(grid.width) + 0.5) * grid.dx
    y = grid.y0 + (np.arange(grid.height) + 0.5) * grid.dy
    cols = np.floor((x - target.x0) / target.dx).astype(np.int64)
    rows = np.floor((y - target.y0) / target.dy).astype(np.int64)
    keep_c = (cols >= 0) & (cols < target.width)
    keep_r = (rows >= 0) & (rows < target.height)
    inner = values[np.ix_(keep_r, keep_c)]
    flat = (rows[keep_r][:, None] * target.width + cols[keep_c][None, :]).ravel()
    seen = np.isfinite(inner).ravel()
    size = target.width * target.height
    total = np.bincount(flat[seen], weights=inner.ravel()[seen], minlength=size)
    count = np.bincount(flat[seen], minlength=size)
    with np.errstate(invalid="ignore"):
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return np.asarray(mean.reshape(target.height, target.width))
