"""Claims of papers, as expressions over records, and verdicts of the records."""

from benchmark.studies.claims.language import Claims, read_claims
from benchmark.studies.claims.verdicts import Answer, Line, answers

__all__ = ["Answer", "Claims", "Line", "answers", "read_claims"]
