"""Reading YAML strictly, with lines; writing it so that it reads back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.errors import HarnessFileError
from harnesslab.harness.yamlfile import read_yaml, write_yaml

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), values, min_size=1, max_size=4))
def test_what_is_written_reads_back(value: dict) -> None:
    assert read_yaml("x.yaml", write_yaml(value))[0] == value


def test_words_of_yaml_1_1_stay_words() -> None:
    data, _ = read_yaml(
        "x.yaml", "on: system\nyes: no\nday: 2020-01-01\ntime: 12:30\nreal: true\nn: 3\nf: 1.5\nq: '3'\n"
    )
    assert data == {
        "on": "system", "yes": "no", "day": "2020-01-01", "time": "12:30", "real": True, "n": 3, "f": 1.5, "q": "3",
    }  # fmt: skip


def test_lines_of_keys_and_items() -> None:
    _, lines = read_yaml("x.yaml", "a: 1\nb:\n  c:\n    - x\n    - y: 1\n")
    assert lines[("a",)] == 1
    assert lines[("b", "c")] == 3
    assert lines[("b", "c", 1)] == 5
    assert lines[("b", "c", 1, "y")] == 5


def test_text_of_several_lines_is_a_block() -> None:
    assert write_yaml({"text": "one\ntwo\n"}) == "text: |\n  one\n  two\n"


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("a: 1\na: 2\n", 2, "duplicate key"),
        ("a: &x 1\nb: *x\n", 2, "aliases"),
        ("a: !!python/object:os.system x\n", 1, "tags"),
        ("a: !!binary aGk=\n", 1, "tags"),
        ("a: [\n", 2, "not valid YAML"),
        ("a: b: c\n", 1, "not valid YAML"),
        ("a: 1\n---\nb: 2\n", 2, "more than one"),
        ("? [a]\n: 1\n", 1, "plain words"),
        ("", 1, "empty"),
        ("# only a comment\n", 1, "empty"),
        ("a: 1\nb: \x00\n", 2, "not valid YAML"),
        ("a: " + "[" * 500 + "]" * 500, 1, "nested"),
        ("\n\ta: 1\n", 2, "not valid YAML"),
    ],
)
def test_one_error_with_a_line(text: str, line: int, part: str) -> None:
    with pytest.raises(HarnessFileError) as caught:
        read_yaml("action/x.yaml", text)
    assert part in str(caught.value)
    assert caught.value.line == line
    assert "action/x.yaml" in str(caught.value)


def test_a_bomb_is_refused_at_once() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
    )
    with pytest.raises(HarnessFileError, match="aliases"):
        read_yaml("x.yaml", bomb)
