"""Pictures of scenes, crops and masks as an agent or a reader sees them: uint8 RGB arrays."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.env.episode import Sight
from eo_agent_lab.errors import MissingBandError
from eo_agent_lab.lake.quality import PRECEDENCE, decode
from eo_agent_lab.lake.raster import BandSource, FileSource, PixelWindow, open_raster
from eo_agent_lab.lake.sensors import band_for_role
from eo_agent_lab.style import PALETTE
from eo_agent_lab.tools import Context, Workspace
from eo_agent_lab.tools.scenes import open_scene

Image = NDArray[np.uint8]
Small = NDArray[np.float64]

MAX_SIDE = 512
"""Longer side of a preview in pixels; larger scenes are read by stride."""

STRETCH = (2.0, 98.0)
"""Percentiles of the clear pixels drawn black and white; clouds stay in the picture."""

_MIN_CLEAR_SHARE = 0.05
_GREY = 128
_MASK_OFF = (238, 238, 238)
_MASK_ON = {
    "water": PALETTE["blue"],
    "vegetation": PALETTE["green"],
    "urban": PALETTE["vermillion"],
}
_INDEX_RAMP = np.array([(140, 81, 10), (246, 246, 246), (0, 104, 55)], dtype=np.float64)
"""Brown, white and green at -1, 0 and 1."""

_ROLES = ("red", "green", "blue")


def preview(workspace: Workspace, sight: Sight) -> Image:
    """Return the picture of a handle with its boxes, shape (rows, columns, 3).

    Raises:
        EOLabError: The handle names nothing, or its files are damaged.
    """
    if sight.handle.endswith((".tif", ".tiff")):
        image = layer_preview(workspace.resolve(sight.handle))
        return draw_boxes(image, sight.boxes, (image.shape[1], image.shape[0]))
    source = open_scene(Context(workspace), sight.handle)
    rows, columns = source.scene.shape
    return draw_boxes(scene_preview(source), sight.boxes, (columns, rows))


def scene_preview(source: BandSource) -> Image:
    """Return a scene in true colour, stretched from its 2nd to 98th percentile.

    A scene without red, green and blue is shown in grey by its first band. Pixels without data are
    mid-grey. Pictures of 8 bits are shown as they are.

    Raises:
        SceneError: A file is damaged.
    """
    names = _visible(source)
    layers = [_read_small(source, name) for name in names]
    shape = min((layer.shape for layer in layers), key=lambda size: size[0] * size[1])
    bands = np.stack([_resize(layer, shape) for layer in layers], axis=-1)
    empty = np.isnan(bands).any(axis=-1)
    clear = ~empty & ~_clouds(source, shape)
    used = clear if clear.mean() >= _MIN_CLEAR_SHARE else ~empty
    low, high = 0.0, 255.0
    if bands[used].size and not _is_display_ready(source, names[0]):
        low, high = (float(value) for value in np.percentile(bands[used], STRETCH))
    image = np.clip((bands - low) / max(high - low, 1e-9), 0, 1) * 255
    image[empty] = _GREY
    return np.repeat(image, 3 // image.shape[2], axis=2).round().astype(np.uint8)


def layer_preview(path: Path) -> Image:
    """Return a GeoTIFF of the workspace: a mask or an index in colour, anything else in grey.

    Raises:
        SceneError: The file is damaged.
    """
    with open_raster(path) as dataset:
        height, width = _small_shape(dataset.height, dataset.width)
        values = dataset.read(1, out_shape=(height, width)).astype(np.float64)
        nodata, kind = dataset.nodata, dataset.tags().get("eolab_mask")
    empty = ~np.isfinite(values) if nodata is None else ~np.isfinite(values) | (values == nodata)
    seen = values[~empty]
    if kind is not None:
        on = _rgb(_MASK_ON.get(kind, PALETTE["black"]))
        image = np.where((values == 1)[..., None], on, _MASK_OFF).astype(np.float64)
    elif seen.size and -1 <= seen.min() < 0 and seen.max() <= 1:
        image = np.stack([np.interp(values, (-1, 0, 1), ramp) for ramp in _INDEX_RAMP.T], axis=-1)
    else:
        low, high = np.percentile(seen, STRETCH) if seen.size else (0.0, 1.0)
        grey = np.clip((values - low) / max(float(high - low), 1e-9), 0, 1) * 255
        image = np.repeat(grey[..., None], 3, axis=2)
    image[empty] = _GREY
    return np.asarray(image.round().astype(np.uint8))


def draw_boxes(image: Image, boxes: Iterable[Iterable[float]], size: tuple[int, int]) -> Image:
    """Return a copy of a picture with boxes drawn on it.

    Args:
        image: The picture.
        boxes: [x0, y0, x1, y1] in pixels of a scene of ``size``.
        size: Width and height of that scene.
    """
    from PIL import Image as Pillow
    from PIL import ImageDraw

    canvas = Pillow.fromarray(image)
    draw = ImageDraw.Draw(canvas)
    x, y = image.shape[1] / size[0], image.shape[0] / size[1]
    for x0, y0, x1, y1 in boxes:
        corners = (x0 * x, y0 * y, x1 * x, y1 * y)
        draw.rectangle(corners, outline=PALETTE["yellow"], width=max(1, image.shape[0] // 160))
    return np.array(canvas, dtype=np.uint8)


def fit(image: Image, side: int) -> Image:
    """Return a picture scaled into a square of ``side`` pixels, centred on black."""
    from PIL import Image as Pillow

    rows, columns = image.shape[:2]
    scale = side / max(rows, columns)
    width, height = max(1, round(columns * scale)), max(1, round(rows * scale))
    method = Pillow.Resampling.NEAREST if scale > 1 else Pillow.Resampling.BOX
    small = Pillow.fromarray(image).resize((width, height), method)
    square = np.zeros((side, side, 3), dtype=np.uint8)
    top, left = (side - height) // 2, (side - width) // 2
    square[top : top + height, left : left + width] = np.asarray(small)
    return square


def _visible(source: BandSource) -> list[str]:
    held = list(source.scene.bands)
    if set("RGB") <= set(held):
        return list("RGB")
    try:
        return [band_for_role(source.scene.sensor, held, role) for role in _ROLES]
    except MissingBandError:
        return held[:1]


def _is_display_ready(source: BandSource, name: str) -> bool:
    """Tell whether digital numbers are meant to be looked at: 8 bits, without a scale."""
    if source.scene.bands[name].scale is not None:
        return False
    return source.read(name, PixelWindow(0, 0, 1, 1)).dtype == np.uint8


def _small_shape(rows: int, columns: int) -> tuple[int, int]:
    step = max(1.0, max(rows, columns) / MAX_SIDE)
    return max(1, round(rows / step)), max(1, round(columns / step))


def _read_raw(source: BandSource, name: str) -> NDArray[np.generic]:
    """Read a band or quality layer, of a large file only as many pixels as are shown."""
    scene, grid = source.scene, source.grid(name)
    shape = _small_shape(grid.height, grid.width)
    if isinstance(source, FileSource) and shape != (grid.height, grid.width):
        band = scene.bands.get(name) or scene.quality[name]
        with open_raster(source.root / band.path) as dataset:
            return np.asarray(dataset.read(band.index, out_shape=shape))
    values = source.read(name, PixelWindow(0, 0, grid.width, grid.height))
    return np.asarray(_resize(values, shape))


def _read_small(source: BandSource, name: str) -> Small:
    """Return a band's digital numbers, scaled where a scale is known; NaN without data."""
    band = source.scene.bands[name]
    values = _read_raw(source, name).astype(np.float64)
    if band.nodata is not None:
        values[values == band.nodata] = np.nan
    return values if band.scale is None else values * band.scale + (band.offset or 0.0)


def _clouds(source: BandSource, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    kind = next((kind for kind in PRECEDENCE if kind in source.scene.quality), None)
    if kind is None:
        return np.zeros(shape, dtype=bool)
    return np.asarray(_resize(decode(kind, _read_raw(source, kind)).excluded, shape))


def _resize(values: NDArray[np.generic], shape: tuple[int, ...]) -> NDArray[np.generic]:
    """Return an array of another shape by its nearest pixels."""
    rows, columns = (
        (np.arange(new) + 0.5) * old // new for new, old in zip(shape, values.shape, strict=True)
    )
    return values[np.ix_(rows.astype(np.int64), columns.astype(np.int64))]


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
