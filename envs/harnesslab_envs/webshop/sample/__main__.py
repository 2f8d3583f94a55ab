"""Writes the sample catalogue's files beside ``source.yaml``."""

from __future__ import annotations

from harnesslab_envs.webshop.sample import FOLDER
from harnesslab_envs.webshop.sample.build import build

for name, text in build((FOLDER / "source.yaml").read_text("utf-8")).items():
    (FOLDER / name).write_text(text, "utf-8")
