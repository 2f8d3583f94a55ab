"""Published tasks that are in no split unless they are asked for, by id, each with its reason; and those that stay in search.

Some cannot be solved here: found by replaying every published solution, none of these passes its own check, whatever
an agent does. Others repeat a task of another split, found by comparing the instructions (``lab.check_splits()``), and
in three cases by reading them. The ids keep the published numbering.
"""

from __future__ import annotations

from collections.abc import Mapping

NETWORK = "it installs a package, which needs the network"
WHOLE = "its check reads whole numbers only, and the size that is asked for is printed with a point, as 4.0K"
SHAPE = "its check compares one whole number, and its published solution prints something else"
MOVING = "its published solution counts all files of the machine, those of processes too, so no two calls agree"
CLOCK = "its published solution compares times to the second, and gives now 0, now 1"
TWIN = "it asks for the same as a task of test, nearly or exactly in the same words"
COPY = "it is test-3-ac-3 again"

LEFT_OUT: Mapping[str, str] = {
    "test-5-new-5": WHOLE,
    "test-3-ac-4": COPY,
    "test-6-new-5": NETWORK,
    "test-6-new-6": NETWORK,
    "test-6-new-8": NETWORK,
    "test-7-bootstrap-8": MOVING,
    "test-7-bootstrap-9": SHAPE,
    "test-7-bootstrap-29": MOVING,
    "dev-dev-dev-8": WHOLE,
    "train-7-training-252": SHAPE,
    "train-7-training-382": CLOCK,
    "dev-dev-dev-3": TWIN,
    "dev-dev-dev-5": TWIN,
    "dev-dev-dev-7": TWIN,
    "dev-dev-dev-9": TWIN,
    "dev-dev-dev-10": TWIN,
    "dev-dev-dev-11": TWIN,
    "dev-dev-dev-12": TWIN,
    "dev-dev-dev-14": TWIN,
    "dev-dev-dev-21": TWIN,
    "dev-dev-dev-22": TWIN,
    "dev-dev-dev-23": TWIN,
    "dev-dev-dev-24": TWIN,
    "dev-dev-dev-25": TWIN,
}

STAY = frozenset(
    f"train-7-training-{number}"
    for number in (
        *(1, 3, 6, 39, 48, 54, 74, 98, 114, 127, 179, 187, 197, 222, 255, 305, 327, 352, 408, 409, 496, 506, 534, 536),
    )
)
"""Training tasks that would be in gate, but nearly repeat others of search."""
