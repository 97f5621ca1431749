"""The question types: one record each, and what the evidence of the reference calls concludes.

Rules are written in the question itself where an answer depends on them: a trend is a difference
of means beyond 0.05. Candidates near a rule's border are never asked (:mod:`..tasks.generate`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from eo_agent_lab.errors import TaskError
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tasks.trajectory import CallRecord

TREND_THRESHOLD = 0.05
"""A difference of index means beyond this is a change; stated in every temporal question."""

MAX_COUNT = 20

TRENDS = ("increased", "decreased", "unchanged")
COVERS = ("water", "vegetation", "built-up")
DIRECTIONS = (
    "above",
    "above right",
    "right",
    "below right",
    "below",
    "below left",
    "left",
    "above left",
)
COUNTS = tuple(str(number) for number in range(MAX_COUNT + 1))

MULTISPECTRAL_TOOLS = (
    "get_multispectral_list",
    "get_previous_multispectral",
    "get_next_multispectral",
    "crop_multispectral_image",
    "compute_ndvi_by_multispectral",
    "compute_ndwi_by_multispectral",
    "compute_ndbi_by_multispectral",
    "compute_ndsi_by_multispectral",
    "compute_water_mask_by_multispectral",
    "compute_vegetation_mask_by_multispectral",
    "compute_urban_mask_by_multispectral",
    "theme_index_lookup",
    "get_bbox_geospatial_relationship",
    "get_mask_geospatial_relationship",
    "basic_calculator",
)
"""EO-Gym's fifteen for multispectral observations."""

VHR_TOOLS = (
    "get_object_bbox_by_optical_image",
    "get_bbox_geospatial_relationship",
    "basic_calculator",
)


class QuestionType(NamedTuple):
    """One question type.

    ``eo_task`` is one of EO-Gym's six tasks, ``choices`` the whole answer space, ``tools`` the
    skill subset, ``conclude`` what the evidence of finished reference calls amounts to.
    """

    eo_task: str
    data_source: str
    choices: tuple[str, ...]
    tools: tuple[str, ...]
    conclude: Callable[[list[CallRecord]], str]


def trend_of(delta: float) -> str:
    """Return the trend that a difference of index means, later minus earlier, amounts to."""
    if abs(delta) <= TREND_THRESHOLD:
        return "unchanged"
    return "increased" if delta > 0 else "decreased"


def conclude(task: Task, calls: list[CallRecord]) -> str:
    """Return the answer that the observations of the reference calls give.

    The gold answer is never read: this is what lets an agent with the reference *solve* a task.

    Args:
        task: The task, with or without its gold answer.
        calls: The reference calls as carried out, in order.

    Raises:
        TaskError: A call failed, one is missing, or the question type is unknown.
    """
    kind = QUESTION_TYPES.get(task.question_type)
    if kind is None:
        raise TaskError(
            f"no question type {task.question_type!r}; there are {', '.join(QUESTION_TYPES)}"
        )
    failed = next((call for call in calls if call.is_error), None)
    if failed is not None:
        raise TaskError(f"{failed.name} failed, so nothing follows: {failed.observation[:200]}")
    try:
        return kind.conclude(calls)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise TaskError(
            f"the calls of task {task.task_id} do not hold the evidence for its answer; carry out "
            "every reference call"
        ) from error


def _named(calls: list[CallRecord], start: str, end: str = "") -> list[CallRecord]:
    return [c for c in calls if c.name and c.name.startswith(start) and c.name.endswith(end)]


def _trend(calls: list[CallRecord]) -> str:
    first, second = _named(calls, "compute_", "_by_multispectral")
    earlier, later = sorted((first.data, second.data), key=lambda data: str(data["datetime"]))
    return trend_of(later["mean"] - earlier["mean"])


def _dominant(calls: list[CallRecord]) -> str:
    names = {"water": "water", "vegetation": "vegetation", "urban": "built-up"}
    shares: dict[str, float] = {}
    for kind, cover in names.items():
        (call,) = _named(calls, f"compute_{kind}_mask")
        shares[cover] = float(call.data["share"])
    return max(shares, key=lambda cover: shares[cover])


def _count(calls: list[CallRecord]) -> str:
    computed = _named(calls, "basic_calculator")
    value = computed[-1].data if computed else _named(calls, "get_object_bbox")[-1].data["count"]
    number = float(value)
    if number != int(number):
        raise ValueError(f"{number} is no count")
    return str(int(number))


def _direction(calls: list[CallRecord]) -> str:
    return str(_named(calls, "get_bbox_geospatial_relationship")[-1].data["direction"])


QUESTION_TYPES: dict[str, QuestionType] = {
    "multispectral_temporal": QuestionType(
        "Temporal Reasoning", "multispectral", TRENDS, MULTISPECTRAL_TOOLS, _trend
    ),
    "area_dominance": QuestionType(
        "Geospatial Reasoning", "multispectral", COVERS, MULTISPECTRAL_TOOLS, _dominant
    ),
    "counting": QuestionType("Object Counting", "vhr", COUNTS, VHR_TOOLS, _count),
    "spatial_relation": QuestionType(
        "Geospatial Reasoning", "vhr", DIRECTIONS, VHR_TOOLS, _direction
    ),
}
"""Every question type by its key."""
