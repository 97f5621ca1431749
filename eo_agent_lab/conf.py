"""Settings: Hydra groups in ``conf/`` compose one ``params.yaml``, which every stage reads.

``python -m eo_agent_lab.conf profile=smoke > params.yaml`` composes it. Nothing else in the
package opens ``conf/`` or ``params.yaml``. Hydra and OmegaConf load inside functions only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from eo_agent_lab.errors import ConfigError
from eo_agent_lab.paths import ROOT

PARAMS = Path("params.yaml")
GROUPS = ("profile", "world", "tasks", "runs", "agent", "setting")
HEADER = (
    "# Composed from conf/ by `python -m eo_agent_lab.conf > params.yaml`; edit conf/, not this.\n"
)
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "GDAL_NUM_THREADS",
)

Positive = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorldSettings(_Settings):
    """The simulated Earth: number of places, first day, days, revisit in days, edge in metres."""

    locations: Positive
    start: date
    days: Positive
    sentinel2_every: Positive
    landsat_every: Positive
    vhr_per_location: Annotated[int, Field(ge=0)]
    size_m: Positive
    seed: Seed


class TasksSettings(_Settings):
    """Tasks per question type in each split."""

    per_type: dict[Literal["train", "test"], Annotated[int, Field(ge=0)]]
    seed: Seed


class RunsSettings(_Settings):
    """What is played, on which lake and tasks.

    The pipeline plays every one of ``agents`` in every one of ``settings``. ``limit`` None plays
    every task; ``run_dir`` None is ``data/runs/<agent>-<setting>``.
    """

    agents: list[str]
    settings: list[str]
    lake: str
    tasks: str
    run_dir: str | None
    samples: Positive
    max_calls: Positive
    limit: Positive | None
    processes: Positive
    seed: Seed


class AgentSettings(_Settings):
    """The agent of one ``eolab run``."""

    name: str


class ModeSettings(_Settings):
    """An operation mode (EO-Gym, appendix A.3)."""

    name: str
    response: Literal["verified", "unverified"]
    prompt: Literal["simple", "detailed"]
    toolset: Literal["skill", "all"]
    rename: bool


class EvaluateSettings(_Settings):
    """Bootstrap resamples, and the level of the interval between 0 and 1."""

    bootstrap: Positive
    confidence: Annotated[float, Field(gt=0, lt=1)]
    seed: Seed


class Params(_Settings):
    """Everything in ``params.yaml``; an unknown key is an error."""

    profile: str
    seed: Seed
    threads: Positive
    world: WorldSettings
    tasks: TasksSettings
    runs: RunsSettings
    agent: AgentSettings
    setting: ModeSettings
    evaluate: EvaluateSettings


def compose(overrides: Sequence[str] = (), conf: Path | None = None) -> dict[str, Any]:
    """Compose ``conf/`` with Hydra overrides such as ``profile=smoke`` or ``runs.samples=1``.

    Returns:
        Plain values with every interpolation resolved, as ``params.yaml`` holds them.

    Raises:
        ConfigError: ``conf/`` is not there, or an override names no group, option or key.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    folder = _conf_dir(conf)
    try:
        with initialize_config_dir(str(folder), version_base="1.3"):
            composed = hydra_compose("config", overrides=list(overrides))
            values = OmegaConf.to_container(composed, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(
            f"overrides {list(overrides)!r} do not compose: {_first_line(error)}; "
            f"groups are {', '.join(GROUPS)}, their options the files in {folder}"
        ) from error
    return _validate(values, str(folder)).model_dump(mode="json")


def load_params(path: str | Path = PARAMS) -> Params:
    """Read and validate ``params.yaml``.

    Raises:
        ConfigError: The file is absent, is not YAML, or has an unknown, missing or wrong key.
    """
    return _validate(_read_yaml(Path(path)), str(path))


def override(
    overrides: Sequence[str], path: str | Path = PARAMS, conf: Path | None = None
) -> Params:
    """Return the settings of one run: ``params.yaml`` with Hydra overrides laid over it.

    ``agent=expert`` and ``setting=…`` choose a file of the group, ``runs.samples=1`` sets a value.
    Where ``path`` does not exist, ``conf/`` is composed instead.

    Raises:
        ConfigError: As :func:`compose` and :func:`load_params`.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not Path(path).is_file():
        return _validate(compose(overrides, conf), str(_conf_dir(conf)))
    settings = OmegaConf.create(load_params(path).model_dump(mode="json"))
    try:
        for item in OverridesParser.create().parse_overrides(list(overrides)):
            key, value = item.key_or_group, item.value()
            if item.is_delete() or item.is_sweep_override():
                raise ConfigError(
                    f"{item.input_line!r} deletes or sweeps; set one value by key=value"
                )
            if key in GROUPS and isinstance(value, str):
                value = _read_option(key, value, _conf_dir(conf))
            OmegaConf.update(settings, key, value, merge=False, force_add=True)
        values = OmegaConf.to_container(settings, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(
            f"overrides {list(overrides)!r} cannot be read: {_first_line(error)}; write key=value"
        ) from error
    return _validate(values, f"{path} with {list(overrides)!r}")


def to_yaml(values: dict[str, Any]) -> str:
    """Write composed settings as the text of ``params.yaml``."""
    import yaml

    return HEADER + yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def fix_threads(count: int) -> None:
    """Hold OpenMP, BLAS, numexpr and GDAL to ``count`` threads, so that sums add up in one order.

    A library that is loaded keeps the count it read then; what loads later, and child processes,
    obey. The stages of ``dvc.yaml`` set ``OMP_NUM_THREADS`` before Python starts, too.
    """
    for name in THREAD_VARIABLES:
        os.environ[name] = str(count)


def _conf_dir(conf: Path | None) -> Path:
    for folder in (conf,) if conf else (Path("conf"), ROOT / "conf"):
        if (folder / "config.yaml").is_file():
            return folder.resolve()
    raise ConfigError(
        f"no config.yaml in {conf or Path('conf').resolve()}; run in a checkout of eo_agent_lab"
    )


def _read_yaml(path: Path) -> Any:
    import yaml

    if not path.is_file():
        raise ConfigError(
            f"no settings at {path.resolve()}; compose them in a checkout by "
            "`python -m eo_agent_lab.conf > params.yaml`"
        )
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}; compose it again from conf/") from error


def _read_option(group: str, option: str, folder: Path) -> Any:
    if group == "profile":
        raise ConfigError(
            "a profile sets many values at once; compose it by "
            f"`python -m eo_agent_lab.conf profile={option} > params.yaml`"
        )
    options = sorted(path.stem for path in (folder / group).glob("*.yaml"))
    if option not in options:
        raise ConfigError(f"{group} has no option {option!r}; choose one of {', '.join(options)}")
    return _read_yaml(folder / group / f"{option}.yaml")


def _validate(values: Any, origin: str) -> Params:
    try:
        return Params.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'the whole'}: {item['msg']}"
            for item in error.errors()
        )
        raise ConfigError(f"settings of {origin} are wrong: {problems}; see conf/") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def main(arguments: Sequence[str]) -> int:
    """Print composed settings; the return value is the exit code."""
    try:
        sys.stdout.write(to_yaml(compose(arguments)))
    except ConfigError as error:
        sys.stderr.write(f"conf: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
