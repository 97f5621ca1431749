"""The ``eolab`` command: it wires everything and holds no logic of its own.

Heavy imports happen inside the commands, so that ``eolab --help`` answers at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from eo_agent_lab import paths
from eo_agent_lab.errors import EOLabError

app = typer.Typer(
    help="Let language-model agents observe the Earth through tools.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
tools_app = typer.Typer(help="List and call tools.", no_args_is_help=True)
lake_app = typer.Typer(help="Build, inspect and query the data lake.", no_args_is_help=True)
fetch_app = typer.Typer(help="Bring scenes into the lake.", no_args_is_help=True)
tasks_app = typer.Typer(help="Inspect task files.", no_args_is_help=True)
runs_app = typer.Typer(help="List, show and resume runs.", no_args_is_help=True)
app.add_typer(tools_app, name="tools")
app.add_typer(lake_app, name="lake")
app.add_typer(fetch_app, name="fetch")
app.add_typer(tasks_app, name="tasks")
app.add_typer(runs_app, name="runs")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LakeDir = Annotated[Path, typer.Option("--lake", help="The lake's folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=1, default=str, ensure_ascii=False))


def _table(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("-" if cell is None else str(cell) for cell in row))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def _progress(quiet: bool) -> bool:
    return not quiet and sys.stderr.isatty()


@tools_app.command("list")
def tools_list(
    suite: Annotated[str | None, typer.Option(help="One suite only.")] = None, as_json: Json = False
) -> None:
    """List the registered tools."""
    from eo_agent_lab.tools import list_tools

    found = list_tools(suite)
    if as_json:
        keys = ("name", "suite", "description", "parameters")
        _print_json([{key: getattr(item, key) for key in keys} for item in found])
        return
    rows: list[list[Any]] = [[item.suite, item.signature(), item.description] for item in found]
    _table(f"{len(found)} tools", ["suite", "call", "what it does"], rows)


@tools_app.command("call")
def tools_call(
    name: str,
    args: Annotated[str, typer.Option(help="The arguments, a JSON object.")] = "{}",
    workspace: Annotated[Path, typer.Option(help="The one folder the call may use.")] = Path("."),
    lake: Annotated[Path | None, typer.Option(help="Lake for look-ups.")] = None,
    suite: Annotated[str | None, typer.Option(help="Needed where suites share a name.")] = None,
    protocol: Annotated[str, typer.Option(help="literature or released.")] = "literature",
    as_json: Json = False,
) -> None:
    """Call one tool and print its observation; the exit code is 1 when it is an error."""
    from eo_agent_lab.lake import Lake
    from eo_agent_lab.tools import Observation, Workspace, call_tool

    try:
        arguments = json.loads(args)
    except json.JSONDecodeError as error:
        observation = Observation(text=f"Error: --args is not JSON: {error}", is_error=True)
    else:
        place = Workspace(workspace, Lake(lake) if lake else None)
        observation = call_tool(name, arguments, place, suite, protocol)  # type: ignore[arg-type]
    if as_json:
        _print_json(observation.model_dump())
    else:
        typer.echo(observation.text)
    if observation.is_error:
        raise typer.Exit(1)


@lake_app.command("build")
def lake_build(lake: LakeDir = paths.LAKE) -> None:
    """Make the index again from the lake's GeoParquet."""
    from eo_agent_lab.lake.build import rebuild_index

    typer.echo(f"indexed {rebuild_index(lake)} scenes in {lake}")


@lake_app.command("info")
def lake_info(lake: LakeDir = paths.LAKE, as_json: Json = False) -> None:
    """Count scenes by source, sensor and modality, with dates and places."""
    from eo_agent_lab.lake.info import summarise

    rows = summarise(lake)
    if as_json:
        _print_json(rows)
        return
    _table(
        f"{sum(row['scenes'] for row in rows)} scenes in {lake}",
        list(rows[0]),
        [list(row.values()) for row in rows],
    )


@lake_app.command("query")
def lake_query(
    lon: float,
    lat: float,
    lake: LakeDir = paths.LAKE,
    sensor: Annotated[str | None, typer.Option(help="A sensor or family.")] = None,
    start: Annotated[str | None, typer.Option(help="First date.")] = None,
    end: Annotated[str | None, typer.Option(help="Last date.")] = None,
    modality: Annotated[str, typer.Option(help="multispectral, rgb or sar.")] = "multispectral",
    as_json: Json = False,
) -> None:
    """List scenes that cover a point (degrees)."""
    from eo_agent_lab.lake import Lake
    from eo_agent_lab.tools.scenes import scene_summary

    found = Lake(lake).at(lon, lat, sensor=sensor, start=start, end=end, modality=modality)  # type: ignore[arg-type]
    rows = [scene_summary(scene) for scene in found]
    if as_json:
        _print_json(rows)
        return
    columns = ["handle", "datetime", "sensor", "gsd_m", "level"]
    _table(f"{len(rows)} scenes", columns, [list(row.values()) for row in rows])


@lake_app.command("read")
def lake_read(
    form: Annotated[str, typer.Argument(metavar="FORMAT")], folder: Path, as_json: Json = False
) -> None:
    """Read a dataset folder in its own format and count its objects."""
    from eo_agent_lab.lake.formats import read_format

    found = read_format(form, folder)
    if as_json:
        _print_json(found)
        return
    rows = [[image["name"], image["gsd_m"], image["categories"]] for image in found["images"]]
    _table(f"{len(rows)} images in {folder}", ["image", "gsd_m", "categories"], rows)


@lake_app.command("bench")
def lake_bench(
    scenes: Annotated[int, typer.Option(help="Size of the catalogue.")] = 51_008,
    keep: Annotated[Path | None, typer.Option(help="Leave the lake here.")] = None,
    as_json: Json = False,
) -> None:
    """Build a catalogue of a given size and time its look-ups."""
    from eo_agent_lab.lake.bench import run_bench

    measured = run_bench(scenes, keep)
    if as_json:
        _print_json(measured)
        return
    typer.echo(f"built {scenes} scenes in {measured['build_s']:.1f} s, {measured['bytes']} bytes")
    rows = [[name, *times.values()] for name, times in measured["lookup_us"].items()]
    _table("look-ups, microseconds", ["look-up", "median", "p99"], rows)


def _report_fetched(fetched: Any, lake: Path, as_json: bool) -> None:
    scenes = [
        {
            "scene_id": scene.scene_id,
            "product_id": scene.product_id,
            "sensor": scene.sensor,
            "modality": scene.modality,
            "datetime": scene.acquired.isoformat() if scene.acquired else None,
            "level": scene.level,
            "level_note": scene.level_note,
            "gsd_m": scene.gsd_m,
            "epsg": scene.epsg,
            "shape": list(scene.shape),
            "bands": list(scene.bands),
            "quality": list(scene.quality),
            "location_id": scene.location_id,
        }
        for scene in fetched.scenes
    ]
    rejected = [item._asdict() for item in fetched.rejected]
    ignored = [item._asdict() for item in fetched.ignored]
    if as_json:
        _print_json({"lake": str(lake), "scenes": scenes, "rejected": rejected, "ignored": ignored})
        return
    if len(scenes) <= 60:
        rows = [
            [
                s["scene_id"],
                s["product_id"],
                s["sensor"],
                s["datetime"],
                s["level"],
                " ".join(s["bands"]),
            ]
            for s in scenes
        ]
        _table(
            f"{len(scenes)} scenes into {lake}",
            ["id", "product", "sensor", "date", "level", "bands"],
            rows,
        )
    else:
        typer.echo(f"{len(scenes)} scenes into {lake}")
    for title, items in (("rejected", rejected), ("ignored", ignored)):
        for item in items:
            typer.echo(f"{title}: {item['path']}: {item['reason']}", err=True)


@fetch_app.command("folder")
def fetch_folder(
    path: Path,
    lake: LakeDir = paths.LAKE,
    source: Annotated[str | None, typer.Option(help="Name of the collection.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ingest a folder of real scenes; the good ones enter the lake, the bad ones are listed."""
    from eo_agent_lab.lake.build import add_scenes
    from eo_agent_lab.lake.folder import FolderFetcher

    fetched = FolderFetcher(path, source).fetch(progress=_progress(quiet))
    if fetched.scenes:
        add_scenes(lake, fetched.scenes)
    _report_fetched(fetched, lake, as_json)
    if not fetched.scenes:
        typer.echo(f"no scene could be read in {path}", err=True)
        raise typer.Exit(1)


@fetch_app.command("simulate")
def fetch_simulate(
    out: Annotated[Path, typer.Option(help="Where the files go.")] = paths.RAW / "simulated",
    lake: LakeDir = paths.LAKE,
    params: Annotated[Path, typer.Option(help="File with the world's settings.")] = Path(
        "params.yaml"
    ),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Render the simulated Earth and bring it into the lake."""
    from eo_agent_lab.lake.build import add_scenes
    from eo_agent_lab.stages import world_config
    from eo_agent_lab.world.simulate import simulate

    fetched = simulate(out, world_config(params), progress=_progress(quiet))
    add_scenes(lake, fetched.scenes)
    _report_fetched(fetched, lake, as_json)


@tasks_app.command("info")
def tasks_info(path: Path, as_json: Json = False) -> None:
    """Count the tasks of a file by question type, with the balance of answers."""
    from collections import Counter

    from eo_agent_lab.tasks.task import read_tasks

    tasks = read_tasks(path)
    rows = []
    for kind in sorted({task.question_type for task in tasks}):
        group = [task for task in tasks if task.question_type == kind]
        answers = Counter(task.gold_answer for task in group)
        rows.append(
            {
                "question_type": kind,
                "eo_task": group[0].eo_task,
                "tasks": len(group),
                "reference_calls": sum(len(task.reference) for task in group) / len(group),
                "answers": dict(sorted(answers.items(), key=lambda item: str(item[0]))),
                "example": group[0].question,
            }
        )
    if as_json:
        _print_json(rows)
        return
    _table(f"{len(tasks)} tasks in {path}", list(rows[0]), [list(row.values()) for row in rows])


@app.command()
def ask(
    question: str,
    scene: Annotated[str, typer.Option(help="Scene id or product id in the lake.")],
    lake: LakeDir = paths.LAKE,
    agent: Annotated[str, typer.Option(help="Which agent answers.")] = "heuristic",
    export: Annotated[Path | None, typer.Option(help="Folder for GeoJSON and COG.")] = None,
    as_json: Json = False,
) -> None:
    """Ask one question over a scene; steps are streamed, then an evidence card follows."""
    from eo_agent_lab.agents.ask import ask as ask_agent
    from eo_agent_lab.agents.ask import card_text

    show = None if as_json else typer.echo
    card = ask_agent(question, scene, lake, agent=agent, show=show, export=export)
    if as_json:
        _print_json(card)
    else:
        typer.echo(card_text(card))


@app.command(context_settings={"allow_extra_args": True})
def run(
    overrides: Annotated[list[str] | None, typer.Argument(help="Hydra overrides, a=b.")] = None,
    quiet: Quiet = False,
) -> None:
    """Play an agent over tasks; an unfinished run of the same settings is resumed."""
    from eo_agent_lab.stages import run_from_overrides

    typer.echo(str(run_from_overrides(overrides or [], progress=_progress(quiet))))


@runs_app.command("list")
def runs_list(
    root: Annotated[Path, typer.Option(help="Folder of runs.")] = paths.RUNS, as_json: Json = False
) -> None:
    """List runs with what is done of them."""
    from eo_agent_lab.runs.runner import list_runs

    rows = list_runs(root)
    if as_json:
        _print_json(rows)
        return
    _table(
        f"{len(rows)} runs in {root}",
        list(rows[0]) if rows else [],
        [list(r.values()) for r in rows],
    )


@runs_app.command("show")
def runs_show(
    run_dir: Path,
    task: Annotated[str | None, typer.Option(help="One task's rollouts in full.")] = None,
    as_json: Json = False,
) -> None:
    """Show a run's rollouts, or one task's in full."""
    from eo_agent_lab.runs.log import read_trajectories

    found = [t for t in read_trajectories(run_dir) if task in (None, t.task_id)]
    if as_json:
        _print_json([t.model_dump() for t in found])
    elif task is None:
        rows = [[t.task_id, t.sample, t.ending, len(t.calls), t.answer] for t in found]
        _table(f"{len(found)} rollouts", ["task", "sample", "ending", "calls", "answer"], rows)
    else:
        for trajectory in found:
            typer.echo(f"--- sample {trajectory.sample}: {trajectory.messages[0]['content']}")
            for call in trajectory.calls:
                typer.echo(f"> {call.name} {json.dumps(call.arguments)}\n  {call.observation}")
            typer.echo(f"= {trajectory.answer} ({trajectory.ending})")


@runs_app.command("resume")
def runs_resume(run_dir: Path, quiet: Quiet = False) -> None:
    """Finish a run that was interrupted."""
    from eo_agent_lab.runs.runner import resume

    typer.echo(str(resume(run_dir, progress=_progress(quiet))))


@app.command()
def evaluate(
    run_dirs: list[Path],
    tasks: Annotated[Path, typer.Option(help="Task file with answers.")] = paths.TASKS
    / "test.jsonl",
    as_json: Json = False,
) -> None:
    """Score runs against the answers, with 95 % confidence intervals."""
    from eo_agent_lab.stages import evaluate_rows

    rows = evaluate_rows(run_dirs, tasks)
    if as_json:
        _print_json(rows)
        return
    columns = [
        "model",
        "setting",
        "n",
        "pass_at_1",
        "pass_at_1_low",
        "pass_at_1_high",
        "pass_at_3",
        "tool_call_ratio",
        "illegal_rate",
        "zero_call_rate",
        "any_order",
    ]
    cells = [
        [f"{row[c]:.3f}" if isinstance(row.get(c), float) else row.get(c) for c in columns]
        for row in rows
    ]
    _table(f"scores against {tasks}", columns, cells)


def main() -> None:
    """Run the command; an error of ours is one line and exit code 2, never a traceback."""
    try:
        app()
    except EOLabError as error:
        typer.echo(f"eolab: {error}", err=True)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
