"""The leaderboard: records in, static pages out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leaderboard.site import build, build_folder

__all__ = ["build", "build_folder"]


def __getattr__(name: str) -> Any:
    """The calls, imported when they are used."""
    if name not in __all__:
        raise AttributeError(f"module 'leaderboard' has no attribute '{name}'")
    from leaderboard import site

    return getattr(site, name)
