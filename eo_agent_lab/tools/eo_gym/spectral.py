"""Index statistics and land-cover masks from multispectral bands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eo_agent_lab.errors import RadiometryError, ToolError
from eo_agent_lab.lake.area import area_m2
from eo_agent_lab.lake.raster import Aoi, Grid
from eo_agent_lab.science.indices import MASKS
from eo_agent_lab.tools.measure import measure_index
from eo_agent_lab.tools.observation import Observation
from eo_agent_lab.tools.registry import Context, tool
from eo_agent_lab.tools.scenes import AoiArgument, open_scene

MASK_NODATA = 255


def _statistics(name: str, context: Context, url: str, aoi: list[float] | None) -> Observation:
    data = measure_index(open_scene(context, url), name, _aoi(aoi)).data
    text = (
        f"{name} = {data['formula']} with {_bands_text(data)} at {data['level']} level: "
        f"mean {data['mean']:.4f}, median {data['median']:.4f}, std {data['std']:.4f}, "
        f"range {data['min']:.4f} to {data['max']:.4f}{_error_text(data)}. {_evidence(data)}"
    )
    return Observation(text=text, data=data)


def _error_text(data: dict[str, Any]) -> str:
    return "" if data["mean_se"] is None else f", standard error of the mean {data['mean_se']:.4f}"


def _aoi(values: list[float] | None) -> Aoi | None:
    return None if values is None else (values[0], values[1], values[2], values[3])


def _bands_text(data: dict[str, Any]) -> str:
    return ", ".join(f"{role} {band['name']}" for role, band in data["bands"].items())


def _evidence(data: dict[str, Any]) -> str:
    cloud = data["cloud_share"]
    clouds = "cloud share unknown" if cloud is None else f"cloud share {cloud:.1%}"
    when = (data["datetime"] or "date unknown").replace("+00:00", "Z")
    gsd = f"{data['gsd_m']:g} m" if data["gsd_m"] else "pixel size unknown"
    text = (
        f"Valid {data['valid_share']:.1%} of {data['total_pixels']} pixels at {gsd}, {clouds}; "
        f"resampling: {data['resampling']}; {data['sensor']}, {when}."
    )
    if data["level"] == "DN":
        text += " Warning: digital numbers of unknown radiometric level; compare with care."
    return text


@tool(suite="eo_gym")
def compute_ndvi_by_multispectral(
    context: Context, multispectral_url: str, aoi: AoiArgument | None = None
) -> Observation:
    """Compute NDVI statistics (vegetation greenness) of a multispectral observation.

    Args:
        multispectral_url: Handle of the observation or of a crop.
        aoi: [x0, y0, x1, y1] as fractions of the image, 0 to 1, y downwards; all when left out.
    """
    return _statistics("NDVI", context, multispectral_url, aoi)


@tool(suite="eo_gym")
def compute_ndwi_by_multispectral(
    context: Context, multispectral_url: str, aoi: AoiArgument | None = None
) -> Observation:
    """Compute NDWI statistics (open water, McFeeters) of a multispectral observation.

    Args:
        multispectral_url: Handle of the observation or of a crop.
        aoi: [x0, y0, x1, y1] as fractions of the image, 0 to 1, y downwards; all when left out.
    """
    return _statistics("NDWI", context, multispectral_url, aoi)


@tool(suite="eo_gym")
def compute_ndbi_by_multispectral(
    context: Context, multispectral_url: str, aoi: AoiArgument | None = None
) -> Observation:
    """Compute NDBI statistics (built-up land) of a multispectral observation.

    Args:
        multispectral_url: Handle of the observation or of a crop.
        aoi: [x0, y0, x1, y1] as fractions of the image, 0 to 1, y downwards; all when left out.
    """
    return _statistics("NDBI", context, multispectral_url, aoi)


@tool(suite="eo_gym")
def compute_ndsi_by_multispectral(
    context: Context, multispectral_url: str, aoi: AoiArgument | None = None
) -> Observation:
    """Compute NDSI statistics (snow and ice) of a multispectral observation.

    Args:
        multispectral_url: Handle of the observation or of a crop.
        aoi: [x0, y0, x1, y1] as fractions of the image, 0 to 1, y downwards; all when left out.
    """
    return _statistics("NDSI", context, multispectral_url, aoi)


def _mask(
    kind: str, context: Context, url: str, aoi: list[float] | None, threshold: float | None
) -> Observation:
    rule = MASKS[kind]
    if threshold is not None and not -1.0 <= threshold <= 1.0:
        raise ToolError(f"threshold {threshold} is outside the index's range; give one in [-1, 1]")
    measured = measure_index(open_scene(context, url), rule.index_name, _aoi(aoi))
    if measured.data["level"] == "DN" and threshold is None:
        raise RadiometryError(
            f"the radiometric level of this product is unknown, so the {rule.index_name} threshold "
            f"{rule.threshold:g}, which holds for reflectance, would give a wrong area; pass a "
            "threshold chosen for these digital numbers"
        )
    limit = rule.threshold if threshold is None else threshold
    inside = measured.valid & (np.nan_to_num(measured.values, nan=-2.0) > limit)
    raster = np.where(measured.valid, inside, MASK_NODATA).astype(np.uint8)
    handle, path = context.workspace.output(
        f"mask_{kind}",
        ".tif",
        {"scene": measured.data["scene"], "from": url, "aoi": aoi, "threshold": limit},
    )
    grid = measured.stack.grid
    _write_mask(path, raster, grid, kind, rule.index_name, limit)
    pixels = int(inside.sum())
    data = measured.data | {
        "mask": handle,
        "kind": kind,
        "threshold": limit,
        "pixels": pixels,
        "share": pixels / measured.data["valid_pixels"],
        "area_m2": area_m2(inside, grid),
    }
    area = "area unknown" if data["area_m2"] is None else f"{data['area_m2'] / 1e6:.4f} km2"
    text = (
        f"{kind.capitalize()} where {rule.index_name} > {limit:g} ({_bands_text(data)}, "
        f"{data['level']}): {data['share']:.1%} of the valid pixels, {area}. "
        f"Mask: {handle}. {_evidence(data)}"
    )
    return Observation(text=text, data=data, images=[handle], files=[handle])


def _write_mask(
    path: Path, raster: NDArray[np.uint8], grid: Grid, kind: str, index: str, limit: float
) -> None:
    import rasterio
    from rasterio.transform import Affine

    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp.tif")
    with rasterio.open(
        temporary,
        "w",
        driver="GTiff",
        width=grid.width,
        height=grid.height,
        count=1,
        dtype="uint8",
        nodata=MASK_NODATA,
        crs=grid.crs or None,
        transform=Affine(grid.dx, 0, grid.x0, 0, grid.dy, grid.y0),
        compress="deflate",
    ) as target:
        target.write(raster, 1)
        target.update_tags(eolab_mask=kind, eolab_rule=f"{index} > {limit:g}")
    os.replace(temporary, path)


@tool(suite="eo_gym", effect="writes")
def compute_water_mask_by_multispectral(
    context: Context,
    multispectral_url: str,
    aoi: AoiArgument | None = None,
    threshold: float | None = None,
) -> Observation:
    """Make a mask of open water (NDWI above a threshold) and give its share and area.

    Args:
        multispectral_url: Handle of the observation or of a crop.
        aoi: [x0, y0, x1, y1] as fractions of the image, 0 to 1, y downwards; all when left out.
        threshold: NDWI above which a pixel is water; 0 when left out.
    """
    return _mask("water", context, multispectral_url, aoi, threshold)


@tool(suite="eo_gym", effect="writes")
def compute_vegetation_mask_by_multispectral(
    context: Context,
    multispectral_url: str,
    aoi: AoiArgument | None = None,
    threshold: float | None = None,
) -> Observation:
    """Make a mask of vegetation (NDVI above a threshold) and give its share and area.

    Args:
        multispectral_url: Handle of the observation or of a crop.
        aoi: [x0, y0, x1, y1] as fractions of the image, 0 to 1, y downwards; all when left out.
        threshold: NDVI above which a pixel is vegetation; 0.3 when left out.
    """
    return _mask("vegetation", context, multispectral_url, aoi, threshold)


@tool(suite="eo_gym", effect="writes")
def compute_urban_mask_by_multispectral(
    context: Context,
    multispectral_url: str,
    aoi: AoiArgument | None = None,
    threshold: float | None = None,
) -> Observation:
    """Make a mask of built-up land (NDBI above a threshold) and give its share and area.

    Args:
        multispectral_url: Handle of the observation or of a crop.
        aoi: [x0, y0, x1, y1] as fractions of the image, 0 to 1, y downwards; all when left out.
        threshold: NDBI above which a pixel is built-up; 0 when left out.
    """
    return _mask("urban", context, multispectral_url, aoi, threshold)
