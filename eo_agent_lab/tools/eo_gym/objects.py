"""Object detection in optical images."""

from __future__ import annotations

from eo_agent_lab.errors import LakeError, ToolError
from eo_agent_lab.perception.recorded import recorded_objects
from eo_agent_lab.tools.observation import Observation
from eo_agent_lab.tools.registry import Context, tool
from eo_agent_lab.tools.workspace import LAKE_PREFIX

MAX_LISTED = 40


@tool(suite="eo_gym")
def get_object_bbox_by_optical_image(context: Context, image_url: str, prompt: str) -> Observation:
    """Find objects of one kind in an optical image; boxes are [x0, y0, x1, y1] in pixels.

    Args:
        image_url: Handle of the optical image.
        prompt: What to find, such as plane, ship or storage tank.
    """
    lake = context.workspace.lake
    if lake is None:
        raise ToolError("no lake is attached, so no image can be looked up; pass --lake DIR")
    try:
        scene = lake.get(image_url.removeprefix(LAKE_PREFIX))
    except LakeError as error:
        raise ToolError(str(error)) from error
    if scene.modality != "rgb":
        raise ToolError(
            f"{image_url} is a {scene.modality} scene; give the handle of an optical image"
        )
    categories, labels = recorded_objects(lake, scene, prompt)
    boxes = [[round(value, 1) for value in label.box] for label in labels]
    name = " or ".join(categories)
    listed = "; ".join(str(box) for box in boxes[:MAX_LISTED])
    more = f"; and {len(boxes) - MAX_LISTED} more" if len(boxes) > MAX_LISTED else ""
    text = f"{len(boxes)} {name}" + (f": {listed}{more}" if boxes else " found in this image")
    data = {
        "category": name,
        "count": len(boxes),
        "boxes": boxes,
        "gsd_m": scene.gsd_m,
        "image_size": [scene.shape[1], scene.shape[0]],
    }
    return Observation(text=text, data=data)
