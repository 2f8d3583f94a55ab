"""What somebody writes who extends harnesslab: checked by `mypy --strict` against the installed package, and run."""

import sys
from collections.abc import Sequence
from typing import Any

import harnesslab as hl


class Remind:
    def propose(
        self, failures: hl.Failures, harness: hl.Harness, history: Sequence[hl.PastVerdict] = ()
    ) -> hl.Proposals:
        text = "kind: reminder\nparams:\n  text: Open what is closed.\n"
        evidence = tuple(hl.Evidence(f.episode.task_id, f.episode.id, 0, f.diagnosis.reason) for f in failures)
        flips = hl.Prediction(flips=tuple({f.episode.task_id for f in failures}), trigger="contract/closed")
        about = "Remind the agent to open what is closed"
        return hl.Proposals(
            [
                hl.Proposal(
                    {"contract/closed.yaml": text}, "contract", "reminder", "contract/closed", about, evidence, flips
                )
            ]
        )


class Shorter(hl.Criterion):
    def judge(self, pairs: Sequence[hl.Pair]) -> hl.Judgement:
        return hl.Judgement(sum(p.after.length - p.before.length for p in pairs) - 0.5, "steps in all")


class Steady(hl.Optimizer):
    def should_promote(self, loss: hl.Loss) -> bool:
        return float(loss) < 0 and not loss.verdict.flips


class Looker:
    constrains = False

    def __init__(self) -> None:
        self.identity: dict[str, Any] = {"kind": "mine", "model": "looker"}

    async def complete(self, request: hl.Request, *, repeat: int = 0) -> hl.Completion:
        return hl.Completion(text="Action: look", model="looker")


class Print(hl.Callback):
    def on_epoch_end(self, loss: hl.Loss) -> None:
        print(loss.epoch, loss.verdict.decision)


optimizer = Steady()
trainer = hl.Trainer(
    hl.Lab.open(sys.argv[1], env="kitchen"), Looker(), Remind(), Shorter(), optimizer,
    settings={"search": 2, "gate": 2, "progress": False}, callbacks=[Print()],
)  # fmt: skip
for loss in trainer.epochs(1):
    loss.backward()
    optimizer.step()
