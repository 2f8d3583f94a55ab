"""A person's changes: an object, text, or edited files. They take the same road as any other proposal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harnesslab.errors import ConfigError
from harnesslab.harness import Intervention
from harnesslab.harness.files import check_changes
from harnesslab.trainer.estimators.base import PastVerdict, judged
from harnesslab.trainer.leak import LeakScan
from harnesslab.trainer.proposal import Prediction, Proposal, Proposals, layer_of

if TYPE_CHECKING:
    from harnesslab.harness import Harness
    from harnesslab.trainer.failures import Failures


class ManualEstimator:
    """Proposes what a person has put into it, until it is judged.

    >>> estimator = ManualEstimator()
    >>> estimator.add_text("regulation/loop.yaml", "kind: loop_breaker\\n", about="Break loops.")  # doctest: +SKIP

    With ``scan`` (the default) text that only one search task knows is refused; see :mod:`harnesslab.trainer.leak`.
    """

    def __init__(self, proposals: Sequence[Proposal] = (), *, scan: bool = True):
        self._items: list[Proposal] = list(proposals)
        self.scan = scan

    def add(self, item: Proposal | Intervention, *, about: str = "") -> Proposal:
        """Put in a proposal, or an intervention object of a YAML kind.

        Raises ConfigError for anything else.
        """
        from harnesslab.harness import Kind, dump

        if isinstance(item, Proposal):
            self._items.append(item)
            return item
        if isinstance(item, Kind):
            return self.add_text(f"{item.name}.yaml", dump(item), about=about or item.about)
        raise ConfigError(
            f"cannot propose a {type(item).__name__}: give a Proposal, an intervention of a YAML kind, "
            "or use add_text(path, text) and add_files({path: text})"
        )

    def add_text(self, path: str, text: str, *, about: str = "") -> Proposal:
        """Put in one file, as ``layer/stem.yaml`` (checked now) or ``layer/stem.py`` (checked when it is loaded).

        Raises HarnessFileError, with line and key, for YAML that is no intervention.
        """
        return self.add_files({path: text}, about=about)

    def add_files(self, files: Mapping[str, str | None], *, about: str = "") -> Proposal:
        """Put in several files that belong together, such as the edited files of a lab; ``None`` deletes one.

        Raises HarnessFileError for a file that is not part of a harness.
        """
        if not files:
            raise ConfigError("nothing to propose: no file was changed")
        check_changes(files)
        proposal = describe(files, about)
        self._items.append(proposal)
        return proposal

    def remove(self, name: str) -> None:
        """Forget what was put in under the name ``layer/stem``, so that a new version can take its place."""
        self._items = [item for item in self._items if item.name != name]

    def clear(self) -> None:
        """Forget everything that was put in."""
        self._items.clear()

    def propose(self, failures: Failures, harness: Harness, history: Sequence[PastVerdict] = ()) -> Proposals:
        """What was put in and is not judged on this baseline yet, oldest first.

        What the harness holds already is left out.
        """
        done = judged(history, failures.run.commit)
        scan = LeakScan(failures.run) if self.scan else None
        fresh: dict[str, Proposal] = {}
        refused: list[tuple[str, str]] = []
        for item in self._items:
            leaks = scan.find(item.changes, harness.files) if scan else []
            if leaks:
                refused.append((item.name, f"{leaks[0]}; ManualEstimator(scan=False) measures it anyway"))
            elif item.content not in done and item.apply(harness.files) != dict(harness.files):
                fresh.setdefault(item.content, item)
        return Proposals(list(fresh.values()), refused)


def describe(files: Mapping[str, str | None], about: str = "", *, estimator: str = "manual") -> Proposal:
    """The proposal for changed files, named after the first intervention among them. Raises HarnessFileError for YAML that is none."""
    from harnesslab.harness.load import load_yaml

    files = dict(sorted(files.items()))
    loaded: list[Any] = [
        load_yaml(path, text)
        for path, text in files.items()
        if text is not None and path.endswith(".yaml") and layer_of(path) != "base"
    ]
    path = loaded[0].name + ".yaml" if loaded else next(iter(files))
    changed = f"{'Delete' if files[path] is None else 'Change'} {path}."
    if len(files) > 1:
        changed = f"Change {', '.join(files)}."
    return Proposal(
        changes=files,
        layer=layer_of(path),
        kind=loaded[0].kind if loaded else ("python" if path.endswith(".py") else "files"),
        name=path.rpartition(".")[0],
        about=about or (loaded[0].about if loaded else "") or changed,
        prediction=Prediction(trigger=loaded[0].name if loaded else ""),
        estimator=estimator,
    )
