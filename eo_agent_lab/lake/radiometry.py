"""From digital numbers to reflectance: scale and offset of each band, applied exactly once.

Sources: Landsat 8-9 Level-1 reflectance rescaling, USGS LSDS-1574 section 5.3; Collection 2
Level-2 scale factors, USGS LSDS-1619; Landsat 5 and 7 solar irradiance and the Earth-Sun distance
formula, Chander, Markham and Helder (2009), doi:10.1016/j.rse.2009.01.007; Sentinel-2
quantification value and the -1000 offset of processing baseline 04.00 (2022-01-25), ESA Sentinel-2
Products Specification Document S2-PDGS-TAS-DI-PSD issue 14.9.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from eo_agent_lab.errors import SceneError
from eo_agent_lab.lake.naming import ProductName, band_name
from eo_agent_lab.lake.scene import Level
from eo_agent_lab.lake.sensors import THERMAL_ROLES, role_of

Rescaling = dict[str, tuple[float, float]]
"""Band name to (scale, offset): ``value = DN * scale + offset``."""


class Calibration(NamedTuple):
    """How a scene's digital numbers are to be read."""

    level: Level
    note: str
    bands: Rescaling
    nodata: float | None
    sensor: str | None = None
    acquired: datetime | None = None
    product_id: str | None = None


BASELINE_OFFSET_DATE = datetime(2022, 1, 25, tzinfo=UTC)
SENTINEL2_QUANTIFICATION = 10_000.0
SENTINEL2_OFFSET_DN = -1000.0

_ESUN = {
    "landsat-5": {"B1": 1983.0, "B2": 1796.0, "B3": 1536.0, "B4": 1031.0, "B5": 220.0, "B7": 83.44},
    "landsat-7": {
        "B1": 1997.0,
        "B2": 1812.0,
        "B3": 1533.0,
        "B4": 1039.0,
        "B5": 230.8,
        "B7": 84.90,
        "B8": 1362.0,
    },
}
"""Mean exoatmospheric solar irradiance, W m-2 um-1 (Chander et al. 2009, Tables 3 and 4)."""


def earth_sun_distance(day_of_year: int) -> float:
    """Return the Earth-Sun distance in astronomical units (within 0.03 % of the tabulated one)."""
    return 1.0 - 0.01672 * math.cos(math.radians(0.9856 * (day_of_year - 4)))


def read_mtl(path: Path) -> dict[str, dict[str, str]]:
    """Read a Landsat ``*_MTL.txt`` into groups of keys; leaf groups alone hold keys.

    Raises:
        SceneError: The file is not an MTL file, or breaks off before ``END``.
    """
    text = path.read_text(encoding="utf-8", errors="replace").rstrip("\x00 \r\n\t")
    groups: dict[str, dict[str, str]] = {}
    stack: list[str] = []
    for line in text.splitlines():
        key, _, value = (part.strip() for part in line.partition("="))
        if key == "GROUP":
            stack.append(value)
        elif key == "END_GROUP":
            if stack:
                stack.pop()
        elif key and value and stack:
            groups.setdefault(stack[-1], {})[key] = value.strip('"')
    if not groups:
        raise SceneError(f"{path.name} is not a Landsat MTL file; fetch the product again")
    if stack or not text.endswith("END"):
        raise SceneError(f"{path.name} breaks off before END; fetch the product again")
    return groups


def _find(groups: dict[str, dict[str, str]], key: str, *prefer: str) -> str | None:
    for name in (*prefer, *groups):
        if key in groups.get(name, {}):
            return groups[name][key]
    return None


def _number(groups: dict[str, dict[str, str]], key: str, group: str) -> float | None:
    text = groups.get(group, {}).get(key)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise SceneError(f"the MTL file has {key} = {text!r}, which is no number") from error


def landsat_calibration(mtl: Path, band_names: list[str]) -> Calibration:
    """Read sensor, date, level and rescaling of a Landsat product from its MTL file.

    Level-2 products give surface reflectance (and kelvin for the surface-temperature band).
    Level-1 gives top-of-atmosphere reflectance corrected for the sun's elevation; where the file
    has radiances alone (Landsat 4-7 before Collection 1) by ``pi d^2 L / (ESUN sin(elevation))``.

    Raises:
        SceneError: The file is damaged, or its date does not exist.
    """
    groups = read_mtl(mtl)
    spacecraft = _find(groups, "SPACECRAFT_ID") or ""
    number = re.search(r"(\d)$", spacecraft)
    sensor = f"landsat-{number[1]}" if number else None
    acquired = _mtl_time(groups, mtl.name)
    level2 = (_find(groups, "PROCESSING_LEVEL") or _find(groups, "DATA_TYPE") or "").startswith(
        "L2"
    )
    product = _find(groups, "LANDSAT_PRODUCT_ID", "PRODUCT_CONTENTS", "METADATA_FILE_INFO")
    product = product or _find(groups, "LANDSAT_SCENE_ID")
    bands: Rescaling = {}
    if level2:
        surface = "LEVEL2_SURFACE_REFLECTANCE_PARAMETERS"
        thermal = "LEVEL2_SURFACE_TEMPERATURE_PARAMETERS"
        for name in band_names:
            index = name.removeprefix("B")
            pair = (
                _number(groups, f"REFLECTANCE_MULT_BAND_{index}", surface),
                _number(groups, f"REFLECTANCE_ADD_BAND_{index}", surface),
            )
            if pair[0] is None:
                pair = (
                    _number(groups, f"TEMPERATURE_MULT_BAND_ST_B{index}", thermal),
                    _number(groups, f"TEMPERATURE_ADD_BAND_ST_B{index}", thermal),
                )
            if pair[0] is not None and pair[1] is not None:
                bands[name] = (pair[0], pair[1])
        note = "surface reflectance, scale and offset from the MTL file (Collection 2 Level-2)"
        if bands:
            return Calibration("SR", note, bands, 0.0, sensor, acquired, product)
        return Calibration(
            "DN", "Level-2 MTL file without scale factors", {}, 0.0, sensor, acquired, product
        )
    elevation = _find(groups, "SUN_ELEVATION")
    sine = math.sin(math.radians(float(elevation))) if elevation else 0.0
    if sine <= 0:
        note = "Level-1 product without a usable SUN_ELEVATION: digital numbers only"
        return Calibration("DN", note, {}, 0.0, sensor, acquired, product)
    rescale = next(
        (g for g in ("LEVEL1_RADIOMETRIC_RESCALING", "RADIOMETRIC_RESCALING") if g in groups), ""
    )
    distance = earth_sun_distance(acquired.timetuple().tm_yday) if acquired else 1.0
    from_radiance = False
    for name in band_names:
        index = name.removeprefix("B")
        scale = _number(groups, f"REFLECTANCE_MULT_BAND_{index}", rescale)
        offset = _number(groups, f"REFLECTANCE_ADD_BAND_{index}", rescale)
        if scale is not None and offset is not None:
            bands[name] = (scale / sine, offset / sine)
            continue
        esun = _ESUN.get(sensor or "", {}).get(name)
        scale = _number(groups, f"RADIANCE_MULT_BAND_{index}", rescale)
        offset = _number(groups, f"RADIANCE_ADD_BAND_{index}", rescale)
        if esun and scale is not None and offset is not None:
            factor = math.pi * distance**2 / (esun * sine)
            bands[name] = (scale * factor, offset * factor)
            from_radiance = True
    if not bands:
        note = "Level-1 product whose MTL file holds no rescaling: digital numbers only"
        return Calibration("DN", note, {}, 0.0, sensor, acquired, product)
    note = "top-of-atmosphere reflectance, sun elevation corrected, from the MTL file"
    if from_radiance:
        note += "; radiance to reflectance with the solar irradiances of Chander et al. (2009)"
    return Calibration("TOA", note, bands, 0.0, sensor, acquired, product)


def _mtl_time(groups: dict[str, dict[str, str]], name: str) -> datetime | None:
    day = _find(groups, "DATE_ACQUIRED")
    if day is None:
        return None
    clock = (_find(groups, "SCENE_CENTER_TIME") or "00:00:00").rstrip("Z")[:8]
    try:
        return datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC)
    except ValueError as error:
        raise SceneError(
            f"{name} has DATE_ACQUIRED = {day!r}, which is no date; fetch the product again"
        ) from error


def sentinel2_calibration(metadata: Path, band_names: list[str]) -> Calibration:
    """Read satellite, date, level, quantification and offset from ``MTD_MSIL1C/2A.xml``.

    Raises:
        SceneError: The file is not well-formed XML or lacks the quantification value.
    """
    try:
        root = ET.fromstring(metadata.read_bytes())
    except ET.ParseError as error:
        raise SceneError(
            f"{metadata.name} is damaged ({error}); fetch the product again"
        ) from error
    texts: dict[str, str] = {}
    offsets: dict[int, float] = {}
    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        if tag in ("BOA_ADD_OFFSET", "RADIO_ADD_OFFSET"):
            offsets[int(element.attrib.get("band_id", "-1"))] = float(element.text or 0)
        elif element.text and element.text.strip():
            texts.setdefault(tag, element.text.strip())
    surface = "BOA_QUANTIFICATION_VALUE" in texts
    quantification = texts.get("BOA_QUANTIFICATION_VALUE") or texts.get("QUANTIFICATION_VALUE")
    if quantification is None:
        raise SceneError(f"{metadata.name} has no quantification value; fetch the product again")
    scale = 1.0 / float(quantification)
    order = ["B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B8A", "B9", "B10", "B11", "B12"]
    default = offsets.get(-1, 0.0)
    bands = {
        name: (scale, offsets.get(order.index(name), default) * scale)
        for name in band_names
        if name in order
    }
    spacecraft = texts.get("SPACECRAFT_NAME", "")
    sensor = f"sentinel-2{spacecraft[-1].lower()}" if spacecraft[-1:] in ("A", "B", "C") else None
    started = texts.get("DATATAKE_SENSING_START") or texts.get("PRODUCT_START_TIME")
    try:
        acquired = datetime.fromisoformat(started[:19]).replace(tzinfo=UTC) if started else None
    except ValueError as error:
        raise SceneError(
            f"{metadata.name} has {started!r} as its time, which is no date"
        ) from error
    baseline = texts.get("PROCESSING_BASELINE", "not stated")
    applied = "an offset of -1000" if any(offsets.values()) else "no offset"
    note = (
        f"{'surface' if surface else 'top-of-atmosphere'} reflectance, baseline {baseline}, "
        f"{applied}, from {metadata.name}"
    )
    product = (texts.get("PRODUCT_URI") or "").removesuffix(".SAFE") or None
    return Calibration("SR" if surface else "TOA", note, bands, 0.0, sensor, acquired, product)


def calibration_from_name(name: ProductName | None, band_names: list[str]) -> Calibration:
    """Read what the product id alone says of the level; DN where it does not say enough."""
    if name is None or name.processing is None:
        return Calibration("DN", "radiometric level unknown: no metadata, no product id", {}, None)
    if name.sensor.startswith("sentinel-2"):
        return _sentinel2_from_name(name, band_names)
    reflective = [band for band in band_names if role_of(name.sensor, band) not in THERMAL_ROLES]
    if name.processing.startswith("L2") and name.collection in ("02", None):
        bands = dict.fromkeys(reflective, (2.75e-05, -0.2))
        if "B10" in band_names:
            bands["B10"] = (0.00341802, 149.0)
        note = "surface reflectance, the standard scale and offset of Collection 2 Level-2"
        return Calibration("SR", note, bands, 0.0)
    if name.sensor in ("landsat-8", "landsat-9"):
        note = (
            "top-of-atmosphere reflectance by the fixed Level-1 rescaling (2e-5, -0.1), not "
            "corrected for sun elevation because there is no MTL file: the factor cancels in a "
            "ratio of bands, single-band reflectance is too low"
        )
        return Calibration("TOA", note, dict.fromkeys(reflective, (2e-05, -0.1)), 0.0)
    note = "Level-1 product without its MTL file: digital numbers only"
    return Calibration("DN", note, {}, 0.0)


def _sentinel2_from_name(name: ProductName, band_names: list[str]) -> Calibration:
    scale = 1.0 / SENTINEL2_QUANTIFICATION
    level: Level = "SR" if name.processing == "2A" else "TOA"
    if name.baseline is not None:
        shifted = int(name.baseline) >= 400
        why = f"processing baseline {name.baseline[:2]}.{name.baseline[2:]} in the product id"
    elif name.acquired is not None and name.acquired < BASELINE_OFFSET_DATE:
        shifted = False
        why = "assumed without offset: acquired before baseline 04.00, no baseline stated"
    else:
        note = "Sentinel-2 product of unknown processing baseline: its offset is unknown"
        return Calibration("DN", note, {}, 0.0)
    offset = SENTINEL2_OFFSET_DN * scale if shifted else 0.0
    note = f"{'surface' if level == 'SR' else 'top-of-atmosphere'} reflectance; {why}"
    return Calibration(level, note, dict.fromkeys(band_names, (scale, offset)), 0.0)


def normalised_bands(names: list[str | None]) -> list[str] | None:
    """Return band names from GDAL descriptions, or None unless every band has one."""
    if not names or any(not name for name in names):
        return None
    return [band_name(name or "") for name in names]
