"""``make demo``: runs the first tutorial without a screen and prints what it found.

Cells tagged ``demo`` are printed as they end. Set LIVE=1 to let the model answer anew.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).parent
NOTEBOOK = HERE / "01_train_a_harness.ipynb"
CELL_SECONDS = 3600
"""With LIVE=1 a cell of the loop may take long; it never hangs silently, since each cell is announced."""


def text_of(output: Any) -> str:
    """The plain text of one output."""
    if output.output_type == "stream":
        return str(output.text)
    return str(output.get("data", {}).get("text/plain", ""))


def main() -> int:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(HERE)}},
        extra_arguments=["--log-level=ERROR"],
    )
    if sys.stdout.isatty():
        os.environ["COLUMNS"] = str(shutil.get_terminal_size().columns)  # the kernel's tables fit the terminal
    heading, started = "", time.monotonic()
    print(f"running {NOTEBOOK.name} ...", flush=True)
    with client.setup_kernel():
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                titles = [line.strip("# ") for line in cell.source.splitlines() if line.startswith("## ")]
                heading = titles[-1] if titles else heading
                continue
            try:
                client.execute_cell(cell, number)
            except CellExecutionError as error:
                print(f"cell {number} failed:\n{error}", file=sys.stderr)
                return 1
            if "demo" in cell.metadata.get("tags", ()):
                if heading:
                    print(f"\n== {heading} ==", flush=True)
                    heading = ""
                print("\n" + "\n".join(filter(None, map(text_of, cell.outputs))).rstrip(), flush=True)
    print(f"\ndone in {time.monotonic() - started:.0f} s; the lab is {HERE.name}/labs/kitchen. Next: make lab")
    return 0


if __name__ == "__main__":
    sys.exit(main())
