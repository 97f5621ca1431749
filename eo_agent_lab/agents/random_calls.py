"""The random agent: a few valid tool calls, then one of the stated choices, drawn evenly."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from eo_agent_lab.agents.protocol import EpisodeView
from eo_agent_lab.agents.reading import read_choices
from eo_agent_lab.agents.tool_texts import read_handles
from eo_agent_lab.perception.recorded import known_words
from eo_agent_lab.tools import list_tools

MAX_CALLS = 4

_THEMES = ("vegetation", "water", "urban", "snow")
_SENSORS = ("sentinel-2", "landsat")
_FIRST_YEAR, _YEARS = 2015, 10


class RandomCalls:
    """A policy that draws everything: the floor under every other agent.

    Its score is the chance level, one over the number of choices, whatever its calls return.
    """

    name = "random"

    def __init__(self) -> None:
        """Wait for an episode."""
        self._rng = np.random.default_rng(0)
        self._left = 0
        self._choices: list[str] = []
        self._tools: list[tuple[str, dict[str, Any]]] = []
        self._handles: list[str] = []

    def start(self, task: object, view: EpisodeView, rng: np.random.Generator) -> None:
        """Draw how many calls to make; note the choices and the tools on offer."""
        self._rng = rng
        self._left = int(rng.integers(1, MAX_CALLS + 1))
        self._choices = read_choices(view.question)
        offered = set(view.tools)
        self._tools = [
            (item.name, item.parameters) for item in list_tools("eo_gym") if item.name in offered
        ]
        self._handles = list(view.images)

    def act(self, observation: EpisodeView) -> str:
        """Return a valid call, or at the end one of the choices."""
        self._handles = list(dict.fromkeys([*self._handles, *read_handles(observation.text)]))
        possible = [item for item in self._tools if self._fits(item[1])]
        if self._left == 0 or not possible:
            return json.dumps({"answer": self._draw(self._choices) if self._choices else "unknown"})
        self._left -= 1
        name, schema = possible[int(self._rng.integers(len(possible)))]
        return json.dumps({"name": name, "arguments": self._arguments(schema)})

    def _draw(self, options: Any) -> Any:
        return options[int(self._rng.integers(len(options)))]

    def _known(self, argument: str) -> list[str]:
        """Return the handles that an argument can take: masks, or scenes and crops."""
        if argument.startswith("mask_"):
            return [handle for handle in self._handles if handle.endswith(".tif")]
        return [handle for handle in self._handles if not handle.endswith(".tif")]

    def _fits(self, schema: dict[str, Any]) -> bool:
        return all(
            self._known(name) for name in schema.get("required", []) if name.endswith("_url")
        )

    def _arguments(self, schema: dict[str, Any]) -> dict[str, Any]:
        required = schema.get("required", [])
        drawn = {}
        for name, record in schema.get("properties", {}).items():
            if name in required or self._rng.random() < 0.5:
                drawn[name] = self._value(name, record)
        return drawn

    def _value(self, name: str, record: dict[str, Any]) -> Any:
        if name.endswith("_url"):
            return self._draw(self._known(name))
        if name.endswith("date"):
            year = _FIRST_YEAR + int(self._rng.integers(_YEARS))
            month, day = int(self._rng.integers(1, 13)), int(self._rng.integers(1, 29))
            return f"{year}-{month:02d}-{day:02d}"
        if name == "aoi":
            low, size = self._rng.uniform(0, 0.5, 2), self._rng.uniform(0.2, 0.5, 2)
            return [round(float(v), 3) for v in (*low, *(low + size))]
        if name.startswith("box_"):
            low, size = self._rng.uniform(0, 200, 2), self._rng.uniform(1, 50, 2)
            return [round(float(v), 1) for v in (*low, *(low + size))]
        words = {"sensor": _SENSORS, "theme": _THEMES, "prompt": known_words()}
        if name in words:
            return self._draw(words[name])
        if name == "expression":
            first, second = (int(v) for v in self._rng.integers(1, 20, 2))
            return f"{first} {self._draw('+-*')} {second}"
        return self._by_type(record)

    def _by_type(self, record: dict[str, Any]) -> Any:
        """Draw a value of any other argument from its JSON Schema."""
        if "enum" in record:
            return self._draw(record["enum"])
        if "anyOf" in record:
            return self._by_type(
                self._draw([r for r in record["anyOf"] if r.get("type") != "null"])
            )
        kind = record.get("type")
        if kind == "array":
            size = max(int(record.get("minItems", 1)), 1)
            return [self._by_type(record.get("items", {})) for _ in range(size)]
        if kind == "integer":
            return int(self._rng.integers(0, 10))
        if kind == "number":
            return round(float(self._rng.uniform(-1, 1)), 3)
        if kind == "boolean":
            return bool(self._rng.integers(2))
        return {} if kind == "object" else "text"
