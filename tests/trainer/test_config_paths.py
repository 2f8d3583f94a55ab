"""A training from a file: its paths are relative to it, and nothing is on disk before the first measurement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.cli import main
from harnesslab.errors import BackboneError, ConfigError, EnvironmentUnavailable, HarnesslabError, OrderError
from tests.test_foreign_lab import ENV_TOML, TRAP, WORLD
from tests.test_labfolder import MANIFEST, commit, listing

QUICK = "settings: {search: 2, gate: 2, progress: false}\n"


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


@pytest.mark.parametrize("file", ["train.yaml", "config/train.yaml", "a b/ü/train.yaml"])
@pytest.mark.parametrize("lab", ["labs/t", "../labs/t", "./läb"])
@pytest.mark.parametrize("by", ["absolute", "relative"])
def test_the_lab_is_where_the_file_says_wherever_the_kernel_works(
    file: str, lab: str, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write(tmp_path / "project" / file, f"lab: {lab}\nenv: tables\n{QUICK}")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    made = hl.Trainer(llm=hl.LLM.random(0), config_path=config if by == "absolute" else Path("..") / "project" / file)
    assert made.lab.path == (config.parent / lab).resolve()


def test_nothing_is_written_before_the_first_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write(
        tmp_path / "config" / "train.yaml",
        "lab: ../labs/t\nenv: tables\nsettings: {search: 2, gate: 2, max_calls: 99}\n",
    )
    before = listing(tmp_path)
    made = hl.Trainer(llm=hl.LLM.random(0), config_path=config)
    assert str(tmp_path / "labs" / "t") in capsys.readouterr().out
    assert "not made yet" in repr(made)
    made.preview()
    made.panel("gate")
    repr(made.meter)
    with pytest.raises(OrderError):
        list(made.resume())
    assert listing(tmp_path) == before
    made.measure()
    assert (tmp_path / "labs" / "t" / "harness.toml").is_file() and made.meter.budget.calls == 99
    assert "not made yet" not in repr(made)
    again = hl.Trainer(llm=hl.LLM.random(0), config_path=config)
    assert again.lab.repo.baseline() == made.lab.repo.baseline()
    assert again.meter.usage().calls == made.meter.usage().calls > 0
    again.lab.close()
    made.lab.close()


def test_two_trainers_on_a_lab_that_is_still_to_be_made_share_it(tmp_path: Path) -> None:
    config = write(tmp_path / "train.yaml", f"lab: t\nenv: tables\n{QUICK}")
    one, two = (hl.Trainer(llm=hl.LLM.random(0), config_path=config) for _ in range(2))
    assert one.lab.repo.baseline() == two.lab.repo.baseline()
    assert len(one.measure()) == len(two.measure()) == 2
    one.lab.close()
    two.lab.close()


WRONG = {
    "unknown key": "settings: {serch: 4}\n",
    "unknown task": "settings: {leave_out: [nobody]}\n",
    "unknown family": "settings: {families: [nobody]}\n",
    "nothing to search": "settings: {search: 0}\n",
    "unknown environment": "env: kitchn\n",
    "no environment there": "env: ./nothing\n",
    "no model": "llm: {}\n",
    "unknown model": "llm: {local: gpt-nowhere}\n",
    "no key": "llm: {model: m, options: {api_key_env: NO_SUCH_VARIABLE_HERE}}\n",
    "unknown option": "llm: {model: m, options: {temprature: 1}}\n",
    "no such home": "lab: ~nobody-of-this-name/lab\n",
    "a project": "lab: .\n",
    "not YAML": "lab: [\n",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("resume", [False, True], ids=["start", "resume"])
def test_a_wrong_setting_leaves_no_lab(
    text: str, resume: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = text.partition(":")[0]
    lines = {
        "lab": "lab: labs/t\n",
        "env": "env: tables\n",
        "llm": "llm: {model: m, options: {base_url: 'http://localhost:9/v1'}}\n",
    }
    write(tmp_path / "train.yaml", "".join(line for name, line in lines.items() if name != key) + text)
    before = listing(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["harnesslab", "train", "train.yaml", *(["--resume"] if resume else [])])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr().err
    assert end.value.code == 1 and said.startswith("error: ") and said.count("\n") == 1, said
    assert listing(tmp_path) == before


def test_a_model_and_a_recording_are_found_beside_the_file(tmp_path: Path) -> None:
    config = write(
        tmp_path / "config" / "train.yaml",
        f"lab: t\nenv: tables\nllm: {{local: ../models/tiny.gguf, options: {{cache: rec/a.jsonl}}}}\n{QUICK}",
    )
    before = listing(tmp_path)
    made: Any = hl.Trainer(config_path=config)
    with pytest.raises(BackboneError, match=str(tmp_path / "models" / "tiny.gguf")):
        made.measure()
    assert made.llm._recording.path == tmp_path / "config" / "rec" / "a.jsonl"
    assert {name for name in listing(tmp_path) if not f"{name}/".startswith("config/t/")} == set(before)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "marker"


def own(at: Path, marker: Path) -> str:
    write(at / "env.toml", ENV_TOML.format(here="true"))
    return str(write(at / "env.py", TRAP.format(marker=str(marker)) + WORLD))


def test_an_environment_of_ones_own_is_found_beside_the_file(tmp_path: Path, marker: Path) -> None:
    own(tmp_path / "project" / "worlds" / "mine", marker)
    config = write(tmp_path / "project" / "config" / "train.yaml", f"lab: t\nenv: ../worlds/mine\n{QUICK}")
    made = hl.Trainer(llm=hl.LLM.random(0), config_path=config)
    assert made.lab.environment.name == "corridor" and marker.exists()


@pytest.mark.parametrize("env", ["..", "../child", "payload:go", "{lab}"])
@pytest.mark.parametrize("lab", ["..", "../../elsewhere", "labs/t"])
def test_a_file_that_came_with_a_lab_runs_nothing_of_it(
    env: str, lab: str, tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = commit(
        tmp_path / "theirs", {"harness.toml": MANIFEST, "payload.py": TRAP.format(marker=str(marker)) + WORLD}
    )
    own(theirs, marker)
    own(theirs / "child", marker)
    config = write(theirs / "config" / "train.yaml", f"lab: {lab}\nenv: {env.format(lab=theirs)}\n{QUICK}")
    monkeypatch.chdir(theirs)
    monkeypatch.syspath_prepend(str(theirs))
    before = listing(tmp_path)
    with pytest.raises(ConfigError, match=r"hl\.Lab\.open\(.*env=") as refusal:
        hl.Trainer(llm=hl.LLM.random(0), config_path=config)
    assert not marker.exists() and listing(tmp_path) == before and "\n" not in str(refusal.value)


def test_a_file_without_an_environment_uses_what_the_lab_remembers_only_if_installed(
    tmp_path: Path, marker: Path
) -> None:
    theirs = commit(tmp_path / "t", {"harness.toml": MANIFEST, ".harnesslab/lab.json": '{"environment": "os:getcwd"}'})
    config = write(tmp_path / "train.yaml", f"lab: {theirs}\n{QUICK}")
    with pytest.raises((ConfigError, EnvironmentUnavailable, HarnesslabError), match="trust=True"):
        hl.Trainer(llm=hl.LLM.random(0), config_path=config)


STRANGE = {
    "a key": "lab: .\nllm: {model: m, options: {base_url: 'http://127.0.0.1:9/v1', api_key_env: MY_SECRET}}\n",
    "a recording elsewhere": "lab: .\nllm: {model: m, options: {base_url: 'http://127.0.0.1:9/v1', cache: ../mine.jsonl}}\n",
    "a recording at home": "lab: .\nllm: {model: m, options: {base_url: 'http://127.0.0.1:9/v1', cache: ~/.bashrc}}\n",
    "another lab": "lab: ../other\nllm: {model: m, options: {base_url: 'http://127.0.0.1:9/v1'}}\n",
}


@pytest.mark.parametrize("strange", STRANGE)
def test_a_file_that_came_with_a_lab_sends_no_key_and_writes_nothing_elsewhere(
    strange: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "sk-mine")
    lab = commit(tmp_path / "lab", {"harness.toml": MANIFEST, "train.yaml": f"env: tables\n{STRANGE[strange]}"})
    before = listing(tmp_path)
    with pytest.raises(ConfigError, match=r"part of the lab .*harnesslab train --trust") as refused:
        hl.Trainer(config_path=lab / "train.yaml")
    assert "\n" not in str(refused.value) and "sk-mine" not in str(refused.value)
    assert listing(tmp_path) == before
    own = write(tmp_path / "train.yaml", (lab / "train.yaml").read_text("utf-8").replace("lab: .\n", "lab: lab\n"))
    assert hl.Trainer(config_path=own).lab.path.name == ("other" if strange == "another lab" else "lab"), (
        "a file of one's own may"
    )
    trusted = hl.Lab.open(lab, env="tables", trust=True)
    assert hl.Trainer(lab=trusted, config_path=lab / "train.yaml").lab is trusted
    trusted.close()


def test_unconfined_is_its_own_word(tmp_path: Path) -> None:
    harness = {"action/a.py": b"def rank(context, proposals): return None\n"}
    for options, kind in (({"trust": True}, "Confined"), ({"unconfined": True}, "Unconfined"), ({}, "Confined")):
        lab = hl.Lab.open(tmp_path / kind / str(len(options)), env="tables", **options)
        measurer = hl.Trainer(lab, hl.LLM.null(), settings={"progress": False}).measurer()
        measurer.base = harness
        loaded = measurer.harness(lab.repo.baseline())["action/a"]
        assert type(loaded).__name__ == kind and lab.unconfined is (kind == "Unconfined")
        lab.close()
