"""Small training data and a trainer."""

from support.training import data, one_thread, spec, trainer  # noqa: F401
