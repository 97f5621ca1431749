"""Ingesting a folder of real scenes, as people have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from eo_agent_lab.errors import SceneError
from eo_agent_lab.lake.fetcher import Fetched, Rejected
from eo_agent_lab.lake.naming import FileRole, ProductName, file_role, parse_product, sensor_hint
from eo_agent_lab.lake.product import Product, assemble
from eo_agent_lab.lake.scene import Scene, make_location_id

if TYPE_CHECKING:
    from shapely.geometry import Polygon

RASTERS = (".tif", ".tiff", ".jp2")


class _Found(NamedTuple):
    path: Path
    role: FileRole


class FolderFetcher:
    """Finds scenes below a folder and reads their headers; pixels stay where they are.

    Understood are Landsat product folders with or without their MTL file, single-band GeoTIFFs
    named by product id and band, Sentinel-2 SAFE folders, multi-band GeoTIFFs whose bands are named
    or whose sensor is, and JPEG 2000 in place of GeoTIFF.

    Args:
        path: The folder.
        source: Name of the collection; defaults to the folder's name.
    """

    def __init__(self, path: str | Path, source: str | None = None) -> None:
        """Name the folder to ingest."""
        self.path = Path(path).resolve()
        self.source = source or self.path.name

    def fetch(self, *, progress: bool = False) -> Fetched:
        """Return the good scenes, the bad ones with reasons, and files that are no scenes.

        Raises:
            SceneError: The folder does not exist.
        """
        if not self.path.is_dir():
            raise SceneError(f"no folder at {self.path}; give the folder that holds the scenes")
        rejected: list[Rejected] = []
        ignored: list[Rejected] = []
        products = self._group(rejected, ignored)
        scenes: list[Scene] = []
        by_id: dict[str, str] = {}
        for product in _shown(products, progress):
            where = (product.where.relative_to(self.path) / product.label).as_posix()
            if product.where.name.startswith(product.label):
                where = product.where.relative_to(self.path).as_posix()
            try:
                scene = assemble(product, self.path, self.source)
            except SceneError as error:
                rejected.append(Rejected(where, str(error)))
                continue
            if scene is None:
                ignored.append(
                    Rejected(where, "no scene: neither its name nor its bands tell a sensor")
                )
            elif scene.product_id in by_id:
                rejected.append(
                    Rejected(
                        where,
                        f"duplicate of {by_id[scene.product_id]} (product {scene.product_id}); "
                        "the first one was kept, remove one of them",
                    )
                )
            else:
                by_id[scene.product_id] = where
                scenes.append(scene)
        return Fetched(assign_locations(scenes), rejected, ignored)

    def _group(self, rejected: list[Rejected], ignored: list[Rejected]) -> list[Product]:
        groups: dict[tuple[Path, str], list[_Found]] = {}
        names: dict[tuple[Path, str], ProductName | None] = {}
        for path in sorted(self.path.rglob("*")):
            relative = path.relative_to(self.path)
            if not path.is_file() or path.suffix.lower() not in RASTERS or _hidden(relative):
                continue
            if not path.resolve().is_relative_to(self.path):
                rejected.append(Rejected(relative.as_posix(), "a link that leaves the folder"))
                continue
            role = file_role(path.stem)
            if role.kind == "auxiliary":
                ignored.append(Rejected(relative.as_posix(), f"auxiliary file ({role.name})"))
                continue
            try:
                where, name = self._product_of(path)
            except SceneError as error:
                rejected.append(Rejected(relative.as_posix(), str(error)))
                continue
            label = name.product_id if name else role.stem or path.parent.name
            key = (where, label)
            groups.setdefault(key, []).append(_Found(path, role))
            names[key] = name
        return [
            Product(
                where,
                label,
                names[where, label],
                [(f.path, f.role) for f in files],
                self._hint(files),
            )
            for (where, label), files in groups.items()
        ]

    def _product_of(self, path: Path) -> tuple[Path, ProductName | None]:
        """Return the product's folder and name: the outermost folder named by a product id."""
        own = parse_product(path.stem)
        folder = path.parent
        found: tuple[Path, ProductName] | None = None
        while folder != self.path.parent and folder.is_relative_to(self.path):
            name = parse_product(folder.name)
            if name is not None and (own is None or _agree(name, own)):
                found = (folder, name)
            folder = folder.parent
        if found is not None:
            return found
        return path.parent, own

    def _hint(self, files: list[_Found]) -> str | None:
        first = files[0].path
        names = [first.stem, *(p.name for p in first.parents if p.is_relative_to(self.path))]
        return next((hint for name in names if (hint := sensor_hint(name))), None)


def _agree(folder: ProductName, file: ProductName) -> bool:
    """A folder's name speaks for a file unless the two state different days."""
    if folder.acquired is None or file.acquired is None:
        return True
    return folder.acquired.date() == file.acquired.date()


def _hidden(relative: Path) -> bool:
    return any(part.startswith(".") for part in relative.parts)


def _shown(products: list[Product], progress: bool) -> Iterator[Product]:
    if not progress:
        yield from products
        return
    from rich.progress import track

    yield from track(products, description="reading headers")


def _alike(a: Polygon, b: Polygon) -> bool:
    return bool(a.intersection(b).area > 0.7 * a.union(b).area)


def assign_locations(scenes: list[Scene]) -> list[Scene]:
    """Give scenes of one place one location id.

    The product's own path/row or tile decides; scenes without one share a location when their
    footprints overlap by 70 % of their union, so that dates of one area of interest line up.
    """
    from shapely.geometry import Polygon

    groups: list[tuple[Polygon, str]] = []
    result = []
    for scene in scenes:
        if scene.location_id is not None:
            result.append(
                scene.model_copy(update={"location_id": make_location_id(scene.location_id)})
            )
            continue
        if scene.footprint is None:
            key = f"{scene.source}/{scene.product_id}"
            result.append(scene.model_copy(update={"location_id": make_location_id(key)}))
            continue
        shape = Polygon(scene.footprint)
        location = next((name for known, name in groups if _alike(shape, known)), None)
        if location is None:
            location = make_location_id(f"{scene.source}/{scene.footprint[0]}/{len(groups)}")
            groups.append((shape, location))
        result.append(scene.model_copy(update={"location_id": location}))
    return result
