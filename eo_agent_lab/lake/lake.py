"""The lake as the rest of the house sees it: look-ups by id, place and time."""

from __future__ import annotations

import builtins
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path

from eo_agent_lab.errors import LakeError
from eo_agent_lab.lake.build import INDEX_FILE, SCENES_FILE, rebuild_index, stamp_of
from eo_agent_lab.lake.index import Index, time_key
from eo_agent_lab.lake.scene import Modality, Scene

When = datetime | date | str | None
_ALWAYS = 1e18


class Lake:
    """A folder with ``scenes.parquet`` and ``index.sqlite``.

    Args:
        path: The lake's folder.

    Raises:
        LakeError: There is no lake, or it is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a lake; an index that is missing or stale is made again."""
        self.path = Path(path)
        if not (self.path / SCENES_FILE).is_file():
            raise LakeError(f"no lake at {self.path}; make one with `eolab fetch simulate`")
        if not (self.path / INDEX_FILE).is_file():
            rebuild_index(self.path)
        self._index = Index(self.path / INDEX_FILE)
        if self._index.stamp != stamp_of(self.path / SCENES_FILE):
            self._index.close()
            rebuild_index(self.path)
            self._index = Index(self.path / INDEX_FILE)
        self._scenes: dict[str, Scene] = {}

    def scene_ids(self) -> builtins.list[str]:
        """Return the ids of all scenes, sorted."""
        return self._index.scene_ids()

    def get(self, scene_id: str) -> Scene:
        """Return one scene.

        Raises:
            LakeError: No scene has this id.
        """
        if scene_id not in self._scenes:
            record = self._index.record(scene_id)
            if record is None:
                raise LakeError(
                    f"the lake has no scene {scene_id[:80]!r}; use a handle from the question or "
                    "from a listing tool"
                )
            self._scenes[scene_id] = Scene.model_validate_json(record)
        return self._scenes[scene_id]

    def list(
        self,
        scene_id: str | None = None,
        *,
        location_id: str | None = None,
        sensor: str | None = None,
        start: When = None,
        end: When = None,
        modality: Modality | None = None,
    ) -> builtins.list[Scene]:
        """Return a location's scenes, oldest first, those without a date last.

        Args:
            scene_id: A scene whose location and modality are meant.
            location_id: The location itself; one of the two must be given.
            sensor: A sensor or a family (``sentinel-2``, ``landsat``).
            start: First moment, inclusive. A date without a time means its whole day.
            end: Last moment, inclusive.
            modality: Defaults to that of the scene, else multispectral.
        """
        if scene_id is not None:
            scene = self.get(scene_id)
            if scene.location_id is None:
                return [scene]
            location_id, modality = scene.location_id, modality or scene.modality
        if location_id is None:
            raise LakeError("give a scene_id or a location_id to list")
        kind = modality or "multispectral"
        first = -_ALWAYS if start is None else as_time(start).timestamp()
        last = _ALWAYS if end is None else as_time(end, end_of_day=True).timestamp()
        ids = self._index.between(location_id, kind, sensor, first, last)
        if start is None and end is None:
            ids += self._index.undated(location_id, kind, sensor)
        return [self.get(found) for found in ids]

    def previous(
        self, scene_id: str, *, before: When = None, sensor: str | None = None
    ) -> Scene | None:
        """Return the latest scene of the same place and modality before a time.

        Args:
            scene_id: A scene of the location.
            before: The time, exclusive; defaults to the scene's own.
            sensor: A sensor or a family.

        Raises:
            LakeError: The scene has no date and none was given.
        """
        return self._neighbour(scene_id, before, sensor, later=False)

    def next(self, scene_id: str, *, after: When = None, sensor: str | None = None) -> Scene | None:
        """Return the earliest scene of the same place and modality after a time (exclusive)."""
        return self._neighbour(scene_id, after, sensor, later=True)

    def _neighbour(
        self, scene_id: str, when: When, sensor: str | None, *, later: bool
    ) -> Scene | None:
        scene = self.get(scene_id)
        reference = time_key(scene) if when is None else as_time(when, end_of_day=later).timestamp()
        if reference is None:
            raise LakeError(
                f"scene {scene_id} has no acquisition date: give a date to look from, or use the "
                "listing tool"
            )
        if scene.location_id is None:
            return None
        found = self._index.neighbour(
            scene.location_id, scene.modality, sensor, reference, later=later
        )
        return None if found is None else self.get(found)

    def companion(self, scene_id: str) -> Scene | None:
        """Return the aligned scene of the other modality, None when there is none."""
        companion = self.get(scene_id).companion_id
        return None if companion is None else self.get(companion)

    def at(
        self,
        lon: float,
        lat: float,
        *,
        sensor: str | None = None,
        start: When = None,
        end: When = None,
        modality: Modality = "multispectral",
        limit: int | None = None,
    ) -> builtins.list[Scene]:
        """Return scenes whose footprint covers a point (degrees, WGS84), oldest first.

        Raises:
            LakeError: The point is not on Earth.
        """
        if not (-180 <= lon <= 180 and -90 <= lat <= 90):
            raise LakeError(
                f"({lon}, {lat}) is not a longitude and latitude in degrees; give lon, lat in WGS84"
            )
        found = [
            scene
            for location in self._index.locations(lon, lat)
            for scene in self.list(
                location_id=location, sensor=sensor, start=start, end=end, modality=modality
            )
            if scene.footprint is not None and _covers(scene.footprint, lon, lat)
        ]
        found.sort(key=lambda scene: (time_key(scene) or _ALWAYS, scene.scene_id))
        return found if limit is None else found[:limit]

    def root(self, scene: Scene) -> Path:
        """Return the folder that a scene's band paths start from."""
        root = Path(scene.root)
        return root if root.is_absolute() else self.path / root

    def band_path(self, scene: Scene, name: str) -> Path:
        """Return the file of a band or quality layer."""
        band = scene.bands.get(name) or scene.quality.get(name)
        if band is None:
            raise LakeError(f"scene {scene.scene_id} has no band {name!r}")
        return self.root(scene) / band.path


def as_time(value: datetime | date | str, *, end_of_day: bool = False) -> datetime:
    """Return a UTC time from an ISO date or time; a bare date means its start, or its end.

    Raises:
        LakeError: The text is not an ISO date.
    """
    if isinstance(value, str):
        try:
            bare = len(value.strip()) == 10
            moment = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise LakeError(
                f"{value!r} is not a date; write it as YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS"
            ) from error
    elif isinstance(value, datetime):
        moment, bare = value, False
    else:
        moment, bare = datetime(value.year, value.month, value.day), True
    if bare and end_of_day:
        moment = moment.replace(hour=23, minute=59, second=59, microsecond=999_999)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _covers(ring: builtins.list[tuple[float, float]], lon: float, lat: float) -> bool:
    inside = False
    for (x0, y0), (x1, y1) in pairwise(ring):
        if (y0 > lat) != (y1 > lat) and lon < (x1 - x0) * (lat - y0) / (y1 - y0) + x0:
            inside = not inside
    return inside
