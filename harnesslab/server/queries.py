"""The parameters of each endpoint, checked before anything else sees them. A test compares them with `openapi.yaml`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from harnesslab.ledger import Act

LabPath = Annotated[str, StringConstraints(max_length=1024)]
RefName = Annotated[str, StringConstraints(max_length=250)]
Words = Annotated[str, StringConstraints(max_length=200)]


class Parameters(BaseModel):
    """Base of all: what is not known is refused, so that a misspelt filter cannot look like an empty one."""

    model_config = ConfigDict(extra="forbid")


class LabsQuery(Parameters):
    """`GET /labs`."""

    roots: Annotated[str, StringConstraints(max_length=4096)] = ""
    depth: Annotated[int, Field(ge=0, le=6)] = 3


class LabQuery(Parameters):
    """`GET /lab` and `GET /live`."""

    lab: LabPath


class Paged(LabQuery):
    """Endpoints that answer page by page."""

    offset: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class RefsQuery(Paged):
    """`GET /refs`."""

    state: Literal["pending", "rejected", "promoted"] = "rejected"
    text: Words = ""
    layer: Literal["", "contract", "skill", "action", "regulation"] = ""
    reason: Words = ""
    decider: Literal["", "criterion", "person"] = ""
    sort: Literal["time", "delta"] = "time"
    order: Literal["asc", "desc"] = "desc"

    def filters(self) -> dict[str, Any]:
        """What `core.refs.page` takes."""
        return self.model_dump(exclude={"lab", "offset", "limit"})


class RefQuery(LabQuery):
    """`GET /ref` and `GET /export`."""

    ref: RefName


class CellQuery(RefQuery):
    """`GET /cell`."""

    notebook: LabPath = ""


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


class Expectation(Parameters):
    """The commits that the person has seen."""

    baseline: str
    ref: str


class ActionBody(Parameters):
    """`POST /actions`."""

    lab: LabPath
    action: Act
    ref: RefName
    why: Annotated[str, StringConstraints(max_length=4000)] = ""
    expect: Expectation
