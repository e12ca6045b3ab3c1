"""Columns of the records of cells, and the samples and the metric that they are of."""

SIZES = (300, 1000, 3000)
"""Items of the random sample."""
DRAWS = 3
METRIC = "ndcg_at_10"
SCALE = 10_000
"""Of numbers in a record, which are whole ones."""
COLUMNS = (
    "score", "low", "high", "sampling", "gain_low", "gain_high",
    "same", "other", "other_low", "other_high", "other_gain_low", "other_gain_high",
)  # fmt: skip
"""Of a strategy: what the report says of it, then the truth. A gain is over keeping the old model;
its value is a difference of scores. ``sampling`` is None where nothing is estimated."""
