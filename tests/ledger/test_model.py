"""A random sequence of operations on a lab, checked against a model in plain Python after every step."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harnesslab.errors import BaselineMoved, StoreError
from harnesslab.ledger import Ledger
from harnesslab.store import LEARNING, LabRepo


class LabMachine(RuleBasedStateMachine):
    """The model: a list of baselines, and for each candidate its parent, its files and its states."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="harnesslab model ä"))
        self.states: dict[str, list[str]] = {}
        self.parents: dict[str, str] = {}
        self.commits: dict[str, str] = {}
        self.count = 0

    @initialize()
    def create(self) -> None:
        self.repo = LabRepo.create(self.root / "lab", {"a": "0"})
        self.main = [self.repo.baseline()]
        self.contents = {self.main[0]: {"a": b"0"}}

    @rule(name=st.sampled_from("abc"))
    def propose(self, name: str) -> None:
        self.count += 1
        one = self.repo.propose({name: str(self.count)}, f"Idea {self.count}")
        self.states[one.id], self.parents[one.id], self.commits[one.id] = ["pending"], self.main[-1], one.commit
        self.contents[one.commit] = {**self.contents[self.main[-1]], name: str(self.count).encode()}

    @precondition(lambda self: self.states)
    @rule(data=st.data(), decision=st.sampled_from(["promote", "reject", "shelve"]))
    def decide(self, data: st.DataObject, decision: str) -> None:
        one = data.draw(st.sampled_from(sorted(self.states)))
        call = getattr(Ledger(self.repo), decision)
        # What was shelved waits already, so it cannot be shelved again.
        if self.states[one][-1] not in (("pending",) if decision == "shelve" else ("pending", "undecided")):
            with pytest.raises(StoreError):
                call(one, {})
        elif decision == "promote" and self.parents[one] != self.main[-1]:
            with pytest.raises(BaselineMoved):
                call(one, {})
        else:
            call(one, {"reason": decision})
            new = {"promote": "promoted", "reject": "rejected", "shelve": "undecided"}[decision]
            self.states[one].append(new)
            if new == "promoted":
                self.main.append(self.commits[one])

    @precondition(lambda self: self.states)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(sorted(self.states)))
        history = self.states[one]
        possible = len(history) > 1 and (history[-1] != "promoted" or self.main[-1] == self.commits[one])
        if not possible:
            with pytest.raises(StoreError):
                Ledger(self.repo).undo(one)
            return
        Ledger(self.repo).undo(one)
        if history.pop() == "promoted":
            self.main.pop()

    @precondition(lambda self: len(self.main) > 1)
    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        target = data.draw(st.sampled_from(self.main))
        if self.contents[target] == self.contents[self.main[-1]]:
            with pytest.raises(StoreError):
                Ledger(self.repo).rollback(target)
            return
        new = Ledger(self.repo).rollback(target).commit
        self.contents[new] = self.contents[target]
        self.main.append(new)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "main"):
            return
        assert self.repo.baseline() == self.main[-1]
        rows = self.repo.candidates(limit=1000).rows
        assert {row.id: row.state for row in rows} == {one: states[-1] for one, states in self.states.items()}
        on_disk = {
            path.name: path.read_bytes()
            for path in self.repo.path.iterdir()
            if path.is_file() and path.name != LEARNING
        }
        assert on_disk == self.contents[self.main[-1]]

    def teardown(self) -> None:
        if hasattr(self, "repo"):
            assert [entry.commit for entry in self.repo.history(limit=1000)] == self.main[::-1]
            assert self.repo.dirty() == []
            fresh = LabRepo.open(self.repo.path)
            assert all(fresh.files(commit) == self.contents[commit] for commit in self.commits.values())
            fresh.close()
            self.repo.close()
        shutil.rmtree(self.root)


TestLab = LabMachine.TestCase
TestLab.settings = settings(
    max_examples=6, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
