"""``python -m eo_agent_lab.evaluate``: score runs into one file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from eo_agent_lab import paths
from eo_agent_lab.errors import EOLabError
from eo_agent_lab.evaluate.bootstrap import CONFIDENCE, RESAMPLES
from eo_agent_lab.evaluate.scores import evaluate_runs, find_runs


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the return value is the exit code."""
    parser = argparse.ArgumentParser(prog="python -m eo_agent_lab.evaluate", description=__doc__)
    parser.add_argument("--tasks", type=Path, default=paths.TASKS, help="task file or its folder")
    parser.add_argument("--runs", type=Path, default=paths.RUNS, help="a run, or a folder of runs")
    parser.add_argument("--out", type=Path, default=paths.DATA / "reports" / "scores.json")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap")
    parser.add_argument("--resamples", type=int, default=RESAMPLES)
    parser.add_argument("--confidence", type=float, default=CONFIDENCE)
    parser.add_argument("--aggregate", choices=("mean", "sum"), default="mean")
    chosen = parser.parse_args(arguments)
    try:
        evaluate_runs(
            chosen.tasks,
            find_runs(chosen.runs),
            chosen.out,
            seed=chosen.seed,
            resamples=chosen.resamples,
            confidence=chosen.confidence,
            aggregate=chosen.aggregate,
        )
    except EOLabError as error:
        sys.stderr.write(f"evaluate: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
