"""Names that the report's command and its call have in common, with nothing to import."""

INPUTS = ("old_gallery", "new_gallery", "queries", "old_queries")
"""Arguments that are vectors."""
