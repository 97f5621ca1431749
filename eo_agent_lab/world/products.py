"""Writing views in the layouts of their agencies, so that the folder reader reads them too."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.lake.scene import Band
from eo_agent_lab.world.sensors_view import (
    LANDSAT_OFFSET,
    LANDSAT_SCALE,
    S2_OFFSET,
    S2_SCALE,
    View,
)


class Ground(NamedTuple):
    """Where a place lies: EPSG code of its UTM zone and the upper left corner in metres."""

    epsg: int
    west: float
    north: float
    size_m: int


def write_raster(
    path: Path, values: NDArray[Any], ground: Ground, gsd: float, **extra: Any
) -> None:
    """Write one GeoTIFF; nothing in it depends on when or by which process it is written."""
    import rasterio
    from rasterio.transform import Affine

    array = values[None] if values.ndim == 2 else values
    path.parent.mkdir(parents=True, exist_ok=True)
    profile: dict[str, Any] = {
        "driver": "GTiff",
        "height": array.shape[1],
        "width": array.shape[2],
        "count": array.shape[0],
        "dtype": array.dtype.name,
        "crs": f"EPSG:{ground.epsg}",
        "transform": Affine(gsd, 0, ground.west, 0, -gsd, ground.north),
        "compress": "deflate",
        "zlevel": 1,
        **extra,
    }
    with rasterio.open(path, "w", **profile) as target:
        target.write(array)


class Written(NamedTuple):
    """A product on disk: its id, and bands and quality layers as the Scene keeps them."""

    product_id: str
    bands: dict[str, Band]
    quality: dict[str, Band]


def write_sentinel2(
    out: Path, folder: str, view: View, ground: Ground, satellite: str, when: datetime
) -> Written:
    """Write a Level-2A product of fourteen files in a folder named by its product id."""
    tile = mgrs_tile(ground)
    stamp = f"{when:%Y%m%dT%H%M%S}"
    orbit = 1 + (when.toordinal() * 14) % 143
    made = f"{when + timedelta(hours=4):%Y%m%dT%H%M%S}"
    product = f"S2{satellite}_MSIL2A_{stamp}_N0510_R{orbit:03d}_T{tile}_{made}"
    records: dict[str, Band] = {}
    for name, values in {**view.bands, **view.quality}.items():
        gsd = ground.size_m / values.shape[0]
        token = {"CLDPRB": "MSK_CLDPRB", "SCL": "SCL"}.get(name, f"B{name[1:]:0>2}")
        path = f"{folder}/{product}/T{tile}_{stamp}_{token}_{gsd:.0f}m.tif"
        is_band = name in view.bands
        write_raster(out / path, values, ground, gsd, **({"nodata": 0} if is_band else {}))
        records[name] = Band(path=path, gsd_m=gsd)
        if is_band:
            factors = {"scale": S2_SCALE, "offset": S2_OFFSET, "nodata": 0.0}
            records[name] = records[name].model_copy(update=factors)
    return Written(
        product,
        {name: records[name] for name in view.bands},
        {name: records[name] for name in view.quality},
    )


_MTL = """GROUP = LANDSAT_METADATA_FILE
  GROUP = PRODUCT_CONTENTS
    ORIGIN = "Simulated by eo_agent_lab; no pixel of it was ever observed"
    LANDSAT_PRODUCT_ID = "{product}"
    PROCESSING_LEVEL = "L2SP"
    COLLECTION_NUMBER = 02
    COLLECTION_CATEGORY = "T1"
  END_GROUP = PRODUCT_CONTENTS
  GROUP = IMAGE_ATTRIBUTES
    SPACECRAFT_ID = "LANDSAT_{satellite}"
    SENSOR_ID = "OLI_TIRS"
    WRS_PATH = {path}
    WRS_ROW = {row}
    DATE_ACQUIRED = {when:%Y-%m-%d}
    SCENE_CENTER_TIME = "{when:%H:%M:%S}.0000000Z"
    SUN_ELEVATION = {elevation:.6f}
    SUN_AZIMUTH = {azimuth:.6f}
  END_GROUP = IMAGE_ATTRIBUTES
  GROUP = LEVEL2_SURFACE_REFLECTANCE_PARAMETERS
{factors}
  END_GROUP = LEVEL2_SURFACE_REFLECTANCE_PARAMETERS
END_GROUP = LANDSAT_METADATA_FILE
END
"""


def write_landsat(
    out: Path,
    folder: str,
    view: View,
    ground: Ground,
    satellite: int,
    when: datetime,
    path_row: tuple[int, int],
    sun: tuple[float, float],
) -> Written:
    """Write a Collection 2 Level-2 product of eight files and its MTL file."""
    made = when + timedelta(days=8)
    product = (
        f"LC0{satellite}_L2SP_{path_row[0]:03d}{path_row[1]:03d}_{when:%Y%m%d}_{made:%Y%m%d}_02_T1"
    )
    bands: dict[str, Band] = {}
    for name, values in view.bands.items():
        path = f"{folder}/{product}/{product}_SR_{name}.TIF"
        write_raster(out / path, values, ground, 30, nodata=0)
        bands[name] = Band(
            path=path, gsd_m=30, scale=LANDSAT_SCALE, offset=LANDSAT_OFFSET, nodata=0.0
        )
    qa = f"{folder}/{product}/{product}_QA_PIXEL.TIF"
    write_raster(out / qa, view.quality["QA_PIXEL"], ground, 30)
    factors = "\n".join(
        f"    REFLECTANCE_{key}_BAND_{name[1:]} = {value}"
        for key, value in (("MULT", "2.75e-05"), ("ADD", "-0.2"))
        for name in view.bands
    )
    text = _MTL.format(
        product=product,
        satellite=satellite,
        path=path_row[0],
        row=path_row[1],
        when=when,
        elevation=sun[0],
        azimuth=sun[1],
        factors=factors,
    )
    (out / f"{folder}/{product}/{product}_MTL.txt").write_text(text)
    return Written(product, bands, {"QA_PIXEL": Band(path=qa, gsd_m=30)})


def mgrs_tile(ground: Ground) -> str:
    """Return the MGRS 100 km square of a place, such as ``33TWM``.

    Letters as in the US National Geospatial-Intelligence Agency's NGA.STND.0037.
    """
    from pyproj import Transformer

    zone = ground.epsg % 100
    _, lat = Transformer.from_crs(ground.epsg, 4326, always_xy=True).transform(
        ground.west, ground.north
    )
    band = "CDEFGHJKLMNPQRSTUVWX"[min(19, int((lat + 80) // 8))]
    columns = ("STUVWXYZ", "ABCDEFGH", "JKLMNPQR")[zone % 3]
    rows = "ABCDEFGHJKLMNPQRSTUV"
    shift = 5 if zone % 2 == 0 else 0
    column = columns[int(ground.west // 100_000) - 1]
    return f"{zone:02d}{band}{column}{rows[(int(ground.north // 100_000) + shift) % 20]}"


def as_uint8(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return a picture's values 0-255, rounded and clipped."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
