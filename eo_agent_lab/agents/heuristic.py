"""The heuristic agent: reads the question, plans by rules, reads what the tools say, answers.

It sees what any language model sees, the question and the text of observations, and nothing of a
task's answer or reference. Where the evidence does not carry an answer it abstains and says why.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator
from typing import Any

import numpy as np

from eo_agent_lab.agents import tool_texts
from eo_agent_lab.agents.protocol import EpisodeView
from eo_agent_lab.agents.reading import Question, read_question
from eo_agent_lab.tasks.task import Task

MIN_VALID_SHARE = 0.2
"""Below this share of valid pixels a mean says little of its area, and no answer is given."""

TREND_THRESHOLD = 0.05
"""Difference of index means that counts as unchanged where no other measure is at hand."""

_Play = Generator[tuple[str, dict[str, Any]], str, str]

_MASKS = {"NDWI": "water", "NDVI": "vegetation", "NDBI": "urban"}
_AREA_WORDS = ("how much", "share", "area", "percent", "fraction", "cover")


class _AbstainError(Exception):
    """Raised inside a plan when the evidence does not carry an answer."""


class Heuristic:
    """A policy of rules.

    Attributes:
        evidence: One record per measurement of the current episode, as read from the tools' text:
            handle, date, sensor, gsd_m, valid_share, cloud_share (0 to 1), formula, bands, level,
            and mean with mean_se or share; a trend ends with a record of delta and delta_se.
    """

    name = "heuristic"

    def __init__(self) -> None:
        """Start with no evidence."""
        self.evidence: list[dict[str, Any]] = []
        self._play: _Play | None = None
        self._question = ""
        self._begun = False

    def start(self, task: Task | None, view: EpisodeView, rng: np.random.Generator) -> None:
        """Read the question; the task, were one given, is not looked at."""
        self.evidence = []
        self._question = view.question
        self._play = self._plan(read_question(view.question), list(view.images))
        self._begun = False

    def act(self, observation: EpisodeView) -> str:
        """Return the next action: a tool call, or the answer."""
        if self._play is None:
            return _answer("not answered: the episode was not started")
        try:
            if self._begun:
                name, arguments = self._play.send(observation.text)
            else:
                self._begun = True
                name, arguments = next(self._play)
        except StopIteration as finished:
            return _answer(str(finished.value))
        except _AbstainError as reason:
            return _answer(f"not answered: {reason}")
        return json.dumps({"name": name, "arguments": arguments})

    def _plan(self, question: Question, images: list[str]) -> _Play:
        handle = question.handle or (images[0] if images else None)
        if handle is None:
            raise _AbstainError("the question names no scene")
        plans = {
            "trend": self._trend,
            "cover": self._cover,
            "count": self._count,
            "relation": self._relation,
            "value": self._value,
        }
        if question.kind not in plans:
            raise _AbstainError("the rules do not cover what is asked")
        answer: str = yield from plans[question.kind](question, handle)
        return answer

    def _trend(self, question: Question, handle: str) -> _Play:
        first, second = yield from self._two_scenes(question, handle)
        measured = []
        for scene in (first, second):
            measured.append((yield from self._measure(question, scene)))
        measured.sort(key=lambda row: str(row["date"]))
        earlier, later = measured
        if earlier["level"] != later["level"]:
            raise _AbstainError(
                f"the radiometric levels differ ({earlier['level']} and {later['level']})"
            )
        delta = later["mean"] - earlier["mean"]
        errors = [row["mean_se"] for row in measured if row["mean_se"] is not None]
        error = math.hypot(*errors) if len(errors) == 2 else None
        self.evidence.append(
            {
                "index": question.index_name,
                "from": earlier["date"],
                "to": later["date"],
                "delta": delta,
                "delta_se": error,
            }
        )
        limit = question.threshold
        if limit is None:
            limit = TREND_THRESHOLD if error is None else 1.96 * error
        trend = "unchanged" if abs(delta) <= limit else "increased" if delta > 0 else "decreased"
        if question.choices:
            return trend
        interval = (
            "" if error is None else f" \u00b1 {1.96 * error:.4f} (95 %, spatial sampling alone)"
        )
        told = f"{question.theme} {trend}"
        if trend == "unchanged":
            told = f"no clear change of {question.theme}"
        return (
            f"{told}: mean {question.index_name} {earlier['mean']:.4f} on "
            f"{earlier['date']}, {later['mean']:.4f} on {later['date']}, change "
            f"{delta:+.4f}{interval}"
        )

    def _two_scenes(
        self, question: Question, handle: str
    ) -> Generator[tuple[str, dict[str, Any]], str, tuple[str, str]]:
        where: dict[str, Any] = {"multispectral_url": handle}
        if question.family:
            where["sensor"] = question.family
        dates = list(dict.fromkeys(question.dates))
        if question.search != "named" and (question.pivot or len(dates) < 2):
            date = {"date": question.pivot} if question.pivot else {}
            text = yield f"get_{question.search}_multispectral", {**where, **date}
            found = tool_texts.read_scenes(text)
            if not found:
                raise _AbstainError(_short(text))
            return found[0].handle, handle
        if len(dates) < 2:
            raise _AbstainError("the question names no two dates to compare")
        first, second = min(dates), max(dates)
        if question.captured in (first, second):
            missing = second if question.captured == first else first
            span = {"start_date": missing, "end_date": missing}
            text = yield "get_multispectral_list", {**where, **span}
            return self._on(text, missing), handle
        span = {"start_date": first, "end_date": second}
        text = yield "get_multispectral_list", {**where, **span}
        start = self._on(text, first)
        if not any(row.date == second for row in tool_texts.read_scenes(text)):
            # A long listing is cut short; the later date is then asked for alone.
            span = {"start_date": second, "end_date": second}
            text = yield "get_multispectral_list", {**where, **span}
        return start, self._on(text, second)

    @staticmethod
    def _on(text: str, date: str) -> str:
        found = next((row for row in tool_texts.read_scenes(text) if row.date == date), None)
        if found is None:
            raise _AbstainError(f"no observation of {date} is listed ({_short(text)})")
        return found.handle

    def _measure(
        self, question: Question, handle: str, tool: str | None = None
    ) -> Generator[tuple[str, dict[str, Any]], str, dict[str, Any]]:
        name = tool or f"compute_{str(question.index_name).lower()}_by_multispectral"
        arguments: dict[str, Any] = {"multispectral_url": handle}
        if question.aoi is not None:
            arguments["aoi"] = question.aoi
        text = yield name, arguments
        row = tool_texts.read_share(text) if "_mask_" in name else tool_texts.read_index(text)
        if row is None:
            raise _AbstainError(_short(text))
        self.evidence.append({"handle": handle, "tool": name, **row})
        valid = row["valid_share"]
        if valid is not None and valid < MIN_VALID_SHARE:
            raise _AbstainError(
                f"only {valid:.1%} of the area is valid on {row['date'] or 'that date'}, "
                f"{MIN_VALID_SHARE:.0%} are needed"
            )
        return row

    def _cover(self, question: Question, handle: str) -> _Play:
        shares = {}
        for kind, cover in (
            ("water", "water"),
            ("vegetation", "vegetation"),
            ("urban", "built-up"),
        ):
            tool = f"compute_{kind}_mask_by_multispectral"
            row = yield from self._measure(question, handle, tool)
            shares[cover] = row["share"]
        best = max(shares, key=lambda cover: shares[cover])
        if question.choices:
            return best
        listed = ", ".join(f"{cover} {share:.1%}" for cover, share in shares.items())
        return f"{best}: {listed} of the valid pixels"

    def _count(self, question: Question, handle: str) -> _Play:
        counts = []
        for name in question.objects[:2]:
            text = yield from self._detect(handle, name)
            counts.append(tool_texts.read_count(text))
        if len(counts) < 2:
            return str(counts[0])
        expression = f"{counts[0]} {question.operation} {counts[1]}"
        text = yield "basic_calculator", {"expression": expression}
        total = tool_texts.read_result(text)
        if total is None:
            raise _AbstainError(_short(text))
        return f"{total:g}"

    def _detect(self, handle: str, name: str) -> Generator[tuple[str, dict[str, Any]], str, str]:
        text = yield "get_object_bbox_by_optical_image", {"image_url": handle, "prompt": name}
        if tool_texts.read_count(text) is None:
            raise _AbstainError(_short(text))
        self.evidence.append(
            {"handle": handle, "objects": name, "count": tool_texts.read_count(text)}
        )
        return text

    def _relation(self, question: Question, handle: str) -> _Play:
        boxes = []
        for name in question.objects[:2]:
            found = tool_texts.read_boxes((yield from self._detect(handle, name)))
            if len(found) != 1:
                raise _AbstainError(f"there are {len(found)} objects of the kind {name}, not one")
            boxes.append(found[0])
        text = yield (
            "get_bbox_geospatial_relationship",
            {"box_a": boxes[0], "box_b": boxes[1]},
        )
        where = tool_texts.read_direction(text)
        if where is None:
            raise _AbstainError(_short(text))
        return where

    def _value(self, question: Question, handle: str) -> _Play:
        day = question.dates[0] if question.dates else None
        if day and day != question.captured:
            text = yield (
                "get_multispectral_list",
                {"multispectral_url": handle, "start_date": day, "end_date": day},
            )
            handle = self._on(text, day)
        mask = _MASKS.get(str(question.index_name))
        wants_area = any(word in self._question.lower() for word in _AREA_WORDS)
        if mask and wants_area:
            tool = f"compute_{mask}_mask_by_multispectral"
            row = yield from self._measure(question, handle, tool)
            return f"{row['share']:.1%} of the valid pixels"
        row = yield from self._measure(question, handle)
        return f"{row['mean']:.4f}"


def _answer(text: str) -> str:
    return json.dumps({"answer": text})


def _short(text: str) -> str:
    """Return what a tool said, without its mark and cut to a readable length."""
    said = " ".join(text.removeprefix("Error:").split())
    return said if len(said) <= 240 else f"{said[:240]}..."
