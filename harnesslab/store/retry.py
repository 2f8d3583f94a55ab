"""Re-applying an old change on today's baseline: a three-way merge without a checkout."""

from __future__ import annotations

from harnesslab.errors import StoreError
from harnesslab.store.git import Git
from harnesslab.store.objects import Commit, write_commit

MAX_CONFLICT_BYTES = 100_000


class RetryConflict(StoreError):
    """The change does not fit today's baseline. `paths`: where; `texts`: path to the text with conflict marks."""

    def __init__(self, message: str, paths: tuple[str, ...], texts: dict[str, str]):
        self.paths, self.texts = paths, texts
        super().__init__(message)


def reapply(git: Git, source: Commit, baseline: Commit, candidate_id: str) -> str:
    """The tree of `baseline` with the change that `source` made to its parent; `RetryConflict` if they clash."""
    if not source.parents:
        raise StoreError(f"Candidate {candidate_id} has no parent commit, so its change is not known.")
    # Made-up commits give git exactly the wanted common ancestor, whatever became of main in between.
    before = git.text("rev-parse", "--verify", "--end-of-options", f"{source.base}^{{tree}}")
    root = write_commit(git, before, (), "before the change")
    ours = write_commit(git, baseline.tree, (root,), "today's baseline")
    theirs = write_commit(git, source.tree, (root,), "the change")
    out = git.text("merge-tree", "--write-tree", "--name-only", "-z", ours, theirs, write=True, ok=(0, 1)).split("\0")
    tree, paths = out[0], []
    for path in out[1:]:
        if not path:  # the list of conflicted paths ends with an empty entry; messages follow
            break
        paths.append(path)
    if paths:
        names = ", ".join(paths[:5])
        texts = {path: _marked(git, f"{tree}:{path}") for path in paths}
        raise RetryConflict(
            f"Candidate {candidate_id} conflicts with today's baseline in {names}; apply its diff by hand.",
            tuple(paths),
            texts,
        )
    if tree == baseline.tree:
        raise StoreError(f"Today's baseline has the change of candidate {candidate_id} already.")
    return tree


def _marked(git: Git, name: str) -> str:
    found = git.resolve_many([name])[0]
    data = git.objects([found]).get(found, b"") if found else b""
    return data[:MAX_CONFLICT_BYTES].decode("utf-8", "replace")
