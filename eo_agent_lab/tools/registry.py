"""The tool registry. A tool's signature and docstring are its schema; there is no second place."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from eo_agent_lab.errors import EOLabError, ToolError
from eo_agent_lab.tools.observation import Observation
from eo_agent_lab.tools.workspace import Workspace

Protocol = Literal["literature", "released"]
Effect = Literal["reads", "writes"]
ToolFunction = Callable[..., Observation]

FAMILIES = ("eo_agent_lab.tools.eo_gym",)
"""Packages whose modules register tools when imported; adding a file there adds its tools."""


class Context(NamedTuple):
    """What a tool gets besides its arguments."""

    workspace: Workspace
    protocol: Protocol = "literature"


class Tool(NamedTuple):
    """One registered tool; ``parameters`` is the JSON Schema of its arguments."""

    name: str
    suite: str
    description: str
    parameters: dict[str, Any]
    effect: Effect
    function: ToolFunction
    arguments: type[BaseModel]

    def signature(self) -> str:
        """Return the tool as one line, ``name(argument: type, optional?: type)``."""
        parts = []
        required = self.parameters.get("required", [])
        for name, schema in self.parameters.get("properties", {}).items():
            mark = "" if name in required else "?"
            parts.append(f"{name}{mark}: {_short_type(schema)}")
        return f"{self.name}({', '.join(parts)})"


_REGISTRY: dict[tuple[str, str], Tool] = {}


def _short_type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return "|".join(_short_type(s) for s in schema["anyOf"] if s.get("type") != "null")
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"[{_short_type(schema.get('items', {}))}]"
    return str(schema.get("type", "any"))


def tool(*, suite: str, effect: Effect = "reads") -> Callable[[ToolFunction], ToolFunction]:
    """Register a function as a tool.

    Its first parameter takes the :class:`Context`; every other one is an argument, described in
    the docstring's ``Args:`` section.

    Raises:
        ToolError: An argument has no description or no type, or the name is taken.
    """

    def register(function: ToolFunction) -> ToolFunction:
        name = function.__name__
        if (suite, name) in _REGISTRY:
            raise ToolError(f"tool {name!r} is registered twice in suite {suite!r}")
        description, documented = _parse_docstring(function)
        hints = typing.get_type_hints(function, include_extras=True)
        fields: dict[str, Any] = {}
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            if parameter.name not in documented or parameter.name not in hints:
                raise ToolError(
                    f"argument {parameter.name!r} of tool {name!r} needs a type and a line under "
                    "Args: in the docstring"
                )
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[parameter.name] = (
                hints[parameter.name],
                Field(default, description=documented[parameter.name]),
            )
        model = create_model(
            name,
            __config__=ConfigDict(strict=True, extra="forbid", allow_inf_nan=False),
            **fields,
        )
        schema = model.model_json_schema()
        schema.pop("title", None)
        for prop in schema.get("properties", {}).values():
            prop.pop("title", None)
        _REGISTRY[suite, name] = Tool(name, suite, description, schema, effect, function, model)
        return function

    return register


def _parse_docstring(function: ToolFunction) -> tuple[str, dict[str, str]]:
    text = inspect.getdoc(function) or ""
    if not text:
        raise ToolError(
            f"tool {function.__name__!r} has no docstring; it is the tool's description"
        )
    head, _, rest = text.partition("\nArgs:\n")
    section = re.split(r"\n(?:Returns|Raises):\n", rest)[0]
    documented: dict[str, str] = {}
    current = ""
    for line in section.splitlines():
        match = re.match(r"\s{4}(\w+): (.*)", line)
        if match and not line.startswith(" " * 8):
            current = match[1]
            documented[current] = match[2].strip()
        elif current and line.strip():
            documented[current] += " " + line.strip()
    body = re.split(r"\n(?:Returns|Raises):\n", head)[0]
    return " ".join(body.split()), documented


@cache
def _load_families() -> None:
    for family in FAMILIES:
        package = importlib.import_module(family)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{family}.{module.name}")


def list_tools(suite: str | None = None) -> list[Tool]:
    """Return registered tools, by suite and name.

    Raises:
        ToolError: No suite has this name.
    """
    _load_families()
    found = [item for key, item in sorted(_REGISTRY.items()) if suite in (None, key[0])]
    if suite is not None and not found:
        raise ToolError(
            f"no suite {suite!r}; there are {', '.join(sorted({k[0] for k in _REGISTRY}))}"
        )
    return found


def get_tool(name: str, suite: str | None = None) -> Tool:
    """Return one tool.

    Raises:
        ToolError: The name is unknown, or stands in several suites and none was named.
    """
    found = [item for item in list_tools(suite) if item.name == name]
    if not found:
        import difflib

        names = [item.name for item in list_tools(suite)]
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"tools: {', '.join(names)}"
        raise ToolError(f"there is no tool {name[:80]!r}; {hint}")
    if len(found) > 1:
        suites = ", ".join(item.suite for item in found)
        raise ToolError(f"tool {name!r} is in several suites ({suites}); name one")
    return found[0]


def _validated(name: str, arguments: Any, suite: str | None) -> tuple[Tool, dict[str, Any]]:
    if not isinstance(name, str):
        raise ToolError(f"a tool's name is a string, not {type(name).__name__}")
    found = get_tool(name, suite)
    if not isinstance(arguments, dict):
        raise ToolError(
            f"the arguments of {name} must be an object, not {type(arguments).__name__}; call it "
            f"as {found.signature()}"
        )
    try:
        model = found.arguments.model_validate(arguments)
    except ValidationError as error:
        problems = "; ".join(_problem(item) for item in error.errors()[:5])
        raise ToolError(f"{problems}. Call it as {found.signature()}") from error
    except RecursionError as error:
        raise ToolError(f"the arguments of {name} are nested too deeply") from error
    return found, {key: getattr(model, key) for key in type(model).model_fields}


def _problem(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "arguments"
    kind = error["type"]
    if kind == "missing":
        return f"argument {where!r} is missing"
    if kind == "extra_forbidden":
        return f"there is no argument {where[:60]!r}"
    return f"argument {where!r}: {error['msg']}, got {str(error.get('input'))[:60]!r}"


def validate_call(name: str, arguments: dict[str, Any], suite: str | None = None) -> None:
    """Check a call without carrying it out.

    Raises:
        ToolError: The tool is unknown or the arguments do not fit its schema.
    """
    _validated(name, arguments, suite)


def call_tool(
    name: str,
    arguments: dict[str, Any],
    workspace: Workspace | str | Path,
    suite: str | None = None,
    protocol: Protocol = "literature",
) -> Observation:
    """Carry out one tool call; a bad call gives an observation that says what to do.

    Args:
        name: The tool.
        arguments: Its arguments, by name.
        workspace: The folder that the call may read and write, or a :class:`Workspace`.
        suite: Which suite the name belongs to; needed only where a name stands in several.
        protocol: ``literature``, or ``released`` to reproduce a published tool's quirk.

    Returns:
        The observation; ``is_error`` is True when nothing was done.
    """
    try:
        if protocol not in typing.get_args(Protocol):
            raise ToolError(f"no protocol {protocol!r}; use 'literature' or 'released'")
        place = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
        found, checked = _validated(name, arguments, suite)
        return found.function(Context(place, protocol), **checked)
    except EOLabError as error:
        return Observation(text=f"Error: {error}", is_error=True)
    except (MemoryError, OSError) as error:
        return Observation(
            text=f"Error: {name} ran out of memory or disk ({type(error).__name__}); ask for a "
            "smaller aoi",
            is_error=True,
        )
