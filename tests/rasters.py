"""Small rasters for tests: written by code, in the layouts that people have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.transform import Affine

LANDSAT_C2 = "LC08_L2SP_013032_20210705_20210713_02_T1"

MTL_L2 = """GROUP = LANDSAT_METADATA_FILE
  GROUP = PRODUCT_CONTENTS
    LANDSAT_PRODUCT_ID = "{product}"
    PROCESSING_LEVEL = "L2SP"
    COLLECTION_NUMBER = 02
  END_GROUP = PRODUCT_CONTENTS
  GROUP = IMAGE_ATTRIBUTES
    SPACECRAFT_ID = "LANDSAT_8"
    SENSOR_ID = "OLI_TIRS"
    DATE_ACQUIRED = {date}
    SCENE_CENTER_TIME = "15:39:29.1234560Z"
    SUN_ELEVATION = 63.5
  END_GROUP = IMAGE_ATTRIBUTES
  GROUP = LEVEL2_SURFACE_REFLECTANCE_PARAMETERS
    REFLECTANCE_MULT_BAND_4 = 2.75e-05
    REFLECTANCE_MULT_BAND_5 = 2.75e-05
    REFLECTANCE_ADD_BAND_4 = -0.2
    REFLECTANCE_ADD_BAND_5 = -0.2
  END_GROUP = LEVEL2_SURFACE_REFLECTANCE_PARAMETERS
  GROUP = LEVEL1_RADIOMETRIC_RESCALING
    REFLECTANCE_MULT_BAND_4 = 2.0000E-05
    REFLECTANCE_MULT_BAND_5 = 2.0000E-05
    REFLECTANCE_ADD_BAND_4 = -0.100000
    REFLECTANCE_ADD_BAND_5 = -0.100000
  END_GROUP = LEVEL1_RADIOMETRIC_RESCALING
END_GROUP = LANDSAT_METADATA_FILE
END
"""

MTD_S2 = """<?xml version="1.0"?>
<n1:Level-2A_User_Product xmlns:n1="https://psd-14.sentinel2.eo.esa.int/PSD/User_Product_Level-2A.xsd">
 <n1:General_Info><Product_Info>
  <PRODUCT_START_TIME>2023-06-01T10:00:31.024Z</PRODUCT_START_TIME>
  <PRODUCT_URI>{product}.SAFE</PRODUCT_URI>
  <PROCESSING_BASELINE>05.09</PROCESSING_BASELINE>
  <Datatake><SPACECRAFT_NAME>Sentinel-2B</SPACECRAFT_NAME>
  <DATATAKE_SENSING_START>2023-06-01T10:00:31.024Z</DATATAKE_SENSING_START></Datatake></Product_Info>
  <Product_Image_Characteristics>
   <QUANTIFICATION_VALUES_LIST>
    <BOA_QUANTIFICATION_VALUE unit="none">10000</BOA_QUANTIFICATION_VALUE>
   </QUANTIFICATION_VALUES_LIST>
   <BOA_ADD_OFFSET_VALUES_LIST>{offsets}</BOA_ADD_OFFSET_VALUES_LIST>
  </Product_Image_Characteristics></n1:General_Info>
</n1:Level-2A_User_Product>
"""

SAFE_NAME = "S2B_MSIL2A_20230601T100031_N0509_R122_T33TWM_20230601T130000"


def write_raster(
    path: Path, values: Any, *, gsd: float = 30.0, epsg: int | None = 32618, **extra: Any
) -> Path:
    """Write an array (rows, columns) or (bands, rows, columns) as GeoTIFF or by ``driver``."""
    array = np.asarray(values)
    array = array[None] if array.ndim == 2 else array
    path.parent.mkdir(parents=True, exist_ok=True)
    origin = extra.pop("origin", (500_000.0, 4_500_000.0))
    descriptions = extra.pop("descriptions", None)
    tags = extra.pop("tags", {})
    profile = {
        "driver": extra.pop("driver", "GTiff"),
        "height": array.shape[1],
        "width": array.shape[2],
        "count": array.shape[0],
        "dtype": array.dtype.name,
        "transform": Affine(gsd, 0, origin[0], 0, -gsd, origin[1]),
        **extra,
    }
    if epsg is not None:
        profile["crs"] = f"EPSG:{epsg}"
    with rasterio.open(path, "w", **profile) as target:
        target.write(array)
        if tags:
            target.update_tags(**tags)
        if descriptions:
            target.descriptions = descriptions
    return path


def landsat_product(
    folder: Path, product: str = LANDSAT_C2, *, mtl: bool = True, size: int = 12
) -> Path:
    """Write a two-band Landsat Collection 2 Level-2 product with QA; NDVI is 0.5 where clear."""
    root = folder / product
    red = np.full((size, size), 10_909, np.uint16)
    nir = np.full((size, size), 18_182, np.uint16)
    red[0], nir[0] = 0, 0
    qa = np.full((size, size), 1 << 6, np.uint16)
    qa[0] = 1
    qa[1] = 1 << 3
    qa[2] = 1 << 4
    write_raster(root / f"{product}_SR_B4.TIF", red)
    write_raster(root / f"{product}_SR_B5.TIF", nir)
    write_raster(root / f"{product}_QA_PIXEL.TIF", qa)
    if mtl:
        date = f"{product[17:21]}-{product[21:23]}-{product[23:25]}"
        (root / f"{product}_MTL.txt").write_text(MTL_L2.format(product=product, date=date))
    return root


def safe_product(folder: Path, *, offset: float | None = -1000.0) -> Path:
    """Write a SAFE-like Sentinel-2 Level-2A folder: B04 and B08 at 10 m, B8A and SCL at 20 m."""
    root = folder / f"{SAFE_NAME}.SAFE"
    images = root / "GRANULE" / "L2A_T33TWM_A032567_20230601T100031" / "IMG_DATA"
    stem = "T33TWM_20230601T100031"
    red = np.full((12, 12), 2000, np.uint16)
    nir = np.full((12, 12), 4000, np.uint16)
    scl = np.full((6, 6), 4, np.uint8)
    scl[0], scl[1] = 9, 3
    jp2: dict[str, Any] = {
        "gsd": 10.0,
        "epsg": 32633,
        "driver": "JP2OpenJPEG",
        "QUALITY": "100",
        "REVERSIBLE": "YES",
    }
    write_raster(images / "R10m" / f"{stem}_B04_10m.jp2", red, **jp2)
    write_raster(images / "R10m" / f"{stem}_B08_10m.jp2", nir, **jp2)
    write_raster(images / "R20m" / f"{stem}_B04_20m.jp2", red[::2, ::2], **jp2 | {"gsd": 20.0})
    write_raster(images / "R20m" / f"{stem}_B8A_20m.jp2", nir[::2, ::2], **jp2 | {"gsd": 20.0})
    write_raster(images / "R20m" / f"{stem}_SCL_20m.jp2", scl, **jp2 | {"gsd": 20.0})
    write_raster(
        images / "R10m" / f"{stem}_TCI_10m.jp2", np.stack([red // 20] * 3).astype(np.uint8), **jp2
    )
    rows = "".join(
        f'<BOA_ADD_OFFSET band_id="{band}">{offset:g}</BOA_ADD_OFFSET>'
        for band in range(13)
        if offset is not None
    )
    text = MTD_S2.format(product=SAFE_NAME, offsets=rows)
    (root / "MTD_MSIL2A.xml").write_text(text)
    return root
