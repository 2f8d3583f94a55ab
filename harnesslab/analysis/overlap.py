"""The tasks that the splits of an environment share, as a table."""

from __future__ import annotations

from harnesslab.analysis.table import Table
from harnesslab.rollout.splits import COLUMNS, Splits


def overlap_table(found: Splits) -> Table:
    """One row a twin; what was compared, and what a reader should know, are notes."""
    sizes = ", ".join(f"{split} {count}" for split, count in found.sizes.items())
    table = Table(found.rows(), title=f"overlap of the splits of {found.name} ({sizes})", columns=COLUMNS)
    table.notes += [f"Compared: {found.compared}.", *(f"{line[0].upper()}{line[1:]}." for line in found.sentences())]
    return table
