"""Counting what a lake holds."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from eo_agent_lab.lake.build import read_scenes
from eo_agent_lab.lake.scene import Scene


def summarise(lake: Path) -> list[dict[str, Any]]:
    """Return one row per source, modality and sensor: scenes, files, locations, dates, levels."""
    groups: dict[tuple[str, str, str], list[Scene]] = defaultdict(list)
    for scene in read_scenes(lake):
        groups[scene.source, scene.modality, scene.sensor].append(scene)
    rows = []
    for (source, modality, sensor), scenes in sorted(groups.items()):
        dates = sorted(scene.acquired.date().isoformat() for scene in scenes if scene.acquired)
        files = {
            (scene.root, band.path)
            for scene in scenes
            for band in (*scene.bands.values(), *scene.quality.values())
        }
        rows.append(
            {
                "source": source,
                "modality": modality,
                "sensor": sensor,
                "scenes": len(scenes),
                "files": len(files),
                "locations": len({scene.location_id for scene in scenes}),
                "first": dates[0] if dates else None,
                "last": dates[-1] if dates else None,
                "levels": " ".join(sorted({scene.level for scene in scenes})),
            }
        )
    return rows
