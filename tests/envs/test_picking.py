"""Which task a reset means; what means none is told in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.errors import EnvironmentFault
from harnesslab_envs.picking import picked


def test_options_name_a_task() -> None:
    assert picked({"task": "a", "more": 1}, "task", {"a": 1, "b": 2}) == 1


@pytest.mark.parametrize("options", [None, {}, {"task": "c"}, {"task": 3}, {"task": ["a"]}, {"goal": "a"}])
def test_what_names_none_is_told(options: Any) -> None:
    with pytest.raises(EnvironmentFault, match=r"There is no task .*: reset\(options=\{'task': \.\.\.\}\) takes"):
        picked(options, "task", {"a": 1})
