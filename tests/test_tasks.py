"""Tasks: balanced, split by place and by wording, answered twice, and judged by rule."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rasters import write_raster

from eo_agent_lab.errors import TaskError
from eo_agent_lab.lake import Lake
from eo_agent_lab.lake.build import add_scenes
from eo_agent_lab.lake.scene import Band, Scene, make_location_id, make_scene_id
from eo_agent_lab.tasks import independent, wording
from eo_agent_lab.tasks.candidates import even_parts, places
from eo_agent_lab.tasks.generate import FAMILIES, Generated, generate, generate_with_counts
from eo_agent_lab.tasks.judging import is_correct, read_answer
from eo_agent_lab.tasks.question_types import QUESTION_TYPES, conclude
from eo_agent_lab.tasks.references import references_in, resolve
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tasks.trajectory import CallRecord
from eo_agent_lab.tools import Workspace, call_tool, list_tools

S2_ROLES = {"B3": "green", "B4": "red", "B8": "nir", "B11": "swir1"}
L8_ROLES = {"B3": "green", "B4": "red", "B5": "nir", "B6": "swir1"}
CATEGORIES = ("plane", "ship", "storage-tank", "small-vehicle", "harbor", "bridge")
PER_TYPE: dict[wording.Split, int] = {"train": 24, "test": 16}


def reflectances(rng: np.random.Generator, place: int, day: int) -> dict[str, Any]:
    """One place's land on one day, 48 x 48: water, vegetation with a season, built-up land."""
    shape = (48, 48)
    cover = np.full(shape, place % 3)
    cover[:24, :20], cover[30:, 8:] = (place + 1) % 3, (place + 2) % 3
    green = 0.5 + 0.5 * np.cos(2 * np.pi * (day / 365 + 0.1 * place))
    spectra = {
        "green": (0.09, 0.07, 0.16),
        "red": (0.05, 0.05, 0.20),
        "nir": (0.03, 0.14 + 0.30 * green, 0.22),
        "swir1": (0.02, 0.12, 0.30),
    }
    noise = rng.normal(0, 0.004, shape)
    return {role: np.clip(np.take(row, cover) + noise, 0.01, 1) for role, row in spectra.items()}


def spectral_scene(root: Path, place: int, day: int, family: str, test: bool) -> Scene:
    rng = np.random.default_rng([place, day])
    msi = family == "sentinel-2a"
    when = datetime(2021, 1, 3, 10, tzinfo=UTC) + timedelta(days=day)
    name = f"{family}-{place}-{day}"
    scale, offset = (1e-4, -0.1) if msi else (2.75e-5, -0.2)
    cloud = np.zeros((48, 48), bool)
    if day % 60 == 40 or day in (38, 137):
        cloud[:, : 8 * (1 + place % 6)] = True
    bands = {}
    land = reflectances(rng, place, day)
    for band, role in (S2_ROLES if msi else L8_ROLES).items():
        values = np.where(cloud, 0.7, land[role])
        numbers = np.round((values - offset) / scale).astype(np.uint16)
        # One band alone is empty in each corner, so that the other still gives a positive sum.
        corner = slice(-3, None) if role == "nir" else slice(None, 3)
        numbers[corner, corner] = 0
        gsd = 10.0 if msi else 30.0
        if band == "B11":
            numbers, gsd = numbers[::2, ::2], 20.0
        write_raster(root / name / f"{band}.tif", numbers, gsd=gsd, nodata=0)
        bands[band] = Band(
            path=f"{name}/{band}.tif", gsd_m=gsd, scale=scale, offset=offset, nodata=0
        )
    kind = "SCL" if msi else "QA_PIXEL"
    flags = np.resize(np.repeat((9, 8, 3, 10, 1) if msi else (8, 2, 4, 16, 1), 4), 48)
    quality = np.where(cloud, flags[:, None], 4 if msi else 1 << 6)
    layer = quality[::2, ::2] if msi else quality
    write_raster(root / name / "q.tif", layer.astype(np.uint16), gsd=20.0 if msi else 30.0)
    return Scene(
        scene_id=make_scene_id("tiny", name),
        source="tiny",
        product_id=name,
        sensor=family,
        modality="multispectral",
        level="SR",
        acquired=when,
        epsg=32618,
        gsd_m=10.0 if msi else 30.0,
        shape=(48, 48),
        root=str(root),
        bands=bands,
        quality={kind: Band(path=f"{name}/q.tif", gsd_m=20.0 if msi else 30.0)},
        location_id=make_location_id(f"tiny{place}"),
        split="test" if test else "train",
    )


def object_scene(root: Path, place: int, image: int, test: bool) -> Scene:
    rng = np.random.default_rng([7, place, image])
    name = f"vhr-{place}-{image}"
    lines = ["imagesource:simulated", "gsd:0.3"]
    for category in CATEGORIES:
        for _ in range(int(rng.choice([0, 1, 1, 2, 4, 9]))):
            x, y = rng.uniform(10, 180, 2)
            corners = [x, y, x + 8, y, x + 8, y + 5, x, y + 5]
            lines.append(" ".join(f"{value:.1f}" for value in corners) + f" {category} 0")
    write_raster(root / f"{name}.tif", np.zeros((200, 200), np.uint8), gsd=0.3)
    (root / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return Scene(
        scene_id=make_scene_id("tiny", name),
        source="tiny",
        product_id=name,
        sensor="unknown",
        modality="rgb",
        level="DN",
        gsd_m=0.3,
        shape=(200, 200),
        root=str(root),
        bands={"R": Band(path=f"{name}.tif", gsd_m=0.3)},
        annotations=f"{name}.txt",
        location_id=make_location_id(f"tiny{place}"),
        split="test" if test else "train",
    )


def build_tiny_lake(folder: Path) -> Lake:
    """Nine places, three of them for test, each with multispectral and sub-metre scenes."""
    scenes = []
    for place in range(9):
        test = place >= 6
        root = folder / "raw"
        for day in range(0, 240, 20):
            scenes.append(spectral_scene(root, place, day, "sentinel-2a", test))
        for day in range(5, 230, 33):
            scenes.append(spectral_scene(root, place, day, "landsat-8", test))
        scenes += [object_scene(root, place, image, test) for image in range(4)]
    add_scenes(folder / "lake", scenes)
    return Lake(folder / "lake")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return build_tiny_lake(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def generated(lake: Lake) -> Generated:
    return generate_with_counts(lake, per_type=PER_TYPE, seed=3)


@pytest.fixture(scope="module")
def tasks(generated: Generated) -> list[Task]:
    return generated.tasks


def solve(task: Task, lake: Lake, root: Path) -> list[CallRecord]:
    """Carry out the reference calls with the real tools."""
    place = Workspace(root, lake)
    calls: list[CallRecord] = []
    for call in task.reference:
        arguments = resolve(call.arguments, [done.data for done in calls])
        seen = call_tool(call.name, arguments, place)
        calls.append(
            CallRecord(
                name=call.name,
                arguments=arguments,
                observation=seen.text,
                data=seen.data,
                is_error=seen.is_error,
            )
        )
    return calls


def test_every_type_is_asked_as_often_as_wanted(generated: Generated) -> None:
    have = Counter((task.question_type, task.split) for task in generated.tasks)
    for name in QUESTION_TYPES:
        for split, wanted in PER_TYPE.items():
            assert have[name, split] == wanted or generated.short(PER_TYPE)[name, split] > 0
    assert set(FAMILIES) == set(QUESTION_TYPES)
    assert have["multispectral_temporal", "train"] == PER_TYPE["train"]


def test_the_first_tasks_of_a_split_show_every_type(tasks: list[Task]) -> None:
    for split in PER_TYPE:
        first = [task.question_type for task in tasks if task.split == split][:8]
        assert Counter(first) == dict.fromkeys(QUESTION_TYPES, 2)


def test_the_tools_and_the_independent_path_give_the_same_answer(
    tasks: list[Task], lake: Lake, tmp_path: Path
) -> None:
    for task in tasks:
        calls = solve(task, lake, tmp_path)
        blank = task.model_copy(update={"gold_answer": None, "evidence": {}})
        assert is_correct(task, conclude(blank, calls)), task.question


def test_means_of_both_paths_agree_to_a_millionth(
    tasks: list[Task], lake: Lake, tmp_path: Path
) -> None:
    temporal = [task for task in tasks if task.question_type == "multispectral_temporal"]
    for task in temporal:
        seen = solve(task, lake, tmp_path)[1:]
        captures = task.evidence["captures"]
        for call, capture in zip(seen, captures, strict=True):
            assert call.data["mean"] == pytest.approx(capture["mean"], abs=1e-6)
            assert call.data["valid_share"] == pytest.approx(capture["valid_share"], abs=1e-9)
    assert len({task.evidence["index"] for task in temporal}) == 3
    assert {task.evidence["aoi"] is None for task in temporal} == {True, False}


def test_no_place_and_no_question_is_in_both_splits(tasks: list[Task], lake: Lake) -> None:
    by_split: dict[str, set[str]] = {"train": set(), "test": set()}
    for task in tasks:
        for handle in task.images:
            by_split[task.split].add(str(lake.get(handle).location_id))
    assert by_split["train"]
    assert by_split["test"]
    assert not by_split["train"] & by_split["test"]
    assert len({task.task_id for task in tasks}) == len(tasks)
    assert len({task.question for task in tasks}) == len(tasks)


def test_answers_are_balanced_over_the_labels(tasks: list[Task]) -> None:
    for name in ("multispectral_temporal", "area_dominance"):
        for split in PER_TYPE:
            labels = Counter(
                t.gold_answer for t in tasks if (t.question_type, t.split) == (name, split)
            )
            assert max(labels.values()) - min(labels.values()) <= 1
            assert len(labels) == 3
    for task in tasks:
        assert task.gold_answer in task.choices


def test_test_questions_use_wordings_that_training_never_shows(tasks: list[Task]) -> None:
    def frames(split: wording.Split, kind: str) -> list[str]:
        variants = FAMILIES[kind].variants
        return [w for v in variants for w in wording.wordings(split, kind, v)]

    for task in tasks:
        for split in ("train", "test"):
            fits = [
                frame
                for frame in frames(split, task.question_type)
                if all(part in task.question for part in fixed_parts(frame))
            ]
            assert bool(fits) == (split == task.split), task.question


def fixed_parts(frame: str) -> list[str]:
    import re

    return [part for part in re.split(r"\{\w+\}", frame) if part.strip()]


def test_a_question_states_its_choices_and_its_scene(tasks: list[Task]) -> None:
    for task in tasks:
        assert task.images[0] in task.question
        assert task.question.startswith("[")
        if task.question_type == "counting":
            assert "whole number from 0 to 20" in task.question
        else:
            assert all(choice in task.question for choice in task.choices)


def test_tools_offered_exist_and_contain_the_reference(tasks: list[Task]) -> None:
    names = {item.name for item in list_tools("eo_gym")}
    for task in tasks:
        assert set(task.tools) <= names
        assert {call.name for call in task.reference} <= set(task.tools)


def test_the_same_seed_gives_the_same_tasks_and_another_seed_others(lake: Lake) -> None:
    few: dict[wording.Split, int] = {"train": 6}
    first, again = generate(lake, per_type=few, seed=5), generate(lake, per_type=few, seed=5)
    assert first == again
    assert first != generate(lake, per_type=few, seed=6)


def test_what_is_ambiguous_is_dropped_with_its_reason_counted(generated: Generated) -> None:
    reasons = sum(generated.dropped.values(), Counter())
    for part in ("valid share below", "leads by less", "8 degrees", "several objects", "outnumber"):
        assert any(part in reason for reason in reasons), part
    for task in generated.tasks:
        evidence = task.evidence
        if task.question_type == "multispectral_temporal":
            assert not 0.03 <= abs(evidence["delta"]) <= 0.06
            assert min(c["valid_share"] for c in evidence["captures"]) >= 0.7
        if task.question_type == "spatial_relation":
            assert evidence["north_up"] is True
            assert evidence["degrees_to_border"] >= 8


def test_a_location_in_both_splits_is_refused(tmp_path: Path) -> None:
    scenes = [spectral_scene(tmp_path / "raw", 1, day, "landsat-8", day > 0) for day in (0, 20)]
    add_scenes(tmp_path / "lake", scenes)
    with pytest.raises(TaskError, match="in both splits"):
        generate(Lake(tmp_path / "lake"), per_type={"test": 3}, seed=0)


def test_a_scene_without_split_goes_by_its_location(tmp_path: Path) -> None:
    found = []
    for place in range(12):
        for day in (0, 20):
            scene = spectral_scene(tmp_path / "raw", place, day, "landsat-8", False)
            found.append(scene.model_copy(update={"split": None}))
    add_scenes(tmp_path / "lake", found)
    groups = places(Lake(tmp_path / "lake"))
    located = {split: {p.location_id for p in group} for (_, split), group in groups.items()}
    assert set(located) == {"train", "test"}
    assert not located["train"] & located["test"]


def test_a_lake_with_nothing_to_ask_says_so(tmp_path: Path) -> None:
    add_scenes(tmp_path / "lake", [spectral_scene(tmp_path / "raw", 1, 0, "landsat-8", False)])
    with pytest.raises(TaskError, match="no question can be asked"):
        generate(Lake(tmp_path / "lake"), per_type={"test": 3}, seed=0)
    with pytest.raises(TaskError, match="no split"):
        generate(Lake(tmp_path / "lake"), per_type={"dev": 3}, seed=0)  # type: ignore[dict-item]


def test_conclude_refuses_failed_or_missing_calls(tasks: list[Task]) -> None:
    task = tasks[0]
    failed = CallRecord(name="x", observation="Error: all cloud", is_error=True)
    with pytest.raises(TaskError, match="all cloud"):
        conclude(task, [failed])
    with pytest.raises(TaskError, match="every reference call"):
        conclude(task, [])
    with pytest.raises(TaskError, match="no question type"):
        conclude(task.model_copy(update={"question_type": "free"}), [])


def test_references_keep_types_and_refuse_what_is_not_there() -> None:
    data: list[Any] = [[{"handle": "a"}, {"handle": "b"}], {"count": 3, "boxes": [[1, 2, 3, 4]]}]
    assert resolve({"u": "$1.-1.handle", "b": "$2.boxes.0"}, data) == {"u": "b", "b": [1, 2, 3, 4]}
    assert resolve({"expression": "{$2.count} - 1"}, data) == {"expression": "3 - 1"}
    assert references_in({"e": "{$1.count} + {$12.count}", "u": ["$3.x"]}) == {1, 3, 12}
    assert resolve({"a": {"b": ["$2.count", 5, None]}}, data) == {"a": {"b": [3, 5, None]}}
    for bad in ("$3.x", "$1.7.handle", "$2.nothing", "$0"):
        with pytest.raises(TaskError):
            resolve({"x": bad}, data)
    with pytest.raises(TaskError, match="only numbers and text"):
        resolve({"x": "{$2.boxes} + 1"}, data)


def test_a_wording_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(TaskError, match="not known"):
        wording.fill("How many {things}?", a="planes")
    with pytest.raises(TaskError, match="nothing under"):
        wording.wordings("test", "counting", "product")


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.integers(0, 30), max_size=6),
    st.integers(0, 60),
)
def test_even_parts_use_what_there_is_as_evenly_as_can_be(
    available: dict[str, int], wanted: int
) -> None:
    parts = even_parts(available, wanted)
    assert sum(parts.values()) == min(wanted, sum(available.values()))
    limit = max(parts.values(), default=0)
    for key, part in parts.items():
        assert part <= available[key]
        assert part >= min(available[key], limit - 1)


@given(st.floats(-180, 180), st.floats(20, 90))
def test_independent_directions_follow_their_sector(degrees: float, radius: float) -> None:
    a, b = (
        independent.Labelled(name, x, y, x, y)
        for name, x, y in (
            ("a", radius * np.cos(np.radians(degrees)), -radius * np.sin(np.radians(degrees))),
            ("b", 0.0, 0.0),
        )
    )
    name, margin = independent.direction(a, b)
    assert 0 <= margin <= 22.5
    vertical = "above" if degrees > 0 else "below"
    assert ("above" in name or "below" in name) == (22.5 < abs(degrees) < 157.5) or margin < 1e-6
    if abs(degrees) > 22.5 and abs(degrees) < 157.5 and margin > 1e-6:
        assert vertical in name


def a_task(kind: str, gold: str | None, **changes: Any) -> Task:
    record = QUESTION_TYPES[kind]
    fields: dict[str, Any] = {
        "task_id": "t",
        "question": "How many planes and ships are there in this image?",
        "images": [],
        "data_source": record.data_source,
        "question_type": kind,
        "eo_task": record.eo_task,
        "choices": list(record.choices),
        "gold_answer": gold,
        "reference": [],
        "tools": [],
        "split": "test",
    }
    return Task(**fields | changes)


TREND: list[tuple[str, Any, bool]] = [
    ("increased", "increased", True),
    ("increased", "Increased.", True),
    ("increased", "  INCREASE ", True),
    ("increased", "It rose.", True),
    ("increased", "The mean NDVI grew from 0.31 to 0.52.", True),
    ("increased", "No, it increased.", True),
    ("increased", "It might fall. Final answer: increased", True),
    ("increased", '{"answer": "increased"}', True),
    ("increased", ["increased"], True),
    ("increased", "did not increase", False),
    ("increased", "It didn't increase", False),
    ("increased", "increased or decreased", False),
    ("increased", "increased/decreased", False),
    ("increased", "It increased, it did not decrease", False),
    ("increased", "maybe increased", False),
    ("increased", "I cannot tell", False),
    ("increased", "changed", False),
    ("increased", "", False),
    ("increased", None, False),
    ("increased", True, False),
    ("increased", 3, False),
    ("increased", ["increased", "decreased"], False),
    ("increased", "The answer is not increased", False),
    ("decreased", "It decreased by more than 0.05", True),
    ("unchanged", "The difference is less than 0.05: unchanged", True),
    ("decreased", "fell", True),
    ("decreased", "NDVI is lower now", True),
    ("decreased", "declined", True),
    ("decreased", "There was no decrease", False),
    ("unchanged", "unchanged", True),
    ("unchanged", "stayed about the same", True),
    ("unchanged", "no change", True),
    ("unchanged", "No significant change", True),
    ("unchanged", "It did not change", True),
    ("unchanged", "more or less the same", True),
    ("unchanged", "neither increased nor decreased", True),
    ("unchanged", "changed", False),
    ("unchanged", "did not stay the same", False),
]
COVER: list[tuple[str, Any, bool]] = [
    ("water", "Water", True),
    ("water", "open water", True),
    ("water", "not water", False),
    ("water", "water and vegetation", False),
    ("vegetation", "Mostly vegetated land", True),
    ("vegetation", "vegetation or water", False),
    ("built-up", "built-up", True),
    ("built-up", "Built up land", True),
    ("built-up", "builtup", True),
    ("built-up", "urban", True),
    ("built-up", "the urban area (61 %)", True),
    ("built-up", "either urban or water", False),
]
COUNT: list[tuple[str, Any, bool]] = [
    ("3", "3", True),
    ("3", 3, True),
    ("3", 3.0, True),
    ("3", [3], True),
    ("3", "3.0", True),
    ("3", "three", True),
    ("3", "3 planes", True),
    ("3", "There are three planes.", True),
    ("3", "2 + 1 = 3", True),
    ("3", "On 2021-05-04 there were 3 planes", True),
    ("3", "Two planes and one ship. Answer: 3", True),
    ("3", "3 planes around the terminal", True),
    ("3", "around three", False),
    ("3", "4", False),
    ("3", 3.5, False),
    ("3", "-3", False),
    ("3", "13", False),
    ("3", "3 or 4", False),
    ("3", "3-4", False),
    ("3", "2 planes and 3 ships", False),
    ("3", "about 3", False),
    ("3", "~3", False),
    ("3", "at least 3", False),
    ("3", "more than 3", False),
    ("3", "3+", False),
    ("3", "not 3", False),
    ("3", "3 km", False),
    ("3", "3%", False),
    ("3", "3 m²", False),
    ("3", "3 pixels", False),
    ("3", float("nan"), False),
    ("3", [2, 3], False),
    ("0", "0", True),
    ("0", 0, True),
    ("0", "no planes", True),
    ("0", "There are no planes in the image.", True),
    ("0", "none", True),
    ("0", "no idea", False),
    ("0", False, False),
    ("20", "twenty", True),
    ("12", "a dozen", True),
    ("11", "1,100", False),
]
PLACE: list[tuple[str, Any, bool]] = [
    ("above left", "above left", True),
    ("above left", "Upper left", True),
    ("above left", "upper-left", True),
    ("above left", "top left of the ship", True),
    ("above left", "left and above", True),
    ("above left", "The plane is above and to the left of the ship", True),
    ("above left", "The ship is above left of the plane", False),
    ("above left", "Seen from the ship, the plane is above left", True),
    ("above left", "above", False),
    ("above left", "left", False),
    ("above left", "above or left", False),
    ("above left", "not above left", False),
    ("above left", "north-west", False),
    ("below", "below", True),
    ("below", "underneath", True),
    ("below", "directly below it", True),
    ("below", "above and below", False),
    ("right", "to the right", True),
    ("right", "left or right", False),
    ("left", "over to the left", True),
    ("right", "below right", False),
]
TABLE = [
    (kind, *row)
    for kind, rows in (
        ("multispectral_temporal", TREND),
        ("area_dominance", COVER),
        ("counting", COUNT),
        ("spatial_relation", PLACE),
    )
    for row in rows
]


def pair_of(kind: str) -> list[dict[str, Any]]:
    if kind != "spatial_relation":
        return []
    return [{"name": "detect", "arguments": {"prompt": prompt}} for prompt in ("plane", "ship")]


@pytest.mark.parametrize(("kind", "gold", "answer", "right"), TABLE)
def test_an_answer_is_judged_by_what_it_commits_to(
    kind: str, gold: str, answer: Any, right: bool
) -> None:
    assert is_correct(a_task(kind, gold, reference=pair_of(kind)), answer) is right


def test_compass_words_count_where_the_image_is_known_to_be_north_up() -> None:
    north = a_task("spatial_relation", "above left", evidence={"north_up": True})
    assert is_correct(north, "northwest")
    assert is_correct(north, "north-west")
    assert not is_correct(north, "northeast")


def test_without_a_gold_answer_nothing_is_judged() -> None:
    with pytest.raises(TaskError, match="no gold answer"):
        is_correct(a_task("counting", None), "3")


EVERY_CHOICE = [(kind, choice) for kind, row in QUESTION_TYPES.items() for choice in row.choices]


@pytest.mark.parametrize(("kind", "choice"), EVERY_CHOICE)
def test_every_choice_reads_as_itself_and_never_as_another(kind: str, choice: str) -> None:
    task = a_task(kind, choice)
    assert read_answer(task, choice) == choice
    assert is_correct(task, choice)
    others = [other for other in task.choices if other != choice]
    assert not any(is_correct(task, other) for other in others)
    assert not is_correct(task, f"not {choice}")


@given(st.text(max_size=80), st.sampled_from(sorted(QUESTION_TYPES)))
def test_any_text_is_read_as_a_choice_or_as_none(text: str, kind: str) -> None:
    found = read_answer(a_task(kind, None), text)
    assert found is None or kind == "counting" or found in QUESTION_TYPES[kind].choices
