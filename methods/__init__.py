"""The methods: one file an adapter, found by file name."""
