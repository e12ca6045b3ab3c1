"""The leaderboard: records in, static pages out."""
