"""Reading product ids and band names out of file and folder names."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from eo_agent_lab.errors import SceneError


class ProductName(NamedTuple):
    """What a name states. ``acquired`` has a time of day only where ``has_time`` is true."""

    product_id: str
    sensor: str
    acquired: datetime | None = None
    has_time: bool = False
    processing: str | None = None
    """Landsat ``L1TP``/``L2SP``..., Sentinel-2 ``1C``/``2A``, None when the name does not say."""
    collection: str | None = None
    baseline: str | None = None
    place: str | None = None
    """WRS-2 path and row, or MGRS tile: scenes of one place share it."""


_LANDSAT = re.compile(
    r"(?P<id>L(?P<inst>[COTEM])0(?P<sat>[45789])_(?P<proc>L[12][A-Z]{2})_(?P<pr>\d{6})_"
    r"(?P<date>\d{8})(?:_(?P<made>\d{8})_(?P<coll>\d{2})_(?:RT|T1|T2))?)",
    re.IGNORECASE,
)
_LANDSAT_OLD = re.compile(
    r"(?P<id>L(?P<inst>[COTEM])(?P<sat>[45789])(?P<pr>\d{6})(?P<year>\d{4})(?P<doy>\d{3})"
    r"[A-Z]{3}\d{2})",
    re.IGNORECASE,
)
_SENTINEL2 = re.compile(
    r"(?P<id>S2(?P<sat>[ABC])_MSIL(?P<proc>1C|2A)_(?P<date>\d{8})T(?P<time>\d{6})_N(?P<base>\d{4})"
    r"_R\d{3}_T(?P<tile>\d{2}[A-Z]{3})_\d{8}T\d{6})",
    re.IGNORECASE,
)
_SENTINEL2_LOOSE = re.compile(
    r"(?P<id>S2(?P<sat>[ABC])_?(?:MSI)?_?L?(?P<proc>1C|2A)_(?P<date>\d{8})(?:T(?P<time>\d{6}))?)",
    re.IGNORECASE,
)
_SENTINEL2_GRANULE = re.compile(
    r"(?P<id>T(?P<tile>\d{2}[A-Z]{3})_(?P<date>\d{8})T(?P<time>\d{6}))", re.IGNORECASE
)
_HINT = re.compile(
    r"(?:^|[^a-z0-9])(?:(?P<landsat>landsat[-_ ]?0?|lc0?|lt0?|le0?|l)(?P<lsat>[5789])"
    r"|(?P<s2>sentinel[-_ ]?2|sen2|s2)(?P<ssat>[abc]?))(?=$|[^a-z0-9])",
    re.IGNORECASE,
)
_BAND = re.compile(
    r"(?:^|[_.\-])(?:SR_|ST_)?(?P<band>B(?:0?[1-9]|1[0-2]|8A))(?:_VCID_1)?"
    r"(?:_(?P<res>10|20|60)m)?$",
    re.IGNORECASE,
)
_QUALITY = re.compile(
    r"(?:^|[_.\-])(?P<kind>SCL|QA_PIXEL|BQA|CLM|MSK_CLDPRB|CLDPRB)(?:_(?P<res>10|20|60)m?)?$",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(
    r"(?:^|[_.\-])(preview|quicklook|browse|thumb|thumbnail|ql|TCI|AOT|WVP|PVI|VER|SR_QA_AEROSOL|"
    r"QA_RADSAT|QA_AEROSOL|SAA|SZA|VAA|VZA|ST_(?:ATRAN|CDIST|DRAD|EMIS|EMSD|QA|TRAD|URAD)|"
    r"VCID_2|MSK_SNWPRB|MSK_CLASSI|MSK_QUALIT|MSK_DETFOO)(?:_B\w\w)?(?:_\d\d?m?)?$",
    re.IGNORECASE,
)


def parse_product(name: str) -> ProductName | None:
    """Read a product id anywhere in a name.

    Raises:
        SceneError: The name holds a product id whose date does not exist.
    """
    if match := _LANDSAT.search(name):
        return ProductName(
            match["id"].upper(),
            f"landsat-{match['sat']}",
            _date(match["date"], "%Y%m%d", name),
            processing=match["proc"].upper(),
            collection=match["coll"],
            place=f"wrs2:{match['pr']}",
        )
    if match := _LANDSAT_OLD.search(name):
        return ProductName(
            match["id"].upper(),
            f"landsat-{match['sat']}",
            _day_of_year(match["year"], match["doy"], name),
            place=f"wrs2:{match['pr']}",
        )
    match = _SENTINEL2.search(name) or _SENTINEL2_LOOSE.search(name)
    if match:
        groups = match.groupdict()
        clock = groups.get("time")
        tile = groups.get("tile")
        return ProductName(
            match["id"].upper(),
            f"sentinel-2{match['sat'].lower()}",
            _date(match["date"] + (clock or ""), "%Y%m%d%H%M%S" if clock else "%Y%m%d", name),
            has_time=clock is not None,
            processing=match["proc"].upper(),
            baseline=groups.get("base"),
            place=f"mgrs:{tile.upper()}" if tile else None,
        )
    if match := _SENTINEL2_GRANULE.search(name):
        return ProductName(
            match["id"].upper(),
            "sentinel-2",
            _date(match["date"] + match["time"], "%Y%m%d%H%M%S", name),
            has_time=True,
            place=f"mgrs:{match['tile'].upper()}",
        )
    return None


def _date(digits: str, form: str, name: str) -> datetime:
    try:
        return datetime.strptime(digits, form).replace(tzinfo=UTC)
    except ValueError as error:
        raise SceneError(
            f"the date {digits!r} in {name!r} does not exist; correct the name"
        ) from error


def _day_of_year(year: str, day: str, name: str) -> datetime:
    start = datetime(int(year), 1, 1, tzinfo=UTC)
    when = start + timedelta(days=int(day) - 1)
    if int(day) < 1 or when.year != start.year:
        raise SceneError(f"day {day} of {year} in {name!r} does not exist; correct the name")
    return when


def sensor_hint(name: str) -> str | None:
    """Guess the sensor from a loose name such as ``l8_B4``, ``L7_ETMs`` or ``sen2_12b``."""
    match = _HINT.search(name)
    if match is None:
        return None
    if match["landsat"]:
        return f"landsat-{match['lsat']}"
    return f"sentinel-2{(match['ssat'] or '').lower()}"


class FileRole(NamedTuple):
    """What a file holds: ``kind`` is band, quality, auxiliary or stack (anything else)."""

    kind: str
    name: str
    stem: str
    """The file's name without extension and band."""


def file_role(stem: str) -> FileRole:
    """Tell a band from a quality layer, an auxiliary file, or a stack of bands, by its stem."""
    if match := _AUXILIARY.search(stem):
        return FileRole("auxiliary", match[1].upper(), stem[: match.start()])
    if match := _BAND.search(stem):
        return FileRole("band", band_name(match["band"]), stem[: match.start()])
    if match := _QUALITY.search(stem):
        kind = match["kind"].upper().removeprefix("MSK_")
        return FileRole("quality", kind, stem[: match.start()])
    return FileRole("stack", "", stem)


def band_name(text: str) -> str:
    """Return the sensor table's spelling of a band: ``b08`` and ``B8`` are both ``B8``."""
    upper = text.upper().removeprefix("SR_").removeprefix("ST_")
    return re.sub(r"^B0", "B", upper)
