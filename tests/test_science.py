"""Indices, geometry, arithmetic and uncertainty, against hand-worked and independent values."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from eo_agent_lab.lake.area import area_m2
from eo_agent_lab.lake.quality import bqa_layout, decode
from eo_agent_lab.lake.raster import Grid
from eo_agent_lab.science.expression import calculate
from eo_agent_lab.science.geometry import DIRECTIONS, box_relation, direction_between, mask_relation
from eo_agent_lab.science.indices import INDICES, normalized_difference
from eo_agent_lab.science.uncertainty import block_standard_error

reflectance = st.floats(0.0, 1.5, allow_nan=False)
coordinate = st.floats(-500.0, 500.0, allow_nan=False, width=32)


@given(reflectance, reflectance)
def test_a_normalised_difference_lies_between_minus_one_and_one(a: float, b: float) -> None:
    value = float(normalized_difference(np.array([a]), np.array([b]))[0])
    if a + b > 0:
        assert -1.0 <= value <= 1.0
        assert value == pytest.approx(
            -float(normalized_difference(np.array([b]), np.array([a]))[0])
        )
    else:
        assert math.isnan(value)


def test_the_four_indices_equal_spyndex() -> None:
    import spyndex

    bands = {"N": 0.42, "R": 0.07, "G": 0.11, "S1": 0.23}
    named = {"nir": "N", "red": "R", "green": "G", "swir1": "S1"}
    for name, ours in INDICES.items():
        first, second = np.array([bands[named[ours.first]]]), np.array([bands[named[ours.second]]])
        theirs = spyndex.computeIndex([name], params={k: np.array([v]) for k, v in bands.items()})
        assert normalized_difference(first, second) == pytest.approx(np.asarray(theirs).ravel())


def test_nan_and_non_positive_sums_give_nan() -> None:
    first = np.array([np.nan, -0.2, 0.0, 0.3])
    second = np.array([0.1, 0.1, 0.0, 0.1])
    result = normalized_difference(first, second)
    assert np.isnan(result[:3]).all()
    assert result[3] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (10, 0, "right"),
        (10, 10, "below right"),
        (0, 10, "below"),
        (-10, 0, "left"),
        (0, -10, "above"),
        (10, -10, "above right"),
        (10, 4.1, "right"),
        (10, 4.2, "below right"),
        (0, 0, "same place"),
    ],
)
def test_directions_have_sectors_of_45_degrees_and_y_grows_downwards(
    x: float, y: float, expected: str
) -> None:
    assert direction_between(x, y, 0, 0) == expected


@given(st.tuples(coordinate, coordinate, coordinate, coordinate), st.tuples(*[coordinate] * 4))
def test_box_overlap_equals_shapely(a: tuple[float, ...], b: tuple[float, ...]) -> None:
    first = (min(a[0], a[2]), min(a[1], a[3]), max(a[0], a[2]) + 1, max(a[1], a[3]) + 1)
    second = (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]) + 1, max(b[1], b[3]) + 1)
    relation = box_relation(first, second)
    one, two = shapely.box(*first), shapely.box(*second)
    assert relation.iou == pytest.approx(one.intersection(two).area / one.union(two).area, abs=1e-6)
    assert relation.gap == pytest.approx(one.distance(two), abs=1e-6)
    assert relation.distance == pytest.approx(one.centroid.distance(two.centroid), abs=1e-4)


@given(coordinate, coordinate)
def test_looking_back_gives_the_opposite_direction(x: float, y: float) -> None:
    there, back = direction_between(x, y, 0, 0), direction_between(0, 0, x, y)
    angle = math.degrees(math.atan2(y, x)) % 45
    if there != "same place" and abs(angle - 22.5) > 1e-6:
        assert (DIRECTIONS.index(there) + 4) % 8 == DIRECTIONS.index(back)


def test_mask_relation_by_hand() -> None:
    a = np.zeros((4, 6), bool)
    b = np.zeros((4, 6), bool)
    a[:, :3] = True
    b[:2, 2:] = True
    relation = mask_relation(a, b)
    assert (relation.pixels_a, relation.pixels_b, relation.pixels_both) == (12, 8, 2)
    assert relation.iou == pytest.approx(2 / 18)
    assert relation.direction == "left"
    with pytest.raises(ValueError, match="mask b is empty"):
        mask_relation(a, np.zeros_like(a))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-2 ** 2", -4),
        ("2 ** 3 ** 2", 512),
        ("2^-1", 0.5),
        ("7 // 2 + 7 % 4", 6),
        ("1e3 / .5", 2000),
        ("round(2 / 3, 2)", 0.67),
        ("mean(1, 2, 6)", 3),
        ("max(1, sqrt(16)) - min(4, 5)", 0),
        ("2 * pi", 2 * math.pi),
    ],
)
def test_arithmetic(text: str, value: float) -> None:
    assert calculate(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "1 +",
        "(1",
        "1)",
        "2 2",
        "1 / 0",
        "0 ** -1",
        "sqrt(-1)",
        "(-8) ** 0.5",
        "9 ** 9 ** 9 ** 9",
        "x + 1",
        "__import__('os')",
        "().__class__",
        "open(1)",
        "[1]",
        "1 if 2 else 3",
        "lambda: 1",
        "1;2",
        "a.b",
        "1e999",
        "round(1, 2, 3)",
        "(" * 60 + "1" + ")" * 60,
        "-" * 600 + "1",
        "1+" * 600 + "1",
    ],
)
def test_what_is_no_arithmetic_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        calculate(text)


@given(st.text(max_size=60))
def test_any_text_gives_a_finite_number_or_a_value_error(text: str) -> None:
    try:
        value = calculate(text)
    except ValueError:
        return
    assert math.isfinite(value)


def test_quality_bits_by_hand() -> None:
    pixel = decode("QA_PIXEL", np.array([1, 2, 4, 8, 16, 64, 21824, 22280, 23888, 54596]))
    assert pixel.nodata.tolist() == [True] + [False] * 9
    assert pixel.cloud.tolist() == [False, True, False, True] + [False] * 3 + [True, False, False]
    assert pixel.shadow.tolist() == [False] * 4 + [True] + [False] * 3 + [True, False]
    assert pixel.cirrus.tolist() == [False, False, True] + [False] * 6 + [True]
    # USGS LSDS-1656: 2720 clear, 2800 cloud high, 2976 shadow high, 6896 cloud and cirrus high
    first = decode("BQA", np.array([1, 2720, 2800, 2976, 6896]))
    assert first.nodata.tolist() == [True, False, False, False, False]
    assert first.cloud.tolist() == [False, False, True, False, True]
    assert first.shadow.tolist() == [False, False, False, True, False]
    assert first.cirrus.tolist() == [False, False, False, False, True]
    # Landsat 8 handbook: 20480 clear, 53248 cloud, 28672 cirrus, 61440 both
    old = decode("BQA_PRE", np.array([1, 20480, 53248, 28672, 61440]))
    assert old.cloud.tolist() == [False, False, True, False, True]
    assert old.cirrus.tolist() == [False, False, False, True, True]
    scl = decode("SCL", np.arange(12))
    assert np.flatnonzero(scl.excluded).tolist() == [0, 1, 3, 8, 9, 10]
    assert bqa_layout(np.array([1, 8191])) == "BQA"
    assert bqa_layout(np.array([1, 20480])) == "BQA_PRE"


def test_areas_are_true_on_the_ground_whatever_the_coordinate_system() -> None:
    from pyproj import CRS

    mask = np.ones((10, 10), bool)
    utm = Grid(CRS(32633).to_wkt(), 500_000, 5_300_000, 10, -10, 10, 10)
    assert area_m2(mask, utm) == pytest.approx(10_000)
    degrees = Grid(CRS(4326).to_wkt(), 15.0, 60.0, 0.001, -0.001, 10, 10)
    # 0.01 by 0.01 degrees at 60 N: 557.8 m by 1114.1 m (WGS84)
    assert area_m2(mask, degrees) == pytest.approx(557.8 * 1114.1, rel=2e-3)
    web = Grid(CRS(3857).to_wkt(), 1_669_792, 8_399_738, 10, -10, 10, 10)
    # Web Mercator stretches lengths by 1 / cos(60 degrees) = 2, so areas by about 4
    assert area_m2(mask, web) == pytest.approx(2500, rel=0.01)
    assert area_m2(mask, utm._replace(crs="")) is None


def test_block_error_grows_with_correlation_and_matches_white_noise() -> None:
    rng = np.random.default_rng(0)
    valid = np.ones((64, 64), bool)
    white = [block_standard_error(rng.normal(size=(64, 64)), valid) for _ in range(60)]
    assert np.mean(white) == pytest.approx(1 / 64, rel=0.1)
    smooth = np.repeat(np.repeat(rng.normal(size=(8, 8)), 8, 0), 8, 1)
    error = block_standard_error(smooth, valid)
    assert error == pytest.approx(smooth[::8, ::8].std(ddof=1) / 8, rel=1e-6)
    assert block_standard_error(smooth, np.zeros((64, 64), bool) | (smooth > 9)) is None
