"""What a tool gives back."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Observation(BaseModel):
    """The answer to one tool call.

    Attributes:
        text: What a model reads.
        data: The same as a bare JSON value (number, string, list, object), or None.
        images: Workspace-relative paths of pictures the agent may look at.
        files: Workspace-relative paths of what the call wrote.
        is_error: True when nothing was done; ``text`` then says what to do instead.
    """

    model_config = ConfigDict(extra="forbid")

    text: str
    data: Any = None
    images: list[str] = Field(default_factory=list)
    files: list[str] = Field(default_factory=list)
    is_error: bool = False
