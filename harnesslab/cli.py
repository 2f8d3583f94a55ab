"""The command line: models, data, environments, and a lab without a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harnesslab._version import __version__
from harnesslab.errors import HarnesslabError

if TYPE_CHECKING:
    from harnesslab.lab import Lab

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Train the harness around a frozen LLM agent.",
    pretty_exceptions_enable=False,
)  # fmt: skip
models = typer.Typer(no_args_is_help=True, help="List and download local models.")
data = typer.Typer(no_args_is_help=True, help="List and download benchmark data.")
envs = typer.Typer(no_args_is_help=True, help="List, install, scaffold and check environments.")
lab = typer.Typer(no_args_is_help=True, help="Show the history, rejected refs and candidates of a lab.")
for name, group in (("models", models), ("data", data), ("envs", envs), ("lab", lab)):
    app.add_typer(group, name=name)

LabPath = Annotated[Path, typer.Argument(help="folder of the lab")]
EnvName = Annotated[str, typer.Argument(help="a name, or the path of a folder (with a slash)")]
Quiet = Annotated[bool, typer.Option("--quiet", help="show no progress bar")]


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="print the version and exit")] = False) -> None:
    """Train the harness around a frozen LLM agent."""
    if show:
        typer.echo(__version__)
        raise typer.Exit


@models.command("list")
def models_list() -> None:
    """List models with size, licence, and whether each is downloaded."""
    from harnesslab.llm.models import list_models, models_folder

    _table([{key: value for key, value in row.items() if key != "path"} for row in list_models()])
    typer.echo(f"  Stored in {models_folder()}")


@models.command("get")
def models_get(name: str, quiet: Quiet = False) -> None:
    """Download a model into the models folder and check its SHA-256."""
    from harnesslab.llm.models import get_model

    typer.echo(get_model(name, progress=not quiet))


@data.command("list")
def data_list() -> None:
    """List data sets, and whether each is downloaded."""
    from harnesslab.data import data_dir, status

    rows = status()
    _table(
        [
            {
                "name": row.dataset.name,
                "state": row.state,
                "MB": f"{sum(file.size for file in row.dataset.files) / 1e6:.1f}",
                "what": row.dataset.title,
            }
            for row in rows
        ]
    )
    typer.echo(f"  Stored in {data_dir()}")
    if any(row.state == "changed" for row in rows):
        typer.echo("  changed: some files are missing or differ from the published ones")
    _to_type({row.dataset.name: f"harnesslab data get {row.dataset.name}" for row in rows if row.state == "missing"})


@data.command("get")
def data_get(name: str, quiet: Quiet = False) -> None:
    """Download a data set from its public source into the data folder and check its SHA-256."""
    from harnesslab.data import get

    typer.echo(get(name, progress=not quiet))


@envs.command("list")
def envs_list(
    counts: Annotated[
        bool, typer.Option("--counts", help="also count the tasks of environments that run in their own process")
    ] = False,
) -> None:
    """List environments, and how to install those that are missing."""
    from harnesslab.envtools import list_environments

    rows = list_environments(counts=counts)
    _table(
        [
            {
                "name": row.name,
                "state": "here" if row.runs else "missing",
                "tasks": row.tasks,
                "what": row.title,
            }
            for row in rows
        ]
    )
    typer.echo(
        "  tasks: search / gate / sealed" + ("" if counts else "; --counts counts those of every installed environment")
    )
    _to_type({row.name: row.command or row.note for row in rows if not row.runs})


@envs.command("install")
def envs_install(
    name: EnvName,
    python: Annotated[str | None, typer.Option(help='a version such as "3.12", or a path')] = None,
    again: Annotated[bool, typer.Option("--again", help="replace an existing installation")] = False,
    quiet: Quiet = False,
) -> None:
    """Create an environment's private Python with its pinned packages."""
    from harnesslab.envtools import install

    typer.echo(install(name, python=python, again=again, progress=not quiet))


@envs.command("remove")
def envs_remove(name: EnvName) -> None:
    """Remove an environment's private Python."""
    from harnesslab.envtools import remove

    for folder in remove(name):
        typer.echo(f"removed {folder}")


@envs.command("new")
def envs_new(
    name: str, path: Annotated[Path, typer.Option(help="folder to create it in")] = Path(),
) -> None:  # fmt: skip
    """Scaffold a new environment."""
    from harnesslab.envtools import new

    folder = new(name, path)
    typer.echo(f"{folder}: edit env.py, then run: harnesslab envs check {folder.resolve()}")


@envs.command("check")
def envs_check(
    name: Annotated[str, typer.Argument(help="an environment's name or folder, or a folder of tasks")],
    limit: Annotated[int, typer.Option(min=1, help="tasks of each split")] = 20,
    every: Annotated[bool, typer.Option("--all", help="all tasks, whatever the limit")] = False,
    tasks_only: Annotated[bool, typer.Option("--tasks-only", help="leave out the checks of the contract")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Report for each task whether it is playable and what its oracle and the null agent get, then what breaks the
    environment's contract. Tasks that the null agent solves are left out of panels from then on."""
    import json
    import warnings

    from harnesslab.testing import check_env, check_tasks
    from harnesslab.testing.tasks import target

    found, options = target(name)
    with warnings.catch_warnings():
        # The table names the tasks that are left out.
        warnings.simplefilter("ignore")
        table = check_tasks(found, limit=None if every else limit, **options)
    # The contract is the environment's; a folder of tasks has none of its own.
    report = None if tasks_only or options else check_env(found, limit=limit)
    if as_json:
        contract = (
            [{"check": one.check, "task": one.task, "message": one.message} for one in report.findings]
            if report
            else []
        )
        typer.echo(json.dumps({**table.to_json(), "contract": contract}, indent=1))
    else:
        typer.echo(str(table))
        if report is not None:
            typer.echo(f"\n{report}")
    if not table.ok or (report is not None and report.findings):
        raise typer.Exit(1)


@lab.command("log")
def lab_log(path: LabPath, limit: int = 50) -> None:
    """Show the baseline branch, newest first."""
    typer.echo(repr(_open(path).log(limit)))


@lab.command("rejected")
def lab_rejected(path: LabPath, limit: int = 50) -> None:
    """List the rejected refs, each with its reason."""
    typer.echo(repr(_open(path).rejected(limit)))


@lab.command("pending")
def lab_pending(path: LabPath, limit: int = 50) -> None:
    """List candidates that wait for a decision, measured ones with their verdict."""
    typer.echo(repr(_open(path).pending(limit)))


@app.command()
def export(
    path: LabPath,
    out: Annotated[Path, typer.Argument(help="folder to write; an earlier export there is replaced")],
    commit: Annotated[str | None, typer.Option(help="a commit id or full ref; by default the baseline")] = None,
    licence: Annotated[str | None, typer.Option(help="SPDX identifier, such as MIT")] = None,
) -> None:
    """Write a lab's harness as a plain folder, with its provenance and a model card. Runs nothing of the lab."""
    typer.echo(_open(path).export(out, commit=commit, licence=licence))


@app.command()
def serve(
    harness: Annotated[Path, typer.Argument(help="folder of a harness, such as one that `harnesslab export` wrote")],
    upstream: Annotated[str, typer.Option(help="base URL of the model's API, such as https://api.openai.com/v1")],
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8700,
    mode: Annotated[str, typer.Option(help="on, shadow (only log what would change) or off")] = "on",
    only: Annotated[str | None, typer.Option(help="a regex that the system message must contain")] = None,
    budget: Annotated[int, typer.Option(min=1, help="steps of a run, for interventions that look at it")] = 50,
    max_body: Annotated[int, typer.Option(min=1, help="bytes of a request")] = 20_000_000,
    max_sessions: Annotated[int, typer.Option(min=1, help="conversations that are remembered")] = 10_000,
    max_concurrent: Annotated[int | None, typer.Option(min=1, help="requests at once; more get status 503")] = None,
    timeout: Annotated[float, typer.Option(min=1, help="seconds that the upstream may be silent")] = 600.0,
) -> None:
    """Put a harness in front of a model, as an endpoint that speaks chat completions, responses and Anthropic messages."""
    from harnesslab.extras import comes_with
    from harnesslab.harness.load import Harness

    with comes_with("serve"):
        from harnesslab.bridges.proxy import Proxy, ServeSettings
        from harnesslab.bridges.proxy import serve as run
    settings = ServeSettings(
        mode, budget=budget, max_body=max_body, max_sessions=max_sessions, timeout=timeout, only=only
    )
    proxy = Proxy(Harness.load(harness), upstream, settings)
    typer.echo(f"serving {proxy.harness.name} on http://{host}:{port}/v1", err=True)
    run(proxy, host, port, limit=max_concurrent)


@app.command()
def report(
    path: LabPath, to: Annotated[Path, typer.Option(help="the HTML file to write")] = Path("report.html")
) -> None:
    """Write a lab's report: one HTML file with results, gains, effects, costs and what did not work."""
    typer.echo(f"{_open(path).report().save(to).resolve()}")


@app.command()
def train(
    config: Annotated[Path, typer.Argument(help="a file such as config/train_harness.yaml")],
    epochs: Annotated[int, typer.Option(min=1)] = 10,
    estimator: Annotated[
        str | None, typer.Option(help="what proposes: mining, or that of an installed package")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="continue interrupted epochs")] = False,
    trust: Annotated[bool, typer.Option("--trust", help="run the environment that the lab names")] = False,
    unconfined: Annotated[
        bool, typer.Option("--unconfined", help="run the lab's Python interventions with all your rights")
    ] = False,
) -> None:
    """Train without a notebook; StrictPareto decides. Paths in the file are relative to it."""
    from harnesslab import Trainer
    from harnesslab.trainer.config import open_lab, read_config

    file = read_config(config)
    lab = open_lab(file, trust=trust, unconfined=unconfined) if trust or unconfined else None
    if lab is not None:
        typer.echo(f"lab: {lab.path}")
    trainer = Trainer(lab=lab, config_path=config, estimator=estimator or file.estimator or "mining")
    for loss in trainer.resume() if resume else trainer.epochs(epochs):
        loss.backward()
        trainer.optimizer.step()
        typer.echo(repr(loss))
    typer.echo(repr(trainer.lab.log()))


def _open(path: Path) -> Lab:
    from harnesslab.lab import Lab

    return Lab.look(path)


def _table(rows: list[dict[str, Any]]) -> None:
    """A table as wide as the terminal: the last column is wrapped where there is no room, and nothing is cut."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE)
    *short, last = rows[0] if rows else [""]
    for name in short:
        table.add_column(Text(name), no_wrap=True)
    table.add_column(Text(last), overflow="fold")
    for row in rows:
        # Text, not markup: names and notes may come from packages of others.
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    Console().print(table)


def _to_type(commands: dict[str, str]) -> None:
    """What to type for each name, one a line, never wrapped by us, so that it can be copied whole."""
    if commands:
        width = max(map(len, commands))
        typer.echo("\n  How to get what is missing:\n")
        for name, command in commands.items():
            typer.echo(f"  {name:{width}}   {command}")


def _cell(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def main() -> None:
    """Run the command line; an error of ours is one line on stderr and exit code 1, not a traceback."""
    try:
        app()
    except HarnesslabError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(1) from None
