"""The report as JSON, tables and a page."""
