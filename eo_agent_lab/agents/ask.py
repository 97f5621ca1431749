"""One question over one's own imagery, ending in an evidence card."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from eo_agent_lab.agents import make
from eo_agent_lab.env.episode import Episode
from eo_agent_lab.errors import EOLabError, LakeError
from eo_agent_lab.lake import Lake, Scene
from eo_agent_lab.lake.export import write_geojson, write_index_cog
from eo_agent_lab.lake.raster import Aoi, FileSource
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tasks.trajectory import CallRecord
from eo_agent_lab.tools import list_tools
from eo_agent_lab.tools.measure import measure_index

MIN_VALID_SHARE = 0.2
"""Below this share of valid pixels a mean says little of its area, and no answer is given."""

ABSTENTION = "not answered: too little of the area is valid"

_COPIED = [
    "scene",
    "index",
    "level",
    "datetime",
    "sensor",
    "gsd_m",
    "valid_share",
    "cloud_share",
    "valid_pixels",
    "formula",
    "bands",
    "mean",
    "mean_se",
    "std",
    "share",
    "area_m2",
    "threshold",
    "resampling",
    "excluded",
]


def find_scene(lake: Lake, name: str) -> Scene:
    """Return a scene by id, or by a part of its product id that is unique.

    Raises:
        LakeError: None fits, or several do.
    """
    if name in lake.scene_ids():
        return lake.get(name)
    found = [s for s in map(lake.get, lake.scene_ids()) if name.lower() in s.product_id.lower()]
    if len(found) == 1:
        return found[0]
    if not found:
        raise LakeError(f"no scene {name!r} in {lake.path}; see `eolab lake info` and `lake query`")
    names = ", ".join(scene.product_id for scene in found[:5])
    raise LakeError(f"{len(found)} scenes fit {name!r} ({names}, ...); give more of the name")


def ask(
    question: str,
    scene: str,
    lake_path: Path,
    *,
    agent: str = "heuristic",
    show: Callable[[str], Any] | None = None,
    export: Path | None = None,
) -> dict[str, Any]:
    """Let an agent answer a question about a scene and the others of its place.

    Args:
        question: In plain words.
        scene: Scene id, or a unique part of its product id.
        lake_path: The lake's folder.
        agent: A name that :func:`eo_agent_lab.agents.make` knows, other than ``expert``.
        show: Called with each step as it happens.
        export: Folder for ``evidence.geojson`` and one COG per index used.

    Returns:
        The evidence card: question, answer, abstained, why, evidence rows, change and exports.

    Raises:
        LakeError: The scene is not in the lake.
    """
    lake = Lake(lake_path)
    start = find_scene(lake, scene)
    names = [item.name for item in list_tools("eo_gym")]
    task = Task(
        task_id="ask",
        question=question,
        images=[start.scene_id],
        data_source="multispectral" if start.modality == "multispectral" else "vhr",
        question_type="free",
        eo_task="free",
        choices=[],
        gold_answer=None,
        reference=[],
        tools=names,
        split="test",
    )
    calls: list[CallRecord] = []
    answer: str | None = None
    with tempfile.TemporaryDirectory(prefix="eolab-ask-") as folder:
        episode = Episode(lake, workspace_root=Path(folder), seed=0)
        observation = episode.reset(task)
        policy = make(agent)
        policy.start(None, observation, np.random.default_rng(0))
        done = False
        while not done:
            action = policy.act(observation)
            step = episode.step(action)
            if show is not None and len(episode.calls) > len(calls):
                last = episode.calls[-1]
                show(f"> {last.name} {json.dumps(last.arguments)}\n  {last.observation}")
            calls, observation = list(episode.calls), step.observation
            done = step.terminated or step.truncated
        answer = episode.answer
        episode.close()
    card = make_card(question, answer, calls)
    if export is not None:
        card["exports"] = export_evidence(lake, card, calls, export)
    return card


def make_card(question: str, answer: str | None, calls: list[CallRecord]) -> dict[str, Any]:
    """Collect what an answer rests on; abstain where it rests on too little."""
    rows = [
        {key: call.data[key] for key in _COPIED if key in call.data} | {"tool": call.name}
        for call in calls
        if not call.is_error and isinstance(call.data, dict) and "valid_share" in call.data
    ]
    problems = [call.observation for call in calls if call.is_error]
    poor = [row for row in rows if row["valid_share"] < MIN_VALID_SHARE]
    abstained = (
        bool(poor) or answer is None or answer.lower().startswith(("not answered", "unknown"))
    )
    why = None
    if poor:
        worst = min(row["valid_share"] for row in poor)
        why = f"only {worst:.1%} of the area is valid, {MIN_VALID_SHARE:.0%} are needed"
        answer = ABSTENTION
    elif abstained:
        why = problems[-1] if problems else "the agent found no evidence it could use"
        answer = answer or ABSTENTION
    change = _change(rows)
    return {
        "question": question,
        "answer": answer,
        "abstained": abstained,
        "why": why,
        "evidence": rows,
        "change": change,
        "problems": problems,
    }


def _change(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the difference of the last two means of one index, with its 95 % interval."""
    measured = [
        row for row in rows if "mean" in row and row.get("datetime") and "threshold" not in row
    ]
    if len(measured) < 2 or measured[-1]["index"] != measured[-2]["index"]:
        return None
    first, second = sorted(measured[-2:], key=lambda row: str(row["datetime"]))
    errors = [row.get("mean_se") for row in (first, second)]
    known = [error for error in errors if error is not None]
    half = 1.96 * float(np.hypot(*known)) if len(known) == 2 else None
    return {
        "index": first["index"],
        "from": first["datetime"],
        "to": second["datetime"],
        "difference": second["mean"] - first["mean"],
        "half_width_95": half,
        "same_level": first["level"] == second["level"],
    }


def card_text(card: dict[str, Any]) -> str:
    """Return the evidence card for a terminal."""
    lines = ["", f"Answer: {card['answer']}"]
    if card["why"]:
        lines.append(f"Why not: {card['why']}")
    for row in card["evidence"]:
        bands = ", ".join(f"{role}={band['name']}" for role, band in row["bands"].items())
        cloud = "unknown" if row["cloud_share"] is None else f"{row['cloud_share']:.1%}"
        error = "" if row.get("mean_se") is None else f" ± {1.96 * row['mean_se']:.4f}"
        value = f"{row['index']} mean {row['mean']:.4f}{error}"
        if "share" in row:
            rule = f"{row['index']} > {row['threshold']:g}"
            value = f"{row['tool'].split('_')[1]} {row['share']:.1%} ({rule})"
        gsd = f"{row['gsd_m']:g} m" if row["gsd_m"] else "unknown GSD"
        lines.append(
            f"  {row['datetime'] or 'date unknown'}  {row['sensor']}, {gsd}, {row['level']}: "
            f"{value}; "
            f"{row['formula']} with {bands}; valid {row['valid_share']:.1%}, cloud {cloud}"
        )
    change = card["change"]
    if change:
        half = change["half_width_95"]
        interval = "" if half is None else f" ± {half:.4f} (95 %, spatial sampling alone)"
        lines.append(f"  change of {change['index']}: {change['difference']:+.4f}{interval}")
    for path in card.get("exports", []):
        lines.append(f"  wrote {path}")
    return "\n".join(lines)


def export_evidence(
    lake: Lake, card: dict[str, Any], calls: list[CallRecord], folder: Path
) -> list[str]:
    """Write the used areas as GeoJSON and each used index as a cloud-optimised GeoTIFF."""
    written: list[str] = []
    features: list[dict[str, Any]] = []
    used = [c for c in calls if not c.is_error and isinstance(c.data, dict) and "index" in c.data]
    for call in used:
        if "scene" not in call.data:
            continue
        try:
            scene = lake.get(call.data["scene"])
        except EOLabError:
            continue
        corners = call.arguments.get("aoi")
        aoi: Aoi | None = (corners[0], corners[1], corners[2], corners[3]) if corners else None
        measured = measure_index(FileSource(scene, lake.root(scene)), call.data["index"], aoi)
        day = scene.acquired.date().isoformat() if scene.acquired else "undated"
        name = f"{call.data['index'].lower()}_{day}_{scene.scene_id}.tif"
        tags = {key: str(measured.data[key]) for key in ("formula", "level", "excluded", "sensor")}
        write_index_cog(folder / name, measured.values, measured.valid, measured.stack.grid, tags)
        written.append(str(folder / name))
        features.append(
            {"grid": measured.stack.grid, "properties": {**measured.data, "answer": card["answer"]}}
        )
    if features:
        path = folder / "evidence.geojson"
        write_geojson(path, features)
        written.append(str(path))
    return written
