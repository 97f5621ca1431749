"""One episode: a question, tool calls within a budget, an answer. Knows nothing of Gymnasium."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from eo_agent_lab.env.action import AnswerAction, ToolAction, parse_action, replace_surrogates
from eo_agent_lab.env.texts import cut, fill, scene_header
from eo_agent_lab.errors import RunError, ToolError
from eo_agent_lab.lake import Lake
from eo_agent_lab.tasks.judging import is_correct
from eo_agent_lab.tasks.task import Task
from eo_agent_lab.tasks.trajectory import CallRecord, Ending, Trajectory
from eo_agent_lab.tools import Observation, Workspace, call_tool, list_tools

MAX_CALLS = 15
"""EO-Gym's budget of calls (appendix A.3)."""

SUITE = "eo_gym"

_SHOWN_ACTION_CHARS = 500


class Sight(NamedTuple):
    """The picture an agent looks at: a handle, and boxes [x0, y0, x1, y1] in its pixels."""

    handle: str
    boxes: tuple[tuple[float, ...], ...] = ()


class EpisodeView(NamedTuple):
    """What an agent sees after an action, or at the start.

    Attributes:
        text: The observation, at most 8,000 characters.
        question: The task's question.
        images: Handles of the start images.
        tools: Names of the tools offered.
        data: The last call's result as a JSON value, None at the start and after an error.
        is_error: True when the last action did nothing; ``text`` then says what to do.
        calls_left: Calls that remain.
        sight: The current picture, None when there is none.
    """

    text: str
    question: str
    images: tuple[str, ...]
    tools: tuple[str, ...]
    data: Any = None
    is_error: bool = False
    calls_left: int = MAX_CALLS
    sight: Sight | None = None


class Step(NamedTuple):
    """What an action led to; ``reward`` is 1.0 for a right answer and 0.0 for anything else."""

    observation: EpisodeView
    reward: float
    terminated: bool
    truncated: bool


class Episode:
    """Plays one task at a time; :meth:`reset` starts the next.

    Neither the gold answer nor the reference ever stands in an observation or in a message.

    Args:
        lake: Where handles are looked up.
        max_calls: Budget of calls; an invalid action counts as one.
        workspace_root: Each episode gets a fresh folder below, removed by :meth:`close`.
        seed: Distinguishes the ids of calls between rollouts of one task.

    Attributes:
        task: The current task.
        calls: Its calls so far.
        messages: The chat so far, in OpenAI's format.
        answer: The final answer, None before and when the agent gave up.
        ending: Why the episode is over, None while it is under way.
        workspace: Its folder, None before :meth:`reset` and after :meth:`close`.
    """

    def __init__(
        self, lake: Lake, *, max_calls: int = MAX_CALLS, workspace_root: Path, seed: int = 0
    ) -> None:
        """Keep the settings; nothing is made until :meth:`reset`.

        Raises:
            RunError: The budget is not positive.
        """
        if max_calls < 1:
            raise RunError(f"max_calls is {max_calls}; an episode needs at least one call")
        self.lake = lake
        self.max_calls = max_calls
        self.seed = seed
        self._workspace_root = workspace_root
        self.task: Task | None = None
        self.workspace: Workspace | None = None
        self._clear()

    def _clear(self) -> None:
        self.calls: list[CallRecord] = []
        self.messages: list[dict[str, Any]] = []
        self.sights: list[Sight | None] = []
        self.answer: str | None = None
        self.ending: Ending | None = None

    @property
    def judged(self) -> bool:
        """True when an answer can be judged: the task carries its gold answer."""
        return self.task is not None and self.task.gold_answer is not None

    @property
    def calls_left(self) -> int:
        """Calls that remain."""
        return self.max_calls - len(self.calls)

    def reset(self, task: Task) -> EpisodeView:
        """Begin an episode in a fresh workspace.

        Raises:
            LakeError: A start image is not in the lake.
            ToolError: The task offers a tool that does not exist.
        """
        self.close()
        self._clear()
        self.task = task
        known = {item.name: item.signature() for item in list_tools(SUITE)}
        missing = [name for name in task.tools if name not in known]
        if missing:
            raise ToolError(
                f"task {task.task_id} offers no such tool {missing[0]!r}; mend the task"
            )
        headers = [scene_header(n, self.lake.get(h)) for n, h in enumerate(task.images, start=1)]
        text = fill(
            "start",
            question=cut(task.question, 4_000),
            images="\n".join(headers) or "none",
            tools="\n".join(f"- {known[name]}" for name in task.tools) or "none",
            calls_left=self.max_calls,
        )
        self._workspace_root.mkdir(parents=True, exist_ok=True)
        root = tempfile.mkdtemp(prefix="episode-", dir=self._workspace_root)
        self.workspace = Workspace(root, self.lake)
        self.sights = [Sight(task.images[0]) if task.images else None]
        self.messages = [{"role": "user", "content": cut(text)}]
        return self._view(task, cut(text), None, False)

    def step(self, action: object) -> Step:
        """Carry out an action: JSON text of a tool call or an answer; anything else is answered.

        Raises:
            RunError: No episode is under way.
        """
        if self.task is None or self.workspace is None or self.ending is not None:
            raise RunError("no episode is under way; call reset first")
        try:
            parsed = parse_action(action)
        except ToolError as error:
            text = fill("bad_action", problem=error)
            return self._called(self.task, None, action, Observation(text=text, is_error=True))
        if isinstance(parsed, AnswerAction):
            return self._answered(self.task, parsed.answer)
        begin = time.perf_counter()
        if parsed.name in self.task.tools:
            seen = call_tool(parsed.name, parsed.arguments, self.workspace, SUITE)
        else:
            offered = ", ".join(self.task.tools) or "none"
            text = fill("not_offered", name=parsed.name[:80], tools=offered)
            seen = Observation(text=text, is_error=True)
        seconds = time.perf_counter() - begin
        return self._called(self.task, parsed, action, seen, seconds)

    def _called(
        self,
        task: Task,
        call: ToolAction | None,
        action: object,
        seen: Observation,
        seconds: float = 0.0,
    ) -> Step:
        text = cut(seen.text)
        record = CallRecord(
            name=call.name if call else None,
            arguments=call.arguments if call else {},
            observation=text,
            data=seen.data,
            images=seen.images,
            files=seen.files,
            is_error=seen.is_error,
            seconds=seconds,
        )
        self._tell(task, call, action, text)
        self.calls.append(record)
        self.sights.append(sight_after(record, self.sights[-1]))
        truncated = self.calls_left == 0
        if truncated:
            self.ending = "out_of_calls"
        return Step(self._view(task, text, seen.data, seen.is_error), 0.0, False, truncated)

    def _tell(self, task: Task, call: ToolAction | None, action: object, text: str) -> None:
        """Write an action and its observation into the chat."""
        if call is None:
            said = action if isinstance(action, str) else f"({type(action).__name__})"
            content = replace_surrogates(said[:_SHOWN_ACTION_CHARS])
            self.messages.append({"role": "assistant", "content": content})
            self.messages.append({"role": "user", "content": text})
            return
        key = f"{self.seed}\x1f{task.task_id}\x1f{len(self.calls)}"
        call_id = f"call_{hashlib.sha256(key.encode()).hexdigest()[:12]}"
        function = {
            "name": call.name,
            "arguments": json.dumps(call.arguments, ensure_ascii=False),
        }
        self.messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            }
        )
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": text})

    def _answered(self, task: Task, answer: str | None) -> Step:
        self.answer = answer
        self.ending = "gave_up" if answer is None else "answered"
        said = "I give up." if answer is None else answer
        self.messages.append({"role": "assistant", "content": said})
        right = answer is not None and self.judged and is_correct(task, answer)
        text = "The episode is over."
        return Step(self._view(task, text, None, False), float(right), True, False)

    def _view(self, task: Task, text: str, data: Any, is_error: bool) -> EpisodeView:
        return EpisodeView(
            text=text,
            question=task.question,
            images=tuple(task.images),
            tools=tuple(task.tools),
            data=data,
            is_error=is_error,
            calls_left=self.calls_left,
            sight=self.sights[-1],
        )

    def trajectory(
        self,
        *,
        sample: int,
        agent: str,
        setting: str,
        seed: int,
        code_version: str,
        temperature: float | None = None,
        error: str | None = None,
        seconds: float = 0.0,
    ) -> Trajectory:
        """Return the record of the episode; with an ``error`` it ends as crashed.

        Raises:
            RunError: The episode is still under way and no error is given.
        """
        ending: Ending | None = "crashed" if error is not None else self.ending
        if self.task is None or ending is None:
            raise RunError("the episode is not over; play on, or say what error ended it")
        return Trajectory(
            task_id=self.task.task_id,
            sample=sample,
            agent=agent,
            setting=setting,
            seed=seed,
            temperature=temperature,
            code_version=code_version,
            messages=list(self.messages),
            calls=list(self.calls),
            answer=self.answer,
            ending=ending,
            error=error,
            seconds=seconds,
        )

    def close(self) -> None:
        """Remove the workspace; the record stays. A second call does nothing."""
        if self.workspace is not None:
            # what cannot be removed now goes with the folder above it, which its owner removes
            shutil.rmtree(self.workspace.root, ignore_errors=True)
            self.workspace = None


def sight_after(call: CallRecord, before: Sight | None) -> Sight | None:
    """Return what an agent looks at after a call: what it fetched, cut out, masked or measured."""
    if call.is_error:
        return before
    data = call.data if isinstance(call.data, dict) else {}
    used = [str(value) for key, value in call.arguments.items() if key.endswith("_url")]
    if "boxes" in data and used:
        return Sight(used[0], tuple(tuple(map(float, box)) for box in data["boxes"]))
    for key in ("mask", "handle"):
        if isinstance(data.get(key), str):
            return Sight(data[key])
    return Sight(used[0]) if used else before
