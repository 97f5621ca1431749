"""The scene index: one SQLite file beside the GeoParquet, answering look-ups in microseconds.

Measured for this layout (``../shared/LIBRARIES.md`` and ``tests/benchmarks``): a b-tree on
location x sensor x time beats R*Tree, DuckDB and data frames by one to three orders.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from eo_agent_lab.errors import LakeError
from eo_agent_lab.lake.scene import Scene

VERSION = 1

_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE record(scene_id TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE seen(location_id TEXT, modality TEXT, sensor TEXT, t REAL, scene_id TEXT,
    PRIMARY KEY(location_id, modality, sensor, t, scene_id)) WITHOUT ROWID;
CREATE TABLE location_sensor(location_id TEXT, modality TEXT, sensor TEXT,
    PRIMARY KEY(location_id, modality, sensor)) WITHOUT ROWID;
CREATE TABLE cell(lon INTEGER, lat INTEGER, location_id TEXT,
    PRIMARY KEY(lon, lat, location_id)) WITHOUT ROWID;
CREATE TABLE undated(location_id TEXT, modality TEXT, sensor TEXT, scene_id TEXT,
    PRIMARY KEY(location_id, modality, sensor, scene_id)) WITHOUT ROWID;
"""

_NOWHERE = ""


def time_key(scene: Scene) -> float | None:
    """Return what orders scenes of a location: seconds since 1970, else the frame index."""
    if scene.acquired is not None:
        return scene.acquired.timestamp()
    return float(scene.frame_index) if scene.frame_index is not None else None


def cells_of(scene: Scene) -> Iterator[tuple[int, int]]:
    """Yield the one-degree cells that a scene's footprint touches."""
    if scene.footprint is None:
        return
    longitudes = [point[0] for point in scene.footprint]
    latitudes = [point[1] for point in scene.footprint]
    for lon in range(math.floor(min(longitudes)), math.floor(max(longitudes)) + 1):
        for lat in range(math.floor(min(latitudes)), math.floor(max(latitudes)) + 1):
            yield lon, lat


def build_index(path: Path, scenes: Iterable[Scene], stamp: str) -> None:
    """Write the index anew under a temporary name and rename it.

    Args:
        path: The SQLite file.
        scenes: Every scene of the lake.
        stamp: Identifies the GeoParquet that the index was made from.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    connection = sqlite3.connect(temporary)
    try:
        connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _SCHEMA)
        seen: set[tuple[str, str, str]] = set()
        cells: set[tuple[int, int, str]] = set()
        for scene in scenes:
            location = scene.location_id or _NOWHERE
            key = (location, scene.modality, scene.sensor)
            seen.add(key)
            cells.update((lon, lat, location) for lon, lat in cells_of(scene))
            connection.execute(
                "INSERT INTO record VALUES(?,?)", (scene.scene_id, scene.model_dump_json())
            )
            when = time_key(scene)
            if when is None:
                connection.execute("INSERT INTO undated VALUES(?,?,?,?)", (*key, scene.scene_id))
            else:
                connection.execute(
                    "INSERT INTO seen VALUES(?,?,?,?,?)", (*key, when, scene.scene_id)
                )
        connection.executemany("INSERT INTO location_sensor VALUES(?,?,?)", sorted(seen))
        connection.executemany("INSERT INTO cell VALUES(?,?,?)", sorted(cells))
        connection.executemany(
            "INSERT INTO meta VALUES(?,?)", [("version", str(VERSION)), ("stamp", stamp)]
        )
        connection.commit()
    finally:
        connection.close()
    os.replace(temporary, path)


class Index:
    """Read-only look-ups; safe to open in many processes at once."""

    def __init__(self, path: Path) -> None:
        """Open the index.

        Raises:
            LakeError: The file is damaged or of another version.
        """
        self._connection = sqlite3.connect(
            f"file:{path}?mode=ro", uri=True, check_same_thread=False
        )
        try:
            meta = dict(self._connection.execute("SELECT key, value FROM meta"))
        except sqlite3.DatabaseError as error:
            raise LakeError(f"{path} is damaged ({error}); run `eolab lake build`") from error
        if meta.get("version") != str(VERSION):
            raise LakeError(f"{path} has another version; run `eolab lake build`")
        self.stamp = meta.get("stamp", "")

    def scene_ids(self) -> list[str]:
        """Return all scene ids, sorted."""
        return [row[0] for row in self._connection.execute("SELECT scene_id FROM record")]

    def record(self, scene_id: str) -> str | None:
        """Return the JSON of one scene."""
        row = self._connection.execute(
            "SELECT json FROM record WHERE scene_id=?", (scene_id,)
        ).fetchone()
        return None if row is None else str(row[0])

    def sensors(self, location_id: str, modality: str, sensor: str | None) -> list[str]:
        """Return the location's sensors; ``sensor`` may name a family such as ``landsat``."""
        rows = self._connection.execute(
            "SELECT sensor FROM location_sensor WHERE location_id=? AND modality=?",
            (location_id, modality),
        )
        return [row[0] for row in rows if sensor is None or row[0].startswith(sensor)]

    def neighbour(
        self, location_id: str, modality: str, sensor: str | None, when: float, *, later: bool
    ) -> str | None:
        """Return the id of the nearest scene strictly before, or strictly after, a time."""
        comparison, order = (">", "ASC") if later else ("<", "DESC")
        found: list[tuple[float, str]] = []
        for name in self.sensors(location_id, modality, sensor):
            row = self._connection.execute(
                f"SELECT t, scene_id FROM seen WHERE location_id=? AND modality=? AND sensor=? "
                f"AND t{comparison}? ORDER BY t {order}, scene_id {order} LIMIT 1",
                (location_id, modality, name, when),
            ).fetchone()
            if row is not None:
                found.append((row[0], row[1]))
        if not found:
            return None
        return min(found)[1] if later else max(found)[1]

    def between(
        self, location_id: str, modality: str, sensor: str | None, start: float, end: float
    ) -> list[str]:
        """Return ids of a location's scenes in a closed interval of time, oldest first."""
        found: list[tuple[float, str]] = []
        for name in self.sensors(location_id, modality, sensor):
            found += self._connection.execute(
                "SELECT t, scene_id FROM seen WHERE location_id=? AND modality=? AND sensor=? "
                "AND t>=? AND t<=?",
                (location_id, modality, name, start, end),
            )
        return [scene_id for _, scene_id in sorted(found)]

    def undated(self, location_id: str, modality: str, sensor: str | None) -> list[str]:
        """Return ids of a location's scenes whose date is unknown."""
        rows = self._connection.execute(
            "SELECT sensor, scene_id FROM undated WHERE location_id=? AND modality=?",
            (location_id, modality),
        )
        return sorted(row[1] for row in rows if sensor is None or row[0].startswith(sensor))

    def locations(self, lon: float, lat: float) -> list[str]:
        """Return the locations with a footprint in the one-degree cell of a point."""
        rows = self._connection.execute(
            "SELECT location_id FROM cell WHERE lon=? AND lat=?",
            (math.floor(lon), math.floor(lat)),
        )
        return [row[0] for row in rows]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
