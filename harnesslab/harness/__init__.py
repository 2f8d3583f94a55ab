"""The parameter that is trained: a directory of interventions in four layers.

>>> from harnesslab.harness import Pipeline, load_harness
>>> harness = load_harness({"harness.toml": b'name = "demo"'})
>>> Pipeline(harness).harness.protocol
'text'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnesslab.harness.base import LAYERS, Intervention, Layer
from harnesslab.harness.context import Action, Context, Decision, Draft, Firings, Proposal, Protocol, Turn
from harnesslab.lazy import lazily

if TYPE_CHECKING:
    from harnesslab.harness.files import intervention_file as intervention_file
    from harnesslab.harness.files import read_folder as read_folder
    from harnesslab.harness.jsonform import from_json as from_json
    from harnesslab.harness.jsonform import to_json as to_json
    from harnesslab.harness.kind import Kind as Kind
    from harnesslab.harness.kind import Params as Params
    from harnesslab.harness.kind import When as When
    from harnesslab.harness.kind import known_kinds as known_kinds
    from harnesslab.harness.kind import register as register
    from harnesslab.harness.load import Harness as Harness
    from harnesslab.harness.load import dump as dump
    from harnesslab.harness.load import load_folder as load_folder
    from harnesslab.harness.load import load_harness as load_harness
    from harnesslab.harness.pipeline import Chosen as Chosen
    from harnesslab.harness.pipeline import Pipeline as Pipeline
    from harnesslab.harness.pipeline import Prepared as Prepared

_LAZY = {
    "files": ("intervention_file", "read_folder"),
    "jsonform": ("from_json", "to_json"),
    "kind": ("Kind", "Params", "When", "known_kinds", "register"),
    "load": ("Harness", "dump", "load_folder", "load_harness"),
    "pipeline": ("Chosen", "Pipeline", "Prepared"),
}
"""Names that need pydantic or yaml: imported on first use, so that ``import harnesslab`` stays quick."""

_HOME = {name: module for module, names in _LAZY.items() for name in names}

__all__ = [
    "LAYERS", "Action", "Context", "Decision", "Draft", "Firings", "Intervention", "Layer", "Proposal", "Protocol", "Turn",
    *_HOME,
]  # fmt: skip


__getattr__ = lazily(__name__, _LAZY)


def __dir__() -> list[str]:
    """Lazy names too."""
    return sorted(__all__)
