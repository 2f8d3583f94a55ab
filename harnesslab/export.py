"""A lab's harness as a plain folder: its files, where they come from, and a model card.

Everything in it follows from the commit and from the first sealed result on record for each backbone, so the same commit exports the same
bytes. Nothing of the lab is loaded or run: YAML is read as data, and Python is copied.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from harnesslab.errors import ConfigError, HarnessFileError, StoreError
from harnesslab.harness.files import MANIFEST, decode, has_meaning
from harnesslab.harness.load import Manifest, read_manifest
from harnesslab.harness.provenance import FORMAT, PROVENANCE, digest
from harnesslab.harness.yamlfile import read_yaml, write_yaml
from harnesslab.labenv import remembered
from harnesslab.ledger import Verdict
from harnesslab.plaintext import markdown
from harnesslab.redaction import scrub_json
from harnesslab.rollout.records import Episode
from harnesslab.rollout.tasks import solved_shares, solved_tasks
from harnesslab.store import LabRepo, RunStore

CARD = "README.md"
_LICENCE = re.compile(r"(LICEN[CS]E|COPYING|NOTICE)(\.(txt|md))?", re.IGNORECASE)
_SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+ ()-]{0,99}")
_RUNS = 1_000_000


class Source(Protocol):
    """What an export reads of a lab."""

    path: Path

    @property
    def repo(self) -> LabRepo:
        """Its repository."""

    @property
    def recorded(self) -> bool:
        """Whether there are records."""

    @property
    def runs(self) -> RunStore:
        """Its records."""


def export(lab: Source, path: Path, *, commit: str | None = None, licence: str | None = None) -> Path:
    """Write the export of a commit into the folder ``path``; an earlier export there is replaced. Returns the folder.

    Raises ConfigError for a licence that is not a name, StoreError where the folder holds anything else or cannot be written.
    """
    if licence is not None and not _SPDX.fullmatch(licence):
        raise ConfigError(f"licence={licence!r:.60} is not a licence's name; give its SPDX identifier, such as 'MIT'")
    _check_target(path, lab.path)
    files = contents(lab, commit or lab.repo.baseline(), licence)
    _write(path, files)
    return path


def contents(lab: Source, commit: str, licence: str | None = None) -> dict[str, bytes]:
    """The files of an export, path to bytes."""
    found = lab.repo.commit(commit)
    every = lab.repo.files(found.id)
    files = {name: data for name, data in every.items() if has_meaning(name)}
    if MANIFEST not in files:
        raise HarnessFileError(MANIFEST, f"not found in commit {found.id[:10]}; a harness has this file")
    manifest = read_manifest(decode(MANIFEST, files[MANIFEST]))
    own = {name: data for name, data in every.items() if "/" not in name and _LICENCE.fullmatch(name)}
    sealed, measured = _sealed(lab, found.id), _measured(lab, found.id)
    about: dict[str, Any] = {
        "format": FORMAT,
        "harness": {"name": manifest.name, "protocol": manifest.protocol, "digest": digest(files)},
        "commit": found.id,
        "committed": datetime.fromtimestamp(found.created, UTC).isoformat(),
        "subject": found.subject,
        "environment": {"name": measured.get("environment"), "version": measured.get("version")},
        "backbone": None if _is_control(measured.get("backbone")) else measured.get("backbone"),
        "verdict": _verdict(lab, found.id),
        "sealed": sealed,
        "licence": {"name": licence, "files": sorted(own)},
    }
    about = scrub_json(about)
    text = json.dumps(about, ensure_ascii=False, indent=1, sort_keys=True)
    card = _card(about, manifest, _interventions(files))
    return {**files, **own, PROVENANCE: f"{text}\n".encode("utf-8", "replace"), CARD: card.encode("utf-8", "replace")}


# -- what is on record ----------------------------------------------------------------------------


def _runs_of(lab: Source, commit: str) -> list[dict[str, Any]]:
    """The finished runs of a commit, oldest first."""
    if not lab.recorded:
        return []
    return lab.runs.runs(limit=_RUNS, commit=commit, status="done")[::-1]


def _opened(lab: Source, commit: str) -> list[dict[str, Any]]:
    """Those on the sealed split."""
    return [run for run in _runs_of(lab, commit) if (run["split"], run["purpose"]) == ("sealed", "measure")]


def _measured(lab: Source, commit: str) -> dict[str, Any]:
    """The identity of the commit's first measurement with a model: of a run, else, in a clone without records, of its verdict."""
    note = lab.repo.verdict(commit)
    identities = [run["identity"] for run in _runs_of(lab, commit)]
    identities += [dict(Verdict.from_json(note).identity)] if note else []
    models = [identity for identity in identities if not _is_control(identity.get("backbone"))]
    return next(iter([*models, *identities]), {"environment": remembered(lab.path)})


def _is_control(backbone: Any) -> bool:
    return isinstance(backbone, Mapping) and (str(backbone.get("kind", "")).endswith("control") or "deaf" in backbone)


def _sealed(lab: Source, commit: str) -> list[dict[str, Any]]:
    """The first sealed result of the commit with each backbone, models before controls; with each that of the lab's first harness."""
    start = lab.repo.root()
    first = {_key(run): run for run in reversed(_opened(lab, start))}
    rows: dict[str, dict[str, Any]] = {}
    for run in _opened(lab, commit):
        if (key := _key(run)) in rows:
            continue
        backbone = run["identity"].get("backbone") or {}
        before = first.get(key)
        rows[key] = {
            "backbone": backbone,
            "control": _is_control(backbone),
            "environment": run["identity"].get("environment"),
            "version": run["identity"].get("version"),
            "budget": run["identity"].get("budget"),
            "repeats": run["identity"].get("repeats"),
            "start": _result(lab, run if start == commit else before),
            "trained": _result(lab, run if start != commit else None),
        }
    return sorted(rows.values(), key=lambda row: row["control"])


def _key(run: Mapping[str, Any]) -> str:
    return json.dumps(run["identity"], sort_keys=True, default=str)


def _result(lab: Source, run: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Tasks solved, the mean share of a task's repeats that were solved, and its 95% interval, in percent."""
    if run is None:
        return None
    from harnesslab.analysis.statistics import clustered

    episodes = [Episode.from_summary(row) for row in lab.runs.episodes(run["id"])]
    scorable = [episode for episode in episodes if episode.status == "finished"]
    shares = list(solved_shares(scorable).values())
    low, high = clustered(shares, len(scorable))
    return {
        "run": run["id"],
        "solved": len(solved_tasks(scorable)),
        "of": len(shares),
        "rate": round(100 * sum(shares) / len(shares), 1) if shares else 0.0,
        "low": round(100 * low, 1),
        "high": round(100 * high, 1),
        "unscorable": len(episodes) - len(scorable),
    }


def _verdict(lab: Source, commit: str) -> dict[str, Any] | None:
    note = lab.repo.verdict(commit)
    if note is None:
        return None
    verdict = Verdict.from_json(note)
    before, after, tasks = verdict.counts or (None, None, None)
    return {
        "decision": verdict.decision, "before": before, "after": after, "tasks": tasks,
        "decider": {"kind": verdict.decider.kind, "name": verdict.decider.name, "override": verdict.decider.override},
    }  # fmt: skip


def _interventions(files: Mapping[str, bytes]) -> list[tuple[str, str, str]]:
    """Name, kind and purpose of each intervention, read as data."""
    rows = []
    for path in sorted(name for name in files if name != MANIFEST):
        kind, about = "Python", ""
        if path.endswith(".yaml"):
            data, _ = read_yaml(path, decode(path, files[path]))
            found = data if isinstance(data, dict) else {}
            kind, about = str(found.get("kind") or ""), str(found.get("about") or "")
        rows.append((path.rpartition(".")[0], kind, about))
    return rows


# -- the card -------------------------------------------------------------------------------------


def _card(about: Mapping[str, Any], manifest: Manifest, interventions: Sequence[tuple[str, str, str]]) -> str:
    head = {"library_name": "harnesslab", "tags": ["agents", "harness"]}
    licence = about["licence"]
    if licence["name"]:
        head = {"license": licence["name"].lower(), **head}
    environment = about["environment"]
    world = markdown(str(environment["name"] or "an unknown environment"))
    version = f" (version {markdown(str(environment['version']))})" if environment["version"] else ""
    python = any(kind == "Python" for _, kind, _ in interventions)
    lines = [
        "---", write_yaml(head).rstrip("\n"), "---", "",
        f"# {markdown(manifest.name)}", "",
        f"A harness for an LLM agent, trained with harnesslab on {world}{version}. It sits between a frozen model and its tools: "
        "prompts, repairs of replies, and control of the trajectory. It contains no weights.", "",
        "## Use", "", "```python", "import harnesslab as hl", "",
        'harness = hl.Harness.load("this-folder")', "run = hl.Agent(harness, llm).start(instruction, tools=tools)",
        "while (action := run.act(observation)) is not None:", "    observation = my_system(action)", "```", "",
        "## Results", "", *_results(about), "",
        "## Interventions", "", *_table(("intervention", "kind", "what it is for"), interventions), "",
    ]  # fmt: skip
    if python:
        lines += [
            "Python files run in a confined process of their own. Read them before you load them with `unconfined=True`, which runs them in yours.",
            "",
        ]
    lines += [
        "## Limits", "",
        "A result holds for the environment, the model and the sampling that it names. Measure again before you rely on it elsewhere.", "",
        "## Licence", "",
        f"{markdown(licence['name'])}." if licence["name"] else "See " + ", ".join(map(markdown, licence["files"])) + "."
        if licence["files"] else "Not stated by whoever exported it.", "",
        "## Provenance", "",
        f"- commit `{about['commit']}`, {about['committed']}: {markdown(about['subject'])}",
        f"- files `{about['harness']['digest']}`",
        f"- `{PROVENANCE}` has all of this as JSON", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _results(about: Mapping[str, Any]) -> list[str]:
    rows = []
    for row in about["sealed"]:
        name = markdown(str(row["backbone"].get("model") or "unnamed"))
        for harness in ("start", "trained"):
            if (result := row[harness]) is not None:
                solved = f"{result['solved']}/{result['of']}"
                interval = f"{result['rate']:g}% (95% CI {result['low']:g}-{result['high']:g}%)"
                rows.append((harness, name + (" (control)" if row["control"] else ""), solved, interval))
    if not rows:
        lines = ["The sealed split has not been opened at this commit, so there is no held-out result."]
    else:
        lines = _rows(("harness", "model", "sealed tasks solved", "rate"), rows)
        lines += ["", "First result on record for each model. A control answers without reading the task; whatever it solves, the harness solves alone."]  # fmt: skip
    verdict = about["verdict"]
    if verdict and verdict["tasks"]:
        decider = verdict["decider"]
        who = "a person" if decider["kind"] == "person" else markdown(decider["name"])
        lines += [
            "",
            f"Last change: {verdict['before']} to {verdict['after']} of {verdict['tasks']} gate tasks; decided by {who}.",
        ]
    return lines


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return (
        _rows(head, [tuple(map(markdown, row)) for row in rows]) if rows else ["None: this is the base prompt alone."]
    )


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; cells are Markdown already."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


# -- writing --------------------------------------------------------------------------------------


def _check_target(path: Path, lab: Path) -> None:
    """Refuse to export over anything but an earlier export, or into the lab."""
    if path == lab or path.is_relative_to(lab):
        raise StoreError(f"{path} is inside the lab; export to a folder outside {lab}.", cause="refused")
    if lab.is_relative_to(path):
        raise StoreError(f"{path} contains the lab; export to another folder.", cause="refused")
    try:
        names = {entry.name for entry in path.iterdir()}
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise StoreError(f"{path} is not a folder; export to another path.", cause="refused") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error
    if names and not ({PROVENANCE, MANIFEST, CARD} <= names and ".git" not in names and _is_export(path)):
        raise StoreError(
            f"{path} holds files that are not an export; choose a folder that is empty or does not exist yet.",
            cause="refused",
        )


def _is_export(path: Path) -> bool:
    """Whether every file in the folder is one that an export writes, so that replacing it loses nothing."""
    for base, folders, names in os.walk(path):
        for name in names:
            relative = Path(base, name).relative_to(path).as_posix()
            if not (has_meaning(relative) or relative in (PROVENANCE, CARD) or _LICENCE.fullmatch(relative)):
                return False
        if any(Path(base, name).is_symlink() for name in (*folders, *names)):
            return False
    return True


def _write(path: Path, files: Mapping[str, bytes]) -> None:
    """Write the folder beside its place and move it there, so that it is there whole or not at all."""
    old: Path | None = None
    made: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        made.chmod(0o755)
        for name, data in files.items():
            target = made / name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(data)
        if path.exists():
            old = path.rename(made.with_name(f"{made.name}.old"))
        made.rename(path)
    except OSError as error:
        if old is not None and not path.exists():
            old.rename(path)
            old = None
        raise StoreError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        for rest in (made, old):
            if rest is not None:
                shutil.rmtree(rest, ignore_errors=True)
