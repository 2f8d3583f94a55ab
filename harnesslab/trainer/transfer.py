"""Freeze the harness, change the model: does what was learned with one help another?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harnesslab.analysis.table import Table
from harnesslab.errors import ConfigError, HarnesslabError
from harnesslab.harness.files import MANIFEST, read_folder
from harnesslab.lab import Lab
from harnesslab.llm.types import MinimalBackbone
from harnesslab.rollout.env import Environment, Split
from harnesslab.rollout.identity import identity_of
from harnesslab.rollout.loop import run_sync
from harnesslab.rollout.progress import Bar
from harnesslab.rollout.registry import load_environment
from harnesslab.rollout.tasks import RULE
from harnesslab.trainer.conditions import Conditions
from harnesslab.trainer.latest import latest
from harnesslab.trainer.measure import Measurer
from harnesslab.trainer.panel import Panel
from harnesslab.trainer.parts import check_parts
from harnesslab.trainer.report import result_row
from harnesslab.trainer.trainer import Trainer

COLUMNS = ["environment", "model", "start", "trained", "of", "gain", "start %", "trained %", "forced %", "problem"]


def transfer(
    lab: Lab,
    models: Sequence[MinimalBackbone],
    envs: Sequence[str | Environment] | None = None,
    *,
    split: Split = "gate",
    limit: int | None = None,
    trainer: Trainer | None = None,
    progress: bool = True,
) -> Table:
    """A matrix: each model, in each environment, with the lab's first harness and with its present one.

    ``start`` and ``trained`` count solved tasks, ``gain`` is their difference. Put ``LLM.random(0)`` among the models to
    see what the harness solves alone. Everything is measured under the conditions of the ``trainer``, by default the
    lab's last training: panel, budget, repeats, seed, tolerance, tasks left out, meter and limits. ``limit`` plays fewer
    tasks. What was played before, also by an interrupted call, is not played again.

    ``envs``: names or objects, by default the lab's own. Another environment is played with the base prompt
    (``harness.toml``) of its own starter and the lab's interventions. Where a model or an environment fails, its row says why
    in ``problem``, and the others go on. The sealed split is not opened unless ``split`` says so, and then each
    opening is recorded. Raises ConfigError for anything that is not a model, before anything is played.
    """
    conditions = _conditions(lab, trainer)
    _check(models)
    names = model_names(models)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for env in [lab.environment] if envs is None else envs:
        known = env if isinstance(env, str) else str(getattr(env, "name", type(env).__name__))
        try:
            world = load_environment(env)
            own = world.name == lab.environment.name
            panel = conditions.panel(split, None if own else world, limit)
            base = {} if own else {MANIFEST: read_folder(world.starter())[MANIFEST]}
        except HarnesslabError as error:
            rows.append({"environment": known, "problem": str(error)})
            continue
        if not own:
            notes.append(
                f"{world.name}: with the base prompt of its own starter; the lab's is for {lab.environment.name}."
            )
        for model, name in zip(models, names, strict=True):
            measurer = replace(conditions.measurer(model, None if own else world), base=base)
            rows.append({"environment": world.name, "model": name, **_compare(measurer, panel, name, progress)})
    table = Table(rows, title=f"transfer of {lab.path.name}, {split} split, in tasks", columns=COLUMNS)
    if chosen := conditions.chosen():
        said = ", ".join(f"{key} {_plain(value)}" for key, value in chosen.items())
        table.notes.append(f"Conditions of the training: {said}.")
        if conditions.settings.repeats > 1:
            table.notes.append(RULE)
    table.notes += notes
    return table


def model_names(models: Sequence[MinimalBackbone]) -> list[str]:
    """A name for each model: its own, and what distinguishes it from another one of the same name."""
    identities = [_identity(model) for model in models]
    names = [
        str(identity.get("model") or type(model).__name__) for identity, model in zip(identities, models, strict=True)
    ]
    full = []
    for name, identity in zip(names, identities, strict=True):
        alike = [other for other, its in zip(identities, names, strict=True) if its == name]
        keys = sorted(
            key for key in {key for other in alike for key in other} if len({repr(o.get(key)) for o in alike}) > 1
        )
        said = ", ".join(f"{key.removeprefix('sampling.')} {_plain(identity.get(key))}" for key in keys)
        full.append(f"{name} ({said})" if said else name)
    seen: Counter[str] = Counter()
    for place, name in enumerate(full):
        seen[name] += 1
        if seen[name] > 1:  # the very same model twice
            full[place] = f"{name} #{seen[name]}"
    return full


def _conditions(lab: Lab, trainer: Trainer | None) -> Conditions:
    if trainer is not None and trainer.lab.path != lab.path:
        raise ConfigError(f"trainer belongs to the lab {trainer.lab.path}, not to {lab.path}")
    last: Trainer | None = trainer if trainer is not None else latest()
    if last is not None and last.lab.path == lab.path:
        return last.conditions
    return Conditions.remembered(lab)


def _check(models: Any) -> None:
    if isinstance(models, str | bytes) or not isinstance(models, Sequence) or not models:
        raise ConfigError("models takes a list of backbones, such as [hl.LLM('name', base_url=...), hl.LLM.random(0)]")
    for model in models:
        check_parts(llm=model)
        if model is None:
            raise ConfigError("models holds None: pass backbones, such as hl.LLM('name', base_url=...)")


def _compare(measurer: Measurer, panel: Panel, name: str, progress: bool) -> dict[str, Any]:
    """The columns of one row; whatever was measured before a failure is kept."""
    lab, row = measurer.lab, dict[str, Any]()
    try:
        runs = []
        for harness, commit in (("start", lab.repo.root()), ("trained", lab.repo.baseline())):
            bar = Bar(f"{measurer.world.name}, {name}: {harness}", len(panel), show=progress)
            try:
                measurer.record_opening(commit, panel)
                run = run_sync(measurer.measure(commit, panel, bar, purpose="transfer"), bar.tick)
            finally:
                bar.close()
            runs.append(run)
            found = result_row(lab, run, harness=harness)
            row |= {harness: found["solved"], f"{harness} %": found["rate"], "of": found["of"]}
        row |= {"gain": row["trained"] - row["start"], "forced %": found["forced"]}
        served = [", ".join(run.served) for run in runs]
        if all(served) and served[0] != served[1]:
            row["problem"] = f"the server answered as {served[0]} at the start and as {served[1]} when trained"
    except HarnesslabError as error:
        row["problem"] = str(error)
    return row


def _identity(model: MinimalBackbone) -> dict[str, Any]:
    """The identity in one level (``sampling.temperature``); empty where the model cannot say, which its row will report."""
    try:
        identity = identity_of(model)
    except HarnesslabError:
        return {}
    flat: dict[str, Any] = {}
    for key, value in identity.items():
        nested = value.items() if isinstance(value, Mapping) else ()
        flat |= {f"{key}.{inner}": item for inner, item in nested} or {str(key): value}
    return flat


def _plain(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)
