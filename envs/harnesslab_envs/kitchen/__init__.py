"""A small household text world of our own. See ``README.md``."""

from __future__ import annotations

from harnesslab_envs.kitchen.env import Kitchen


def environment() -> Kitchen:
    """The kitchen; it takes no options."""
    return Kitchen()
