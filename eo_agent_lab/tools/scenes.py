"""From a handle in a tool argument to a scene whose pixels can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from eo_agent_lab.errors import LakeError, SceneError, ToolError, WorkspaceError
from eo_agent_lab.lake import Scene
from eo_agent_lab.lake.crop import CropSource
from eo_agent_lab.lake.folder import FolderFetcher
from eo_agent_lab.lake.naming import parse_product
from eo_agent_lab.lake.raster import BandSource, FileSource
from eo_agent_lab.tools.registry import Context
from eo_agent_lab.tools.workspace import LAKE_PREFIX

AoiArgument = Annotated[list[float], Field(min_length=4, max_length=4)]
BoxArgument = Annotated[list[float], Field(min_length=2, max_length=4)]


def open_scene(context: Context, url: str) -> BandSource:
    """Return the scene behind a lake handle, a crop, a scene folder or a scene file.

    Raises:
        ToolError: The handle names nothing.
        WorkspaceError: The path leaves the workspace.
        SceneError: The files are damaged, or hold no scene or several.
    """
    lake = context.workspace.lake
    handle = url.removeprefix(LAKE_PREFIX)
    if lake is not None:
        try:
            scene = lake.get(handle)
        except LakeError:
            scene = None
        if scene is not None:
            return FileSource(scene, lake.root(scene))
    try:
        path = context.workspace.resolve(handle)
    except WorkspaceError as error:
        if "leaves" in str(error) or "link" in str(error):
            raise
        raise ToolError(
            f"{url[:80]!r} is no scene handle and no file of the workspace; use a handle that the "
            "question or a tool result gave"
        ) from error
    if path.suffix == ".nc":
        return CropSource(path)
    return _from_files(path, context.workspace.root.resolve())


def _from_files(path: Path, root: Path) -> BandSource:
    """Read a scene's folder; of a file, the product folder it lies in, which holds the metadata."""
    folder = path if path.is_dir() else path.parent
    for parent in (path, *path.parents):
        if parent.is_dir() and parent != root and parent.is_relative_to(root):
            folder = parent if parse_product(parent.name) else folder
    fetched = FolderFetcher(folder).fetch()
    scenes = fetched.scenes
    if path.is_file():
        relative = path.relative_to(folder).as_posix()
        scenes = [s for s in scenes if any(b.path == relative for b in s.bands.values())]
    if len(scenes) > 1:
        names = ", ".join(sorted(scene.product_id for scene in scenes)[:4])
        raise SceneError(f"{path.name} holds {len(scenes)} scenes ({names}); name one of them")
    if not scenes:
        why = "; ".join(
            f"{item.path}: {item.reason}" for item in (*fetched.rejected, *fetched.ignored)[:3]
        )
        raise SceneError(
            f"{path.name} holds no scene that can be read ({why or 'no raster in it'})"
        )
    return FileSource(scenes[0], folder)


def lake_scene(context: Context, url: str) -> Scene:
    """Return the lake's scene behind a handle or a crop of it, for look-ups in time.

    Raises:
        ToolError: There is no lake, or the handle is not from it.
    """
    lake = context.workspace.lake
    if lake is None:
        raise ToolError("no lake is attached, so nothing can be looked up in time; pass --lake DIR")
    source = open_scene(context, url)
    scene_id = source.scene.parent_id or source.scene.scene_id
    try:
        return lake.get(scene_id)
    except LakeError as error:
        raise ToolError(
            f"{url!r} is not in the lake, so nothing can be looked up in time"
        ) from error


def scene_summary(scene: Scene) -> dict[str, Any]:
    """Return what an agent may know of a scene."""
    return {
        "handle": scene.scene_id,
        "datetime": scene.acquired.isoformat() if scene.acquired else None,
        "sensor": scene.sensor,
        "gsd_m": scene.gsd_m,
        "level": scene.level,
    }


def describe(summary: dict[str, Any]) -> str:
    """Return a scene summary as one line."""
    when = (summary["datetime"] or "date unknown").replace("+00:00", "Z")
    gsd = f"{summary['gsd_m']:g} m" if summary["gsd_m"] else "GSD unknown"
    return f"{summary['handle']} ({when}, {summary['sensor']}, {gsd}, {summary['level']})"
