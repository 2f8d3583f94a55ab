"""Labs that no tool of ours would make: refs, notes, objects, settings and records that are odd, huge, or point elsewhere.

Each plant is `place(lab, outside)`; nothing below `outside` may be written, and nothing in the lab may keep a reader waiting.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

Place = Callable[[Path, Path], None]

MARKUP = "<img src=x onerror=\"window.hacked='yes'\">"


def _git(lab: Path, *args: str, data: bytes | None = None) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=Eve", "-c", "user.email=eve@x", "-c", "core.protectNTFS=false", *args],
        cwd=lab, input=data, capture_output=True, check=True, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
    )  # fmt: skip
    return done.stdout.decode("utf-8", "replace").strip()


def _tree(lab: Path, entries: list[tuple[str, bytes, str]]) -> str:
    """A tree object, written as it is: git checks neither names nor their order."""
    data = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries)
    return _git(lab, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", data=data)


def _blob(lab: Path, data: bytes) -> str:
    return _git(lab, "hash-object", "-w", "--stdin", data=data)


def _candidate(
    lab: Path, tree: str, message: str = "odd", ref: str = "refs/harnesslab/candidates/0dd000000000"
) -> None:
    commit = _git(lab, "commit-tree", tree, "-p", "refs/heads/main", "-m", message)
    _git(lab, "update-ref", ref, commit)


def _main(lab: Path, tree: str, message: str = "odd") -> None:
    _git(lab, "update-ref", "refs/heads/main", _git(lab, "commit-tree", tree, "-p", "refs/heads/main", "-m", message))


def _with(lab: Path, entries: list[tuple[str, bytes, str]]) -> str:
    """The baseline's tree with entries of its own."""
    lines = _git(lab, "ls-tree", "refs/heads/main").splitlines()
    own = [
        (head.split()[0], name.encode(), head.split()[2]) for head, _, name in (line.partition("\t") for line in lines)
    ]
    new = {name for _, name, _ in entries}
    return _tree(lab, sorted([entry for entry in own if entry[1] not in new] + entries, key=lambda each: each[1]))


def write(name: str, data: str | bytes) -> Place:
    """A file in the lab's folder; OUTSIDE stands for the folder outside."""

    def place(lab: Path, outside: Path) -> None:
        target = lab / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(data, str):
            target.write_text(data.replace("OUTSIDE", str(outside)), encoding="utf-8")
        else:
            target.write_bytes(data)

    return place


def config(text: str) -> Place:
    """More lines in the lab's configuration."""

    def place(lab: Path, outside: Path) -> None:
        with (lab / ".git" / "config").open("a", encoding="utf-8") as file:
            file.write(text.replace("OUTSIDE", str(outside)) + "\n")

    return place


def packed(*lines: str) -> Place:
    """Refs as a stranger may write them; OID is the baseline's commit."""

    def place(lab: Path, outside: Path) -> None:
        _git(lab, "pack-refs", "--all")
        oid = _git(lab, "rev-parse", "main")
        place = lab / ".git" / "packed-refs"
        own = [
            line for line in place.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
        ]  # not sorted any more
        place.write_text(
            "".join(f"{line}\n" for line in (*own, *(line.replace("OID", oid) for line in lines))), encoding="utf-8"
        )

    return place


def note(data: bytes) -> Place:
    """The same note on every candidate and on the baseline."""

    def place(lab: Path, outside: Path) -> None:
        (outside.parent / "note").write_bytes(data)
        refs = _git(lab, "for-each-ref", "--format=%(objectname)", "refs/harnesslab", "refs/heads/main").split()
        for commit in refs:
            _git(lab, "notes", "--ref=harnesslab", "add", "-f", "-C", _blob(lab, data), commit)

    return place


def candidate(*entries: tuple[str, bytes, bytes]) -> Place:
    """A candidate and a copy of it on the baseline's side, with entries (mode, name, content) that git would not add."""

    def place(lab: Path, outside: Path) -> None:
        oids = [
            (mode, name, "1" * 40 if mode == "160000" else _blob(lab, data.replace(b"OUTSIDE", str(outside).encode())))
            for mode, name, data in entries
        ]
        _candidate(lab, _with(lab, oids))

    return place


def baseline(*entries: tuple[str, bytes, bytes]) -> Place:
    """The same as the baseline itself."""

    def place(lab: Path, outside: Path) -> None:
        _main(
            lab,
            _with(
                lab,
                [
                    (
                        mode,
                        name,
                        "1" * 40 if mode == "160000" else _blob(lab, data.replace(b"OUTSIDE", str(outside).encode())),
                    )
                    for mode, name, data in entries
                ],
            ),
        )

    return place


def _bomb(lab: Path, outside: Path) -> None:
    """A few kilobytes that name a billion files."""
    tree = _tree(lab, [("100644", b"f%d" % n, _blob(lab, b"x")) for n in range(10)])
    for _ in range(5):
        tree = _tree(lab, [("40000", b"d%d" % n, tree) for n in range(10)])
    _candidate(lab, _with(lab, [("40000", b"skill", tree)]), "bomb")


def _many_files(lab: Path, outside: Path) -> None:
    blob = _blob(lab, b"a: 1\n")
    folder = _tree(lab, [("100644", b"f%05d.txt" % n, blob) for n in range(3000)])
    _candidate(lab, _with(lab, [("40000", b"more", folder)]))


def _deep_folders(lab: Path, outside: Path) -> None:
    tree = _tree(lab, [("100644", b"a.yaml", _blob(lab, b"a: 1\n"))])
    for _ in range(700):
        tree = _tree(lab, [("40000", b"d", tree)])
    _candidate(lab, _with(lab, [("40000", b"skill", tree)]))


def _yaml_bomb(lab: Path, outside: Path) -> None:
    """Forty aliases, each of which holds the one before twice."""
    lines = [f"b{number}: &b{number} [*b{number - 1}, *b{number - 1}]\n" for number in range(1, 40)]
    blob = _blob(lab, f"kind: prompt\nparams:\n  text: &b0 x\n{''.join(lines)}".encode())
    _main(lab, _with(lab, [("40000", b"contract", _tree(lab, [("100644", b"z.yaml", blob)]))]))


def _ref_to(kind: str) -> Place:
    def place(lab: Path, outside: Path) -> None:
        oid = {
            "blob": lambda: _blob(lab, b"x"),
            "tree": lambda: _git(lab, "rev-parse", "main^{tree}"),
            "tag": lambda: _git(lab, "mktag", data=f"object {_git(lab, 'rev-parse', 'main')}\ntype commit\ntag x\ntagger E <e@x> 0 +0000\n\nx\n".encode()),
            "nothing": lambda: "1" * 40,
        }[kind]()  # fmt: skip
        for ref in ("refs/harnesslab/candidates/0dd000000000", "refs/harnesslab/rejected/0dd000000001"):
            target = lab / ".git" / ref
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(oid + "\n", encoding="utf-8")

    return place


def _notes_to(kind: str) -> Place:
    def place(lab: Path, outside: Path) -> None:
        _git(lab, "pack-refs", "--all")
        oid = _blob(lab, b"x") if kind == "blob" else "1" * 40
        (lab / ".git" / "refs" / "notes").mkdir(parents=True, exist_ok=True)
        (lab / ".git" / "refs" / "notes" / "harnesslab").write_text(oid + "\n", encoding="utf-8")

    return place


def _pipe(name: str, text: str = "") -> Place:
    def place(lab: Path, outside: Path) -> None:
        os.mkfifo(lab / name)
        if text:
            config(text.replace("PIPE", str(lab / name)))(lab, outside)

    return place


def _triggers(lab: Path, outside: Path) -> None:
    (lab / ".harnesslab").mkdir(exist_ok=True)
    with contextlib.closing(sqlite3.connect(lab / ".harnesslab" / "lab.db")) as db, db:
        if not db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'runs'").fetchone()[0]:
            db.execute("CREATE TABLE runs (id TEXT)")
        db.execute(
            "CREATE TRIGGER evil AFTER INSERT ON runs BEGIN SELECT load_extension('/tmp/evil.so'); DELETE FROM runs; END"
        )


def _bad_runs(lab: Path, outside: Path) -> None:
    """Records of another program under our names, with ids that are paths."""
    from harnesslab.store import RunStore

    with contextlib.closing(RunStore.open(lab)) as runs:
        run = runs.begin_run("0" * 40, {"environment": MARKUP, "backbone": 5}, split="gate", backbone=MARKUP)
        runs.add_episode(run, {"task_id": MARKUP, "label": MARKUP}, [{"a": 1}])
    with contextlib.closing(sqlite3.connect(lab / ".harnesslab" / "lab.db")) as db, db:
        db.execute("UPDATE runs SET id = '../../../outside/x', meta = '[[', status = 'running'")
        db.execute("UPDATE episodes SET run_id = '../../../outside/x', fired = '5', extra = 'null'")
        db.execute("UPDATE traces SET data = x'00'")
        db.execute("INSERT INTO journal VALUES (3, 'epoch', '{\"a\": [', 0)")
        db.execute("INSERT INTO progress VALUES ('x', '<b>', 5, 1, 1e300, '[]')")
        db.execute("INSERT INTO events VALUES (1, 0, 'sealed', '[]')")


ODD: dict[str, Place] = {
    # refs
    "main is symbolic": write(".git/refs/heads/main", "ref: refs/harnesslab/elsewhere\n"),
    "main leads out": write(".git/refs/heads/main", "ref: ../../../outside/main\n"),
    "main is a loop": write(".git/refs/heads/main", "ref: refs/heads/main\n"),
    "main is garbage": write(".git/refs/heads/main", b"\xff\x00" * 50),
    "HEAD leads out": write(".git/HEAD", "ref: refs/heads/../../../outside/main\n"),
    "HEAD is an absolute path": write(".git/HEAD", "ref: OUTSIDE/mine.txt\n"),
    "HEAD is symbolic to a candidate": write(".git/HEAD", "ref: refs/harnesslab/candidates/0dd000000000\n"),
    "HEAD is garbage": write(".git/HEAD", b"\xff\x00garbage"),
    "a candidate leads out": write(".git/refs/harnesslab/candidates/0dd000000000", "ref: ../../../../outside/mine.txt\n"),
    "a candidate is the baseline": write(".git/refs/harnesslab/candidates/0dd000000000", "ref: refs/heads/main\n"),
    "refs to a blob": _ref_to("blob"), "refs to a tree": _ref_to("tree"), "refs to a tag": _ref_to("tag"), "refs to nothing": _ref_to("nothing"),
    "odd ids": packed(
        *(f"OID refs/harnesslab/candidates/{name}" for name in (
            "--upload-pack=touch", "-x", "$(touch%20x)", "<img/src=x>", "a'b\"c", "\u202egnp", "x" * 240, "deep/er", "ünï", "0dd00000000", "0dd0000000000", "0DD000000000", ";touch;",
        )),
    ),
    "refs out of packed-refs": packed("OID refs/harnesslab/candidates/../../../outside/x", "OID ../outside/x", "OID /etc/x", "garbage", "OID"),
    "many refs": packed(*(f"OID refs/harnesslab/rejected/{number:012d}" for number in range(5_000))),
    "many other refs": packed(*(f"OID refs/tags/t{number:07d}" for number in range(50_000))),
    # notes
    "notes are a blob": _notes_to("blob"), "notes are missing": _notes_to("nothing"),
    "a huge note": note(b'{"why": "' + b"x" * 6_000_000 + b'"}'), "a binary note": note(bytes(range(256)) * 100),
    "a note of markup": note(json.dumps({
        "state": "rejected", "reason": MARKUP, "who": MARKUP, "why": f"{MARKUP}\x1b[2J\u202e", "criterion": MARKUP, "decided_by": MARKUP,
        "flips": [{"task": MARKUP}], "metrics": {MARKUP: [MARKUP, MARKUP]}, "solved": {"baseline": [MARKUP], "candidate": [MARKUP]},
    }).encode()),
    "a deep note": note(b'{"a": ' * 100_000), "a note with a long number": note(b'{"delta": ' + b"9" * 100_000 + b"}"),
    "a note of other types": note(b'{"solved": {"baseline": {"a": 1}, "candidate": [[1]]}, "flips": {"a": 1}, "runs": 5, "statistics": [1], "cost": "x", "history": {"a": 1}}'),
    # objects
    "a link in a candidate": candidate(("120000", b"a.yaml", b"OUTSIDE/mine.txt")),
    "a link in the baseline": baseline(("120000", b"program.md", b"OUTSIDE/mine.txt")),
    "a linked memo in the baseline": baseline(("120000", b"learning.md", b"OUTSIDE/mine.txt")),
    "linked records in the baseline": baseline(("120000", b".harnesslab", b"OUTSIDE")),
    "a submodule in a candidate": candidate(("160000", b"sub", b""), ("100644", b".gitmodules", b'[submodule "sub"]\n\tpath = sub\n\turl = ext::sh -c touch% OUTSIDE/x\n\tupdate = !touch OUTSIDE/x\n')),
    "a submodule in the baseline": baseline(("160000", b"sub", b""), ("100644", b".gitmodules", b'[submodule "sub"]\n\tpath = sub\n\turl = -u./x\n\tupdate = !touch OUTSIDE/x\n')),
    "names that lead out": candidate(("100644", b"../outside.txt", b"x")), "a .git in a candidate": candidate(("100644", b".GIT", b"x")),
    "a backslash": candidate(("100644", b"..\\..\\outside.txt", b"x")), "a name with a line end": candidate(("100644", b"a\nb\x1b[2J", b"x")),
    "a name that is no UTF-8": candidate(("100644", b"\xff\xfe.yaml", b"x")), "the same name twice": candidate(("100644", b"a.yaml", b"1"), ("100644", b"a.yaml", b"2")),
    "a name of markup": candidate(("100644", b"<img src=x onerror=alert(1)>.yaml", b"x")), "a long name": candidate(("100644", b"x" * 300, b"x")),
    "a huge file": candidate(("100644", b"big.bin", b"\0" * 30_000_000)), "a huge harness": baseline(("100644", b"harness.toml", b"# " + b"x" * 30_000_000)),
    "a tree bomb": _bomb, "many files": _many_files, "deep folders": _deep_folders,
    "a manifest of markup": baseline(("100644", b"harness.toml", f"name = '''{MARKUP}'''\nformat = 1\n".encode())),
    "a manifest that is deep": baseline(("100644", b"harness.toml", b"format = 1\nx = " + b"[" * 50_000)),
    "a yaml bomb": _yaml_bomb,
    # attributes
    "an unknown encoding": baseline(("100644", b".gitattributes", b"* working-tree-encoding=nonsense\n")),
    "export-subst and ident": baseline(("100644", b".gitattributes", b"* export-subst ident merge=union diff=astextplain whitespace=x\n")),
    "a huge attributes file": baseline(("100644", b".gitattributes", b"* text\n" * 400_000)),
    "everything ignored": baseline(("100644", b".gitignore", b"*\n.*\n")),
    # settings
    "a pipe to include": _pipe("pipe", '[include]\n\tpath = "PIPE"'), "a pipe of patterns": _pipe("pipe", '[core]\n\texcludesFile = "PIPE"\n\tattributesFile = "PIPE"'),
    "patterns without end": config("[core]\n\texcludesFile = /dev/zero\n\tattributesFile = /dev/zero\n[mailmap]\n\tfile = /dev/zero"),
    "an include of itself": config("[include]\n\tpath = config"), "a worktree elsewhere": config("[core]\n\tworktree = OUTSIDE"),
    "a bare setting": config("[core]\n\tbare = true"), "a format of the future": config("[core]\n\trepositoryformatversion = 99"),
    "an extension of the future": config("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tunheard = of"),
    "an odd identity": config('[user]\n\tname = "<>\\n"\n\temail = "<>\\n"\n\tuseConfigOnly = true'),
    "odd line ends": config("[core]\n\tautocrlf = maybe\n\teol = sometimes\n\tsafecrlf = true"),
    "a sparse checkout": lambda lab, outside: (config("[core]\n\tsparseCheckout = true")(lab, outside), write(".git/info/sparse-checkout", "/nothing\n")(lab, outside))[0],
    "a huge configuration": config("# " + "x" * 2_000_000), "a configuration that is no UTF-8": write(".git/config", b"[core]\n\trepositoryformatversion = 0\n[user]\n\tname = \xff\xfe\n"),
    "a broken configuration": write(".git/config", "[core\n"),
    # files of git
    "objects elsewhere": write(".git/objects/info/alternates", "OUTSIDE\n/dev/zero\n../../../outside\n"),
    "objects from the net": write(".git/objects/info/http-alternates", "http://127.0.0.1:9/x\n"),
    "grafts": write(".git/info/grafts", "0" * 40 + "\n"), "a garbled shallow file": write(".git/shallow", "hello\n"), "a garbled index": write(".git/index", b"DIRC garbage"),
    "a garbled commit graph": write(".git/objects/info/commit-graph", b"CGPH garbage"), "a garbled pack": write(".git/objects/pack/pack-" + "1" * 40 + ".idx", b"\xfftOc garbage"),
    "a pipe as the exclude file": _pipe(".git/info/exclude.d"), "a pipe as a patch": _pipe("skill/pipe.yaml"),
    "an attributes file that is a pipe": _pipe("skill/.gitattributes"), "a merge in progress": write(".git/MERGE_HEAD", "0" * 40 + "\n"),
    # records
    "triggers in the database": _triggers, "odd records": _bad_runs, "a pipe as the note": lambda lab, outside: ((lab / ".harnesslab").mkdir(exist_ok=True), os.mkfifo(lab / ".harnesslab" / "x.json"))[0],
}  # fmt: skip
