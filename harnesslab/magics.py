"""``%load_ext harnesslab``: the cell magic ``%%intervention``, which makes a proposal of what is written in a cell.

::

    %%intervention action/quote.yaml --about "Quote names." --evaluate
    kind: rewrite
    params:
      pattern: ...
"""

from __future__ import annotations

import inspect
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from harnesslab.errors import ConfigError, HarnessFileError, HarnesslabError, OrderError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from harnesslab.trainer.loss import Loss
    from harnesslab.trainer.proposal import Proposal
    from harnesslab.trainer.trainer import Trainer

USAGE = '%%intervention layer/name.yaml [--about "..."] [--evaluate] [--trainer NAME]'
FIRST_LINE = 1
"""Lines of a cell that stand above its body: the one with the magic."""


class CellError(HarnesslabError):
    """What is wrong with an ``%%intervention`` cell, in one sentence; IPython shows it without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"%%intervention: {self}"]


def register(ipython: Any) -> None:
    """Make ``%%intervention`` known to an IPython shell."""

    def cell(line: str, body: str) -> Proposal | Loss:
        return intervention(line, body, ipython.user_ns)

    cell.__doc__ = help_text()
    ipython.register_magic_function(cell, magic_kind="cell", magic_name="intervention")


def help_text() -> str:
    """What ``%%intervention?`` shows: how the cell is read, the kinds of each layer, and a whole cell as an example."""
    from harnesslab.harness.base import LAYERS
    from harnesslab.harness.kind import known_kinds

    kinds = known_kinds()
    listed = [
        f"    {layer}: {', '.join(sorted(name for name, cls in kinds.items() if layer in cls.layers))}"
        for layer in LAYERS
    ]
    example = ["%%intervention contract/example.yaml", *kinds["prompt"].example.strip().splitlines()]
    parts = [
        inspect.cleandoc(intervention.__doc__ or ""),
        "Kinds, by the layer whose folder the file may lie in:",
        "\n".join(listed),
        "A whole cell:",
        "\n".join(f"    {line}" for line in example),
    ]
    return "\n\n".join(parts)


def intervention(line: str, body: str, names: dict[str, Any]) -> Proposal | Loss:
    """Propose the intervention in this cell: ``%%intervention layer/name.yaml [--about ...] [--evaluate] [--trainer NAME]``.

    The cell holds the YAML of one intervention, or with ``layer/name.py`` its Python, which runs confined. The proposal is returned, and put into the trainer's ManualEstimator if it has one, in the place of an earlier
    one of the same name. ``--about``: one sentence for the log. ``--evaluate``: measure it at once and return the
    loss. ``--trainer``: the trainer's variable; otherwise the one that was made last.

    Raises CellError, which names the line in the cell.
    """
    try:
        asked = _parser().parse_args(shlex.split(line))
    except ValueError as error:  # an open quotation mark
        raise CellError(f"{error} in '{line}'; write {USAGE}") from None
    try:
        trainer = _trainer(asked, names)
        proposal = _proposal(asked.path, body, asked.about, trainer)
        if asked.evaluate:
            trainer.refuse_leaks(proposal)
            return trainer.evaluate(proposal)
    except CellError:
        raise
    except HarnessFileError as error:
        raise CellError(_in_cell(error, asked.path)) from error
    except HarnesslabError as error:
        raise CellError(str(error)) from error
    return proposal


def _parser() -> ArgumentParser:
    import argparse

    class Parser(argparse.ArgumentParser):
        """Raises where argparse would end the process."""

        def error(self, message: str) -> NoReturn:
            raise CellError(f"{message}; write {USAGE}")

    parser = Parser(prog="%%intervention", add_help=False, allow_abbrev=False)
    parser.add_argument("path")
    parser.add_argument("--about", default="")
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--trainer", default=None)
    return parser


def _trainer(asked: Namespace, names: dict[str, Any]) -> Trainer:
    from harnesslab.trainer.latest import latest
    from harnesslab.trainer.trainer import Trainer

    if asked.trainer is not None:
        found = names.get(asked.trainer)
        if not isinstance(found, Trainer):
            raise ConfigError(f"--trainer {asked.trainer}: there is no trainer of that name in this notebook")
        return found
    trainer: Trainer | None = latest()
    if trainer is None:
        raise OrderError("no trainer yet: create one first, with trainer = hl.Trainer(lab=..., llm=...)")
    return trainer


def _proposal(path: str, body: str, about: str, trainer: Trainer) -> Proposal:
    """The cell's text as a proposal, checked; the trainer's ManualEstimator keeps it."""
    from harnesslab.harness.base import LAYERS
    from harnesslab.harness.load import load_harness
    from harnesslab.harness.pyfile import load_python
    from harnesslab.trainer.estimators.manual import ManualEstimator
    from harnesslab.trainer.proposal import Prediction, layer_of

    if layer_of(path) == "base" or path.count("/") != 1 or not path.endswith((".yaml", ".py")):
        raise ConfigError(
            f"'{path}' is not a path of an intervention; expected {', '.join(f'{one}/NAME.yaml' for one in LAYERS)}"
        )
    if not body.strip():
        raise ConfigError(f"the cell has no text for {path}")
    kept = trainer.estimator if isinstance(trainer.estimator, ManualEstimator) else ManualEstimator()
    proposal = ManualEstimator().add_text(path, body, about=about)
    if path.endswith(".py"):
        # The estimator does not read Python.
        loaded = load_python(path, body, unconfined=trainer.lab.unconfined)
        loaded.check()
        proposal = replace(
            proposal, about=about or loaded.about or proposal.about, prediction=Prediction((), loaded.name)
        )
    load_harness(proposal.apply(trainer.lab.harness().files), unconfined=trainer.lab.unconfined)
    kept.remove(proposal.name)
    return kept.add(proposal)


def _in_cell(error: HarnessFileError, path: str) -> str:
    """The error with the line as it stands in the cell, where it is about the cell's file."""
    if error.line is None or error.path.as_posix() != path:
        return str(error)
    there = f"{error.path}, line {error.line}"
    return str(error).replace(there, f"{error.path}, line {error.line + FIRST_LINE} of the cell", 1)
