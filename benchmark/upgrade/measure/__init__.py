"""Scores of strategies with their intervals."""
