"""Thin handlers: check who asks and what for, hand over to `core` in a thread, answer in JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import tornado.web
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from pydantic import ValidationError

from harnesslab.ledger import whoami
from harnesslab.server import answers, queries
from harnesslab.server.core import actions, exports
from harnesslab.server.core.labs import Labs
from harnesslab.server.problems import Problem, problem_of
from harnesslab.server.routes import READS, Route
from harnesslab.server.worker import Worker

MAX_BODY = 20_000
SETTING = "harnesslab"
"""The key under which the web application keeps what the handlers share."""

_Q = TypeVar("_Q", bound=queries.Parameters)


class Shared:
    """What the handlers share: the labs below the root and the threads."""

    def __init__(self, root: Path, worker: Worker | None = None):
        self.labs = Labs(root)
        self.worker = worker or Worker()

    def close(self) -> None:
        """Give everything back."""
        self.worker.close()
        self.labs.close()


class Handler(APIHandler):
    """Base of all."""

    auth_resource = SETTING

    @property
    def shared(self) -> Shared:
        """The labs and the threads."""
        shared: Shared = self.settings[SETTING]
        return shared

    def parameters(self, model: type[_Q]) -> _Q:
        """The query string as the endpoint's model; `Problem` for what is wrong, missing, doubled or unknown."""
        values = {}
        for name, given in self.request.query_arguments.items():
            if name == "token" or name.isdecimal():  # Jupyter's own: it sends the time against caches
                continue
            if len(given) > 1:
                raise Problem("bad_request", f"The parameter {name[:40]!r} was given {len(given)} times.")
            # Not `get_query_argument`: it strips control characters, which would let them slip past the checks.
            values[name] = given[0].decode("utf-8", "replace")
        return _checked(model, values)

    async def answer(self, work: Callable[[], Any]) -> Any:
        """The result of `work` from a thread."""
        return await self.shared.worker.run(work)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Every error is a `Problem` in JSON; the details of an unexpected one go to the server's log only."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, tornado.web.HTTPError):
            code = {400: "bad_request", 403: "forbidden", 404: "not_found"}.get(status_code, "internal")
            message = str(error.log_message or error.reason or "The request was refused.")
        else:
            problem = problem_of(error if isinstance(error, Exception) else RuntimeError())
            self.set_status(problem.status)
            code, message = problem.code, str(problem)
        self.set_header("Content-Type", "application/json")
        self.finish(answers.Problem(code=code, message=message).model_dump_json())

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """A problem that is told to the user is no traceback in the log."""
        if isinstance(value, Exception) and problem_of(value).code != "internal":
            self.log.info("harnesslab: %s", value)
        else:
            super().log_exception(typ, value, tb)


class ReadHandler(Handler):
    """A `GET` that answers in JSON, as its route says."""

    def initialize(self, route: Route) -> None:
        """Called by tornado."""
        self.route = route

    @tornado.web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer the question of the route."""
        asked = self.parameters(self.route.query)
        found: answers.Answer = await self.answer(lambda: self.route.ask(self.shared.labs, asked))
        self.finish(found.model_dump_json())


class ActionsHandler(Handler):
    """`/actions`."""

    @tornado.web.authenticated
    @authorized
    async def post(self) -> None:
        """Do it."""
        if len(self.request.body) > MAX_BODY:
            raise Problem("bad_request", f"The request is longer than {MAX_BODY} bytes.")
        try:
            given = json.loads(self.request.body)
        except (ValueError, RecursionError):
            raise Problem("bad_request", "The body of the request is not JSON.") from None
        asked = _checked(queries.ActionBody, given)
        known = self._person()

        def work() -> answers.Done:
            lab = self.shared.labs.get(asked.lab)
            who = known or whoami(lab.folder)
            return actions.act(lab, asked.action, asked.ref, asked.expect, who, asked.why)

        self.finish((await self.answer(work)).model_dump_json())

    def _person(self) -> str:
        """The user's name where the identity provider knows one; behind a bare token everybody is anonymous."""
        user = self.current_user
        anonymous = user.username == user.name and re.fullmatch(r"[0-9a-f]{32}", user.username)
        named = user.display_name or user.name or user.username
        return "" if anonymous or named.startswith("Anonymous ") else str(named)[:200]


class ExportHandler(Handler):
    """`/export`."""

    @tornado.web.authenticated
    @authorized
    async def get(self) -> None:
        """The harness as a zip."""
        asked = self.parameters(queries.RefQuery)
        data = await self.answer(lambda: exports.archive(self.shared.labs.get(asked.lab), asked.ref))
        self.set_header("Content-Type", "application/zip")
        self.set_header("Content-Disposition", 'attachment; filename="harness.zip"')
        self.finish(data, set_content_type="application/zip")


def routes() -> list[tuple[str, type[Handler], dict[str, Any]]]:
    """Every route below `/harnesslab/`: name, handler, and the arguments of its `initialize`."""
    reads: list[tuple[str, type[Handler], dict[str, Any]]] = [
        (route.name, ReadHandler, {"route": route}) for route in READS
    ]
    return [*reads, ("export", ExportHandler, {}), ("actions", ActionsHandler, {})]


def add_handlers(web_app: tornado.web.Application, shared: Shared) -> None:
    """Register every route under the server's base address."""
    web_app.settings[SETTING] = shared
    base = web_app.settings["base_url"]
    web_app.add_handlers(
        ".*$", [(url_path_join(base, SETTING, name), handler, arguments) for name, handler, arguments in routes()]
    )


def _checked(model: type[_Q], values: Any) -> _Q:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "request"
        raise Problem("bad_request", f"{where[:80]}: {first['msg']}.") from None
