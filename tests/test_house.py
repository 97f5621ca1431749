"""The house itself: settings, pipeline, constraints, imports and notebooks agree."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import grimp
import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from eo_agent_lab import conf
from eo_agent_lab.errors import ConfigError
from eo_agent_lab.paths import ROOT
from eo_agent_lab.report.floats import FLOATS

HEAVY = ("torch", "transformers", "ee", "matplotlib", "papermill", "dvc", "hydra")
LIGHT_SECONDS = 0.5
ENTRIES = {
    "world": ["eo_agent_lab.world", "eo_agent_lab.lake"],
    "tasks": ["eo_agent_lab.tasks"],
    "runs": ["eo_agent_lab.runs"],
    "evaluate": ["eo_agent_lab.evaluate"],
    "report": ["eo_agent_lab.report"],
}
"""What each stage of ``dvc.yaml`` calls directly, besides what its notebooks import."""
LEAVES = {"conf", "errors", "paths"}
"""Modules without results of their own, on which no stage depends."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STAGES: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return done.stdout


def test_the_committed_params_are_what_conf_composes() -> None:
    committed = yaml.safe_load((ROOT / "params.yaml").read_text())
    assert committed == conf.compose(conf=ROOT / "conf")


@pytest.mark.parametrize("profile", sorted(p.stem for p in (ROOT / "conf/profile").iterdir()))
def test_every_profile_composes_and_reads_back(profile: str, tmp_path: Path) -> None:
    values = conf.compose([f"profile={profile}"], ROOT / "conf")
    path = tmp_path / "params.yaml"
    path.write_text(conf.to_yaml(values))
    params = conf.load_params(path)
    assert params.profile == profile
    assert params.model_dump(mode="json") == values


@pytest.mark.parametrize("group", ["agent", "setting"])
def test_a_group_option_is_named_like_its_file(group: str) -> None:
    for path in (ROOT / "conf" / group).iterdir():
        assert yaml.safe_load(path.read_text())["name"] == path.stem


def test_one_seed_sets_every_seed() -> None:
    values = conf.compose(["seed=7"], ROOT / "conf")
    blocks = ("world", "tasks", "runs", "evaluate")
    assert [values[block]["seed"] for block in blocks] == [7, 7, 7, 7]


def test_overrides_lie_over_the_params_file() -> None:
    overrides = ["agent=expert", "setting=verified-simple-skill", "runs.samples=1"]
    params = conf.override(overrides, ROOT / "params.yaml", ROOT / "conf")
    assert params.agent.name == "expert"
    assert params.setting.name == "verified-simple-skill"
    assert params.runs.samples == 1
    assert params.world == conf.load_params(ROOT / "params.yaml").world


def test_overrides_compose_conf_where_no_params_file_is(tmp_path: Path) -> None:
    params = conf.override(["profile=smoke"], tmp_path / "absent.yaml", ROOT / "conf")
    assert params.profile == "smoke"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("agent=oracle", "no option 'oracle'; choose one of"),
        ("runs.sampels=1", "runs.sampels: Extra inputs are not permitted"),
        ("runs.samples=0", "runs.samples: Input should be greater than or equal to 1"),
        ("runs.samples=1,2", "deletes or sweeps"),
        ("profile=smoke", "compose it by"),
        ("samples", "write key=value"),
    ],
)
def test_a_wrong_override_says_what_to_do(wrong: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        conf.override([wrong], ROOT / "params.yaml", ROOT / "conf")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no settings at"),
        ("a: [", "is not YAML"),
        ("profile: small", "Field required"),
        ("- 1", "the whole"),
    ],
)
def test_a_wrong_params_file_says_what_to_do(
    text: str | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "params.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(message)):
        conf.load_params(path)


def test_composing_an_unknown_option_names_the_groups() -> None:
    with pytest.raises(ConfigError, match="groups are profile, world"):
        conf.compose(["profile=enormous"], ROOT / "conf")


def test_every_source_a_stage_depends_on_exists() -> None:
    outs = {out for stage in STAGES.values() for out in map(path_of, expanded(stage, "outs"))}
    for name, stage in STAGES.items():
        for dep in expanded(stage, "deps"):
            assert dep in outs or (ROOT / dep).exists(), f"stage {name} depends on no such {dep}"


def test_every_stage_depends_on_exactly_the_packages_it_uses() -> None:
    graph = grimp.build_graph("eo_agent_lab", cache_dir=None)
    for name, stage in STAGES.items():
        entries = set(ENTRIES[name])
        for dep in stage["deps"]:
            if dep.endswith(".ipynb"):
                entries |= set(re.findall(r"from (eo_agent_lab[.\w]*) import", source_of(dep)))
        modules = set(entries)
        for entry in entries:
            modules |= graph.find_upstream_modules(entry, as_package=True)
        if "eo_agent_lab.tools.registry" in modules:
            # The registry imports the families of tools by name, which no graph of imports shows.
            modules |= graph.find_upstream_modules("eo_agent_lab.tools", as_package=True)
        used = {module.split(".")[1] for module in modules if "." in module}
        listed = {Path(dep).stem for dep in stage["deps"] if dep.startswith("eo_agent_lab/")}
        assert listed - {"stages"} == used - LEAVES, f"deps of stage {name}"


def test_report_lists_the_notebooks_and_files_of_the_registry_of_floats() -> None:
    wanted = {str(path) for entry in FLOATS.values() for path in entry.files()}
    assert set(map(path_of, STAGES["report"]["outs"])) == wanted
    notebooks = {dep for dep in STAGES["report"]["deps"] if dep.endswith(".ipynb")}
    assert notebooks == {f"notebooks/{entry.notebook}" for entry in FLOATS.values()}


def test_every_float_is_registered_under_its_own_id_and_committed_files_are_floats() -> None:
    assert all(entry.id == key for key, entry in FLOATS.items())
    wanted = {path for entry in FLOATS.values() for path in entry.files(ROOT)}
    found = {path for name in ("tables", "figures") for path in (ROOT / name).glob("*")}
    assert found <= wanted


def test_every_setting_a_stage_lists_exists() -> None:
    for name, stage in STAGES.items():
        for key in stage.get("params", []):
            value = yaml.safe_load((ROOT / "params.yaml").read_text())
            for part in key.split("."):
                assert part in value, f"stage {name} lists {key}, which params.yaml lacks"
                value = value[part]


def test_evaluate_depends_on_every_run_of_the_matrix() -> None:
    runs = conf.load_params(ROOT / "params.yaml").runs
    expected = {f"data/runs/{a}-{s}" for a, s in product(runs.agents, runs.settings)}
    found = {dep for dep in STAGES["evaluate"]["deps"] if dep.startswith("data/runs/")}
    assert found == expected


def test_importing_the_package_is_light() -> None:
    code = (
        "import json, sys, time; begin = time.perf_counter(); import eo_agent_lab; "
        "print(json.dumps([time.perf_counter() - begin, sorted(sys.modules)]))"
    )
    results = [json.loads(run_python(code)) for _ in range(5)]
    assert not set(HEAVY) & set(results[0][1])
    assert min(seconds for seconds, _ in results) < LIGHT_SECONDS


def test_the_command_line_loads_nothing_heavy() -> None:
    code = "import sys, eo_agent_lab.cli, eo_agent_lab.stages; print(*sys.modules)"
    loaded = set(run_python(code).split())
    assert not {*HEAVY, "pandas", "rasterio", "geopandas"} & loaded


def test_constraints_pin_every_dependency_within_its_range() -> None:
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    pins = dict(line.split("==") for line in lines)
    extras = PROJECT["optional-dependencies"].values()
    for text in [*PROJECT["dependencies"], *(text for extra in extras for text in extra)]:
        wanted = Requirement(text)
        pin = pins.get(canonicalize_name(wanted.name))
        assert pin, f"constraints.txt does not pin {wanted.name}"
        assert wanted.specifier.contains(pin), f"{wanted} is pinned to {pin}"


def test_constraints_name_no_machine_and_no_host() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    for line in lines:
        assert line.startswith("#") or re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line), line


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_committed_notebook_holds_no_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_defines_nothing_and_has_one_parameters_cell(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    tagged = [cell for cell in code if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    assert "fast" in tagged[0].source
    for cell in code:
        assert not re.search(r"^\s*(def|class|async def)\s", cell.source, re.MULTILINE)


def source_of(notebook: str) -> str:
    """Return the code of a notebook."""
    cells = json.loads((ROOT / notebook).read_text())["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")


def path_of(out: str | dict[str, Any]) -> str:
    """Return the path of an out, which may carry options."""
    return out if isinstance(out, str) else next(iter(out))


def expanded(stage: dict[str, Any], key: str) -> list[Any]:
    """Return a stage's ``deps`` or ``outs`` with its matrix filled in from params.yaml."""
    if "matrix" not in stage:
        return list(stage.get(key, []))
    runs = conf.load_params(ROOT / "params.yaml").runs
    return [
        path_of(item).replace("${item.agent}", agent).replace("${item.setting}", setting)
        for agent, setting in product(runs.agents, runs.settings)
        for item in stage.get(key, [])
    ]
