"""Dockerfiles on bubblewrap: what is followed is followed as Docker does, and what is not is named with its line."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

pytest.importorskip("yaml")
pytest.importorskip("e2b_dockerfile_utils")
pytest.importorskip("ctrf")

from harnesslab.errors import EnvironmentFault
from harnesslab_envs.sandbox import Machine, missing
from harnesslab_envs.terminal.building import Builder
from harnesslab_envs.terminal.dockerfile import Dockerfile
from harnesslab_envs.terminal.spec import HARBOR, Files, Spec, Unplayable, read_files

confined = pytest.mark.skipif(bool(missing()), reason=missing())


def spec(text: str, context: Files | None = None, **more: object) -> Spec:
    files = context or Files()
    return Spec("one", "one", HARBOR, Path("/tasks/one"), (), text, "environment/Dockerfile", files, **more)  # type: ignore[arg-type]


def archive(name: str, text: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        entry = tarfile.TarInfo(name)
        entry.size = len(text)
        packed.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


CONTEXT = Files(
    {
        "src/a.txt": b"a\n",
        "src/skip.log": b"x\n",
        "src/sub/b.txt": b"b\n",
        "src/run.sh": b"#!/bin/sh\necho ran\n",
        "lone.md": b"lone\n",
        "odd [1].txt": b"odd\n",
        "pack.tgz": archive("in/p.txt", "packed\n"),
        ".dockerignore": b"# not these\n**/*.log\n",
    },
    frozenset(("src/run.sh",)),
    {"src/link": "a.txt"},
    frozenset(("src", "src/sub", "src/empty")),
)

LONG = r"""# syntax=docker/dockerfile:1
ARG BASE=python:3.13 \
    TAG=slim
FROM ${BASE}-${TAG} AS build
ARG TAG
RUN mkdir -p /out/deep && echo "built $TAG" > /out/deep/a.txt && ln -s a.txt /out/deep/link \
    && printf '#!/bin/sh\necho tool\n' > /out/tool && chmod 755 /out/tool

FROM build AS never
RUN exit 9

FROM build
COPY --from=build /out/tool /usr/local/bin/
COPY --from=0 /out/deep /srv/deep
WORKDIR /srv/place
WORKDIR sub/$NOPE/x
ENV A=1 B="two words" C=${A:-unset}x
ENV OLD style  value
ENV D=${C:+yes} E=\$A F='$A' P=$PATH:/more
ARG X=9
ARG Y
ARG TARGETARCH
RUN cat > tool.txt <<'EOF'
hello $A
EOF
RUN cat > tool2.txt <<EOF && cat >> tool2.txt <<-"TWO"
hello $B $X [$Y] $TARGETARCH
EOF
	second $A
	TWO
RUN <<EOF
set -e
echo one > multi.txt
echo "$0" >> multi.txt
EOF
RUN <<PY
#!/usr/bin/env python3
open("py.txt", "w").write("from python")
PY
SHELL ["/bin/bash", "-ec"]
RUN [[ a == a ]] && echo "${BASH_VERSION:+bash}" > bash.txt
RUN ["/usr/bin/tee", "$A"]
COPY <<EOF <<'RAW' made/
expanded $A "quoted"
EOF
raw $A
RAW
COPY src/*.txt lone.md none*.md texts/
COPY --from=build /out/too* /out/none* /opt/some/
COPY src copied
COPY src/a.txt renamed.txt
COPY src/a.txt copied
COPY ["odd [1].txt", "odd one.txt"]
COPY --chmod=750 --chown=1000:1000 src/sub/b.txt owned.txt
ADD pack.tgz unpacked/
COPY pack.tgz kept.tgz
COPY --exclude=*.txt src/sub src/run.sh some/
RUN useradd -m -u 1234 dev \
    # a comment within a command

    && chown dev .
USER dev
RUN whoami > who.txt; echo $HOME >> who.txt
USER root
RUN --mount=type=cache,target=/root/.cache/x echo ok > /root/.cache/x/y
VOLUME /data
EXPOSE 80
LABEL a=b
HEALTHCHECK CMD true
STOPSIGNAL SIGTERM
ONBUILD RUN false
ENTRYPOINT ["/bin/bash"]
CMD ["sleep", "1"]
USER dev
"""


@pytest.fixture(scope="module")
def built() -> Iterator[Machine]:
    """One machine, built from a Dockerfile that has nearly everything."""
    if missing():
        pytest.skip(missing())
    with Machine() as machine:
        Builder(Dockerfile(spec(LONG, CONTEXT)), Machine).build(machine)
        yield machine


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("pwd", "/srv/place/sub/x"),
        ("cat tool.txt", "hello $A"),
        ("cat tool2.txt", "hello two words 9 [] amd64\nsecond $A"),
        ("cat multi.txt", "one\n/bin/sh"),
        ("cat py.txt", "from python"),
        ("cat bash.txt", "bash"),
        ('echo "$A|$B|$C|$OLD|$D|$E|$F|$X|$TAG"', "1|two words|unsetx|style  value|yes|$A|$A||"),
        ('[ "$P" = "$PATH:/more" ] && echo same', "same"),
        ("cat made/EOF made/RAW", 'expanded 1 "quoted"\nraw $A'),
        ("ls texts /opt/some", "/opt/some:\ntool\n\ntexts:\na.txt\nlone.md"),
        ("cd copied && find . | sort", ".\n./a.txt\n./empty\n./link\n./run.sh\n./sub\n./sub/b.txt"),
        ("./copied/run.sh; readlink copied/link", "ran\na.txt"),
        ("cat renamed.txt 'odd one.txt'", "a\nodd"),
        ("stat -c '%a %u %g' owned.txt renamed.txt", "750 1000 1000\n644 0 0"),
        ("cat unpacked/in/p.txt; ls kept.tgz", "packed\nkept.tgz"),
        ("ls some", "run.sh"),
        ("cat who.txt; id -un; echo $HOME $USER", "dev\n/home/dev\ndev\n/home/dev dev"),
        ("tool; cat /srv/deep/link; readlink /srv/deep/link", "tool\nbuilt slim\na.txt"),
        ("touch mine && stat -c %U mine; touch /usr/no 2>&1 | grep -o denied", "dev\ndenied"),
        ("ls -d /data; ls /root/.cache/x 2>/dev/null | wc -l", "/data\n0"),
        ("ls /opt/harnesslab-standins /tmp/.harnesslab* 2>/dev/null | wc -l", "0"),
    ],
)
def test_what_a_dockerfile_leaves(built: Machine, command: str, printed: str) -> None:
    assert built.run(f"cd /srv/place/sub/x; ( {command} )").output.strip() == printed


REFUSED: Mapping[str, tuple[str, str]] = {
    "no FROM": ("RUN true\n", "line 1: RUN comes before the first FROM"),
    "only ARG": ("ARG A=1\n", "has no FROM"),
    "unknown": ("FROM x\nRUNN true\n", "line 2: cannot be read: unknown instruction: RUNN"),
    "unterminated": ("FROM x\nRUN cat <<EOF\nx\n", "line 2: cannot be read: unterminated heredoc"),
    "an image": ("FROM x\nRUN true\nCOPY --from=ghcr.io/a/b /a /b\n", "line 3: copies from the image ghcr.io/a/b"),
    "a later stage": ("FROM x\nCOPY --from=b /a /b\nFROM y AS b\n FROM 0\n", "line 2: copies from the image b"),
    "a URL": ("FROM x\nADD https://example.com/a /a\n", "line 2: .* needs the network"),
    "git": ("FROM x\nADD git@github.com:a/b.git /a\n", "line 2: .* needs the network"),
    "bind": ("FROM x\nRUN --mount=type=bind,source=a,target=b true\n", "line 2: RUN --mount=type=bind"),
    "secret": ("FROM x\nRUN --mount=type=secret,id=a true\n", "line 2: RUN --mount=type=secret"),
    "parents": ("FROM x\nCOPY --parents a b/\n", "line 2: COPY --parents is not supported"),
    "entrypoint": ('FROM x\nENTRYPOINT ["/start.sh"]\n', "line 2: .*would run before the agent"),
    "entrypoint, shell": ("FROM x\nENTRYPOINT service x start && bash\n", "line 2: .*would run before the agent"),
    "entrypoint, quotes": ("FROM x\nENTRYPOINT echo 'a\n", "line 2: .*would run before the agent"),
    "one word": ("FROM x\nCOPY a\n", "line 2: write COPY as"),
    "shell": ("FROM x\nSHELL bash\n", "line 2"),
    "onbuild": ("FROM x AS a\nONBUILD RUN true\nFROM a\n", "line 2: ONBUILD"),
    "empty": ("", "has no FROM"),
    "only a comment": ("# FROM x\n", "has no FROM"),
    "no folder": ("FROM x\nWORKDIR\n", "line 2: WORKDIR needs a value"),
    "no user": ("FROM x\nUSER\n", "line 2: USER needs a value"),
    "no variable": ("FROM x\nENV\n", "line 2: ENV needs a value"),
    "no argument": ("FROM x\nARG\n", "line 2: ARG needs a value"),
    "no volume": ("FROM x\nVOLUME []\n", "line 2: VOLUME needs a value"),
    "no shell": ("FROM x\nSHELL []\n", "line 2: SHELL needs a value"),
    "no command": ("FROM x\nRUN []\n", "line 2: RUN needs a value"),
    "entrypoint of a stage below": (
        'FROM x AS a\nENTRYPOINT ["/start.sh"]\nFROM a\nRUN true\n',
        "line 2: .*would run before the agent",
    ),
    "windows": ("# escape=~\nFROM x\n", "cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_followed_is_named_when_the_task_is_read(case: str) -> None:
    text, message = REFUSED[case]
    with pytest.raises(Unplayable, match=f"/tasks/one/environment/Dockerfile.*{message}"):
        Dockerfile(spec(text))


@pytest.mark.parametrize(
    "text",
    [
        "from x\nrun true\n",
        "FROM --platform=linux/amd64 x\r\nRUN true\r\n",
        "# escape=`\nFROM x\nRUN true `\n  && true\n",
        "ARG V\nFROM x:${V:-1}\n",
        'FROM x\nENTRYPOINT ["/bin/sh", "-c"]\n',
        'FROM x\nENTRYPOINT []\nCMD ["tail", "-f", "/dev/null"]\n',
        'FROM x\nENTRYPOINT ["/start.sh"]\nENTRYPOINT []\n',
        'FROM x AS a\nENTRYPOINT ["/start.sh"]\nFROM a\nENTRYPOINT ["bash", "-c"]\n',
        'FROM x AS a\nENTRYPOINT ["/start.sh"]\nFROM y\nCOPY --from=a /a /b\n',
        'FROM x\nENTRYPOINT ["/usr/bin/tini", "-g", "--"]\n',
        "FROM x\nENTRYPOINT dumb-init -- bash\n",
        "FROM unused\nCOPY --from=ghcr.io/a/b /a /b\nFROM x\n",
        "FROM x\nCOPY --link a b\n",
    ],
)
def test_what_is_no_fault_is_read(text: str) -> None:
    Dockerfile(spec(text))


FAILS: Mapping[str, tuple[str, str]] = {
    "status": ("FROM x\n\nRUN echo so sad >&2; exit 7\n", "line 3, 'RUN echo so sad .*': exit status 7: 'so sad'"),
    "heredoc": ("FROM x\nRUN <<EOF\nset -e\nfalse\necho no\nEOF\n", "line 2, 'RUN <<EOF': exit status 1"),
    "no file": ("FROM x\nCOPY none.txt /a\n", "line 2, .*: there is no 'none.txt' to copy"),
    "a URL in a variable": ("FROM x\nENV U=https://example.com/a\nADD $U /a\n", "line 3, .*: it needs the network"),
    "ignored": ("FROM x\nCOPY src/skip.log /a\n", "line 2, .*: there is no 'src/skip.log'"),
    "outside": ("FROM x\nCOPY ../../etc/passwd /a\n", "line 2, .*: there is no"),
    "several": ("FROM x\nCOPY lone.md src /a\n", "line 2, .*a target that ends with '/'"),
    "owner": ("FROM x\nCOPY --chown=nobody-here lone.md /a\n", "line 2, .*invalid"),
    "user": ("FROM x\nUSER ghost\n", "its user 'ghost' cannot be taken: there is no user ghost"),
    "user of RUN": ("FROM x\nUSER ghost\nRUN true\n", "line 3, 'RUN true': exit status 126: .*there is no user ghost"),
    "package": (
        "FROM x\nRUN apt-get update && apt-get install -y no-such-thing\n",
        "line 2, .*Debian package no-such-thing",
    ),
    "pip": ("FROM x\nRUN pip install no-such-module==1\n", "line 2, .*Python package no-such-module==1"),
    "other stage": ("FROM x AS a\nRUN exit 5\nFROM y\nCOPY --from=a /x /y\n", "line 2, 'RUN exit 5': exit status 5"),
    "not in stage": ("FROM x AS a\nFROM y\nCOPY --from=a /nowhere /y\n", "line 3, .*there is no '/nowhere' to copy"),
    "substitution": ('FROM x\nENV A="${B:?must be set}"\n', "line 2: .*must be set"),
    "program": ('FROM x\nRUN ["no-program"]\n', "line 2, .*exit status 127"),
}


@confined
@pytest.mark.parametrize("case", FAILS)
def test_a_line_that_fails_is_named_with_what_it_said(case: str) -> None:
    text, message = FAILS[case]
    with (
        Machine() as machine,
        pytest.raises(EnvironmentFault, match=f"the task one cannot be (built|played).*{message}"),
    ):
        Builder(Dockerfile(spec(text, CONTEXT)), Machine).build(machine)


@confined
def test_the_builds_timeout_is_kept() -> None:
    text = "FROM x\nRUN true\nRUN sleep 20\n"
    with Machine() as machine, pytest.raises(EnvironmentFault, match=r"line 3, .*more than 1.5 s"):
        Builder(Dockerfile(spec(text, build_seconds=1.5)), Machine).build(machine)


@confined
def test_what_is_here_counts_as_installed(task_machine: Callable[[str], Machine]) -> None:
    machine = task_machine(
        "FROM x\nRUN apt-get update && apt-get install -y bash coreutils && rm -rf /var/lib/apt/lists/*\n"
    )
    assert machine.run("true").code == 0


@confined
def test_without_workdir_it_is_the_root_and_settings_add_to_it(task_machine: Callable[[str], Machine]) -> None:
    assert task_machine("FROM x\n").run("pwd").output == "/\n"


@pytest.fixture
def task_machine() -> Iterator[Callable[[str], Machine]]:
    machine = Machine()

    def build(text: str) -> Machine:
        Builder(Dockerfile(spec(text)), Machine).build(machine)
        return machine

    yield build
    machine.close()


def test_links_that_lead_out_of_a_folder_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_text("kept", "utf-8")
    for name, target in (("out", "../secret"), ("whole", "/etc/hostname"), ("inside", "file")):
        (tmp_path / "in" / name).symlink_to(target)
    (tmp_path / "in" / "file").write_text("x", "utf-8")
    read = read_files(tmp_path / "in", {})
    assert set(read.content) == {"file"} and dict(read.links) == {"inside": "file"}
