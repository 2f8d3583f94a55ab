"""The leak scan for what a person writes in a cell or in a panel, without playing anything for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnesslab.errors import LeakFound
from harnesslab.trainer.leak import LeakScan

if TYPE_CHECKING:
    from harnesslab.trainer.proposal import Proposal
    from harnesslab.trainer.trainer import Trainer


def refuse_leaks(trainer: Trainer, proposal: Proposal) -> None:
    """Raise LeakFound where the proposal carries text that one task of the newest stored search run alone knows.

    Does nothing for an estimator with ``scan=False``, and where no search run is stored: nobody has seen a task then.
    """
    lab = trainer.lab
    stored = lab.runs.runs(split="search", limit=1)
    if not getattr(trainer.estimator, "scan", True) or not stored:
        return
    leaks = LeakScan(lab.run(stored[0]["id"])).find(proposal.changes, lab.harness().files)
    if leaks:
        raise LeakFound(f"{leaks[0]}; with ManualEstimator(scan=False) it is measured all the same")
