"""Agents: the expert solves, the heuristic reads, random and blind mark the floor."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from test_tasks import PER_TYPE, build_tiny_lake

from eo_agent_lab import paths
from eo_agent_lab.agents import AGENTS, make
from eo_agent_lab.agents.protocol import EpisodeView, Policy
from eo_agent_lab.agents.reading import read_choices, read_question
from eo_agent_lab.agents.tool_texts import read_handles
from eo_agent_lab.env.episode import Episode
from eo_agent_lab.errors import ConfigError, TaskError
from eo_agent_lab.lake import Lake
from eo_agent_lab.lake.build import add_scenes
from eo_agent_lab.lake.folder import FolderFetcher
from eo_agent_lab.tasks import independent
from eo_agent_lab.tasks.generate import generate
from eo_agent_lab.tasks.judging import is_correct
from eo_agent_lab.tasks.question_types import QUESTION_TYPES
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tools import Workspace, call_tool, list_tools, validate_call

EO_GYM = [item.name for item in list_tools("eo_gym")]


class Played(NamedTuple):
    """One finished episode."""

    answer: str
    calls: list[tuple[str | None, dict[str, Any]]]
    errors: list[str]


def view_of(question: str) -> EpisodeView:
    return EpisodeView(question, question, (), (), 15)


def play(
    policy: Policy, task: Task, place: Workspace, seed: int = 0, *, shown: bool = False
) -> Played:
    assert place.lake is not None
    episode = Episode(place.lake, workspace_root=place.root)
    view = episode.reset(task)
    policy.start(task if shown else None, view, np.random.default_rng(seed))
    while episode.ending is None:
        action = json.loads(policy.act(view))
        if "name" in action:
            validate_call(action["name"], action["arguments"])
        view = episode.step(json.dumps(action)).observation
    episode.close()
    calls = [(call.name, call.arguments) for call in episode.calls]
    errors = [call.observation for call in episode.calls if call.is_error]
    assert episode.answer is not None
    return Played(episode.answer, calls, errors)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("agents")
    return Workspace(folder / "work", build_tiny_lake(folder))


@pytest.fixture(scope="module")
def tasks(place: Workspace) -> list[Task]:
    assert place.lake is not None
    return generate(place.lake, per_type=PER_TYPE, seed=11)


def score(name: str, tasks: list[Task], place: Workspace, **options: Any) -> float:
    policy = make(name, **options)
    right = [
        is_correct(task, play(policy, task, place, number, shown=name == "expert").answer)
        for number, task in enumerate(tasks)
    ]
    return sum(right) / len(right)


def test_the_expert_solves_every_task_with_the_gold_answer_deleted(
    tasks: list[Task], place: Workspace
) -> None:
    expert = make("expert")
    for task in tasks:
        blank = task.model_copy(update={"gold_answer": None, "evidence": {}})
        played = play(expert, blank, place, shown=True)
        assert is_correct(task, played.answer)
        assert [name for name, _ in played.calls] == [call.name for call in task.reference]


def test_the_expert_needs_a_reference_and_stops_at_a_failed_call() -> None:
    expert = make("expert")
    view = view_of("q")
    with pytest.raises(TaskError, match="reference"):
        expert.start(None, view, np.random.default_rng(0))
    with pytest.raises(TaskError, match="not started"):
        make("expert").act(view)


def test_an_expert_whose_call_failed_does_not_conclude(tasks: list[Task], place: Workspace) -> None:
    expert = make("expert")
    view = view_of(tasks[0].question)
    expert.start(tasks[0], view, np.random.default_rng(0))
    expert.act(view)
    with pytest.raises(TaskError, match="every pixel is cloud"):
        expert.act(view._replace(text="Error: every pixel is cloud", is_error=True))


def test_the_heuristic_lies_above_blind_and_random(tasks: list[Task], place: Workspace) -> None:
    test = [task for task in tasks if task.split == "test"]
    heuristic = score("heuristic", test, place)
    assert heuristic > 0.9
    assert heuristic > score("blind", test, place, train_tasks=tasks)
    assert heuristic > score("random", test, place)


def test_the_heuristic_never_sees_the_task(tasks: list[Task], place: Workspace) -> None:
    for task in tasks[::9]:
        wrong = next(choice for choice in task.choices if choice != task.gold_answer)
        lie = task.model_copy(update={"gold_answer": wrong, "reference": [], "evidence": {}})
        with_lie = play(make("heuristic"), lie, place, shown=True)
        assert with_lie == play(make("heuristic"), task, place)
        assert is_correct(task, with_lie.answer)


def test_random_scores_its_chance_level_within_the_binomial_interval(
    tasks: list[Task], place: Workspace
) -> None:
    policy = make("random")
    right: dict[str, list[bool]] = {}
    for number, task in enumerate(tasks):
        for seed in (2 * number, 2 * number + 1):
            answer = play(policy, task, place, seed).answer
            right.setdefault(task.question_type, []).append(is_correct(task, answer))
    groups = [(1 / len(QUESTION_TYPES[name].choices), row) for name, row in right.items()]
    n = sum(len(row) for _, row in groups)
    chance = sum(p * len(row) for p, row in groups) / n
    deviation = math.sqrt(sum(p * (1 - p) * len(row) for p, row in groups)) / n
    assert abs(sum(sum(row) for _, row in groups) / n - chance) <= 1.96 * deviation


def test_random_calls_are_valid_few_and_seeded(tasks: list[Task], place: Workspace) -> None:
    called = set()
    for number, task in enumerate(tasks):
        played = play(make("random"), task, place, number)
        assert 1 <= len(played.calls) <= 4
        assert {name for name, _ in played.calls} <= set(task.tools)
        assert played == play(make("random"), task, place, number)
        assert played.answer in task.choices
        called |= {name for name, _ in played.calls}
    assert len(called) >= 12


def test_random_draws_every_choice(tasks: list[Task], place: Workspace) -> None:
    task = next(task for task in tasks if task.question_type == "multispectral_temporal")
    answers = {play(make("random"), task, place, seed).answer for seed in range(30)}
    assert answers == set(task.choices)


def test_blind_makes_no_call_and_gives_one_answer_to_each_type(
    tasks: list[Task], place: Workspace
) -> None:
    blind = make("blind", train_tasks=tasks)
    answers: dict[str, set[str]] = {}
    for task in tasks:
        played = play(blind, task, place)
        assert not played.calls
        answers.setdefault(task.question_type, set()).add(played.answer)
    assert all(len(found) == 1 for found in answers.values())
    assert len(answers) == len(QUESTION_TYPES)
    test_only = [task for task in tasks if task.split == "test"]
    with pytest.raises(ConfigError, match="train split"):
        make("blind", train_tasks=test_only)


def test_agents_are_made_by_name_and_bad_names_and_options_are_refused() -> None:
    assert make("heuristic").name == "heuristic"
    assert set(AGENTS) >= {"expert", "heuristic", "random", "blind"}
    with pytest.raises(ConfigError, match="no agent"):
        make("oracle")
    with pytest.raises(ConfigError, match="options"):
        make("random", temperature=1)
    with pytest.raises(ConfigError, match="options"):
        make("blind")


def test_the_wording_tells_the_type_and_the_choices(tasks: list[Task]) -> None:
    kinds = {
        "multispectral_temporal": "trend",
        "area_dominance": "cover",
        "counting": "count",
        "spatial_relation": "relation",
    }
    for task in tasks:
        read = read_question(task.question)
        assert read.kind == kinds[task.question_type], task.question
        assert read.choices == task.choices
        assert read.handle == task.images[0]


FREE: list[tuple[str, dict[str, Any]]] = [
    ("Is it more green than before?", {"kind": "trend", "search": "previous", "pivot": None}),
    (
        "Did vegetation increase between 2018-07-10 and 2018-08-27 over 0123456789abcdef?",
        {
            "kind": "trend",
            "index_name": "NDVI",
            "dates": ["2018-07-10", "2018-08-27"],
            "handle": "0123456789abcdef",
            "search": "named",
        },
    ),
    (
        "Has the lake shrunk since the previous Landsat image?",
        {"index_name": "NDWI", "family": "landsat"},
    ),
    ("How many cars are here?", {"kind": "count", "objects": ["car"]}),
    ("How many more ships than oil tanks?", {"kind": "count", "operation": "-"}),
    ("Where is the ship relative to the bridge?", {"objects": ["ship", "bridge"]}),
    ("Seen from the bridge, where is the ship?", {"objects": ["ship", "bridge"]}),
    ("What is the mean NDVI in [0, 0, 0.5, 0.5]?", {"kind": "value", "aoi": [0.0, 0.0, 0.5, 0.5]}),
    ("Which covers the largest share: water or vegetation?", {"kind": "cover"}),
    ("Tell me a joke", {"kind": "unknown", "choices": []}),
]


@pytest.mark.parametrize(("text", "expected"), FREE)
def test_free_questions_are_read(text: str, expected: dict[str, Any]) -> None:
    read = read_question(text)._asdict()
    assert {key: read[key] for key in expected} == expected


def test_choices_are_read_from_their_sentence() -> None:
    assert read_choices("Answer with one of: a b, c, d or e.") == ["a b", "c", "d", "e"]
    assert read_choices("Give a whole number from 0 to 3.") == ["0", "1", "2", "3"]
    assert read_choices("How green is it?") == []
    assert read_handles("see crop_0a1b2c3d4e.nc and 0123456789abcdef, then 0123456789abcdef") == [
        "crop_0a1b2c3d4e.nc",
        "0123456789abcdef",
    ]


def free_task(question: str, handle: str) -> Task:
    return Task(
        task_id="free",
        question=question,
        images=[handle],
        data_source="multispectral",
        question_type="free",
        eo_task="free",
        choices=[],
        gold_answer=None,
        reference=[],
        tools=EO_GYM,
        split="test",
    )


def handle_on(lake: Lake, family: str, valid: Callable[[Any], bool] = lambda _: True) -> str:
    found = [s for s in map(lake.get, lake.scene_ids()) if s.sensor.startswith(family)]
    return next(s.scene_id for s in sorted(found, key=lambda s: s.product_id) if valid(s))


def test_the_heuristic_says_why_it_cannot_answer(place: Workspace) -> None:
    assert place.lake is not None
    handle = handle_on(place.lake, "sentinel")
    for question, why in (
        ("Did vegetation increase between 1999-01-01 and 1999-06-01?", "1999|no observation"),
        ("Tell me a joke", "rules do not cover"),
        ("Did vegetation increase lately, compared with 2021?", "no two dates"),
        (
            "Compared with the previous observation before 1990-01-01, did NDVI rise?",
            "no observation",
        ),
    ):
        played = play(make("heuristic"), free_task(question, handle), place)
        assert played.answer.startswith("not answered: ")
        assert any(part in played.answer for part in why.split("|")), played.answer


def test_a_listing_that_was_cut_short_is_asked_again_for_the_later_date() -> None:
    row = "{0} (2021-{1}-01T10:00:00Z, landsat-8, 30 m, SR)"
    policy = make("heuristic")
    question = "Did NDVI rise between 2021-01-01 and 2021-09-01 over 0123456789abcdef?"
    view = view_of(question)
    policy.start(None, view, np.random.default_rng(0))
    policy.act(view)
    cut = view._replace(text=row.format("a" * 16, "01") + "\n... (900 more characters)")
    asked = json.loads(policy.act(cut))
    assert asked["arguments"]["start_date"] == asked["arguments"]["end_date"] == "2021-09-01"
    measured = json.loads(policy.act(view._replace(text=row.format("b" * 16, "09"))))
    assert measured["arguments"] == {"multispectral_url": "a" * 16}


def test_the_heuristic_abstains_where_less_than_a_fifth_is_valid(place: Workspace) -> None:
    assert place.lake is not None
    policy: Any = make("heuristic")
    for product, why in (
        ("sentinel-2a-4-40", "only 16."),
        ("sentinel-2a-5-40", "every pixel here is cloud"),
    ):
        cloudy = handle_on(place.lake, "sentinel-2a", lambda s, name=product: s.product_id == name)
        played = play(policy, free_task("What is the mean NDVI here?", cloudy), place)
        assert played.answer.startswith(f"not answered: {why}"), played.answer
    clear = handle_on(place.lake, "sentinel-2a", lambda s: s.product_id == "sentinel-2a-4-20")
    mean = float(play(policy, free_task("What is the mean NDVI?", clear), place).answer)
    assert mean == pytest.approx(policy.evidence[0]["mean"], abs=1e-4)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    source = paths.real_data() / "landsat8_ny_2018"
    if not source.is_dir():
        pytest.skip(f"no real scenes at {source}; set EO_AGENT_LAB_REAL_DATA")
    folder = tmp_path_factory.mktemp("real")
    add_scenes(folder / "lake", FolderFetcher(source).fetch().scenes)
    return Workspace(folder / "work", Lake(folder / "lake"))


def test_a_question_on_two_real_landsat_dates_is_answered_with_its_evidence(
    real: Workspace,
) -> None:
    assert real.lake is not None
    lake = real.lake
    scene = next(s for s in map(lake.get, lake.scene_ids()) if "013032_20180827" in s.product_id)
    question = f"Did vegetation increase between 2018-07-10 and 2018-08-27 over {scene.scene_id}?"
    policy: Any = make("heuristic")
    played = play(policy, free_task(question, scene.scene_id), real)
    assert not played.errors
    assert "mean NDVI" in played.answer
    assert "unchanged" not in played.answer
    first, second, change = policy.evidence
    assert (first["date"], second["date"]) == ("2018-07-10", "2018-08-27")
    assert first["level"] == "TOA"
    assert first["bands"] == "nir B5, red B4"
    assert first["formula"] == "(NIR - R) / (NIR + R)"
    assert change["delta"] == pytest.approx(second["mean"] - first["mean"])
    assert change["delta_se"] == pytest.approx(math.hypot(first["mean_se"], second["mean_se"]))
    for row, handle in ((first, first["handle"]), (second, second["handle"])):
        found = lake.get(handle)
        own = independent.measure(found, lake.root(found), "NDVI")
        assert row["mean"] == pytest.approx(own.mean, abs=5.1e-5)
        assert row["valid_share"] == pytest.approx(own.valid_share, abs=5.1e-4)
        assert 0.2 <= row["valid_share"] <= 1
        assert 0 <= row["cloud_share"] <= 1
        assert row["gsd_m"]


def test_both_paths_measure_the_same_on_real_scenes_with_their_clouds(real: Workspace) -> None:
    assert real.lake is not None
    shares = []
    for scene in map(real.lake.get, real.lake.scene_ids()):
        for index in ("NDVI", "NDWI", "NDBI"):
            own = independent.measure(scene, real.lake.root(scene), index)
            name = f"compute_{index.lower()}_by_multispectral"
            seen = call_tool(name, {"multispectral_url": scene.scene_id}, real)
            assert seen.is_error == (own.pixels == 0)
            if not seen.is_error:
                assert seen.data["mean"] == pytest.approx(own.mean, abs=1e-6)
                assert seen.data["valid_share"] == pytest.approx(own.valid_share, abs=1e-9)
                shares.append(own.valid_share)
    assert min(shares) < 0.5 < max(shares)
