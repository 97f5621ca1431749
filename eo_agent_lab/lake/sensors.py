"""Sensors and their bands: one table.

Sources: Sentinel-2 band centres and resolutions per satellite from ESA's MSI spectral response
functions, COPE-GSEG-EOPG-TN-15-0007 (S2A/S2B) and its 2024 issue 4.0 (S2C); Landsat band limits
from USGS, "What are the band designations for the Landsat satellites?" and Barsi et al. (2014),
doi:10.3390/rs61010232 (Landsat 8). Operating dates from the same agencies' mission pages.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from eo_agent_lab.errors import MissingBandError


class BandSpec(NamedTuple):
    """One band of one sensor: centre wavelength in nanometres, native pixel size in metres."""

    name: str
    role: str
    wavelength_nm: float
    gsd_m: float


class Sensor(NamedTuple):
    """One sensor. ``launch`` and ``end`` bound the dates that its scenes can have."""

    key: str
    title: str
    launch: date
    end: date | None
    bands: dict[str, BandSpec]

    def band_of_role(self, role: str) -> str | None:
        """Return the name of the band with this role, or None when the sensor has none."""
        return next((spec.name for spec in self.bands.values() if spec.role == role), None)


def _sensor(key: str, title: str, launch: str, end: str | None, rows: str) -> Sensor:
    specs = {}
    for row in rows.split(";"):
        name, role, wavelength, gsd = row.split()
        specs[name] = BandSpec(name, role, float(wavelength), float(gsd))
    stop = date.fromisoformat(end) if end else None
    return Sensor(key, title, date.fromisoformat(launch), stop, specs)


def _msi(centres: str) -> str:
    fixed = (
        "B1 coastal 60;B2 blue 10;B3 green 10;B4 red 10;B5 rededge1 20;B6 rededge2 20;"
        "B7 rededge3 20;B8 nir 10;B8A nir08 20;B9 watervapour 60;B10 cirrus 60;B11 swir1 20;"
        "B12 swir2 20"
    )
    rows = []
    for row, centre in zip(fixed.split(";"), centres.split(), strict=True):
        name, role, gsd = row.split()
        rows.append(f"{name} {role} {centre} {gsd}")
    return ";".join(rows)


_S2A = "442.7 492.4 559.8 664.6 704.1 740.5 782.8 832.8 864.7 945.1 1373.5 1613.7 2202.4"
_S2B = "442.3 492.1 559.0 665.0 703.8 739.1 779.7 833.0 864.0 943.2 1376.9 1610.4 2185.7"
_S2C = "444.2 489.0 560.6 666.5 707.1 741.1 785.1 834.6 865.6 945.6 1372.3 1612.0 2191.3"
_OLI = (
    "B1 coastal 443.0 30;B2 blue 482.0 30;B3 green 561.4 30;B4 red 654.6 30;B5 nir 864.7 30;"
    "B6 swir1 1608.9 30;B7 swir2 2200.7 30;B8 pan 589.5 15;B9 cirrus 1373.4 30;"
    "B10 thermal1 10895 100;B11 thermal2 12005 100"
)
_TM = (
    "B1 blue 485 30;B2 green 560 30;B3 red 660 30;B4 nir 830 30;B5 swir1 1650 30;"
    "B6 thermal1 11450 120;B7 swir2 2215 30"
)
_ETM = (
    "B1 blue 485 30;B2 green 560 30;B3 red 660 30;B4 nir 835 30;B5 swir1 1650 30;"
    "B6 thermal1 11450 60;B7 swir2 2220 30;B8 pan 710 15"
)

SENSORS: dict[str, Sensor] = {
    sensor.key: sensor
    for sensor in (
        _sensor("sentinel-2", "Sentinel-2 MSI", "2015-06-23", None, _msi(_S2A)),
        _sensor("sentinel-2a", "Sentinel-2A MSI", "2015-06-23", None, _msi(_S2A)),
        _sensor("sentinel-2b", "Sentinel-2B MSI", "2017-03-07", None, _msi(_S2B)),
        _sensor("sentinel-2c", "Sentinel-2C MSI", "2024-09-05", None, _msi(_S2C)),
        _sensor("landsat-5", "Landsat 5 TM", "1984-03-01", "2013-06-05", _TM),
        _sensor("landsat-7", "Landsat 7 ETM+", "1999-04-15", None, _ETM),
        _sensor("landsat-8", "Landsat 8 OLI/TIRS", "2013-02-11", None, _OLI),
        _sensor("landsat-9", "Landsat 9 OLI-2/TIRS-2", "2021-09-27", None, _OLI),
    )
}
"""``sentinel-2`` alone is for products that do not say which satellite; its centres are S2A's."""

ROLES = [
    "coastal",
    "blue",
    "green",
    "red",
    "rededge1",
    "rededge2",
    "rededge3",
    "nir",
    "nir08",
    "watervapour",
    "cirrus",
    "swir1",
    "swir2",
    "pan",
    "thermal1",
    "thermal2",
]

THERMAL_ROLES = ("thermal1", "thermal2")

_BAND_ORDER = {
    ("sentinel-2", 13): "B1 B2 B3 B4 B5 B6 B7 B8 B8A B9 B10 B11 B12",
    ("sentinel-2", 12): "B1 B2 B3 B4 B5 B6 B7 B8 B8A B9 B11 B12",
    ("landsat-5", 7): "B1 B2 B3 B4 B5 B6 B7",
    ("landsat-5", 6): "B1 B2 B3 B4 B5 B7",
    ("landsat-7", 6): "B1 B2 B3 B4 B5 B7",
    ("landsat-8", 7): "B1 B2 B3 B4 B5 B6 B7",
    ("landsat-9", 7): "B1 B2 B3 B4 B5 B6 B7",
    ("landsat-8", 11): "B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11",
    ("landsat-9", 11): "B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11",
}


def usual_band_order(sensor: str, count: int) -> list[str] | None:
    """Return the customary band names of an unlabelled stack of ``count`` bands, or None."""
    family = "sentinel-2" if sensor.startswith("sentinel-2") else sensor
    order = _BAND_ORDER.get((family, count))
    return order.split() if order else None


def role_of(sensor: str, band: str) -> str | None:
    """Return what a band measures, such as ``nir``; None when nothing is known of it."""
    if sensor in SENSORS:
        spec = SENSORS[sensor].bands.get(band)
        return spec.role if spec else None
    return band if band in ROLES else None


def band_for_role(sensor: str, bands: list[str], role: str) -> str:
    """Return the name of the scene's band with this role.

    Raises:
        MissingBandError: The scene has no such band; the message names what it has.
    """
    wanted = next((band for band in bands if role_of(sensor, band) == role), None)
    if wanted is None:
        expected = SENSORS[sensor].band_of_role(role) if sensor in SENSORS else None
        name = f"the {role} band ({expected})" if expected else f"a {role} band"
        raise MissingBandError(
            f"this {sensor} scene lacks {name}; it has {', '.join(bands)}. "
            "Choose another scene, or an index that needs only these bands."
        )
    return wanted
