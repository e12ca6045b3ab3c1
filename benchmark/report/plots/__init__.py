"""Plots through seaborn, as PNG and SVG, a kind a module; of records by ``records.plot``."""
