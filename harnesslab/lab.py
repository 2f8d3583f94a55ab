"""The lab: a git repository that holds one harness, the record of its runs, and the environment it is for."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harnesslab import checkout
from harnesslab.analysis.overlap import overlap_table
from harnesslab.analysis.table import Table
from harnesslab.analysis.tables import (
    candidate_table,
    curve_table,
    log_table,
    look_table,
    looks_of,
    opening_table,
    prediction_table,
)
from harnesslab.errors import ConfigError, LeftOut, NotOnMain, OrderError, StoreError, UnusualLab, readers_line
from harnesslab.export import export
from harnesslab.harness.files import read_folder
from harnesslab.harness.load import Harness, load_harness
from harnesslab.labenv import remember, remembered, remembered_environment
from harnesslab.labfolder import full_path, is_lab, move_aside, near, refuse_moving
from harnesslab.ledger import OPEN, Ledger
from harnesslab.rollout.env import Environment
from harnesslab.rollout.records import Episode, Run, Step
from harnesslab.rollout.registry import lasting_name, load_environment
from harnesslab.rollout.splits import SECONDS, check_splits, warn_of_splits
from harnesslab.store import LEARNING, LabRepo, RunStore, new_opening, open_gitpython

if TYPE_CHECKING:
    import git

    from harnesslab.analysis.standing import Standing
    from harnesslab.rollout.report import Report


class Lab:
    """The user's handle. Open one with :meth:`Lab.open`."""

    def __init__(
        self,
        path: Path,
        environment: Environment | None,
        *,
        trust: bool = False,
        unconfined: bool = False,
        starter: Mapping[str, bytes] | None = None,
        remember: str | None = None,
    ):
        """Nothing is read or written yet. ``starter``: the files of a lab that is still to be made."""
        self.path, self.trust, self.unconfined = path, trust, unconfined
        self._environment, self._starter, self._name = environment, starter, remember
        self._harnesses: dict[str, Harness] = {}

    @classmethod
    def open(
        cls,
        path: str | Path,
        env: str | Environment | None = None,
        *,
        trust: bool = False,
        unconfined: bool = False,
        fresh: bool = False,
    ) -> Lab:
        """Open the lab at ``path``. If there is nothing, or an empty folder, create it from the environment's starter harness.

        ``env``: a name from ``harnesslab envs list``, a folder or import path of your own, or an environment object. It may be
        omitted for a lab that was opened before; a folder or import path is then only used with ``trust``, since
        somebody else may have written it into the lab. ``trust``: run the environment and the git programs that this lab
        names. ``unconfined``: run its Python interventions in this process, with all your rights, instead of each in a
        confined one. ``fresh``: start over; a lab that is there already is moved aside (``NAME.1``,
        ``NAME.2``, ...), so nothing is lost. A folder that holds anything but a lab is refused and stays as it is.
        Warns (SplitWarning) if splits overlap. Raises ConfigError when no environment is known, EnvironmentUnavailable, StoreError.
        """
        lab = cls.prepare(path, env, trust=trust, unconfined=unconfined)
        if fresh and lab._starter is None:
            lab._start_over()
        lab._keep()
        return lab

    @classmethod
    def prepare(
        cls,
        path: str | Path,
        env: str | Environment | None = None,
        *,
        trust: bool = False,
        unconfined: bool = False,
    ) -> Lab:
        """As :meth:`open`, but a lab that is not there yet is only made when it is first used. Checks everything; writes nothing."""
        folder = full_path(path)
        there = is_lab(folder)
        environment = load_environment(env if env is not None else remembered_environment(folder, trust))
        warn_of_splits(environment)
        starter = None if there else read_folder(environment.starter())
        name = lasting_name(env) if isinstance(env, str) else None
        return cls(folder, environment, trust=trust, unconfined=unconfined, starter=starter, remember=name)

    @classmethod
    def look(cls, path: str | Path) -> Lab:
        """Open a lab to look at: no environment is loaded and no record is started. Raises StoreError if there is no lab."""
        folder = full_path(path)
        if not is_lab(folder):
            raise StoreError(f"There is no lab in {folder}.", cause="not_a_lab")
        return cls(folder, None)

    @property
    def environment(self) -> Environment:
        """What the lab is for. Raises OrderError for a lab that was opened by :meth:`look`."""
        if self._environment is None:
            raise OrderError(f"{self.path} was opened with Lab.look; use Lab.open(path, env=...) to work with it")
        return self._environment

    @property
    def exists(self) -> bool:
        """Whether the lab is on disk; one from :meth:`prepare` may not be yet."""
        return self._starter is None or "repo" in self.__dict__

    @property
    def recorded(self) -> bool:
        """Whether there are records; asking for :attr:`runs` starts them."""
        return "runs" in self.__dict__ or RunStore.exists(self.path)

    @cached_property
    def repo(self) -> LabRepo:
        """Its git repository."""
        # Another notebook may have made it since.
        if self._starter is None or is_lab(self.path):
            repo = LabRepo.open(self.path)
            for notice in repo.notices():
                warnings.warn(notice, UnusualLab, stacklevel=readers_line())
            return repo
        return LabRepo.create(self.path, self._starter)

    @cached_property
    def git(self) -> git.Repo:
        """The repository as a GitPython ``Repo``, to look at: ``lab.git.head.commit``, ``lab.git.iter_commits("main")``.

        For changes use the lab and its ledger, which hold the lab's lock and keep refs and notes together. Raises StoreError
        for a lab that configures programs for git, unless it was opened with ``trust``.
        """
        self.repo  # noqa: B018  (it may have to be made)
        return open_gitpython(self.path, trust=self.trust)

    @cached_property
    def runs(self) -> RunStore:
        """Its records."""
        self.repo  # noqa: B018  (the repository comes first: it may have to be made)
        store = RunStore.open(self.path)
        for notice in store.notices:
            warnings.warn(notice, UnusualLab, stacklevel=readers_line())
        if self._name is not None:
            remember(self.path, self._name)
        return store

    @property
    def ledger(self) -> Ledger:
        """The states of its candidates, and what can be done with them."""
        return Ledger(self.repo)

    def _keep(self) -> None:
        """Make and open everything now."""
        self.runs  # noqa: B018
        self._notice_head()

    def _start_over(self) -> None:
        refuse_moving(self.path)
        starter = read_folder(self.environment.starter())
        opened = _openings_of(self.path)
        aside = move_aside(self.path)
        self._starter = starter
        past = [{**opening, "lab": opening["lab"] or aside.name} for opening in opened]
        if past:
            self.repo.record_openings(past, on=self.repo.root())

    def harness(self, commit: str | None = None) -> Harness:
        """The harness at a commit (default: the baseline), loaded and checked."""
        commit = commit or self.repo.baseline()
        if commit not in self._harnesses:
            self._harnesses[commit] = load_harness(self.repo.files(commit), unconfined=self.unconfined)
        return self._harnesses[commit]

    def export(self, path: str | Path, *, commit: str | None = None, licence: str | None = None) -> Path:
        """Write the harness at a commit (default: the baseline) into a plain folder, with its provenance and a model card.

        ``harnesslab.Harness.load`` reads it. The same commit exports the same bytes. ``licence``: an SPDX identifier; licence files in the
        commit are copied. An earlier export in ``path`` is replaced; a folder with anything else is refused. Runs nothing of
        the lab. Raises StoreError, ConfigError. Returns the folder.
        """
        return export(self, full_path(path), commit=commit, licence=licence)

    # -- looking back ---------------------------------------------------------------------------------

    def log(self, limit: int = 50) -> Table:
        """The baseline branch, newest first: commit, when, what, solved counts, who decided."""
        return log_table(self.repo.history(limit=limit))

    def rejected(self, limit: int = 50, **filters: Any) -> Table:
        """The rejected refs, newest first, each with the reason; filters as ``LabRepo.candidates`` takes them."""
        page = self.repo.candidates(state="rejected", limit=limit, **filters)
        return candidate_table(page.rows, f"rejected ({page.total})")

    def pending(self, limit: int = 50) -> Table:
        """Candidates that wait for a decision: not measured yet, measured, or shelved because the measurement could not tell."""
        rows = self.repo.candidates(state=OPEN, limit=limit).rows
        return candidate_table(rows, f"pending ({len(rows)})")

    def curve(self) -> Table:
        """The learning curve: one row a verdict, oldest first, with what it solved, who decided, and when."""
        return curve_table(self.repo)

    def check_splits(self, *, seconds: float = SECONDS) -> Table:
        """Tasks that occur in two splits, or twice in one: the same, nearly the same, or the same but for numbers.

        If nothing says what the tasks are about, they are reset to see it, for at most ``seconds``. Raises RepeatedTask.
        """
        return overlap_table(check_splits(self.environment, seconds=seconds))

    def openings(self) -> Table:
        """Each opening of the sealed split, newest first: when, of which environment, with which commit and backbone, by whom.

        They are kept as git notes. ``lab`` names the lab in whose place this one was started over, for what was opened there.
        """
        return opening_table(reversed(self.repo.openings(self.runs)), self.environment.name)

    def looks(self) -> Table:
        """Each look at the gate, newest first: a candidate measured there. The more looks, the less a gain on it means.

        They are counted from the verdicts in git notes; ``lab`` names the lab in whose place this one was started over.
        """
        own = looks_of(self.repo)
        return look_table([*self.repo.past_looks(), *own], own)

    def predictions(self) -> Table:
        """How often what proposals predicted for the gate held, by estimator and by kind of intervention: counts of verdicts,
        of conditions checked, and of those that held, in all and one by one."""
        return prediction_table(self.repo)

    def effects(self, backbone: str | None = None) -> Standing:
        """What each intervention of the baseline has done up to now: fired, helped, hurt, effect with its interval.

        From all comparable episodes on record (:mod:`harnesslab.analysis.standing`). ``backbone``: a model's name, by default that of the
        latest run with a model. Shows itself as a table; ``plot()`` draws a forest plot. Needs the extra ``lab``.
        """
        from harnesslab.analysis.standing import standing

        return standing(self.repo, self.runs if self.recorded else None, backbone)

    def report(self) -> Report:
        """The lab as one self-contained HTML file and a DataFrame: ``lab.report().save("report.html")`` (extra ``lab``).

        Results of the first and the present harness with every backbone and control on record, gains with intervals, flips, effects, costs, what
        did not work, and the identity of the measurement.
        """
        from harnesslab.analysis.report import lab_report

        runs = self.runs if self.recorded else None
        openings = self.openings() if self._environment is not None and runs is not None else Table([])
        return lab_report(self.repo, runs, self.path.name, openings, self.looks())

    def record_opening(self, commit: str, backbone: Mapping[str, Any], environment: Environment, who: str) -> None:
        """Note in git that the sealed split of an environment is opened now. Raises StoreError."""
        about = {"environment": environment.name, "version": environment.version}
        now = new_opening(commit, backbone=dict(backbone), who=who, **about)
        # With the first one come those that only an older database has.
        self.repo.record_openings([*self.repo.openings(self.runs), now])

    # -- records --------------------------------------------------------------------------------------

    def load_run(self, row: Mapping[str, Any], *, traces: bool = False) -> Run:
        """A run from its row in the store. ``traces``: load the steps of each episode, too."""
        run = Run(
            id=row["id"],
            commit=row["commit"],
            split=row["split"],
            identity=row["identity"],
            purpose=row["purpose"],
            backbone=row["backbone"],
            served=tuple(row["meta"].get("served", ())),
        )
        for summary in self.runs.episodes(run.id):
            episode = Episode.from_summary(summary)
            run.episodes.append(self.load_steps(episode) if traces else episode)
        return run

    def run(self, run_id: str) -> Run:
        """A stored run by its number, with all its steps. Raises StoreError when there is none."""
        return self.load_run(self.runs.run(run_id), traces=True)

    def load_steps(self, episode: Episode) -> Episode:
        """The episode with its steps read from the store; does nothing where they are there already."""
        if not episode.steps and episode.length:
            if episode.id is None:
                raise StoreError(f"the episode on {episode.task_id} was not stored, and its steps are gone")
            episode.steps = [Step.from_json(step) for step in self.runs.trace(episode.id)]
        return episode

    def keep_episode(self, run: Run, episode: Episode) -> None:
        """Store a finished episode at once."""
        episode.id = self.runs.add_episode(run.id, episode.summary(), [step.to_json() for step in episode.steps])

    # -- the working copy -----------------------------------------------------------------------------

    def edits(self) -> dict[str, str | None]:
        """The harness files that you have edited in the lab's folder, as changes that a proposal can carry.

        They are compared with the commit that is checked out, as git would store them. Other files are never proposed: a
        warning (LeftOut) names them in one line. Where the checkout is not the baseline's, NotOnMain says so.
        """
        self._notice_head()
        changes, left_out = checkout.edits(self.repo)
        if left_out:
            warnings.warn(left_out, LeftOut, stacklevel=readers_line())
        return changes

    def _notice_head(self) -> None:
        if elsewhere := checkout.elsewhere(self.repo):
            warnings.warn(
                f"{self.path}: {elsewhere}. Edits are compared with the files of that commit; "
                "`git switch main` in this folder checks out the baseline.",
                NotOnMain,
                stacklevel=readers_line(),
            )

    @cached_property
    def learning_path(self) -> Path:
        """``learning.md``: the running diagnosis, rewritten after each verdict, kept out of the commits."""
        return self.path / LEARNING

    def close(self) -> None:
        """Give back the database and git processes."""
        for part in ("runs", "git", "repo"):
            if part in self.__dict__:
                self.__dict__[part].close()

    def __repr__(self) -> str:
        env = self._environment.name if self._environment is not None else None
        baseline = self.repo.baseline()[:10] if self.exists else "not made yet"
        elsewhere = f", {there}" if self.exists and (there := checkout.elsewhere(self.repo)) else ""
        return f"Lab({near(self.path)!r}, env={env!r}, baseline={baseline}{elsewhere})"


def _openings_of(folder: Path) -> list[dict[str, Any]]:
    """What is on record of the sealed split in a lab that is about to be moved aside, each with its environment."""
    try:
        with contextlib.closing(LabRepo.open(folder)) as repo, RunStore.open(folder) as runs:
            looks = [*repo.past_looks(), *looks_of(repo)]
            return looks + [
                opening | {"environment": opening["environment"] or _played(runs, opening) or remembered(folder) or ""}
                for opening in repo.openings(runs)
            ]
    except (StoreError, ConfigError) as error:
        warnings.warn(
            f"the new lab does not know how often the gate was used and the sealed split was opened before: {error}",
            stacklevel=readers_line(),
        )
        return []


def _played(runs: RunStore, opening: Mapping[str, Any]) -> str:
    """The environment of the run that an older record of an opening belongs to."""
    found = runs.runs(split="sealed", commit=opening["commit"], limit=1)
    return str(found[0]["identity"].get("environment", "")) if found else ""
