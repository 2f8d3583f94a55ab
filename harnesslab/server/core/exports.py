"""Taking things along: a candidate as a notebook cell, a harness as a zip file."""

from __future__ import annotations

import io
import posixpath
import re
import shlex
import zipfile

from harnesslab.server.answers import Cell
from harnesslab.server.core.labs import Lab
from harnesslab.server.core.refs import resolve
from harnesslab.server.core.text import clip

MAGIC_PATH = re.compile(r"(contract|skill|action|regulation)/[\w.-]+\.(yaml|py)", re.ASCII)
"""Paths that `%%intervention` takes; nothing in them means anything to a shell or to IPython."""
MAGIC_ABOUT = re.compile(r"[^{}$\\]+")
"""Words that may stand in the line of a magic. IPython would run what is in braces or behind a dollar as code."""

ZIP_TIME = (2020, 1, 1, 0, 0, 0)
"""The time stamp of every entry: the same commit gives the same bytes."""


def cell(lab: Lab, ref: str, notebook: str = "") -> Cell:
    """The source of a notebook cell: the change of a candidate as `%%intervention`, or code that opens the lab.

    `notebook` is the path of the notebook below the Jupyter root: its kernel starts in its folder. A repository of
    harness-training is no lab that could be opened; its candidates are listed.
    """
    path = posixpath.relpath(lab.path, posixpath.dirname(notebook.strip("/")) or ".")
    if lab.repo is None:
        return Cell(
            source=f"from harnesslab.store import list_foreign\n\ntotal, candidates = list_foreign({path!r})\ncandidates"
        )
    candidate = lab.find(ref)
    if candidate is None or not candidate.parent:
        return Cell(source=f"import harnesslab as hl\n\nlab = hl.Lab.open({path!r})\nlab.log()")
    files = lab.git.diff(candidate.parent, candidate.commit).files
    about = clip(" ".join(candidate.subject.split()), 200)
    if len(files) == 1 and files[0].after is not None and MAGIC_PATH.fullmatch(files[0].path):
        said = f" --about {shlex.quote(about)}" if MAGIC_ABOUT.fullmatch(about) else ""
        return Cell(source=f"%%intervention {files[0].path}{said}\n{files[0].after}")
    changes = ",\n".join(f"    {file.path!r}: {file.after!r}" for file in files)
    return Cell(source=f"# {about}\nestimator.add_files({{\n{changes},\n}}, about={about!r})")


def archive(lab: Lab, ref: str) -> bytes:
    """The harness at a ref as the bytes of a zip file."""
    commit = resolve(lab, ref)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for path, data in sorted(lab.git.files(commit.id).items()):
            target.writestr(zipfile.ZipInfo(path, ZIP_TIME), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
