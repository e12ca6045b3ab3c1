"""The leaderboard: records in, static pages out."""

from leaderboard.site import build

__all__ = ["build"]
