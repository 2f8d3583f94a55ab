"""What each endpoint answers: the one source of `openapi.yaml` and of the sidebar's types.

`harnesslab.server.core` builds these; `harnesslab.server.openapi` describes them; `extension/src/api/schema.ts` is
generated from that description.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from harnesslab.ledger import Act, Choice, State
from harnesslab.server.problems import STATUS

Number = Annotated[
    float | str, Field(description="A number; `Infinity` and `NaN` are strings, because JSON has neither")
]
LabKind = Literal["lab", "harness-training"]
RowState = Literal[State, "commit"]


class Answer(BaseModel):
    """Base of all: nothing that is not declared here reaches the browser."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_serialization_defaults_required=True)


class Problem(Answer):
    """Every answer that is an error."""

    message: str = Field(description="One sentence that says what is wrong and what to do")
    code: str = Field(json_schema_extra={"enum": list(STATUS)})


class LabSummary(Answer):
    """A lab in a list of labs."""

    path: str
    name: str
    kind: LabKind = Field(description="harness-training repositories are read-only")


class Labs(Answer):
    """The labs that a search found."""

    items: list[LabSummary]
    truncated: bool = Field(description="The search stopped at its limit of folders")
    problems: list[str] = Field(description="Folders that could not be searched")


class Score(Answer):
    """Tasks solved by a baseline on one split."""

    solved: int
    total: int
    split: str


class Baseline(Answer):
    """The harness at the branch head."""

    commit: str
    branch: str
    subject: str
    when: str
    score: Score | None = None
    backbone: str | None = None
    environment: str | None = None


class Counts(Answer):
    """Candidates in each tab of the sidebar."""

    pending: int
    rejected: int
    promoted: int


class Undo(Answer):
    """The last decision, where it can be undone."""

    label: str = Field(description="What would be undone")
    ref: str = Field(description="What to name in the action")


class Running(Answer):
    """A measurement in progress."""

    what: str = Field(description="What is being measured, in words")
    note: str = Field(description="How it stands, in words")
    run: str | None
    done: int = Field(description="Episodes that have ended")
    total: int | None
    updated: str = Field(description="When the last episode ended")
    stale: bool = Field(description="No sign of life for a while: the kernel was probably stopped")


class Live(Answer):
    """What is cheap enough to ask every few seconds."""

    version: str = Field(description="Changes whenever refs, notes or records change")
    running: Running | None


class Overview(Answer):
    """Everything that the top of the sidebar shows."""

    lab: LabSummary
    version: str
    baseline: Baseline
    counts: Counts
    running: Running | None = None
    dirty: list[str] = Field(default=[], description="Changed files in the working tree")
    undo: Undo | None = None
    notices: list[str] = Field(description="What the lab configures and harnesslab ignores, one sentence each")


class HistoryItem(Answer):
    """One commit of the baseline's history."""

    commit: str
    ref: str = Field(description="The promoted ref where there is one, else the commit")
    subject: str
    when: str
    kind: Literal["promotion", "rollback", "other"]
    who: str
    layer: str | None = None
    solved: int | None = None
    total: int | None = None


class History(Answer):
    """One page of the baseline's history, newest first."""

    items: list[HistoryItem]
    more: bool = Field(description="There are older commits")
    version: str


class Fact(Answer):
    """A name and a value, both as text."""

    name: str
    value: str


class Column(Fact):
    """One cell of a row; `core/columns.py` declares the columns."""

    listed: bool = Field(description="Shown in the list as well as on the candidate's page")


class RefRow(Answer):
    """A candidate in a list."""

    ref: str
    id: str
    commit: str
    state: RowState = Field(
        description="pending: not measured; measured: nobody has decided yet; undecided: the measurement could not tell; "
        "commit: not a candidate"
    )
    name: str
    about: str
    layer: str | None = None
    columns: list[Column] = []
    delta: int | None = Field(default=None, description="Solved tasks of the candidate minus those of its baseline")
    loss: Number | None = Field(default=None, description="The criterion's value; below zero selects the candidate")
    decision: Choice | None = None
    decided_by: Literal["criterion", "person"] | None = None
    who: str | None = None
    when: str | None = None
    proposed: str
    why: str = ""
    override: bool = False


class Refs(Answer):
    """One page of candidates."""

    items: list[RefRow]
    total: int = Field(description="How many match the filters")
    version: str


class Evidence(Answer):
    """A place in the record that speaks for a proposal."""

    task: str
    episode: str | None
    step: int | None
    what: str


class Prediction(Answer):
    """What a proposal says will happen."""

    flips: list[str] = []
    trigger: str = ""


class TaskOutcome(Answer):
    """One task before and after."""

    task: str
    baseline: bool | None
    candidate: bool | None
    flip: bool
    incidental: bool = Field(description="A flip on a task where nothing new fired")
    predicted: bool
    seen: bool = Field(description="Trajectories are on record")


class Metric(Answer):
    """A mean over episodes, baseline beside candidate."""

    name: str
    baseline: Number | None
    candidate: Number | None


class Verdict(Answer):
    """The judgement on record."""

    criterion: str
    baseline: str = Field(description="The commit that the candidate was measured against")
    candidate: str
    metrics: list[Metric]
    statistics: list[Fact]
    cost: list[Fact]
    identity: list[Fact]


class RefDetail(Answer):
    """One candidate (or plain commit) in full."""

    row: RefRow
    parent: str | None
    evidence: list[Evidence] = []
    prediction: Prediction = Prediction()
    verdict: Verdict | None = None
    tasks: list[TaskOutcome] = []
    actions: list[Act] = Field(description="What can be done with it now")
    read_only: bool


class DiffFile(Answer):
    """A file that differs, both texts bounded."""

    path: str
    status: Literal["added", "deleted", "modified"]
    base_text: str
    head_text: str
    binary: bool
    truncated: bool


class Endpoint(Answer):
    """One side of a comparison."""

    name: str
    commit: str
    subject: str


class Diff(Answer):
    """The files that differ between two refs."""

    base: Endpoint
    head: Endpoint
    files: list[DiffFile]
    truncated: bool = Field(description="There are more files than are shown")


class Step(Answer):
    """One step, each text bounded."""

    index: int
    observation: str
    raw: str
    action: str
    executed: bool
    problem: str
    result: str
    invalid: bool
    reward: Number | None
    fired: list[str]
    note: str
    truncated: bool


class Side(Answer):
    """One episode of a comparison."""

    run: str
    episode: str
    solved: bool
    steps: list[Step]


class Trajectories(Answer):
    """One task, baseline beside candidate."""

    task: str
    baseline: Side | None
    candidate: Side | None
    parting: int | None = Field(description="Index of the first step that differs; null if none does, or no other side")


class FullStep(Answer):
    """One step with the request and the replies as they were."""

    episode: str
    index: int
    request: str = Field(description="The exact request body as indented JSON")
    replies: str = Field(description="The raw replies as indented JSON")


class Expectation(Answer):
    """The commits that a plan rests on, and that the person has seen."""

    baseline: str = Field(description="The commit of the baseline that the plan saw")
    ref: str = Field(description="The commit of the ref that the plan saw")


class Plan(Answer):
    """What an act would do."""

    action: Act
    ref: str
    allowed: bool
    steps: list[str] = Field(description="What git will do, one sentence each; if it is not allowed, why not")
    needs_why: bool
    undo: str | None = Field(description="How to undo it; null where it cannot be undone")
    expect: Expectation


class Done(Answer):
    """What an act did."""

    message: str
    ref: str = Field(description="Where the candidate is now; after a retry the new one, after a rollback the commit")
    undo: str | None = Field(description="What to name in an `undo` to take this back")


class Cell(Answer):
    """The source of a notebook cell."""

    source: str
