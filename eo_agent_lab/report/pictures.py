"""The pictures an agent saw in a rollout, made again by carrying out its calls once more."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.errors import EOLabError, RunError
from eo_agent_lab.lake import Lake
from eo_agent_lab.lake.raster import BandSource, open_raster, read_stack
from eo_agent_lab.lake.sensors import band_for_role
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tasks.trajectory import CallRecord, Trajectory
from eo_agent_lab.tools import Workspace, call_tool
from eo_agent_lab.tools.registry import Context
from eo_agent_lab.tools.scenes import open_scene

Image = NDArray[np.uint8]

WHITE_REFLECTANCE = 0.3
"""Drawn white; one stretch for all dates, so that pictures of a place can be compared."""

NO_DATA_GREY = 190
MAX_SIDE = 480

NO_BREAK = "\u00a0"

_MASK_COLOURS = {"water": (0, 114, 178), "vegetation": (0, 158, 115), "urban": (213, 94, 0)}
_MASK_OFF = (238, 238, 238)
_BOX_COLOUR = (240, 228, 66)


class Picture(NamedTuple):
    """A picture, uint8 of shape (rows, columns, 3), and what stands under it."""

    image: Image
    caption: str


def scene_picture(source: BandSource) -> Image:
    """Return a scene in true colour: reflectance 0-0.3 stretched linearly, clouds left in.

    Digital numbers of 8 bits are shown as they are, others from their 2nd to 98th percentile.
    Pixels without data are grey. The longer side has at most 480 pixels, taken by stride.

    Raises:
        MissingBandError: The scene has no red, green or blue band.
        SceneError: A file is damaged.
    """
    scene = source.scene
    held = list(scene.bands)
    names = [_visible(scene.sensor, held, role) for role in ("red", "green", "blue")]
    stack = read_stack(source, names)
    step = -(-max(stack.valid.shape) // MAX_SIDE)
    bands = np.stack([stack.values[name][::step, ::step] for name in names], axis=-1)
    low, high = 0.0, WHITE_REFLECTANCE
    if not stack.calibrated:
        seen = bands[np.isfinite(bands)]
        high = 255.0
        if seen.size and seen.max() > high:
            low, high = (float(value) for value in np.percentile(seen, [2, 98]))
    scaled = np.clip((bands - low) / max(high - low, 1e-9), 0, 1) * 255
    empty = np.isnan(bands).any(axis=-1, keepdims=True)
    image = np.where(empty, NO_DATA_GREY, np.nan_to_num(scaled)).round()
    return np.asarray(image, dtype=np.uint8)


def mask_picture(path: Path, kind: str) -> Image:
    """Return a mask in the colour of its kind: off light grey, without data darker grey.

    Raises:
        SceneError: The file is damaged.
    """
    with open_raster(path) as dataset:
        values = dataset.read(1)
        nodata = dataset.nodata
    step = -(-max(values.shape) // MAX_SIDE)
    values = values[::step, ::step]
    image = np.empty((*values.shape, 3), dtype=np.uint8)
    image[:] = _MASK_OFF
    image[values == 1] = _MASK_COLOURS.get(kind, (0, 0, 0))
    if nodata is not None:
        image[values == nodata] = NO_DATA_GREY
    return image


def boxes_picture(image: Image, boxes: list[list[float]], size: tuple[int, int]) -> Image:
    """Return a copy of a picture with boxes drawn on it.

    Args:
        image: The picture.
        boxes: [x0, y0, x1, y1] in units of ``size``.
        size: Width and height of the scene: in pixels, or (1, 1) for boxes in fractions.
    """
    from PIL import Image as Pillow
    from PIL import ImageDraw

    canvas = Pillow.fromarray(image)
    draw = ImageDraw.Draw(canvas)
    line = max(1, round(max(image.shape) / 150))
    x, y = image.shape[1] / size[0], image.shape[0] / size[1]
    for x0, y0, x1, y1 in boxes:
        draw.rectangle((x0 * x, y0 * y, x1 * x, y1 * y), outline=_BOX_COLOUR, width=line)
    return np.asarray(canvas, dtype=np.uint8)


def pictures_of(trajectory: Trajectory, task: Task, lake: Lake) -> list[Picture]:
    """Return the task's start images, then what each call fetched, cut, measured, masked or boxed.

    The calls are carried out again in a folder that is deleted afterwards; tools give the same
    result for the same call, and handles are the same in every workspace.

    Raises:
        RunError: A call fails now that succeeded then: this is another lake.
    """
    pictures: list[Picture] = []
    with tempfile.TemporaryDirectory(prefix="eolab-pictures-") as folder:
        place = Workspace(Path(folder), lake)
        for handle in task.images:
            source = open_scene(Context(place), handle)
            pictures.append(Picture(scene_picture(source), f"start: {_scene_caption(source)}"))
        for number, call in enumerate(trajectory.calls, start=1):
            if call.is_error or call.name is None:
                continue
            seen = call_tool(call.name, call.arguments, place)
            if seen.is_error:
                raise RunError(
                    f"call {number} of task {trajectory.task_id} cannot be repeated: {seen.text} "
                    "Use the lake that was played on."
                )
            pictures += _pictures_of_call(number, call, seen.data, place)
    return pictures


def _pictures_of_call(number: int, call: CallRecord, data: Any, place: Workspace) -> list[Picture]:
    if not isinstance(data, dict):
        return []
    if "mask" in data:
        image = mask_picture(place.resolve(data["mask"]), data["kind"])
        return [
            Picture(
                image, f"call {number}: {data['kind']} mask, {data['share']:.0%} of valid pixels"
            )
        ]
    if "boxes" in data:
        source = open_scene(Context(place), call.arguments["image_url"])
        height, width = source.scene.shape
        image = boxes_picture(scene_picture(source), data["boxes"], (width, height))
        return [Picture(image, f"call {number}: {data['count']} {data['category']}")]
    if "index" in data and "multispectral_url" in call.arguments:
        source = open_scene(Context(place), call.arguments["multispectral_url"])
        image = scene_picture(source)
        aoi = call.arguments.get("aoi")
        if aoi:
            image = boxes_picture(image, [aoi], (1, 1))
        caption = f"call {number}: {data['index']} mean {data['mean']:.3f}, "
        return [Picture(image, caption + _scene_caption(source))]
    if "handle" in data:
        source = open_scene(Context(place), data["handle"])
        verb = "crop" if str(call.name).startswith("crop") else "fetched"
        return [Picture(scene_picture(source), f"call {number}: {verb} {_scene_caption(source)}")]
    return []


def _visible(sensor: str, held: list[str], role: str) -> str:
    initial = role[0].upper()
    return initial if initial in held else band_for_role(sensor, held, role)


def _scene_caption(source: BandSource) -> str:
    scene = source.scene
    parts = [scene.sensor]
    if scene.acquired is not None:
        parts.append(scene.acquired.date().isoformat())
    if scene.gsd_m is not None:
        parts.append(f"{scene.gsd_m:.4g} m")
        height, width = scene.shape
        parts.append(f"{width * scene.gsd_m / 1000:.3g} x {height * scene.gsd_m / 1000:.3g} km")
    return ", ".join(part.replace(" ", NO_BREAK) for part in parts)


def sources_of(tasks: list[Task], lake: Lake) -> list[str]:
    """Return the collections that the tasks' start images come from, sorted.

    Raises:
        RunError: A start image is not in the lake.
    """
    try:
        return sorted({lake.get(handle).source for task in tasks for handle in task.images})
    except EOLabError as error:
        raise RunError(f"the tasks are of another lake: {error}") from error
