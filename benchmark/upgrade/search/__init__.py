"""Strategies as lists of results, searched exactly or by an index."""
