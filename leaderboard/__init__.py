"""The leaderboard: records in, static pages out; :mod:`leaderboard.site` builds them."""
