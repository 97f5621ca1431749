"""Temporal fetching and cropping of multispectral observations."""

from __future__ import annotations

from eo_agent_lab.errors import ToolError
from eo_agent_lab.lake import Lake, Scene
from eo_agent_lab.lake.crop import write_crop
from eo_agent_lab.tools.observation import Observation
from eo_agent_lab.tools.registry import Context, tool
from eo_agent_lab.tools.scenes import (
    AoiArgument,
    describe,
    lake_scene,
    open_scene,
    scene_summary,
)

MAX_LISTED = 60


def _lake(context: Context) -> Lake:
    if context.workspace.lake is None:
        raise ToolError("no lake is attached, so nothing can be looked up in time; pass --lake DIR")
    return context.workspace.lake


@tool(suite="eo_gym")
def get_multispectral_list(
    context: Context,
    multispectral_url: str,
    sensor: str | None = None,
    start_date: str | None = None,
    end_date: str | None = None,
) -> Observation:
    """List the multispectral observations of the same place, oldest first.

    Args:
        multispectral_url: Handle of any observation of the place.
        sensor: Keep one sensor or family, such as sentinel-2 or landsat-8.
        start_date: First date, ISO (YYYY-MM-DD), inclusive.
        end_date: Last date, ISO, inclusive.
    """
    scene = lake_scene(context, multispectral_url)
    found = _lake(context).list(
        scene.scene_id, sensor=_sensor(sensor), start=start_date, end=end_date
    )
    rows = [scene_summary(item) for item in found]
    if not rows:
        raise ToolError(
            "no observation of this place fits; widen the dates or leave the sensor out"
        )
    shown = "\n".join(describe(row) for row in rows[:MAX_LISTED])
    more = (
        f"\n... and {len(rows) - MAX_LISTED} more; narrow the dates"
        if len(rows) > MAX_LISTED
        else ""
    )
    return Observation(text=f"{len(rows)} observations, oldest first:\n{shown}{more}", data=rows)


@tool(suite="eo_gym")
def get_previous_multispectral(
    context: Context, multispectral_url: str, date: str | None = None, sensor: str | None = None
) -> Observation:
    """Retrieve the most recent multispectral observation of the same place before a date.

    Args:
        multispectral_url: Handle of an observation of the place.
        date: ISO date to look back from, exclusive; the observation's own when left out.
        sensor: Keep one sensor or family, such as sentinel-2 or landsat-8.
    """
    scene = lake_scene(context, multispectral_url)
    found = _lake(context).previous(scene.scene_id, before=date, sensor=_sensor(sensor))
    return _neighbour(found, "before", date, scene)


@tool(suite="eo_gym")
def get_next_multispectral(
    context: Context, multispectral_url: str, date: str | None = None, sensor: str | None = None
) -> Observation:
    """Retrieve the next multispectral observation of the same place after a date.

    Args:
        multispectral_url: Handle of an observation of the place.
        date: ISO date to look onward from, exclusive; the observation's own when left out.
        sensor: Keep one sensor or family, such as sentinel-2 or landsat-8.
    """
    scene = lake_scene(context, multispectral_url)
    found = _lake(context).next(scene.scene_id, after=date, sensor=_sensor(sensor))
    return _neighbour(found, "after", date, scene)


def _sensor(text: str | None) -> str | None:
    return text.strip().lower().replace(" ", "-").replace("_", "-") if text else None


def _neighbour(found: Scene | None, side: str, date: str | None, scene: Scene) -> Observation:
    when = date or (scene.acquired.isoformat() if scene.acquired else "this observation")
    if found is None:
        raise ToolError(
            f"the lake has no observation of this place {side} {when}; "
            "list what there is with get_multispectral_list"
        )
    row = scene_summary(found)
    return Observation(text=f"Nearest observation {side} {when}: {describe(row)}", data=row)


@tool(suite="eo_gym", effect="writes")
def crop_multispectral_image(
    context: Context, multispectral_url: str, aoi: AoiArgument
) -> Observation:
    """Crop every band of a multispectral observation to an area of interest, as NetCDF.

    Args:
        multispectral_url: Handle of the observation.
        aoi: [x0, y0, x1, y1] as fractions of the image, 0 to 1, y downwards.
    """
    source = open_scene(context, multispectral_url)
    x0, y0, x1, y1 = aoi
    handle, path = context.workspace.output(
        "crop", ".nc", {"scene": source.scene.scene_id, "from": multispectral_url, "aoi": aoi}
    )
    crop = write_crop(source, path, (x0, y0, x1, y1))
    rows, cols = crop.shape
    data = {
        **scene_summary(crop),
        "handle": handle,
        "window": list(crop.window or ()),
        "shape": [rows, cols],
    }
    data["bands"] = list(crop.bands)
    text = (
        f"Cropped to {cols} x {rows} pixels of the finest band; use {handle} as multispectral_url. "
        f"Bands: {', '.join(crop.bands)}."
    )
    return Observation(text=text, data=data, files=[handle])
