"""Who may ask, and for what: authentication, authorisation, XSRF, roots, names."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import labmaker
import pytest
import tornado.httpclient
from jupyter_server.auth import Authorizer

from harnesslab.server.handlers import routes

LAB = "labs/kitchen"
NAMES = sorted(name for name, _, _ in routes())
BODY = {"lab": LAB, "action": "reject", "ref": "HEAD", "why": "x", "expect": {"baseline": "a", "ref": "b"}}


class ReadOnly(Authorizer):
    """Lets everybody read and nobody write."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        """The decision."""
        return resource != "harnesslab" or action == "read"


class Nobody(Authorizer):
    """Lets nobody near harnesslab."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        """The decision."""
        return resource != "harnesslab"


def sent(name: str) -> dict[str, Any]:
    """How an endpoint is asked."""
    return (
        {"method": "POST", "body": json.dumps(BODY)} if name == "actions" else {"params": {"lab": LAB, "ref": "HEAD"}}
    )


async def refused(fetch: Any, name: str, **options: Any) -> int:
    """The status of a request that should not get through."""
    with pytest.raises(tornado.httpclient.HTTPClientError) as error:
        await fetch("harnesslab", name, **(sent(name) | options))
    return int(error.value.code)


async def test_without_a_token_nothing_answers(jp_fetch: Any) -> None:
    for name in NAMES:
        assert await refused(jp_fetch, name, headers={"Authorization": ""}) == 403, name
        assert await refused(jp_fetch, name, headers={"Authorization": "token wrong"}) == 403, name


async def test_other_verbs_are_refused(jp_fetch: Any) -> None:
    for verb in ("PUT", "DELETE", "PATCH"):
        body = {} if verb == "DELETE" else {"body": "{}"}
        assert await refused(jp_fetch, "lab", method=verb, **body) in (403, 405), verb


class TestNobodyMayUseIt:
    """An authorizer that knows the resource is asked on every route."""

    @pytest.fixture
    def jp_server_config(self, jp_server_config: Any) -> Any:
        """With the strict authorizer."""
        jp_server_config.ServerApp.authorizer_class = Nobody
        return jp_server_config

    async def test_every_route_is_closed(self, jp_fetch: Any) -> None:
        assert {name: await refused(jp_fetch, name) for name in NAMES} == dict.fromkeys(NAMES, 403)


class TestReadersMayNotWrite:
    """Reading and writing are told apart."""

    @pytest.fixture
    def jp_server_config(self, jp_server_config: Any) -> Any:
        """With the authorizer for readers."""
        jp_server_config.ServerApp.authorizer_class = ReadOnly
        return jp_server_config

    async def test_a_reader_sees_but_does_not_act(self, fetch: Any, jp_fetch: Any, lab: dict[str, str]) -> None:
        status, _ = await fetch("lab", lab=LAB)
        assert status == 200
        assert await refused(jp_fetch, "actions") == 403


def set_cookies(response: tornado.httpclient.HTTPResponse) -> dict[str, str]:
    """The cookies that an answer sets."""
    lines = response.headers.get_list("Set-Cookie")
    pairs = (line.split(";")[0].partition("=") for line in lines)
    return {name: value for name, _, value in pairs}


def cookie_header(cookies: dict[str, str]) -> str:
    """They, as the browser sends them back."""
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


async def test_a_cookie_needs_the_xsrf_header(
    jp_fetch: Any, jp_serverapp: Any, jp_base_url: str, lab: dict[str, str], http_server_port: Any
) -> None:
    client = tornado.httpclient.AsyncHTTPClient()
    base = f"http://127.0.0.1:{http_server_port[-1]}{jp_base_url}"
    # A token gives a session cookie, the page for logging in gives the XSRF cookie.
    session = await client.fetch(f"{base}api/status?token={jp_serverapp.identity_provider.token}")
    cookies = set_cookies(session) | set_cookies(await client.fetch(f"{base}login"))
    assert "_xsrf" in cookies and len(cookies) == 2
    headers = {"Cookie": cookie_header(cookies)}
    without = await client.fetch(
        f"{base}harnesslab/actions", method="POST", body=json.dumps(BODY), headers=headers, raise_error=False
    )
    assert without.code == 403 and b"_xsrf" in without.body
    headers["X-XSRFToken"] = cookies["_xsrf"]
    allowed = await client.fetch(
        f"{base}harnesslab/actions", method="POST", body=json.dumps(BODY), headers=headers, raise_error=False
    )
    assert allowed.code == 409 and json.loads(allowed.body)["code"] == "refused", "past the guard; HEAD is no candidate"


PATHS = (
    "..", "../outside", "labs/../../outside", "/etc", "labs/kitchen/../../..", "C:/x", "labs\\kitchen", "labs/\x00kitchen", "link",
    "link/lab",
)  # fmt: skip


async def test_a_path_cannot_leave_the_root(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    outside = jp_root_dir.parent / "outside"
    shutil.copytree(jp_root_dir / LAB, outside / "lab")
    (jp_root_dir / "link").symlink_to(outside, target_is_directory=True)
    for path in PATHS:
        for name in ("lab", "live", "refs", "history"):
            status, problem = await fetch(name, lab=path)
            assert (status, problem["code"]) == (404, "outside_root"), path
            assert str(outside) not in problem["message"]
        status, problem = await fetch("actions", {**BODY, "lab": path})
        assert (status, problem["code"]) == (404, "outside_root"), path
        _, found = await fetch("labs", roots=f"{path}\nlabs")
        assert [item["path"] for item in found["items"]] == ["labs/kitchen"], path


@pytest.mark.parametrize("inside", [".git", ".harnesslab", ".harnesslab/lab.db"])
async def test_a_lab_cannot_keep_its_parts_outside(
    fetch: Any, lab: dict[str, str], jp_root_dir: Path, inside: str
) -> None:
    outside = jp_root_dir.parent / "elsewhere"
    (jp_root_dir / LAB / inside).rename(outside)
    (jp_root_dir / LAB / inside).symlink_to(outside)
    status, problem = await fetch("lab", lab=LAB)
    assert (status, problem["code"]) == (404, "outside_root")


async def test_a_git_file_cannot_point_outside(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    outside = jp_root_dir.parent / "elsewhere"
    (jp_root_dir / LAB / ".git").rename(outside)
    (jp_root_dir / LAB / ".git").write_text(f"gitdir: {outside}\n", encoding="utf-8")
    status, problem = await fetch("lab", lab=LAB)
    assert (status, problem["code"]) == (404, "outside_root")


async def test_a_link_inside_the_root_is_fine(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    (jp_root_dir / "short").symlink_to(jp_root_dir / "labs", target_is_directory=True)
    status, _ = await fetch("lab", lab="short/kitchen")
    assert status == 200


BAD_NAMES = (
    "--upload-pack=x", "-x", "main", "main~1", "HEAD@{1}", "refs/heads/../x", "refs/heads/x.lock", "a b", "refs/x:y", "", "HEAD\n",
    "\x00",
)  # fmt: skip
NOTHING = (
    "refs/heads/nope", "refs/harnesslab/candidates/nope", "refs/harnesslab/candidates/0123456789ab", "deadbeef",
)  # fmt: skip
BAD_QUERIES: tuple[dict[str, Any], ...] = (
    {"lab": LAB, "state": "gone"}, {"lab": LAB, "limit": "1000"}, {"lab": LAB, "offset": "-1"}, {"lab": LAB, "sort": "id;"},
    {"lab": LAB, "fliter": "x"}, {}, {"lab": "x" * 2000}, {"lab": LAB, "text": "x" * 300},
)  # fmt: skip


async def test_only_full_names_reach_git(fetch: Any, lab: dict[str, str]) -> None:
    for ref in BAD_NAMES:
        for name, query in (("ref", {"ref": ref}), ("diff", {"base": "HEAD", "head": ref}), ("export", {"ref": ref})):
            status, problem = await fetch(name, lab=LAB, **query)
            assert (status, problem["code"]) == (400, "bad_ref"), ref


async def test_names_of_nothing_are_not_found(fetch: Any, lab: dict[str, str]) -> None:
    for ref in NOTHING:
        status, problem = await fetch("ref", lab=LAB, ref=ref)
        assert (status, problem["code"]) == (404, "not_found"), ref


async def test_bad_parameters_are_one_sentence(fetch: Any, lab: dict[str, str]) -> None:
    for query in BAD_QUERIES:
        status, problem = await fetch("refs", **query)
        assert (status, problem["code"]) == (400, "bad_request"), query


async def test_the_time_stamp_of_jupyters_client_is_no_parameter(fetch: Any, lab: dict[str, str]) -> None:
    status, _ = await fetch("lab", lab=LAB, **{"1796030771297": ""})
    assert status == 200


async def test_a_doubled_parameter_is_refused(jp_fetch: Any, lab: dict[str, str]) -> None:
    doubled = [("lab", "labs"), ("lab", LAB)]
    with pytest.raises(tornado.httpclient.HTTPClientError, match="400"):
        await jp_fetch("harnesslab", "lab", params=doubled)


async def test_bad_bodies_are_one_sentence(jp_fetch: Any) -> None:
    for body in ("", "[]", "null", "{", '{"lab": 1}', "x" * 30_000):
        assert await refused(jp_fetch, "actions", body=body) == 400, body[:20]


async def test_hooks_and_monitors_of_a_repository_do_not_run(
    fetch: Any, lab: dict[str, str], jp_root_dir: Path
) -> None:
    folder, trap = jp_root_dir / LAB, jp_root_dir / "sprung"
    script = f"#!/bin/sh\ntouch '{trap}'\n"
    hooks = folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "post-merge", "pre-commit", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(script, encoding="utf-8")
        (hooks / name).chmod(0o755)
    monitor = jp_root_dir / "monitor"
    monitor.write_text(script, encoding="utf-8")
    monitor.chmod(0o755)
    labmaker.git(folder, "config", "core.fsmonitor", str(monitor))
    ref = f"refs/harnesslab/candidates/{lab['pending']}"
    _, plan = await fetch("plan", lab=LAB, action="promote", ref=ref)
    trap.unlink(missing_ok=True)
    body = {"lab": LAB, "action": "promote", "ref": ref, "why": "yes", "expect": plan["expect"]}
    status, _ = await fetch("actions", body)
    await fetch("lab", lab=LAB)
    assert status == 200 and not trap.exists()


@pytest.mark.skipif(os.name != "posix", reason="owners are a POSIX matter")
async def test_the_search_leaves_secrets_and_links_alone(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    labmaker.make_lab(jp_root_dir / ".hidden" / "lab")
    (jp_root_dir / "loop").symlink_to(jp_root_dir, target_is_directory=True)
    _, found = await fetch("labs", depth=6)
    assert [item["path"] for item in found["items"]] == ["labs/kitchen"]
