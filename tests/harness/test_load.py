"""Loading: what a harness is, and one clear error for each way in which it can be wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnesslab.errors import HarnessFileError
from harnesslab.harness import Harness, dump, known_kinds, load_folder, load_harness
from harnesslab.harness.load import load_yaml

Make = Callable[..., Harness]


def test_order_is_layer_then_file_name(harness: Make) -> None:
    files = {
        "regulation/a.yaml": "kind: budget\n",
        "action/b.yaml": "kind: snap\n",
        "action/a.yaml": "kind: rescue\n",
        "contract/z.yaml": "kind: reminder\n",
    }
    loaded = harness(files)
    assert [i.name for i in loaded.interventions] == ["contract/z", "action/a", "action/b", "regulation/a"]
    assert [i.name for i in loaded.layer("action")] == ["action/a", "action/b"]
    assert loaded["action/a"].kind == "rescue"
    with pytest.raises(KeyError, match="action/a"):
        loaded["action/c"]


def test_unknown_files_are_kept_and_ignored(harness: Make) -> None:
    files = {"README.md": "hi", "learning.md": "x", ".gitignore": "y", "config/train_harness.yaml": "a: 1\n",
             "action/README.md": "z", ".github/x.yaml": "kind: y\n"}  # fmt: skip
    loaded = harness(files)
    assert loaded.interventions == ()
    assert loaded.files["README.md"] == b"hi"
    assert set(loaded.files) == {"harness.toml", *files}


def test_manifest_values() -> None:
    text = 'name = "k"\nformat = 1\nprotocol = "json"\n[prompt]\nsystem = """Ü\n"""\nhistory = 2\n'
    loaded = load_harness({"harness.toml": b"\xef\xbb\xbf" + text.encode()})
    assert (loaded.name, loaded.protocol, loaded.prompt.system, loaded.prompt.history) == ("k", "json", "Ü\n", 2)


@pytest.mark.parametrize(
    ("text", "line", "key", "part"),
    [
        ("name = ", 1, None, "not valid TOML"),
        ('name = "a"\nformat = 2\n', 2, "format", "newer"),
        ('name = "a"\nformat = "x"\n', 2, "format", "should be 1"),
        ('name = "a"\nprotocl = "text"\n', 2, "protocl", "did you mean 'protocol'"),
        ('name = "a"\nprotocol = "xml"\n', 2, "protocol", "'xml'"),
        ('name = "a"\n\n[prompt]\nhistory = "4"\n', 4, "prompt.history", "integer"),
        ('name = "a"\n[prompt]\nsistem = "x"\n', 3, "prompt.sistem", "did you mean 'system'"),
        ("format = 1\n", None, "name", "required"),
        ('nme = "a"\n', 1, "nme", "did you mean 'name'"),
        ('name = "a"\nformat = 2020-01-01\n', 2, "format", "should be 1"),
    ],
)
def test_manifest_errors(text: str, line: int | None, key: str | None, part: str) -> None:
    with pytest.raises(HarnessFileError) as caught:
        load_harness({"harness.toml": text.encode()})
    assert (caught.value.line, caught.value.key) == (line, key)
    assert part in str(caught.value)


def test_missing_manifest(tmp_path: Path) -> None:
    with pytest.raises(HarnessFileError, match=r"harness\.toml: not found"):
        load_harness({})
    with pytest.raises(HarnessFileError, match=r"harness\.toml: not found"):
        load_folder(tmp_path)


@pytest.mark.parametrize(
    ("path", "text", "line", "key", "part"),
    [
        ("action/x.yaml", "kind: resque\n", 1, "kind", "did you mean 'rescue'"),
        ("action/x.yaml", "kind: budget\n", 1, "kind", "belongs in regulation/, not in action/"),
        ("action/x.yaml", "about: x\n", 1, "kind", "required"),
        ("action/x.yaml", "kind: snap\nparam: {}\n", 2, "param", "did you mean 'params'"),
        ("action/x.yaml", "kind: snap\nparams:\n  treshold: 3\n", 3, "params.treshold", "did you mean 'threshold'"),
        ("action/x.yaml", "kind: snap\nparams:\n  zzz: 3\n", 3, "params.zzz", "known: threshold"),
        ("action/x.yaml", "kind: snap\nparams:\n  threshold: high\n", 3, "params.threshold", "'high'"),
        ("action/x.yaml", "kind: snap\nparams:\n  threshold: 101\n", 3, "params.threshold", "100"),
        ("action/x.yaml", "kind: snap\nparams: 3\n", 2, "params", "3"),
        ("action/x.yaml", "kind: block\nparams:\n  message: m\n  pattern: '('\n", 4, "params.pattern", "bad regex"),
        ("action/x.yaml", "kind: block\nparams:\n  message: m\n", 2, "params.pattern", "required"),
        ("action/x.yaml", "kind: snap\nwhen:\n  step: 3\n", 3, "when.step", "unknown key"),
        ("action/x.yaml", "kind: snap\nwhen:\n  instruction: '['\n", 3, "when.instruction", "bad regex"),
        ("action/x.yaml", "kind: snap\nwhen:\n  last_invalid: 1\n", 3, "when.last_invalid", "boolean"),
        ("action/x.yaml", "kind: snap\nkind: snap\n", 2, "kind", "duplicate"),
        ("action/x.yaml", "- kind: snap\n", 1, None, "mapping"),
        ("action/x.yaml", "kind: rewrite\nparams:\n  pattern: a\n  replacement: '\\2'\n", 4, "params.replacement", "bad"),
        ("contract/x.yaml", "kind: prompt\nparams: {text: a, on: toolx}\n", 2, "params.on", "toolx"),
        ("skill/x.yaml", "kind: procedure\nparams:\n  demonstration:\n    - {observation: a}\n", 4,
         "params.demonstration.0.action", "required"),
        ("contract/x.yaml", "kind: prompt\nparams: {text: a, match: b}\n", 2, "params", "set on: observation"),
        ("skill/x.yaml", "kind: procedure\nparams: {task: a}\n", 2, "params", "nothing to show"),
        ("skill/x.yaml", "kind: procedure\nparams: {text: a, match: b}\n", 2, "params", "retrieve: match"),
        ("skill/x.yaml", "kind: procedure\nparams: {text: a, retrieve: match}\n", 2, "params", "retrieve: match"),
        ("regulation/x.yaml", "kind: finish_guard\nparams:\n  message: m\n  finish_tool: t\n", 2, "params", "until_tool"),
        ("actions/x.yaml", "kind: snap\n", None, None, "did you mean action/"),
        ("Action/x.yaml", "kind: snap\n", None, None, "did you mean action/"),
        ("rules/x.yaml", "kind: snap\n", None, None, "folder of its layer"),
        ("x.yaml", "about: y\nkind: snap\n", None, None, "folder of its layer"),
        ("action/x.yml", "kind: snap\n", None, None, "rename"),
        ("action/deep/x.yaml", "kind: snap\n", None, None, "directly in action/"),
    ],
)  # fmt: skip
def test_one_error_with_file_line_and_key(
    harness: Make, path: str, text: str, line: int | None, key: str | None, part: str
) -> None:
    with pytest.raises(HarnessFileError) as caught:
        harness({path: text})
    assert path in str(caught.value)
    assert (caught.value.line, caught.value.key) == (line, key)
    assert part in str(caught.value)


def test_bytes_that_are_no_text() -> None:
    files = {"harness.toml": b'name = "a"\n', "action/x.yaml": b"kind: snap\nabout: \xff\n"}
    with pytest.raises(HarnessFileError, match=r"action/x\.yaml, line 2: not UTF-8"):
        load_harness(files)
    files["action/x.yaml"] = b"#" * (256 * 1024 + 1)
    with pytest.raises(HarnessFileError, match="at most 262144"):
        load_harness(files)


def test_same_name_twice(harness: Make) -> None:
    with pytest.raises(HarnessFileError, match="same name"):
        harness({"action/x.yaml": "kind: snap\n", "action/x.py": "def shape(c, d): pass\n"}, unconfined=True)


def test_folder_round_trip(tmp_path: Path) -> None:
    (tmp_path / "action").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.yaml").write_text("kind: y")
    (tmp_path / "harness.toml").write_text('name = "f"\n', encoding="utf-8")
    (tmp_path / "action" / "ü.yaml").write_text("kind: snap\n", encoding="utf-8")
    (tmp_path / "big.bin").write_bytes(b"\0" * 300_000)
    loaded = load_folder(tmp_path)
    assert [i.name for i in loaded.interventions] == ["action/ü"]
    assert set(loaded.files) == {"harness.toml", "action/ü.yaml"}
    assert load_harness(loaded.files).interventions[0].name == "action/ü"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("kind: snap\n")
    lab = tmp_path / "lab"
    (lab / "action").mkdir(parents=True)
    (lab / "harness.toml").write_text('name = "f"\n')
    (lab / "action" / "x.yaml").symlink_to(secret)
    with pytest.raises(HarnessFileError, match="regular file"):
        load_folder(lab)


@pytest.mark.parametrize("kind", sorted(known_kinds()))
def test_example_of_each_kind_loads_and_dumps(kind: str) -> None:
    cls = known_kinds()[kind]
    assert cls.example.startswith(f"kind: {kind}\n")
    path = f"{cls.layers[0]}/example.yaml"
    loaded: Any = load_yaml(path, cls.example)
    again: Any = load_yaml(path, dump(loaded))
    assert (again.params, again.when, again.about) == (loaded.params, loaded.when, loaded.about)
    assert dump(again) == dump(loaded)
