"""The Trajectory contract: everything that happened in one rollout of one task."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT = "eo_agent_lab.trajectories"
VERSION = 1

Ending = Literal["answered", "out_of_calls", "gave_up", "crashed"]


class CallRecord(BaseModel):
    """One action of the agent that was not a final answer, and what came back.

    ``name`` is None when the action was not a tool call at all (broken JSON, say).
    """

    model_config = ConfigDict(extra="forbid")

    name: str | None
    arguments: dict[str, Any] = Field(default_factory=dict)
    observation: str
    data: Any = None
    images: list[str] = Field(default_factory=list)
    files: list[str] = Field(default_factory=list)
    is_error: bool
    seconds: float = 0.0


class Trajectory(BaseModel):
    """One finished rollout, in the order it happened.

    Attributes:
        messages: The whole chat, OpenAI message format with ``tool_calls``.
        calls: The same calls, flat, with their observations.
        answer: The final answer, None when there is none.
        ending: Why the rollout stopped.
        error: What went wrong inside the agent when ``ending`` is ``crashed``.
        seconds: Wall time; the only field besides ``CallRecord.seconds`` that differs between
            two runs of the same configuration.
    """

    model_config = ConfigDict(extra="forbid")

    task_id: str
    sample: int
    agent: str
    setting: str
    seed: int
    temperature: float | None = None
    code_version: str
    messages: list[dict[str, Any]]
    calls: list[CallRecord]
    answer: str | None
    ending: Ending
    error: str | None = None
    seconds: float = 0.0
