"""The leak scan for what a person writes in a cell or in a panel, without playing anything for it."""

from __future__ import annotations

from harnesslab.errors import LeakFound
from harnesslab.lab import Lab
from harnesslab.trainer.leak import LeakScan
from harnesslab.trainer.proposal import Proposal


def refuse_leaks(lab: Lab, proposal: Proposal) -> None:
    """Raise LeakFound where the proposal carries text that one task of the newest stored search run alone knows.

    Does nothing where no search run is stored: nobody has seen a task then.
    """
    stored = lab.runs.runs(split="search", limit=1)
    leaks = LeakScan(lab.run(stored[0]["id"])).find(proposal.changes, lab.harness().files) if stored else []
    if leaks:
        raise LeakFound(f"{leaks[0]}; ManualEstimator(scan=False) measures it anyway")
