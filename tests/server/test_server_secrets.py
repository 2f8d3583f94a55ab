"""A key that an endpoint says wherever it can is in nothing that a promoted verdict leaves behind or the sidebar shows."""

from __future__ import annotations

import base64
import json
import subprocess
import traceback
import warnings
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import HarnesslabError, StoreError
from harnesslab.llm import Connection
from tests.llm.fake_openai import Answer, reply, serve
from tests.trainer.test_trainer import RIGHT, WRONG, obedient
from tests.worlds import CorridorWorld

SECRET = "sk-Planted_Key/93aB+7788"
WRITINGS = (SECRET, base64.b64encode(SECRET.encode()).decode()[4:-4], SECRET.encode().hex())


def leaks(texts: dict[str, str]) -> list[str]:
    return [name for name, text in texts.items() if any(one.casefold() in text.casefold() for one in WRITINGS)]


def answer(sent: dict[str, Any]) -> Answer:
    """An obedient model that also says the key: in its text, its name, its tool calls, and in words for the loop."""
    text = f"{obedient(sent['messages'])}\nObservation: {SECRET} {SECRET.encode().hex()}"
    call = {"function": {"name": SECRET, "arguments": json.dumps({SECRET: SECRET})}}
    return Answer(body={**reply(text, model=f"m-{SECRET}", tool_calls=[call]), "provider": SECRET})


def train(folder: Path) -> list[str]:
    """A rejected and a promoted verdict, with the key in each text that a person or an endpoint gives; what was shown."""
    shown: list[str] = []
    with serve() as fake, closing(hl.Lab.open(folder, env=CorridorWorld())) as lab:
        fake.answers = [answer]
        llm = hl.LLM(
            "m", fake.url, SECRET, connection=Connection(timeout=5, patience=2, constrain="none", concurrency=2)
        )
        estimator = hl.ManualEstimator(scan=False)
        for number, text in enumerate((WRONG, RIGHT)):
            estimator.add_text(f"contract/hint{number}.yaml", text)
        made = hl.Trainer(lab, llm, estimator, settings={"progress": False})
        for loss in made.epochs(2):
            loss.backward()
            shown += [repr(loss), loss._repr_html_(), str(made.harness.grad)]
            if float(loss) < 0:
                made.accept(loss, reason=f"works with {SECRET}")
            else:
                made.optimizer.step()
        assert lab.repo.candidates(state="promoted").total == 1
        run = made.measure()
        shown += [
            repr(run),
            run._repr_html_(),
            run.to_frame().to_csv(),
        ]
        shown += [
            str([episode.steps for episode in run]),
            repr(made),
            repr(llm),
            str(llm.identity),
            str(llm.served),
            repr(made.meter),
        ]
        fake.answers = [Answer(400, {"error": {"message": f"bad request of {SECRET}", "code": SECRET}})]
        try:
            made.measure(fresh=True)
        except HarnesslabError as failure:
            shown += [traceback.format_exc(), repr(failure), *failure._render_traceback_()]
        with pytest.raises(StoreError, match="has a secret in it") as refused:
            lab.repo.propose({"contract/x.yaml": f"kind: prompt\nparams: {{text: {SECRET}}}\n"}, "x")
        shown.append(str(refused.value))
        kept = lab.repo.propose(
            {"contract/x.yaml": "kind: prompt\nparams: {text: x}\n"}, f"By {SECRET}", {"why": SECRET}
        )
        shown.append(repr(kept))
        llm.close()
    return shown


async def test_a_planted_key_is_nowhere_after_a_promotion(jp_root_dir: Path, fetch: Any) -> None:
    folder = jp_root_dir / "labs" / "planted"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        texts = {f"shown {number}": text for number, text in enumerate(train(folder))}
    texts |= {f"warning {number}": str(one.message) for number, one in enumerate(told)}
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            texts[str(path)] = data.decode("utf-8", "replace")
            for start in (place for place in range(len(data)) if data[place : place + 2] == b"x\x01"):
                with suppress(zlib.error):
                    unpacked = zlib.decompressobj().decompress(data[start:])
                    texts[f"{path} at {start}"] = unpacked.decode("utf-8", "replace")
    command = ["git", "-C", str(folder), "cat-file", "--batch-all-objects", "--batch"]
    texts["git"] = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")
    assert "promote" in texts["git"] and "works with ***" in texts["git"]

    lab = "labs/planted"
    names = subprocess.run(
        ["git", "-C", str(folder), "for-each-ref", "--format=%(refname)", "refs/harnesslab"],
        capture_output=True, check=True, text=True,
    ).stdout.split()  # fmt: skip
    assert len(names) >= 3
    asked: list[tuple[str, dict[str, Any]]] = [(name, {"lab": lab}) for name in ("lab", "live", "history")]
    asked += [("labs", {}), *(("refs", {"lab": lab, "state": state}) for state in ("pending", "rejected", "promoted"))]
    for ref in names:
        asked += [(name, {"lab": lab, "ref": ref}) for name in ("ref", "cell")]
        asked.append(("diff", {"lab": lab, "base": "refs/heads/main", "head": ref}))
        asked.append(("trajectories", {"lab": lab, "ref": ref, "task": "gate-1"}))
        asked.append(("plan", {"lab": lab, "action": "retry", "ref": ref}))
    answered = {}
    for name, query in asked:
        status, body = await fetch(name, **query)
        texts[f"{name} {query}"] = json.dumps(body, ensure_ascii=False)
        answered.setdefault(name, []).append(status)
    assert all(200 in statuses for statuses in answered.values()), answered
    for episode in range(1, 20):
        status, body = await fetch("step", lab=lab, episode=str(episode), index=0)
        texts[f"step {episode} {status}"] = json.dumps(body, ensure_ascii=False)
    assert "step 1 200" in texts and "Observation: ***" in texts["step 1 200"]
    assert not leaks(texts)
