"""Maps fitted on pairs of vectors."""
