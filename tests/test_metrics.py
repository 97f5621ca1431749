"""Metrics: worked examples by hand, bounds, and what a wrong set of rollouts says."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eo_agent_lab.errors import RunError, TaskError
from eo_agent_lab.evaluate import scores as scores_module
from eo_agent_lab.evaluate.bootstrap import bootstrap_means
from eo_agent_lab.evaluate.chance import chance_pass_at_k, chance_row
from eo_agent_lab.evaluate.metrics import (
    METRICS,
    Attempt,
    any_order_match,
    attempt_of,
    consumed,
    exact_match,
    in_order_match,
    metric_of,
    pass_at_k,
    question_metrics,
)
from eo_agent_lab.evaluate.score import measure, score, summarise
from eo_agent_lab.tasks.task import ReferenceCall, Task, write_tasks
from eo_agent_lab.tasks.trajectory import CallRecord, Trajectory

NAMES = st.lists(st.sampled_from("abc"), max_size=6)
ATTEMPTS = st.lists(
    st.builds(
        lambda correct, called, bad: Attempt(correct, tuple(called), min(bad, len(called))),
        st.booleans(),
        NAMES,
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=5,
)


def task(task_id: str = "t", gold: str | None = "4", reference: str = "ab", **extra: Any) -> Task:
    fields: dict[str, Any] = {
        "question": "How many?",
        "images": ["0" * 16],
        "data_source": "vhr",
        "question_type": "counting",
        "eo_task": "Object Counting",
        "choices": ["3", "4"],
        "reference": [ReferenceCall(name=name, arguments={}) for name in reference],
        "tools": [],
        "split": "test",
    }
    return Task(task_id=task_id, gold_answer=gold, **(fields | extra))


def rollout(
    answer: str | None, called: str = "ab", *, sample: int = 0, task_id: str = "t", **extra: Any
) -> Trajectory:
    """Return a rollout; an upper-case letter is a call that failed."""
    calls = [
        CallRecord(name=letter.lower(), observation="seen", is_error=letter.isupper())
        for letter in called
    ]
    fields: dict[str, Any] = {
        "agent": "a",
        "setting": "s",
        "seed": 0,
        "code_version": "0",
        "messages": [],
        "ending": "answered",
    }
    return Trajectory(
        task_id=task_id, sample=sample, calls=calls, answer=answer, **(fields | extra)
    )


def rollouts(*pairs: tuple[str | None, str], **extra: Any) -> list[Trajectory]:
    return [rollout(answer, called, sample=i, **extra) for i, (answer, called) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (3, 1, 1, 1 / 3),
        (3, 1, 2, 2 / 3),  # of the pairs 12, 13, 23 two hold the right one
        (3, 1, 3, 1.0),
        (3, 0, 3, 0.0),
        (5, 2, 3, 0.9),  # 1 - C(3,3)/C(5,3) = 1 - 1/10
        (10, 3, 4, 1 - 35 / 210),
        (2000, 1, 1000, 0.5),
    ],
)
def test_pass_at_k_by_hand(n: int, c: int, k: int, expected: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-15)


@given(st.integers(1, 7), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(combinations(range(n), k))
    share = sum(any(i < c for i in subset) for subset in subsets) / len(subsets)
    assert pass_at_k(n, c, k) == pytest.approx(share, abs=1e-15)


@given(st.integers(1, 5000), st.data())
def test_pass_at_k_is_a_share_that_grows_with_k_and_with_right_samples(
    n: int, data: st.DataObject
) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    value = pass_at_k(n, c, k)
    assert 0 <= value <= 1
    assert pass_at_k(n, c, 1) == pytest.approx(c / n)
    if k < n:
        assert value <= pass_at_k(n, c, k + 1)
    if c < n:
        assert value <= pass_at_k(n, c + 1, k)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 1, 0), (3, 4, 1), (3, -1, 1), (0, 0, 1)])
def test_pass_at_k_outside_its_range_is_an_error(n: int, c: int, k: int) -> None:
    with pytest.raises(RunError, match="not defined"):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(
    ("reference", "called", "exact", "in_order", "any_order"),
    [
        ("ab", "ab", True, True, True),
        ("ab", "acb", False, True, True),
        ("ab", "ba", False, False, True),
        ("aab", "ab", False, False, False),  # one of two calls of a is missing
        ("aab", "abba", False, False, True),
        ("ab", "", False, False, False),
        ("", "", True, True, True),
        ("", "a", False, True, True),
    ],
)
def test_tool_matches_by_hand(
    reference: str, called: str, exact: bool, in_order: bool, any_order: bool
) -> None:
    found = [match(reference, called) for match in (exact_match, in_order_match, any_order_match)]
    assert found == [exact, in_order, any_order]


@given(NAMES, NAMES)
def test_an_exact_match_is_in_order_and_one_in_order_is_in_any_order(
    reference: Sequence[str], called: Sequence[str]
) -> None:
    exact, in_order, any_order = (
        match(reference, called) for match in (exact_match, in_order_match, any_order_match)
    )
    assert exact <= in_order <= any_order
    assert exact_match(reference, reference)


def test_an_action_that_was_no_call_spoils_an_exact_match_alone() -> None:
    called = ("a", None, "b")
    assert not exact_match("ab", called)
    assert in_order_match("ab", called)
    assert any_order_match("ab", called)


def test_attempts_are_consumed_up_to_the_first_right_one() -> None:
    wrong, right = Attempt(False, ("a",), 0), Attempt(True, ("a",), 0)
    assert len(consumed([wrong, right, right])) == 2
    assert len(consumed([right, wrong, wrong])) == 1
    assert len(consumed([wrong, wrong, wrong])) == 3


def test_question_metrics_by_hand() -> None:
    attempts = [
        Attempt(False, ("b", "a", "c", "a"), 1),
        Attempt(True, ("a", "b"), 0),
        Attempt(False, (), 0),  # not consumed, but counted for the zero-call rate
    ]
    found = question_metrics(attempts, "ab")
    assert found == {
        "tool_call_ratio": pytest.approx((4 + 2) / 2 / 2),
        "illegal_rate": pytest.approx(1 / 6),
        "zero_call_rate": pytest.approx(1 / 3),
        "exact_match": 0.5,
        "in_order": 0.5,
        "any_order": 1.0,
    }
    assert question_metrics(attempts, "ab", aggregate="sum")["tool_call_ratio"] == 3.0


def test_what_cannot_be_divided_is_not_defined() -> None:
    silent = question_metrics([Attempt(False, (), 0)], "ab")
    assert math.isnan(silent["illegal_rate"])
    assert silent["tool_call_ratio"] == 0
    assert math.isnan(question_metrics([Attempt(True, ("a",), 0)], "")["tool_call_ratio"])


@given(ATTEMPTS, NAMES)
def test_every_metric_keeps_its_bounds(attempts: list[Attempt], reference: list[str]) -> None:
    found = question_metrics(attempts, reference)
    assert set(found) == set(METRICS)
    for key, value in found.items():
        upper = metric_of(key).upper
        assert math.isnan(value) or 0 <= value <= (math.inf if upper is None else upper)
    assert found["exact_match"] <= found["in_order"] <= found["any_order"]
    summed = question_metrics(attempts, reference, aggregate="sum")
    assert not summed["tool_call_ratio"] < found["tool_call_ratio"]


@pytest.mark.parametrize(
    ("observation", "is_error", "illegal"),
    [("seen", False, 0), ("", False, 1), ("  \n", False, 1), ("Error: no", True, 1)],
)
def test_a_call_is_illegal_when_its_observation_is_missing_empty_or_an_error(
    observation: str, is_error: bool, illegal: int
) -> None:
    calls = [CallRecord(name="a", observation=observation, is_error=is_error)]
    played = rollout("4", "").model_copy(update={"calls": calls})
    assert attempt_of(played, right=True).illegal == illegal


def test_a_right_answer_without_a_call_is_a_failure_unless_it_is_asked_to_count() -> None:
    played = rollouts(("4", ""), ("4", ""))
    plain = score([task()], played, seed=0, deterministic=False)
    assert (plain["pass_at_1"], plain["zero_call_rate"]) == (0.0, 1.0)
    counted = score([task()], played, seed=0, deterministic=False, count_zero_call=True)
    assert (counted["pass_at_1"], counted["zero_call_rate"]) == (1.0, 1.0)


def test_a_score_by_hand() -> None:
    tasks = [task("one"), task("two")]
    played = [
        *rollouts(("3", "bA"), ("4", "ab"), ("4", "ab"), task_id="one"),
        *rollouts(("3", "ab"), ("3", ""), (None, "a"), task_id="two"),
    ]
    row = score(tasks, played[::-1], seed=1, deterministic=False)
    assert (row["kind"], row["model"], row["setting"], row["n"]) == ("measured", "a", "s", 2)
    assert row["pass_at_1"] == pytest.approx((2 / 3 + 0) / 2)
    assert row["pass_at_2"] == pytest.approx((1 + 0) / 2)
    assert row["tool_call_ratio"] == pytest.approx((4 / 2 / 2 + 3 / 3 / 2) / 2)
    assert row["illegal_rate"] == pytest.approx((1 / 4 + 0) / 2)
    assert row["zero_call_rate"] == pytest.approx((0 + 1 / 3) / 2)
    assert row["exact_match"] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert row["any_order"] == pytest.approx((1 + 1 / 3) / 2)
    assert (row["pass_at_1_low"], row["pass_at_1_high"]) == (0.0, pytest.approx(2 / 3))
    assert row == score(tasks, played, seed=1, deterministic=False)


def test_a_deterministic_agent_has_no_pass_beyond_the_first_sample() -> None:
    row = score([task()], rollouts(("4", "ab"), ("4", "ab")), seed=0, deterministic=True)
    assert row["pass_at_1"] == 1.0
    assert row["pass_at_2"] is row["pass_at_2_low"] is row["pass_at_2_high"] is None


def test_an_agent_wrongly_flagged_deterministic_is_found_out() -> None:
    with pytest.raises(RunError, match="flagged deterministic"):
        score([task()], rollouts(("4", "ab"), ("3", "ab")), seed=0, deterministic=True)
    with pytest.raises(RunError, match="temperature"):
        score([task()], rollouts(("4", "ab"), temperature=0.7), seed=0, deterministic=True)


def test_rows_by_question_type_follow_the_overall_row() -> None:
    tasks = [task("one"), task("two", question_type="other", gold="4")]
    played = [*rollouts(("4", "ab"), task_id="one"), *rollouts(("3", "ab"), task_id="two")]
    rows = summarise(measure(tasks, played, deterministic=False), seed=0)
    assert [(row["question_type"], row["n"], row["pass_at_1"]) for row in rows] == [
        ("all", 2, 0.5),
        ("counting", 1, 1.0),
        ("other", 1, 0.0),
    ]


@pytest.mark.parametrize(
    ("tasks", "played", "error", "says"),
    [
        (["t"], [], RunError, "no rollout"),
        (["t"], [("t", 0), ("t", 0)], RunError, r"\('t', 0\) stand twice"),
        (["t"], [("t", 0), ("t", 2)], RunError, r"1 of 3 rollouts are missing.*\('t', 1\)"),
        (["t", "u"], [("t", 0)], RunError, r"\('u', 0\)"),
        (["t"], [("t", 0), ("v", 0)], RunError, "tasks v have no such task"),
        (["t", "t"], [("t", 0)], TaskError, "tasks t stand twice"),
    ],
)
def test_a_set_of_rollouts_that_does_not_fit_names_what_is_wrong(
    tasks: list[str], played: list[tuple[str, int]], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        score(
            [task(name) for name in tasks],
            [rollout("4", task_id=name, sample=sample) for name, sample in played],
            seed=0,
            deterministic=False,
        )


def test_a_sample_that_no_task_has_is_missed_when_it_was_asked_for() -> None:
    with pytest.raises(RunError, match=r"\('t', 1\)"):
        measure([task()], [rollout("4")], deterministic=False, samples=2)


def test_the_column_seed_is_the_runs_own() -> None:
    played = [rollout("4", seed=11), rollout("4", sample=1, seed=12)]
    assert measure([task()], played, deterministic=False).facts["seed"] is None
    assert measure([task()], played, deterministic=False, run_seed=3).facts["seed"] == 3


def test_rollouts_of_two_agents_are_not_one_row() -> None:
    played = [rollout("4"), rollout("4", sample=1, agent="b")]
    with pytest.raises(RunError, match=r"several values of agent \(a, b\)"):
        score([task()], played, seed=0, deterministic=False)


def test_without_gold_answers_nothing_is_scored() -> None:
    with pytest.raises(TaskError, match="no gold answer"):
        score([task(gold=None)], [rollout("4")], seed=0, deterministic=False)


def test_chance_is_one_over_the_choices_and_grows_with_guesses() -> None:
    tasks = [task("one", choices=["3", "4"]), task("two", choices=["1", "2", "3", "4"])]
    assert chance_pass_at_k(tasks, 1) == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert chance_pass_at_k(tasks, 2) == pytest.approx((3 / 4 + 7 / 16) / 2)
    row = chance_row(tasks, 2)
    assert (row["model"], row["n"], row["pass_at_1_low"]) == ("chance", 2, None)
    with pytest.raises(TaskError, match="no choices"):
        chance_pass_at_k([task(choices=[])], 1)


def test_simulated_guesses_agree_with_chance_within_their_interval() -> None:
    rng = np.random.default_rng(5)
    tasks = [task(f"t{i}", choices=["1", "2", "3", "4"][: 2 + i % 3], gold="1") for i in range(150)]
    played = [
        rollout(str(rng.choice(t.choices)), task_id=t.task_id, sample=sample)
        for t in tasks
        for sample in range(3)
    ]
    row = score(tasks, played, seed=0, deterministic=False)
    for k in (1, 2, 3):
        expected = chance_pass_at_k(tasks, k)
        assert row[f"pass_at_{k}_low"] <= expected <= row[f"pass_at_{k}_high"]


def test_a_bootstrap_interval_is_near_the_normal_one() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(3.0, 2.0, size=(400, 1))
    found = bootstrap_means(values, np.random.default_rng(1), resamples=4000)
    half = 1.96 * values.std() / math.sqrt(len(values))
    assert found.mean[0] == pytest.approx(values.mean())
    assert found.low[0] == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert found.high[0] == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_a_bootstrap_equals_resampling_row_by_row_in_distribution() -> None:
    values = np.arange(20.0)[:, None] ** 2
    ours = bootstrap_means(values, np.random.default_rng(2), resamples=20_000)
    rng = np.random.default_rng(3)
    naive = values[rng.integers(20, size=(20_000, 20)), 0].mean(axis=1)
    low, high = np.quantile(naive, [0.025, 0.975])
    assert ours.low[0] == pytest.approx(low, rel=0.02)
    assert ours.high[0] == pytest.approx(high, rel=0.02)


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.floats(0, 1), st.one_of(st.just(math.nan), st.floats(0, 9)), st.just(math.nan)
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 9),
)
def test_an_interval_lies_within_the_data_and_repeats_with_its_seed(
    rows: list[tuple[float, float, float]], seed: int
) -> None:
    values = np.array(rows)
    found = bootstrap_means(values, np.random.default_rng(seed), resamples=50)
    again = bootstrap_means(values, np.random.default_rng(seed), resamples=50)
    for mine, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert np.isnan([found.mean[2], found.low[2], found.high[2]]).all()
    for column in (0, 1):
        seen = values[:, column][np.isfinite(values[:, column])]
        if seen.size:
            low, high = found.low[column], found.high[column]
            assert seen.min() - 1e-9 <= low <= high <= seen.max() + 1e-9


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (np.zeros((0, 2)), {}),
        (np.zeros(3), {}),
        (np.array([[np.inf]]), {}),
        (np.ones((3, 1)), {"resamples": 0}),
        (np.ones((3, 1)), {"confidence": 1.0}),
    ],
)
def test_a_bootstrap_of_nothing_is_an_error(values: Any, options: dict[str, Any]) -> None:
    with pytest.raises(RunError, match=r"use|needs"):
        bootstrap_means(values, np.random.default_rng(0), **options)


def test_a_scores_file_round_trips_and_another_format_is_refused(tmp_path: Path) -> None:
    row = score([task()], [rollout("4")], seed=0, deterministic=True)
    kept = scores_module.Scores(
        seed=0,
        resamples=1000,
        confidence=0.95,
        tool_call_ratio="mean",
        question_types={"counting": 1},
        rows=[row],
        chance=[],
    )
    path = tmp_path / "scores.json"
    path.write_text(kept.model_dump_json())
    assert scores_module.read_scores(path) == kept
    path.write_text(json.dumps(kept.model_dump() | {"version": 2}))
    with pytest.raises(RunError, match="version 1"):
        scores_module.read_scores(path)
    with pytest.raises(RunError, match="dvc repro"):
        scores_module.read_scores(tmp_path / "absent.json")


def test_no_run_to_score_is_an_error(tmp_path: Path) -> None:
    write_tasks(tmp_path / "test.jsonl", [task()])
    with pytest.raises(RunError, match="no run to score"):
        scores_module.score_runs(tmp_path, [])
    with pytest.raises(RunError, match="no run in"):
        scores_module.find_runs(tmp_path)
