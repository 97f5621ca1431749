"""Published values, tables, figures, the registry of floats, and the render notebook."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import yaml
from rasters import SAFE_NAME, write_raster

from eo_agent_lab import style
from eo_agent_lab.errors import ConfigError, RunError
from eo_agent_lab.evaluate.metrics import METRICS
from eo_agent_lab.evaluate.scores import evaluate_runs, find_runs
from eo_agent_lab.lake import Lake
from eo_agent_lab.lake.build import add_scenes
from eo_agent_lab.lake.folder import FolderFetcher
from eo_agent_lab.paths import ROOT, reference_data
from eo_agent_lab.report import floats, tables
from eo_agent_lab.report.figures import pass_at_k_figure, trajectory_figure
from eo_agent_lab.report.main_results import choose_example
from eo_agent_lab.report.papers import FOLDER, join_published, load_published
from eo_agent_lab.report.pictures import boxes_picture, pictures_of, scene_picture
from eo_agent_lab.report.render import render
from eo_agent_lab.tasks import trajectory as trajectory_module
from eo_agent_lab.tasks.task import ReferenceCall, Task, write_tasks
from eo_agent_lab.tasks.trajectory import CallRecord, Trajectory
from eo_agent_lab.tools import Workspace, call_tool
from eo_agent_lab.tools.registry import Context
from eo_agent_lab.tools.scenes import open_scene

NOTEBOOK = ROOT / "notebooks" / floats.MAIN
PUBLISHED = sorted(path.stem for path in FOLDER.glob("*.yaml"))
COLUMNS = [*tables.LEADING, tables.Column("pass_at_1", "Pass@1", 2, interval=True)]


def row(model: str, kind: str = "measured", **cells: Any) -> dict[str, Any]:
    return {"kind": kind, "model": model, "setting": "s", "n": 3} | cells


# published values


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_values_are_those_of_the_paper(name: str) -> None:
    text = reference_data().parent / "seeds" / "000_065f5337db5e3c9a.txt"
    if not text.is_file():
        pytest.skip(f"the paper's text is not at {text}")
    table = load_published(name)
    lines = text.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"Table {table.table}:"))
    for published in table.rows:
        heads = (published.model, f"{published.model} (Ours)")
        at = next(i for i in range(start, len(lines)) if lines[i] in heads)
        for offset, cell in enumerate(published.values.values(), start=1):
            printed = [float(value) for value in re.findall(r"[\d.]+", lines[at + offset])]
            scale = 100 if lines[at + offset].endswith("%") else 1
            shown = cell if isinstance(cell, tuple) else (cell,)
            assert [value * scale for value in shown] == pytest.approx(printed), published.model


def test_joined_published_tables_keep_every_model_and_the_papers_order() -> None:
    rows = join_published(*map(load_published, ("eo_gym_t2", "eo_gym_t4", "eo_gym_t24")))
    assert [found["model"] for found in rows] == [r.model for r in load_published("eo_gym_t2").rows]
    ours = rows[-1]
    assert (ours["pass_at_3"], ours["pass_at_3_low"], ours["pass_at_3_high"]) == (0.74, 0.71, 0.76)
    assert (ours["zero_call_rate"], ours["exact_match"], ours["any_order"]) == (2e-4, 0.593, 0.760)
    assert all(set(METRICS) <= set(found) for found in rows)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rows": [{"model": "a", "pass_at_1": [0.5, 0.6, 0.7]}]}, "estimate, low, high"),
        ({"rows": [{"model": "a", "pass_at_1": -1}]}, "estimate, low, high"),
        ({"rows": [{"model": "a", "pass_at_1": "much"}]}, "float"),
        ({"rows": [{"model": "a"}, {"model": "a"}]}, "twice"),
        ({"rows": []}, "at least 1"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_malformed_published_table_is_refused(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    good = {"paper": "p", "table": "1", "title": "t", "setting": "s", "rows": [{"model": "a"}]}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(good))
    assert load_published("x", tmp_path).rows[0].model == "a"
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(good | change))
    with pytest.raises(ConfigError, match=says):
        load_published("x", tmp_path)


def test_an_unknown_published_table_is_answered_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="eo_gym_t2"):
        load_published("eo_gym_t99")


# tables


def test_a_table_has_a_csv_and_forms_rendered_from_it(tmp_path: Path) -> None:
    rows = [
        row("Model_A|x", "published", pass_at_1=0.42),
        row("expert", pass_at_1=1.0, pass_at_1_low=1.0, pass_at_1_high=1.0),
        row("random", pass_at_1=None),
    ]
    paths = tables.write_table(tmp_path / "t", rows, COLUMNS, tables.Text("Title", ["A note."]))
    assert [path.suffix for path in paths] == [".csv", ".md", ".tex"]
    assert paths[0].read_text() == (
        "kind,model,setting,n,pass_at_1,pass_at_1_low,pass_at_1_high\n"
        "measured,random,s,3,,,\n"
        "measured,expert,s,3,1.0,1.0,1.0\n"
        "published,Model_A|x,s,3,0.42,,\n"
    )
    markdown, latex = (path.read_text() for path in paths[1:])
    assert "| measured | random | s | 3 | – |" in markdown  # noqa: RUF001
    assert "| measured | expert | s | 3 | 1.00 [1.00, 1.00] |" in markdown
    assert "Model_A\\|x" in markdown
    assert "Model\\_A|x & s & 3 & 0.42" in latex
    assert "random & s & 3 & –" in latex  # noqa: RUF001
    assert latex.count("\\midrule") == 2
    assert latex.count("{") == latex.count("}")


def test_rows_stand_by_kind_then_rung_then_name_and_published_ones_as_printed() -> None:
    rows = [
        row("Z", "published"),
        row("A", "published"),
        row("qwen"),
        row("expert"),
        row("chance"),
        row("Gemma"),
    ]
    ordered = [found["model"] for found in tables.sort_rows(rows)]
    assert ordered == ["chance", "expert", "Gemma", "qwen", "Z", "A"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (float("nan"), ""),
        (0.1 + 0.2, "0.3"),
        (2 / 3, "0.666667"),
        (1.0, "1.0"),
        (-1e-9, "0.0"),
        (1e-3, "0.001"),
        (7, "7"),
        ("a,b", "a,b"),
    ],
)
def test_a_value_has_one_form(value: Any, text: str) -> None:
    assert tables.format_value(value) == text


def test_a_table_that_breaks_the_rules_is_refused(tmp_path: Path) -> None:
    text = tables.Text("t")
    with pytest.raises(ConfigError, match="keep one"):
        tables.write_table(tmp_path / "t", [row("a"), row("a")], COLUMNS, text)
    with pytest.raises(ConfigError, match="use one of measured"):
        tables.write_table(tmp_path / "t", [row("a", "guessed")], COLUMNS, text)
    with pytest.raises(ConfigError, match="starts with kind"):
        tables.write_table(tmp_path / "t", [row("a")], COLUMNS[1:], text)
    with pytest.raises(ConfigError, match="has no row"):
        tables.write_table(tmp_path / "t", [], COLUMNS, text)
    assert not list(tmp_path.iterdir())


# floats


def test_every_float_is_registered_by_rule() -> None:
    for name, entry in floats.FLOATS.items():
        assert name == entry.id
        assert re.fullmatch(
            r"(eo_gym|earth_agent|open_earth_agent|think_geo|geo_evolver|lab)_\w+", name
        )
        assert set(entry.kinds) <= set(floats.KINDS)
        assert (ROOT / "notebooks" / entry.notebook).is_file()
        assert floats.get_float(name) is entry
    with pytest.raises(ConfigError, match="register it"):
        floats.get_float("lab_nothing")


def test_registry_and_files_hold_each_other() -> None:
    there = {
        path
        for folder in floats.FOLDERS.values()
        for path in (ROOT / folder).glob("*")
        if not path.name.startswith(".")
    }
    if not there:
        pytest.skip("tables/ and figures/ are not built; run `make repro`")
    wanted = {path for entry in floats.FLOATS.values() for path in entry.files(ROOT)}
    assert there == wanted


def test_built_result_tables_have_the_agreed_columns_and_one_row_an_agent() -> None:
    built = [entry.files(ROOT)[0] for entry in floats.FLOATS.values() if entry.form == "table"]
    if not all(path.is_file() for path in built):
        pytest.skip("tables/ is not built; run `make repro`")
    for path in built:
        with path.open(encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
        names = list(rows[0])
        assert tuple(names[:4]) == tables.FIRST
        for name in names:
            if name.endswith("_low"):
                metric = name.removesuffix("_low")
                at = names.index(metric)
                assert names[at : at + 3] == [metric, name, f"{metric}_high"]
        keys = [(r["kind"], r["model"], r["setting"]) for r in rows]
        assert len(set(keys)) == len(keys)
        assert {r["kind"] for r in rows} <= set(tables.KINDS)


# figures


def sample_trajectory(calls: list[CallRecord]) -> Trajectory:
    return Trajectory(
        task_id="t",
        sample=0,
        agent="heuristic",
        setting="verified-simple-skill",
        seed=0,
        code_version="0",
        messages=[],
        calls=calls,
        answer="decreased",
        ending="answered",
    )


def draw_samples(folder: Path) -> list[Path]:
    """Draw one figure of each kind; also run in other processes."""
    rng = np.random.default_rng(0)
    images = [
        (rng.integers(0, 255, (40, 40 + 20 * i, 3), dtype=np.uint8), f"start: picture {i}, 10 m")
        for i in range(6)
    ]
    calls = [
        CallRecord(
            name="compute_ndvi_by_multispectral",
            arguments={"multispectral_url": "ab" * 8, "aoi": [0.1, 0.2, 0.6, 0.7]},
            observation="NDVI mean 0.41 $1.mean, 62 % valid. " * 12,
            is_error=False,
        ),
        CallRecord(name=None, observation="Error: not JSON; send one", is_error=True),
    ]
    drawn = trajectory_figure(
        sample_trajectory(calls),
        images,
        question="Did vegetation greenness (mean NDVI) increase, decrease or stay the same?",
        verdict="right",
        caption="Simulated scenes.",
    )
    paths = style.save_figure(drawn, folder / "trajectory")
    rows = []
    for position, name in enumerate(("random", "heuristic", "expert")):
        cells: dict[str, Any] = {"samples": 3}
        for k in (1, 2, 3):
            value = None if name != "random" and k > 1 else 0.2 + 0.3 * position + 0.05 * k
            ends = (None, None) if value is None else (value - 0.1, min(1.0, value + 0.08))
            cells |= dict(
                zip(
                    (f"pass_at_{k}", f"pass_at_{k}_low", f"pass_at_{k}_high"),
                    (value, *ends),
                    strict=True,
                )
            )
        rows.append(row(name, **cells))
    chance = row("chance", pass_at_1=0.2, pass_at_2=0.36, pass_at_3=0.49)
    drawn = pass_at_k_figure(rows, chance, caption="Simulated. 120 questions.")
    return paths + style.save_figure(drawn, folder / "pass_at_k")


def test_figures_are_the_same_bytes_in_two_processes(tmp_path: Path) -> None:
    code = "import sys, pathlib, test_report; test_report.draw_samples(pathlib.Path(sys.argv[1]))"
    digests = []
    for number in ("1", "2"):
        folder = tmp_path / number
        search = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
        environment = {**os.environ, "PYTHONHASHSEED": number, "PYTHONPATH": search}
        subprocess.run([sys.executable, "-c", code, folder], check=True, env=environment)
        files = sorted(folder.iterdir())
        assert {path.suffix for path in files} == {".svg", ".png"}
        digests.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in files])
    assert digests[0] == digests[1]


def test_a_figure_ignores_the_users_style_and_carries_no_date(tmp_path: Path) -> None:
    import matplotlib

    first = [path.read_bytes() for path in draw_samples(tmp_path / "a")]
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "black", "svg.hashsalt": "x"}):
        second = [path.read_bytes() for path in draw_samples(tmp_path / "b")]
    assert first == second
    assert b"<dc:date>" not in first[0]
    assert b"Software" not in first[1]


def test_every_series_has_a_colour_and_marker_of_its_own() -> None:
    styles = [tuple(style.series_style(position).values()) for position in range(40)]
    assert len(set(styles)) == 40


def test_drawing_code_is_light_to_import() -> None:
    code = (
        "import sys; import eo_agent_lab.report.figures, eo_agent_lab.report.render;"
        "import eo_agent_lab.evaluate.scores, eo_agent_lab.style;"
        "print([m for m in ('matplotlib', 'papermill', 'pandas') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout.strip() == "[]"


# pictures and the notebook


@pytest.fixture(scope="module")
def lake_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    ramp = np.add.outer(np.arange(60), np.arange(80)).astype(np.uint16)
    for band, factor in (("B02", 8), ("B03", 10), ("B04", 6), ("B08", 20)):
        write_raster(folder / "in" / f"{SAFE_NAME}_{band}.tif", 1000 + ramp * factor, gsd=10)
    add_scenes(folder / "lake", FolderFetcher(folder / "in").fetch().scenes)
    return folder / "lake"


def played(lake_path: Path, work: Path, task: Task, answer: str) -> Trajectory:
    place = Workspace(work, Lake(lake_path))
    calls = []
    for reference in task.reference:
        seen = call_tool(reference.name, reference.arguments, place)
        calls.append(
            CallRecord(
                name=reference.name,
                arguments=reference.arguments,
                observation=seen.text,
                data=seen.data,
                is_error=seen.is_error,
            )
        )
    return sample_trajectory(calls).model_copy(update={"task_id": task.task_id, "answer": answer})


@pytest.fixture
def question(lake_path: Path) -> Task:
    (handle,) = Lake(lake_path).scene_ids()
    crop = {"multispectral_url": handle, "aoi": [0.0, 0.0, 0.5, 0.5]}
    return Task(
        task_id="t1",
        question="Which cover has the largest share?",
        images=[handle],
        data_source="multispectral",
        question_type="area_dominance",
        eo_task="Geospatial Reasoning",
        choices=["water", "vegetation", "built-up"],
        gold_answer="vegetation",
        reference=[
            ReferenceCall(name="crop_multispectral_image", arguments=crop),
            ReferenceCall(name="compute_vegetation_mask_by_multispectral", arguments=crop),
        ],
        tools=[],
        split="test",
    )


def test_a_scene_picture_shows_reflectance_from_0_to_0_3(lake_path: Path, tmp_path: Path) -> None:
    lake = Lake(lake_path)
    (handle,) = lake.scene_ids()
    image = scene_picture(open_scene(Context(Workspace(tmp_path, lake)), handle))
    assert image.shape == (60, 80, 3)
    # red: DN 1000 + 6 (i + j); with the baseline's -1000 reflectance is 6 (i + j) / 10000
    assert image[10, 20, 0] == round(6 * 30 / 10_000 / 0.3 * 255)
    assert tuple(image[0, 0]) == (0, 0, 0)


def test_pictures_of_a_rollout_are_made_again_from_its_calls(
    lake_path: Path, tmp_path: Path, question: Task
) -> None:
    rollout = played(lake_path, tmp_path, question, "vegetation")
    pictures = pictures_of(rollout, question, Lake(lake_path))
    assert [picture.caption.partition(",")[0] for picture in pictures] == [
        "start: sentinel-2b",
        "call 1: crop sentinel-2b",
        "call 2: vegetation mask",
    ]
    assert pictures[1].image.shape == (30, 40, 3)
    np.testing.assert_array_equal(pictures[1].image, pictures[0].image[:30, :40])
    elsewhere = rollout.model_copy(deep=True)
    elsewhere.calls[0].arguments["multispectral_url"] = "f" * 16
    with pytest.raises(RunError, match="Use the lake that was played on"):
        pictures_of(elsewhere, question, Lake(lake_path))


def test_boxes_are_drawn_at_the_scenes_scale() -> None:
    image = np.zeros((50, 100, 3), dtype=np.uint8)
    drawn = boxes_picture(image, [[20.0, 20.0, 120.0, 80.0]], (200, 100))
    assert drawn[10, 30].any()
    assert drawn[25, 10].any()
    assert not drawn[25, 35].any()
    assert not image.any()


def test_an_example_is_right_and_without_error(
    lake_path: Path, tmp_path: Path, question: Task
) -> None:
    right = played(lake_path, tmp_path, question, "vegetation")
    short = right.model_copy(update={"calls": right.calls[:1], "sample": 1})
    wrong = right.model_copy(update={"answer": "water"})
    assert choose_example([question], [wrong, short, right])[1] is right
    assert choose_example([question], [wrong, short, right], shortest=True)[1] is short
    with pytest.raises(RunError, match="play another agent"):
        choose_example([question], [wrong])


def test_the_notebook_is_thin() -> None:
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    for cell in code:
        assert not cell.outputs
        assert cell.execution_count is None
        assert not re.search(r"^\s*(def|class|async def)\s|lambda", cell.source, re.MULTILINE)


def test_a_notebook_that_is_absent_or_lacks_a_parameter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no notebook"):
        render(tmp_path / "absent.ipynb", {})
    with pytest.raises(ConfigError, match="no parameters colour"):
        render(NOTEBOOK, {"colour": "red"})


def test_the_notebook_renders_every_float_of_its_own(
    lake_path: Path, tmp_path: Path, question: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    tasks = [question, question.model_copy(update={"task_id": "t2"})]
    write_tasks(tmp_path / "tasks" / "test.jsonl", tasks)
    for agent, answers in (("heuristic", ("vegetation", "water")), ("random", ("water", "water"))):
        log = tmp_path / "runs" / agent / "trajectories.jsonl"
        log.parent.mkdir(parents=True)
        header = {
            "format": trajectory_module.FORMAT,
            "version": trajectory_module.VERSION,
            "config": {},
        }
        lines = [json.dumps(header)]
        for task, answer in zip(tasks, answers, strict=True):
            rollout = played(lake_path, tmp_path / "work", task, answer)
            for sample in (0, 1):
                changed = {"agent": agent, "sample": sample}
                lines.append(rollout.model_copy(update=changed).model_dump_json())
        log.write_text("\n".join(lines) + "\n")
    scores_path = tmp_path / "scores.json"
    evaluate_runs(tmp_path / "tasks", find_runs(tmp_path / "runs"), scores_path, resamples=100)
    executed = render(
        NOTEBOOK,
        {
            "runs_dir": tmp_path / "runs",
            "tasks_path": tmp_path / "tasks" / "test.jsonl",
            "lake_path": lake_path,
            "scores_path": scores_path,
            "tables_dir": tmp_path / "tables",
            "figures_dir": tmp_path / "figures",
            "fast": True,
        },
        out=tmp_path / "executed.ipynb",
    )
    assert executed.is_file()
    wanted = {
        path
        for entry in floats.FLOATS.values()
        if entry.notebook == floats.MAIN
        for path in entry.files(tmp_path)
    }
    assert {p for f in floats.FOLDERS.values() for p in (tmp_path / f).iterdir()} == wanted
    with (tmp_path / "tables" / "eo_gym_t2.csv").open(newline="") as handle:
        rows = {found["model"]: found for found in csv.DictReader(handle)}
    assert rows["heuristic"]["pass_at_1"] == "0.5"
    assert rows["heuristic"]["pass_at_2"] == ""
    assert rows["random"]["pass_at_2"] == "0.0"
    assert rows["EO-Gym-4B"]["pass_at_3"] == "0.74"
    with (tmp_path / "tables" / "lab_question_types.csv").open(newline="") as handle:
        chance = next(csv.DictReader(handle))
    assert (chance["model"], chance["pass_at_1_area_dominance"]) == ("chance", "0.333333")
