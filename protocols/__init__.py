"""The protocols and tracks: YAML files, read by benchmark.config.types."""
