"""The parameters of each endpoint, checked before anything else sees them; `openapi.yaml` is made from them, too."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from harnesslab.ledger import Act
from harnesslab.server.answers import Expectation

LabPath = Annotated[
    str,
    StringConstraints(max_length=1024),
    Field(description="The lab's path below the Jupyter root, with forward slashes; `.` is the root itself"),
]
RefName = Annotated[
    str, StringConstraints(max_length=250), Field(description="A full ref name, a commit hash, or HEAD")
]
Words = Annotated[str, StringConstraints(max_length=200)]


class Parameters(BaseModel):
    """Base of all: what is not known is refused, so that a misspelt filter cannot look like an empty one."""

    model_config = ConfigDict(extra="forbid")


class LabsQuery(Parameters):
    """`GET /labs`."""

    roots: str = Field(
        default="", max_length=4096, description="Folders to search, one a line; empty means the Jupyter root"
    )
    depth: int = Field(default=3, ge=0, le=6, description="How deep to search below each folder")


class LabQuery(Parameters):
    """`GET /lab` and `GET /live`."""

    lab: LabPath


class Paged(LabQuery):
    """Endpoints that answer page by page."""

    offset: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class RefsQuery(Paged):
    """`GET /refs`."""

    state: Literal["pending", "rejected", "promoted"] = Field(
        default="rejected", description="pending includes measured and undecided"
    )
    text: Words = Field(default="", description="Part of the name, the description or the reason")
    layer: Literal["", "contract", "skill", "action", "regulation"] = ""
    reason: Words = Field(default="", description="Part of the reason")
    decider: Literal["", "criterion", "person"] = ""
    sort: Literal["time", "delta"] = "time"
    order: Literal["asc", "desc"] = "desc"


class RefQuery(LabQuery):
    """`GET /ref` and `GET /export`."""

    ref: RefName


class CellQuery(RefQuery):
    """`GET /cell`."""

    notebook: str = Field(
        default="", max_length=1024, description="Path of the notebook that gets the cell, for relative paths in it"
    )


class DiffQuery(LabQuery):
    """`GET /diff`."""

    base: RefName
    head: RefName


class TrajectoriesQuery(RefQuery):
    """`GET /trajectories`."""

    task: Annotated[str, StringConstraints(max_length=500)]


class StepQuery(LabQuery):
    """`GET /step`."""

    episode: Annotated[str, StringConstraints(max_length=100)]
    index: Annotated[int, Field(ge=0)]


class PlanQuery(RefQuery):
    """`GET /plan`."""

    action: Act


class ActionBody(Parameters):
    """`POST /actions`."""

    lab: LabPath
    action: Act
    ref: RefName
    why: Annotated[str, StringConstraints(max_length=4000)] = ""
    expect: Expectation
