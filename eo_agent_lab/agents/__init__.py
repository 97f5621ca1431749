"""Policies: what chooses the next action of an episode.

:func:`make` builds one by name. A policy's module is imported when it is asked for, so that an
agent that needs a heavy library costs nothing until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eo_agent_lab.errors import ConfigError

if TYPE_CHECKING:
    from eo_agent_lab.agents.protocol import Policy

AGENTS = ("expert", "heuristic", "random", "blind", "scripted")
"""Every name that :func:`make` knows."""


def make(name: str, **options: Any) -> Policy:
    """Return a new policy.

    Args:
        name: One of :data:`AGENTS`.
        **options: ``blind`` takes ``train_tasks``, a list of tasks with answers to learn from, or
            ``table``, a kind of question to answer; ``scripted`` takes its module's arguments.

    Raises:
        ConfigError: The name is unknown, or an option does not fit the agent.
    """
    if name not in AGENTS:
        raise ConfigError(f"no agent {name!r}; there are {', '.join(AGENTS)}")
    try:
        return _build(name, options)
    except TypeError as error:
        raise ConfigError(f"agent {name!r} cannot be made: {error}; check its options") from error


def _build(name: str, options: dict[str, Any]) -> Policy:
    if name == "expert":
        from eo_agent_lab.agents.expert import Expert

        return Expert(**options)
    if name == "heuristic":
        from eo_agent_lab.agents.heuristic import Heuristic

        return Heuristic(**options)
    if name == "random":
        from eo_agent_lab.agents.random_calls import RandomCalls

        return RandomCalls(**options)
    if name == "blind":
        from eo_agent_lab.agents.blind import Blind, majority_answers

        if "train_tasks" in options:
            train_tasks = options.pop("train_tasks")
            options["table"] = majority_answers(train_tasks)
        return Blind(**options)
    from eo_agent_lab.agents.scripted import Scripted

    return Scripted(**options)
