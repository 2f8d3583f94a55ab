"""A person's change to a proposal, checked before it takes the proposal's place."""

from __future__ import annotations

from dataclasses import replace

from harnesslab.errors import ConfigError
from harnesslab.harness.base import Intervention
from harnesslab.harness.load import load_yaml
from harnesslab.harness.pyfile import load_python
from harnesslab.trainer.proposal import Proposal, layer_of

EDITED = ", edited"
"""Stands behind the estimator's name of a proposal that a person changed."""


def main_file(proposal: Proposal) -> str | None:
    """The file of the intervention that gave a proposal its name, else the first that is not deleted."""
    texts = [path for path, text in proposal.changes.items() if text is not None]
    return next((path for path in texts if path.rpartition(".")[0] == proposal.name), texts[0] if texts else None)


def edited(proposal: Proposal, text: str, *, path: str | None = None, unconfined: bool = False) -> Proposal:
    """The proposal with another ``text`` in one of its files (default: :func:`main_file`).

    Raises ConfigError when the proposal has no such file, HarnessFileError, with line and key, for a text that is no
    intervention; a Python file is loaded once, confined, or in this process if ``unconfined``.
    """
    path = path or main_file(proposal)
    if path is None or proposal.changes.get(path) is None:
        files = ", ".join(name for name, body in proposal.changes.items() if body is not None)
        raise ConfigError(f"the proposal {proposal.name} does not write {path}; it writes {files or 'none'}")
    kind, about = proposal.kind, proposal.about
    if layer_of(path) != "base" and path.endswith((".yaml", ".py")):
        loaded: Intervention = (
            load_yaml(path, text) if path.endswith(".yaml") else load_python(path, text, unconfined=unconfined)
        )
        loaded.check()
        if path == main_file(proposal):
            kind, about = loaded.kind, loaded.about or about
    changes = {**proposal.changes, path: text}
    by = proposal.estimator if proposal.estimator.endswith(EDITED) else proposal.estimator + EDITED
    return replace(proposal, changes=changes, kind=kind, about=about, estimator=by)
