"""Published tasks that cannot be solved here, by id, each with its reason. The ids keep the published numbering.

Found by replaying every published solution: none of these passes its own check, whatever an agent does. They are in no
split unless they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

NETWORK = "it installs a package, which needs the network"
WHOLE = "its check reads whole numbers only, and the size that is asked for is printed with a point, as 4.0K"
SHAPE = "its check compares one whole number, and its published solution prints something else"
MOVING = "its published solution counts all files of the machine, those of processes too, so no two calls agree"
CLOCK = "its published solution compares times to the second, and gives now 0, now 1"

LEFT_OUT: Mapping[str, str] = {
    "test-5-new-5": WHOLE,
    "test-6-new-5": NETWORK,
    "test-6-new-6": NETWORK,
    "test-6-new-8": NETWORK,
    "test-7-bootstrap-8": MOVING,
    "test-7-bootstrap-9": SHAPE,
    "test-7-bootstrap-29": MOVING,
    "dev-dev-dev-8": WHOLE,
    "train-7-training-252": SHAPE,
    "train-7-training-382": CLOCK,
}
