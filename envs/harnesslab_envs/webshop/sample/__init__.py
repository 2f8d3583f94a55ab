"""The sample catalogue: products and instructions of our own in WebShop's published format.

``python -m harnesslab_envs.webshop.sample`` writes its three files from ``source.yaml``.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
