"""Making one Scene of the files of one product."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from eo_agent_lab.errors import SceneError
from eo_agent_lab.lake.header import Header, Place, make_band, place_of, read_header
from eo_agent_lab.lake.naming import FileRole, ProductName, band_name
from eo_agent_lab.lake.quality import bqa_layout
from eo_agent_lab.lake.radiometry import (
    Calibration,
    calibration_from_name,
    landsat_calibration,
    sentinel2_calibration,
)
from eo_agent_lab.lake.scene import Band, Scene, make_scene_id
from eo_agent_lab.lake.sensors import ROLES, SENSORS, role_of, usual_band_order


class Product(NamedTuple):
    """Files that belong together.

    Attributes:
        where: The product's folder.
        label: Product id, or what the files' names share.
        name: The parsed product id, None when there is none.
        files: Each file with what its name says it holds.
        hint: A sensor guessed from loose names.
    """

    where: Path
    label: str
    name: ProductName | None
    files: list[tuple[Path, FileRole]]
    hint: str | None


def assemble(product: Product, root: Path, source: str) -> Scene | None:
    """Read headers and metadata of a product and return its Scene.

    Args:
        product: The files.
        root: The ingested folder; band paths are kept relative to it.
        source: Name of the collection.

    Returns:
        The scene, or None when the files are no scene of a known kind.

    Raises:
        SceneError: A file is damaged, or the product contradicts itself.
    """
    headers = [(read_header(path), role) for path, role in product.files]
    sensor = product.name.sensor if product.name else product.hint
    singles, quality = _single_bands(headers)
    stacks = [header for header, role in headers if role.kind == "stack"]
    found, order_note = _with_stacks(singles, stacks, sensor)
    if not found:
        if product.name is None or not headers:
            return None
        raise SceneError(
            f"product {product.label} has no band that its files name; keep the producer's file "
            "names, or name the bands of a stack by their descriptions"
        )
    rgb = set(found) <= {"R", "G", "B", "A"}
    if sensor is None and not rgb and not set(found) <= set(ROLES):
        return None
    names = list(found)
    calibration = _calibration(product, names)
    sensor = calibration.sensor or sensor or "unknown"
    _same_sensor(product, calibration)
    place = _one_place([header for header, _ in found.values()], quality)
    acquired = _date(product, calibration, stacks, sensor)
    finest = _finest(found, sensor)
    location = product.name.place if product.name else None
    bands = {
        name: make_band(header, root, index, calibration.bands.get(name), calibration.nodata)
        for name, (header, index) in found.items()
    }
    note = calibration.note + (f"; {order_note}" if order_note else "")
    product_id = product.name.product_id if product.name else (calibration.product_id or "")
    if product.name is None and not product_id:
        product_id = f"{product.where.relative_to(root).as_posix()}/{product.label}"
    return Scene(
        scene_id=make_scene_id(source, product_id),
        source=source,
        product_id=product_id,
        sensor=sensor,
        modality="rgb" if rgb else "multispectral",
        level=calibration.level,
        level_note=note,
        acquired=acquired,
        footprint=place.footprint,
        epsg=place.epsg,
        crs=place.crs,
        gsd_m=place_of(finest).gsd_m,
        shape=(finest.grid.height, finest.grid.width),
        root=str(root),
        bands=_ordered(bands, sensor),
        quality={kind: make_band(header, root, 1, None, None) for kind, header in quality.items()},
        location_id=location,
    )


def _finest(found: dict[str, tuple[Header, int]], sensor: str) -> Header:
    """Return the header that gives the scene's pixel size; a panchromatic band does not count."""
    colour = [header for name, (header, _) in found.items() if role_of(sensor, name) != "pan"]
    return min(colour or [header for header, _ in found.values()], key=lambda h: abs(h.grid.dx))


def _single_bands(
    headers: list[tuple[Header, FileRole]],
) -> tuple[dict[str, tuple[Header, int]], dict[str, Header]]:
    """Sort single-band files by band; of a band at several resolutions the finest is kept."""
    bands: dict[str, tuple[Header, int]] = {}
    quality: dict[str, Header] = {}
    for header, role in headers:
        if role.kind == "band":
            known = bands.get(role.name)
            if known is not None and abs(known[0].grid.dx) == abs(header.grid.dx):
                raise SceneError(
                    f"band {role.name} is there twice ({known[0].path.name}, {header.path.name}); "
                    "remove one"
                )
            if known is None or abs(header.grid.dx) < abs(known[0].grid.dx):
                bands[role.name] = (header, 1)
        elif role.kind == "quality":
            kind = _bqa_kind(header) if role.name == "BQA" else role.name
            if kind not in quality or abs(header.grid.dx) < abs(quality[kind].grid.dx):
                quality[kind] = header
    return bands, quality


def _bqa_kind(header: Header) -> str:
    from eo_agent_lab.lake.raster import open_raster

    with open_raster(header.path) as dataset:
        return bqa_layout(dataset.read(1))


def _with_stacks(
    singles: dict[str, tuple[Header, int]], stacks: list[Header], sensor: str | None
) -> tuple[dict[str, tuple[Header, int]], str]:
    """Add the bands of multi-band files, named by description, colour or customary order."""
    found = dict(singles)
    note = ""
    for header in stacks:
        names, why = _stack_names(header, sensor)
        if names is None:
            continue
        note = note or why
        for index, name in enumerate(names, start=1):
            if name in found:
                raise SceneError(
                    f"band {name} is there twice ({found[name][0].path.name}, {header.path.name}); "
                    "remove one"
                )
            found[name] = (header, index)
    return found, note


def _stack_names(header: Header, sensor: str | None) -> tuple[list[str] | None, str]:
    texts = [text for text in header.descriptions if text]
    if len(texts) == header.band_count and header.band_count > 1:
        known = SENSORS[sensor].bands if sensor else {}
        names = [band_name(text) for text in texts]
        if sensor and all(name in known for name in names):
            return names, ""
        roles = [text.lower() for text in texts]
        if all(role in ROLES for role in roles):
            return roles, ""
    if sensor and (order := usual_band_order(sensor, header.band_count)):
        return order, f"bands taken in the usual order {order[0]}..{order[-1]}, the file names none"
    if header.dtype == "uint8" and header.colours[:3] == ("red", "green", "blue"):
        return ["R", "G", "B", "A"][: header.band_count] if header.band_count in (
            3,
            4,
        ) else None, ""
    return None, ""


def _calibration(product: Product, names: list[str]) -> Calibration:
    """Prefer the producer's metadata file; fall back on the product id."""
    folder = product.where
    if not any(folder.glob("*")):
        return calibration_from_name(product.name, names)
    for path in sorted(folder.glob("MTD_MSIL*.xml")):
        return sentinel2_calibration(path, names)
    mtls = [
        path
        for path in sorted(folder.iterdir())
        if path.name.upper().endswith("MTL.TXT")
        and (product.name is None or path.stem.upper().startswith(product.name.product_id[:25]))
    ]
    if len(mtls) == 1 and (product.name is None or product.name.sensor.startswith("landsat")):
        return landsat_calibration(mtls[0], names)
    return calibration_from_name(product.name, names)


def _same_sensor(product: Product, calibration: Calibration) -> None:
    named = product.name.sensor if product.name else None
    if named and calibration.sensor and not calibration.sensor.startswith(named):
        raise SceneError(
            f"product {product.label} is named {named} but its metadata say {calibration.sensor}; "
            "fetch the product again"
        )


def _one_place(bands: list[Header], quality: dict[str, Header]) -> Place:
    headers = [*bands, *quality.values()]
    first = headers[0]
    for header in headers[1:]:
        if header.crs != first.crs:
            raise SceneError(
                f"{header.path.name} and {first.path.name} have different coordinate systems; warp "
                "them to one"
            )
    places = [place_of(header) for header in bands]
    reference = max(zip(bands, places, strict=True), key=lambda pair: pair[0].grid.width)[1]
    for header in headers:
        if not _overlap(header, first):
            raise SceneError(
                f"{header.path.name} and {first.path.name} do not overlap; they are not one scene"
            )
    return reference


def _overlap(a: Header, b: Header) -> bool:
    def extent(header: Header) -> tuple[float, float, float, float]:
        grid = header.grid
        xs = sorted((grid.x0, grid.x0 + grid.width * grid.dx))
        ys = sorted((grid.y0, grid.y0 + grid.height * grid.dy))
        return xs[0], ys[0], xs[1], ys[1]

    ax0, ay0, ax1, ay1 = extent(a)
    bx0, by0, bx1, by1 = extent(b)
    return ax0 < bx1 and bx0 < ax1 and ay0 < by1 and by0 < ay1


def _date(
    product: Product, calibration: Calibration, stacks: list[Header], sensor: str
) -> datetime | None:
    """Return the acquisition time from metadata, product id or the file's ``datetime`` tag.

    A file's modification time and TIFFTAG_DATETIME (when it was processed) are never used.
    """
    stated = [when for when in (calibration.acquired, _named(product)) if when is not None]
    tagged = next((header.tags["datetime"] for header in stacks if "datetime" in header.tags), None)
    if tagged is not None:
        try:
            moment = datetime.fromisoformat(tagged)
        except ValueError as error:
            raise SceneError(
                f"product {product.label} has the tag datetime={tagged!r}, which is no date"
            ) from error
        utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        stated.insert(0, utc)
    if not stated:
        return None
    if max(stated) - min(stated) > timedelta(days=1):
        days = ", ".join(sorted({when.date().isoformat() for when in stated}))
        raise SceneError(
            f"product {product.label} states different dates ({days}); correct the wrong one"
        )
    best = next(
        (when for when in stated if (when.hour, when.minute, when.second) != (0, 0, 0)), stated[0]
    )
    known = SENSORS.get(sensor)
    if known and (
        best.date() < known.launch or (known.end is not None and best.date() > known.end)
    ):
        raise SceneError(
            f"product {product.label} is dated {best.date()}, when {known.title} did not fly; "
            "correct the date"
        )
    if best > datetime.now(UTC) + timedelta(days=1):
        raise SceneError(f"product {product.label} is dated {best.date()}, in the future")
    return best


def _named(product: Product) -> datetime | None:
    return product.name.acquired if product.name else None


def _ordered(bands: dict[str, Band], sensor: str) -> dict[str, Band]:
    order = list(SENSORS[sensor].bands) if sensor in SENSORS else []
    return dict(
        sorted(bands.items(), key=lambda item: order.index(item[0]) if item[0] in order else 99)
    )
