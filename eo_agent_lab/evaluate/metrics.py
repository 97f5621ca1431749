"""EO-Gym's metrics of one question, from its attempts; namespaced ``eo_gym``.

Definitions are those of EO-Gym, section 5 ("Evaluation metrics") and appendix D.1.1. Another system
uses the same names for other things: its metrics belong in a module of their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from eo_agent_lab.errors import RunError
from eo_agent_lab.tasks.trajectory import CallRecord, Trajectory

NAMESPACE = "eo_gym"

Aggregate = Literal["mean", "sum"]


class Metric(NamedTuple):
    """One metric: its column, its heading, the decimals shown, its greatest value if it has one.

    Every metric is 0 at least; all but the tool-call ratio are rates.
    """

    key: str
    title: str
    decimals: int
    upper: float | None = 1.0


METRICS: dict[str, Metric] = {
    metric.key: metric
    for metric in (
        Metric("tool_call_ratio", "Tool-call ratio", 2, None),
        Metric("illegal_rate", "Illegal err.", 3),
        Metric("any_order", "Tool-any", 3),
        Metric("zero_call_rate", "Zero-call rate", 4),
        Metric("exact_match", "Tool exact", 3),
        Metric("in_order", "Tool in-order", 3),
    )
}
"""What stands beside Pass@k, by column."""


def pass_key(k: int) -> str:
    """Return the column of Pass@k."""
    return f"pass_at_{k}"


def metric_of(key: str) -> Metric:
    """Return the metric that a column holds.

    Raises:
        RunError: There is none.
    """
    if key in METRICS:
        return METRICS[key]
    head, _, k = key.rpartition("_")
    if head == "pass_at" and k.isdecimal():
        return Metric(key, f"Pass@{k}", 2)
    raise RunError(f"no metric {key!r}; there are pass_at_K, {', '.join(METRICS)}")


class Attempt(NamedTuple):
    """What the metrics need of one rollout.

    ``called`` are the names of its calls in order; None stands for an action that was no call.
    """

    correct: bool
    called: tuple[str | None, ...]
    illegal: int


def pass_at_k(n: int, c: int, k: int) -> float:
    """Estimate, without bias, the chance that one of ``k`` samples is right.

    ``1 - C(n-c, k) / C(n, k)``, Chen et al. (2021), doi:10.48550/arXiv.2107.03374, equation 1.
    Computed in whole numbers and divided once, so nothing overflows or cancels.

    Args:
        n: Samples drawn.
        c: Right ones among them.
        k: Samples allowed, 1 to ``n``.

    Raises:
        RunError: ``0 <= c <= n`` or ``1 <= k <= n`` does not hold.
    """
    if not (0 <= c <= n and 1 <= k <= n):
        raise RunError(
            f"Pass@{k} of {c} right among {n} samples is not defined; it needs 0 <= c <= n, "
            "1 <= k <= n: draw more samples or ask for a smaller k"
        )
    ways = math.comb(n, k)
    return (ways - math.comb(n - c, k)) / ways


def is_illegal(call: CallRecord) -> bool:
    """Tell whether a call's observation is missing, empty or an error."""
    return call.is_error or not call.observation.strip()


def attempt_of(trajectory: Trajectory, *, right: bool, count_zero_call: bool = False) -> Attempt:
    """Return a rollout as an attempt; one without any call fails, as EO-Gym defines (C.3.2).

    Args:
        trajectory: The rollout.
        right: Whether its final answer was judged right.
        count_zero_call: Let a right answer count without a call: for agents that have no tools.
    """
    called = tuple(call.name for call in trajectory.calls)
    illegal = sum(is_illegal(call) for call in trajectory.calls)
    return Attempt(right and (bool(called) or count_zero_call), called, illegal)


def consumed(attempts: Sequence[Attempt]) -> Sequence[Attempt]:
    """Return the attempts up to and with the first right one; all when none is right."""
    first = next((i for i, attempt in enumerate(attempts) if attempt.correct), len(attempts) - 1)
    return attempts[: first + 1]


def exact_match(reference: Sequence[str], called: Sequence[str | None]) -> bool:
    """Tell whether the calls are the reference's, in its order, and no others."""
    return list(reference) == list(called)


def in_order_match(reference: Sequence[str], called: Sequence[str | None]) -> bool:
    """Tell whether the whole reference is a subsequence of the calls."""
    remaining = iter(called)
    return all(name in remaining for name in reference)


def any_order_match(reference: Sequence[str], called: Sequence[str | None]) -> bool:
    """Tell whether the calls hold each reference call as often as the reference does."""
    return not Counter(reference) - Counter(name for name in called if name is not None)


def question_metrics(
    attempts: Sequence[Attempt], reference: Sequence[str], *, aggregate: Aggregate = "mean"
) -> dict[str, float]:
    """Compute every metric of one question but Pass@k.

    Args:
        attempts: All attempts, in sample order.
        reference: Names of the reference calls.
        aggregate: Whether the calls of consumed attempts are averaged or summed before they are
            divided by the reference calls; the paper leaves it open.

    Returns:
        The keys of :data:`METRICS`; NaN where a metric is not defined: the tool-call ratio without
        reference calls, the illegal rate without consumed calls.

    Raises:
        RunError: There is no attempt, or the aggregate is unknown.
    """
    if not attempts:
        raise RunError("a question without attempts has no metrics; play it first")
    if aggregate not in ("mean", "sum"):
        raise RunError(f"no aggregate {aggregate!r}; use 'mean' or 'sum'")
    used = consumed(attempts)
    calls = sum(len(attempt.called) for attempt in used)
    total = calls / len(used) if aggregate == "mean" else calls
    return {
        "tool_call_ratio": total / len(reference) if reference else math.nan,
        "illegal_rate": sum(a.illegal for a in used) / calls if calls else math.nan,
        "zero_call_rate": _share(not attempt.called for attempt in attempts),
        "exact_match": _share(exact_match(reference, attempt.called) for attempt in used),
        "in_order": _share(in_order_match(reference, attempt.called) for attempt in used),
        "any_order": _share(any_order_match(reference, attempt.called) for attempt in used),
    }


def _share(flags: Iterable[bool]) -> float:
    values = list(flags)
    return sum(values) / len(values)
