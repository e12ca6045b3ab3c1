"""CompatBench: the benchmark of backward-compatible embedding training."""

__version__ = "0.1.0"
