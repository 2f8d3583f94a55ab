"""Brings a folder of files into any machine, with their modes and links."""

from __future__ import annotations

import posixpath
import shlex

from harnesslab.errors import EnvironmentFault
from harnesslab_envs.sandbox import Confined
from harnesslab_envs.terminal.spec import Files


def upload(machine: Confined, files: Files, folder: str) -> None:
    """Write the files below an absolute folder, which is made. Raises EnvironmentFault where they cannot be written."""
    for mode, wanted in ((0o644, False), (0o755, True)):
        chosen = {name: data for name, data in files.content.items() if (name in files.executable) is wanted}
        if chosen:
            machine.put({posixpath.join(folder, name): data for name, data in chosen.items()}, mode=mode)
    script = f"mkdir -p {shlex.quote(folder)}"
    for name in sorted(files.folders):
        script += f" && mkdir -p {shlex.quote(posixpath.join(folder, name))}"
    for name, target in files.links.items():
        script += f" && ln -sfn {shlex.quote(target)} {shlex.quote(posixpath.join(folder, name))}"
    done = machine.run(script, keep_state=False)
    if done.code:
        raise EnvironmentFault(f"{folder} cannot be written: {done.output.strip()[-200:]}")
