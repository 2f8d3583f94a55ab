"""A lab's repository as a GitPython ``Repo``, for people who want to look at it with a library that they know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harnesslab.errors import StoreError
from harnesslab.store.isolation import Isolation

if TYPE_CHECKING:
    import git


def open_gitpython(path: Path, *, trust: bool = False) -> git.Repo:
    """The repository in the folder ``path``.

    The git that GitPython starts sees none of the repository's own configuration. GitPython itself does (it runs hooks on
    ``repo.index.commit``), so a repository that configures programs is refused unless it is trusted. Raises StoreError.
    """
    isolation = Isolation(path)
    if not trust and (notices := isolation.notices()):
        raise StoreError(
            f"{notices[0]} GitPython may run it, so lab.git is refused; if it is yours, open the lab with trust=True.",
            cause="refused",
        )
    environment = isolation.environment()
    import git

    repo = git.Repo(path)
    repo.git.update_environment(**environment)
    return repo
