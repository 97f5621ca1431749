"""Questions on multispectral observations: trends between two dates, and the dominant cover."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from eo_agent_lab.errors import TaskError
from eo_agent_lab.lake.scene import Scene
from eo_agent_lab.tasks import independent, wording
from eo_agent_lab.tasks.candidates import MIN_VALID_SHARE, Candidate, Drawn, Dropped, Place
from eo_agent_lab.tasks.question_types import COVERS, TREND_THRESHOLD, TRENDS, trend_of
from eo_agent_lab.tasks.task import ReferenceCall
from eo_agent_lab.tasks.wording import FAMILIES, Split

UNCHANGED_BELOW = 0.03
CHANGED_ABOVE = 0.06
MIN_LEAD = 0.1
MIN_PIXELS = 50
TEMPORAL_VARIANTS = ("previous", "next", "named")
DOMINANCE_VARIANTS = ("whole",)

_INDICES = ("NDVI", "NDWI", "NDBI")
_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
_SUBAREA_ODDS = {"trend": 0.4, "cover": 0.7}


class _Pair(NamedTuple):
    """Two captures to compare: the one the question shows, and the one to be found."""

    shown: Scene
    other: Scene
    variant: str
    date: str


def draw_temporal(rng: np.random.Generator, places: list[Place]) -> Drawn:
    """Draw questions on a trend, without end."""
    while places:
        place = places[int(rng.integers(len(places)))]
        family = _family_of(rng, place)
        pair = (
            _draw_pair(rng, place, family)
            if family
            else Dropped("no dated scene of a known family")
        )
        index = _INDICES[int(rng.integers(len(_INDICES)))]
        aoi = _draw_aoi(rng, _SUBAREA_ODDS["trend"])
        if isinstance(pair, Dropped):
            yield pair
            continue
        try:
            yield _trend_candidate(place, str(family), pair, index, aoi)
        except TaskError as error:
            yield Dropped(f"not measurable: {error}")


def draw_dominance(rng: np.random.Generator, places: list[Place]) -> Drawn:
    """Draw questions on the cover with the largest share, without end."""
    while places:
        place = places[int(rng.integers(len(places)))]
        scene = place.scenes[int(rng.integers(len(place.scenes)))]
        aoi = _draw_aoi(rng, _SUBAREA_ODDS["cover"])
        try:
            yield _cover_candidate(place, scene, aoi)
        except TaskError as error:
            yield Dropped(f"not measurable: {error}")


def _family(scene: Scene) -> str | None:
    return next((family for family in FAMILIES if scene.sensor.startswith(family)), None)


def _family_of(rng: np.random.Generator, place: Place) -> str | None:
    present = sorted({family for s in place.scenes if s.acquired and (family := _family(s))})
    return present[int(rng.integers(len(present)))] if present else None


def _day(scene: Scene) -> str:
    if scene.acquired is None:
        raise TaskError("the scene has no date; ask about dated scenes")
    return scene.acquired.date().isoformat()


def _draw_pair(rng: np.random.Generator, place: Place, family: str) -> _Pair | Dropped:
    series = [s for s in place.scenes if s.acquired and s.sensor.startswith(family)]
    if len(series) < 2:
        return Dropped("fewer than two captures of one sensor family")
    variant = TEMPORAL_VARIANTS[int(rng.integers(len(TEMPORAL_VARIANTS)))]
    first, second = sorted(int(i) for i in rng.choice(len(series), 2, replace=False))
    days = [_day(scene) for scene in series]
    if days[first] == days[second]:
        return Dropped("both captures on one date")
    # Half of the look-ups start at the capture's own date, half at a date further away.
    near = bool(rng.integers(2))
    if variant == "named":
        shown, other = (first, second) if rng.integers(2) else (second, first)
        if days.count(days[other]) > 1:
            return Dropped("two captures on the date that is named")
        return _Pair(series[shown], series[other], variant, days[other])
    if variant == "previous":
        date = days[second] if near else days[first + 1]
        earlier = [s for s in series if _day(s) < date]
        if not earlier:
            return Dropped("no earlier capture")
        return _Pair(series[second], earlier[-1], variant, date)
    date = days[first] if near else days[second - 1]
    later = [s for s in series if _day(s) > date]
    return _Pair(series[first], later[0], variant, date) if later else Dropped("no later capture")


def _draw_aoi(rng: np.random.Generator, odds: float) -> independent.Aoi | None:
    starts = rng.integers(0, 3, size=2)
    sizes = rng.integers(1, 3, size=2)
    if rng.random() >= odds:
        return None
    x0, y0 = (_STEPS[int(i)] for i in starts)
    x1, y1 = (_STEPS[int(i)] for i in starts + sizes)
    return (x0, y0, x1, y1)


def _with_aoi(arguments: dict[str, Any], aoi: independent.Aoi | None) -> dict[str, Any]:
    return arguments if aoi is None else {**arguments, "aoi": list(aoi)}


def _trend_candidate(
    place: Place, family: str, pair: _Pair, index: str, aoi: independent.Aoi | None
) -> Candidate | Dropped:
    shown, other = (
        independent.measure(scene, place.roots[scene.scene_id], index, aoi)
        for scene in (pair.shown, pair.other)
    )
    if min(shown.valid_share, other.valid_share) < MIN_VALID_SHARE:
        return Dropped(f"valid share below {MIN_VALID_SHARE:g} at one of the dates")
    if min(shown.pixels, other.pixels) < MIN_PIXELS:
        return Dropped(f"fewer than {MIN_PIXELS} valid pixels")
    sign = 1.0 if _day(pair.shown) > _day(pair.other) else -1.0
    delta = sign * (shown.mean - other.mean)
    if UNCHANGED_BELOW <= abs(delta) <= CHANGED_ABOVE:
        return Dropped(f"|difference of {index}| between {UNCHANGED_BELOW:g} and {CHANGED_ABOVE:g}")
    handle = pair.shown.scene_id
    where = {"multispectral_url": handle, "sensor": family}
    compute = f"compute_{index.lower()}_by_multispectral"
    if pair.variant == "named":
        search = ReferenceCall(
            name="get_multispectral_list",
            arguments={**where, "start_date": pair.date, "end_date": pair.date},
        )
        found = "$1.0.handle"
    else:
        search = ReferenceCall(
            name=f"get_{pair.variant}_multispectral", arguments={**where, "date": pair.date}
        )
        found = "$1.handle"
    reference = [search] + [
        ReferenceCall(name=compute, arguments=_with_aoi({"multispectral_url": url}, aoi))
        for url in (found, handle)
    ]
    evidence = {
        "index": index,
        "aoi": list(aoi) if aoi else None,
        "delta": delta,
        "rule": f"unchanged when |delta| <= {TREND_THRESHOLD:g}",
        "captures": [
            {"handle": s.scene_id, "date": _day(s), "sensor": s.sensor, **m._asdict()}
            for s, m in ((pair.other, other), (pair.shown, shown))
        ],
        "method": "eo_agent_lab.tasks.independent",
    }
    label = trend_of(delta)
    ask = functools.partial(_ask_trend, pair, family, index, aoi)
    return Candidate(label, pair.variant, [handle], reference, evidence, ask)


def _ask_trend(
    pair: _Pair,
    family: str,
    index: str,
    aoi: independent.Aoi | None,
    rng: np.random.Generator,
    split: Split,
) -> str:
    first, second = sorted((_day(pair.shown), pair.date))
    return wording.fill(
        wording.pick(rng, split, "multispectral_temporal", pair.variant),
        header=_header(pair.shown),
        family=FAMILIES[family],
        date=pair.date,
        own_date=_day(pair.shown),
        first=first,
        second=second,
        subject=wording.pick(rng, split, "subjects", index),
        where=_where(rng, split, aoi),
        rule=wording.fill(wording.pick(rng, split, "trend_rule"), threshold=f"{TREND_THRESHOLD:g}"),
        form=wording.choice_form(rng, split, TRENDS),
    )


def _header(scene: Scene) -> str:
    return wording.header("multispectral", scene.scene_id, scene.gsd_m, _day(scene))


def _where(rng: np.random.Generator, split: Split, aoi: independent.Aoi | None) -> str:
    if aoi is None:
        return wording.pick(rng, split, "whole")
    text = f"{list(aoi)} (x0, y0, x1, y1 as fractions of the image, y downwards)"
    return wording.fill(wording.pick(rng, split, "areas"), aoi=text)


def _cover_candidate(
    place: Place, scene: Scene, aoi: independent.Aoi | None
) -> Candidate | Dropped:
    if scene.acquired is None:
        return Dropped("the capture has no date")
    shares, valid_share = independent.cover_shares(scene, place.roots[scene.scene_id], aoi)
    if valid_share < MIN_VALID_SHARE:
        return Dropped(f"valid share below {MIN_VALID_SHARE:g}")
    ranked = sorted(shares, key=lambda cover: -shares[cover])
    if shares[ranked[0]] - shares[ranked[1]] < MIN_LEAD:
        return Dropped(f"the largest share leads by less than {MIN_LEAD:g}")
    reference = [
        ReferenceCall(
            name=f"compute_{kind}_mask_by_multispectral",
            arguments=_with_aoi({"multispectral_url": scene.scene_id}, aoi),
        )
        for kind in ("water", "vegetation", "urban")
    ]
    evidence = {
        "shares": shares,
        "valid_share": valid_share,
        "date": _day(scene),
        "aoi": list(aoi) if aoi else None,
        "method": "eo_agent_lab.tasks.independent",
    }
    ask = functools.partial(_ask_cover, scene, aoi)
    return Candidate(ranked[0], "whole", [scene.scene_id], reference, evidence, ask)


def _ask_cover(
    scene: Scene, aoi: independent.Aoi | None, rng: np.random.Generator, split: Split
) -> str:
    return wording.fill(
        wording.pick(rng, split, "area_dominance", "whole"),
        header=_header(scene),
        where=_where(rng, split, aoi),
        form=wording.choice_form(rng, split, COVERS),
    )
