"""Every error that a user can meet, one class per kind of trouble.

A message names the thing, says what is wrong and what to do. Errors from below
(git, SQLite, HTTP, YAML) are translated at the border of the module that met them,
so that nobody has to read a traceback from the depths.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from harnesslab.redaction import scrub

_OWN = str(Path(__file__).parent)


def readers_line() -> int:
    """The ``stacklevel`` with which a warning of the caller points at the reader's own line, however deep the call is."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        level, frame = level + 1, frame.f_back
    return level


class HarnesslabError(Exception):
    """Base class; catch this to catch everything that harnesslab raises on purpose. Its text holds no known secret."""

    def __str__(self) -> str:
        return scrub(super().__str__())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the lines of the reader's own code, then the sentence.

        A dozen frames of ours would hide both. They are still there for ``traceback.print_exception(error)``.
        """
        lines = []
        for frame in traceback.extract_tb(self.__traceback__):
            if frame.filename.startswith(_OWN):
                break
            if "IPython" not in Path(frame.filename).parts:
                lines.append(f"----> {frame.lineno} {frame.line}")
        return [*lines, f"{type(self).__name__}: {self}"]


class HarnessFileError(HarnesslabError):
    """A harness file cannot be used; names the file, the line and the key."""

    def __init__(self, path: Path | str, message: str, *, line: int | None = None, key: str | None = None):
        self.path, self.line, self.key = Path(path), line, key
        where = str(path) + (f", line {line}" if line is not None else "")
        what = f", key '{key}'" if key else ""
        super().__init__(f"{where}{what}: {message}")


class EnvironmentUnavailable(HarnesslabError):
    """An environment, or the data that it needs, is not there; says how to get it."""


class RepeatedTask(EnvironmentUnavailable):
    """Two tasks of an environment have the same id; names it."""


class EnvironmentFault(HarnesslabError):
    """The environment broke. Its episode is unscorable, the run goes on.

    ``cause`` is ``crash``, ``hang`` or ``lie``, a row of :data:`harnesslab.rollout.owners.RULES`.
    """

    def __init__(self, message: str, *, cause: str = "crash"):
        self.cause = cause
        super().__init__(message)


class EnvironmentCrash(EnvironmentFault):
    """A call of an environment in a process of its own raised something that the environment did not mean to."""


class InterventionFault(HarnesslabError):
    """An intervention crashed, hung or returned nonsense. Charged to the candidate.

    ``cause`` is a row of :data:`harnesslab.rollout.owners.RULES` that the harness owns.
    """

    def __init__(self, message: str, *, cause: str = "intervention"):
        self.cause = cause
        super().__init__(message)


class ConfinementUnavailable(HarnesslabError):
    """Python interventions cannot be confined here; says why. Nothing of them was run."""


class LeakFound(HarnesslabError):
    """An intervention carries text that only one task knows; names file, literal and task."""


class BackboneError(HarnesslabError):
    """The model cannot be reached, refuses, or answers with something that is not a reply.

    ``cause`` is a row of :data:`harnesslab.rollout.owners.RULES`, which says whether one episode ends or everything stops.
    """

    def __init__(self, message: str, *, cause: str = "setup"):
        self.cause = cause
        super().__init__(message)


class ReplayMiss(BackboneError):
    """A replay has no recording of this request. Never answered by a silent live call."""


class BudgetExceeded(HarnesslabError):
    """The meter's hard limit was reached; nothing more is spent."""


class StoreError(HarnesslabError):
    """The lab's repository or database cannot be used as asked.

    ``cause`` tells a program what the sentence tells a person: ``ownership``, ``read_only``, ``full``, ``locked``,
    ``not_a_lab``, ``vanished``, ``corrupt``, ``deadline``, ``newer_database``, ``bad_ref``, ``not_found``, ``refused`` (the state of the candidate or of the baseline forbids
    it), ``proposal`` (what was proposed cannot be a commit); empty where it is none of these.
    """

    def __init__(self, message: str, *, cause: str = ""):
        self.cause = cause
        super().__init__(message)


class LabLocked(StoreError):
    """Another process holds the lab's lock; names the owner."""


class BaselineMoved(StoreError):
    """The baseline is no longer the one that the candidate was measured against."""


class CriterionFault(HarnesslabError):
    """A criterion raised, or returned something other than a Judgement; names the criterion."""


class EstimatorFault(HarnesslabError):
    """An estimator raised, or returned something other than proposals; names the estimator."""

    patience = 3
    """After so many in a row the epochs stop."""


class ProposerSkip(EstimatorFault):
    """A model or a coding agent gave no usable proposal this time; the epochs ask it once more.

    ``cause`` is ``no_change``, ``outside`` (a file that is not part of the patch surface), ``broken`` (a file that does not
    load), ``two_mechanisms``, ``leak``, ``repeated`` (judged on this baseline before), ``hang``, ``exit``, ``garbage``, ``quota``, ``not_installed``
    or ``stopped``.
    """

    patience = 2

    def __init__(self, message: str, *, cause: str):
        self.cause = cause
        super().__init__(message)


class OptimizerFault(HarnesslabError):
    """An optimizer raised, or returned something other than True or False; names the optimizer."""


class TrainingStopped(HarnesslabError):
    """Too many proposals in a row could not be measured; says why. Nothing is lost, ``trainer.resume()`` goes on."""


class ExecutorBroken(HarnesslabError):
    """A worker of the executor died; finished episodes are kept."""


class SkippedProposal(UserWarning):
    """A proposal could not be measured and was skipped; says why."""


class BrokenPlugin(UserWarning):
    """A plug-in of an installed package cannot be used and was left out; names it and says why."""


class TasksLeftOut(UserWarning):
    """Some of an environment's tasks cannot be played here; says which, and why."""

    SHOWN = 5

    def __init__(self, where: str, reasons: Mapping[str, str]):
        lines = [f"  {name}: {reason}" for name, reason in list(reasons.items())[: self.SHOWN]]
        more = [f"  and {len(reasons) - self.SHOWN} more"] if len(reasons) > self.SHOWN else []
        count = "1 task" if len(reasons) == 1 else f"{len(reasons)} tasks"
        super().__init__("\n".join([f"{count} of {where} cannot be played here and are left out:", *lines, *more]))


class FailedCallback(UserWarning):
    """A callback raised. The training goes on; further errors of the same callback are not reported."""


class WeakConfinement(UserWarning):
    """Python interventions run without bubblewrap, held by resource limits only; says what that does not stop."""


class UnusualLab(UserWarning):
    """A lab configures git with programs, or holds records that could not be read; says what was ignored or set aside."""


class UndecidedLoss(UserWarning):
    """A loss was not acted on before the next one was asked for; its candidate stays pending."""


class LeftOut(UserWarning):
    """Edited files in a lab's folder that are not proposed; names them."""


class NotOnMain(UserWarning):
    """The files in a lab's folder are not those of its baseline, because another commit is checked out."""


class SplitWarning(UserWarning):
    """Splits overlap, or one is empty; ``lab.check_splits()`` lists the tasks."""


class OrderError(HarnesslabError):
    """A call came before the call that it needs; says which one to make first."""


class ConfigError(HarnesslabError):
    """A configuration file or an argument is wrong; names file and key."""


class NothingPlayable(ConfigError):
    """None of the tasks that an environment was given can be played; ``unplayable`` says why, by their names."""

    def __init__(self, message: str, unplayable: Mapping[str, str]):
        self.unplayable = dict(unplayable)
        super().__init__(message)


class ExtraMissing(HarnesslabError, ImportError):
    """Something needs a package that comes with an extra; names both, and how to install it."""

    def __init__(self, package: str, extra: str):
        super().__init__(
            f"this needs the package {package}, which comes with the extra '{extra}': "
            f"pip install 'jupyter-harnesslab[{extra}]'"
        )


class UnmeasurableRun(HarnesslabError):
    """Untrusted episodes could flip the verdict, or two runs measure different things."""
