"""Labs as the store's tests make them."""

from tests.store.conftest import folder, git, no_identity, repo

__all__ = ["folder", "git", "no_identity", "repo"]
