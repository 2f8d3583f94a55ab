"""Reads the first format of Terminal-Bench (https://www.tbench.ai/docs): ``task.yaml``, ``Dockerfile``,
``docker-compose.yaml``, ``solution.sh``, ``run-tests.sh``, ``tests/``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from harnesslab.rollout.taskfiles import TaskFileError, read_yaml, table
from harnesslab_envs.terminal import compose
from harnesslab_envs.terminal.spec import (
    PYTEST,
    TERMINAL_BENCH,
    Files,
    Part,
    Spec,
    Unplayable,
    Values,
    fill,
    read_files,
    seconds,
    text_of,
    with_script,
)

TEST_SECONDS = 60.0
AGENT_SECONDS = 360.0
SCRIPT, SOLVE = "run-tests.sh", "solution.sh"
HIDDEN = ("tests", SOLVE, "solution.yaml", SCRIPT, "task.yaml", "task.yml", "variants.json", *compose.NAMES)
"""Where the Dockerfile is beside the tests, COPY does not reach what gives the task away."""


def read(place: Path, values: Values, environ: Values) -> Spec:
    """The task in a folder; its name is left to the caller. Raises ConfigError."""
    source = next(file for file in (place / "task.yaml", place / "task.yml") if file.is_file())
    facts = table(read_yaml(source), source)
    parser = facts.get("parser_name", "pytest")
    if parser != "pytest":
        raise Unplayable(f"{source}, key 'parser_name': the results of {parser!r} are not read; only pytest's are")
    service = compose.read(place, "client")
    file = place / service.dockerfile
    tests, solution = read_files(place / "tests", values), Files()
    if (place / SCRIPT).is_file():
        tests = with_script(_one(place, SCRIPT, values).over(tests), SCRIPT)
    elif PYTEST not in tests:
        raise TaskFileError(place / SCRIPT, f"is missing, and so is tests/{PYTEST}")
    if (place / SOLVE).is_file():
        solution = with_script(_one(place, SOLVE, values), SOLVE)
    part = Part(
        instruction=_instruction(facts, source, values),
        tests=tests,
        script=SCRIPT if SCRIPT in tests else "",
        solution=solution,
        solve=SOLVE if SOLVE in solution else "",
        agent_seconds=seconds(facts.get("max_agent_timeout_sec", AGENT_SECONDS), source, "max_agent_timeout_sec"),
        test_seconds=seconds(facts.get("max_test_timeout_sec", TEST_SECONDS), source, "max_test_timeout_sec"),
        same_shell=facts.get("run_tests_in_same_shell") is True,
    )
    return Spec(
        id="",
        family="",
        format=TERMINAL_BENCH,
        source=place,
        parts=(part,),
        dockerfile=text_of(file, values) if file.is_file() else "",
        dockerfile_name=service.dockerfile if file.is_file() else "",
        context=read_files(place, values, HIDDEN),
        build_args=service.build_args,
        image=service.image,
        environ=service.environ,
        user=service.user,
        workdir=service.workdir,
    )


def _instruction(facts: dict[str, Any], source: Path, values: Values) -> str:
    text = facts.get("instruction")
    if not isinstance(text, str) or not text.strip():
        raise TaskFileError(source, "the task has no instruction", key="instruction")
    return fill(text, values).strip()


def _one(place: Path, name: str, values: Values) -> Files:
    """One file of the task's folder."""
    content = text_of(place / name, values).encode()
    return replace(Files(), content={name: content}, executable=frozenset((name,)))
