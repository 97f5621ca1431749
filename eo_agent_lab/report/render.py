"""Running a render notebook: parameters in, files out, the executed copy kept for a look."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eo_agent_lab.errors import ConfigError
from eo_agent_lab.paths import DATA

KERNEL = "python3"
EXECUTED = DATA / "executed"


def render(
    notebook: Path,
    parameters: Mapping[str, Any],
    *,
    out: Path | None = None,
    progress: bool = False,
) -> Path:
    """Execute a notebook with papermill, in the current folder.

    Args:
        notebook: The notebook; it has one cell tagged ``parameters``.
        parameters: Values for that cell; paths are passed as text.
        out: The executed copy; ``data/executed/<name>`` when left out. It holds times, so it is no
            result: the files that the notebook writes are.
        progress: Show a progress bar.

    Returns:
        The executed copy.

    Raises:
        ConfigError: The notebook is absent, has no cell of parameters, does not know one of them,
            or fails.
    """
    if not notebook.is_file():
        raise ConfigError(f"no notebook at {notebook.resolve()}; run in a checkout's root")
    unknown = set(parameters) - _declared(notebook)
    if unknown:
        raise ConfigError(
            f"{notebook.name} has no parameters {', '.join(sorted(unknown))}; see its tagged cell"
        )
    import papermill
    from papermill.exceptions import PapermillExecutionError

    target = out or EXECUTED / notebook.name
    target.parent.mkdir(parents=True, exist_ok=True)
    values = {key: str(v) if isinstance(v, Path) else v for key, v in parameters.items()}
    try:
        papermill.execute_notebook(
            str(notebook),
            str(target),
            parameters=values,
            kernel_name=KERNEL,
            progress_bar=progress,
            cwd=str(Path.cwd()),
            # the kernel reports its own orderly shutdown as an error; cells fail through papermill
            extra_arguments=["--log-level=CRITICAL"],
        )
    except PapermillExecutionError as error:
        raise ConfigError(
            f"{notebook.name} failed in cell {error.exec_count} with {error.ename}: "
            f"{error.evalue}; see {target}"
        ) from error
    return target


def _declared(notebook: Path) -> set[str]:
    from papermill.inspection import inspect_notebook

    declared = set(inspect_notebook(str(notebook)))
    if not declared:
        raise ConfigError(f"{notebook.name} has no cell tagged 'parameters'; tag the one it has")
    return declared
