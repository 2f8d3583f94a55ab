"""Runs as eval logs of Inspect (https://inspect.aisi.org.uk): `inspect view` opens them. The package comes with the extra ``inspect``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harnesslab.errors import ConfigError
from harnesslab.extras import comes_with
from harnesslab.rollout.report import Recorded
from harnesslab.rollout.tasks import wilson_interval


def write_inspect_log(run: Recorded, path: str | Path) -> Path:
    """Write a run as an eval log, one sample an episode, repeats as epochs; returns its path.

    ``path`` ends in ``.eval`` or ``.json``. Messages are those of the steps that are loaded (``lab.run(id)`` loads all). Each sample has the scores
    ``solved`` (C or I) and ``progress``. Raises ConfigError for another ending or where it cannot be written, ExtraMissing without the package.
    """
    with comes_with("inspect"):
        from inspect_ai.log import write_eval_log

    target = Path(path).expanduser()
    if target.suffix not in (".eval", ".json"):
        raise ConfigError(f"an eval log ends in .eval or .json, not {target.name!r:.60}")
    if not target.parent.is_dir():
        raise ConfigError(f"the eval log cannot be written to {target}: there is no folder {target.parent}")
    write_eval_log(_log(run), str(target.resolve()))
    return target


def _log(run: Recorded) -> Any:
    with comes_with("inspect"):
        from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalResults, EvalSpec, EvalStats
        from inspect_ai.model import ModelUsage

    now = datetime.now(UTC).isoformat()
    model = run.backbone or "none"
    environment = str(run.identity.get("environment", "harnesslab"))
    tasks = list(dict.fromkeys(episode.task_id for episode in run.episodes))
    epochs = max((sum(e.task_id == task for e in run.episodes) for task in tasks[:1]), default=1)
    prompt, completion = (
        sum(getattr(e, name) for e in run.episodes) for name in ("prompt_tokens", "completion_tokens")
    )
    usage = ModelUsage(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion)
    return EvalLog(
        status="success",
        eval=EvalSpec(
            created=now,
            task=f"{environment}/{run.split}",
            task_version=str(run.identity.get("version", "0")),
            dataset=EvalDataset(name=run.split, samples=len(tasks), sample_ids=tasks),
            model=model,
            config=EvalConfig(epochs=epochs),
            metadata={"harness": run.commit, "run": run.id, "identity": dict(run.identity)},
        ),
        results=EvalResults(total_samples=len(run.episodes), completed_samples=len(run.scorable), scores=[_score(run)]),
        stats=EvalStats(started_at=now, completed_at=now, model_usage={model: usage}),
        samples=_samples(run.episodes),
    )


def _score(run: Recorded) -> Any:
    from inspect_ai.log import EvalMetric, EvalScore

    rate, low, high = wilson_interval(run.rate * run.tasks, run.tasks) if run.tasks else (0.0, 0.0, 1.0)
    numbers = {"accuracy": rate, "ci_low": low, "ci_high": high, "solved": run.solved, "tasks": run.tasks}
    return EvalScore(
        name="solved",
        scorer="harnesslab",
        metrics={name: EvalMetric(name=name, value=value) for name, value in numbers.items()},
    )


def _samples(episodes: Sequence[Any]) -> list[Any]:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score

    found, seen = [], dict[str, int]()
    for episode in episodes:
        seen[episode.task_id] = epoch = seen.get(episode.task_id, 0) + 1
        scorable = episode.status == "finished"
        last = episode.steps[-1].raw if episode.steps else ""
        scores = {
            "solved": Score(value="C" if episode.solved else "I", explanation=episode.ended),
            "progress": Score(value=episode.progress),
        }
        found.append(
            EvalSample(
                id=episode.task_id,
                epoch=epoch,
                input=episode.instruction,
                target="",
                messages=_messages(episode),
                output=ModelOutput.from_content("harnesslab", last),
                scores=scores if scorable else {},
                metadata={
                    "family": episode.family, "outcome": episode.outcome, "ended": episode.ended, "steps": episode.length,
                    "invalid": episode.invalid, "fired": dict(episode.fired), "reward": episode.reward,
                },
                total_time=episode.seconds,
            )
        )  # fmt: skip
    return found


def _messages(episode: Any) -> list[Any]:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser

    messages: list[Any] = [ChatMessageUser(content=episode.instruction)]
    for step in episode.steps:
        messages += [ChatMessageUser(content=step.observation), ChatMessageAssistant(content=step.raw)]
    if episode.steps and episode.steps[-1].result:
        messages.append(ChatMessageUser(content=episode.steps[-1].result))
    return messages
