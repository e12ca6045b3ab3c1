"""Tables of a gallery that is backfilled."""

from pathlib import Path

from benchmark.records.files import read_records
from benchmark.report.tables import backfilling

COMMITTED = Path(__file__).parents[3] / "results" / "measured" / "backfill" / "grocery"


def test_csv_lines_say_what_diverged():
    folders = (COMMITTED / name for name in ("bct", "fct"))
    records = [record for folder in folders for record in read_records(folder)][:12]
    assert {record.method for record in records} == {"bct", "fct"}
    marked = [
        record.model_copy(update={"diverged": {"fit fct (seed 0)": "its loss rises from 2 to 3"}})
        if (record.method, record.seed) == ("fct", 0) else record
        for record in records
    ]  # fmt: skip
    tables = backfilling.make_tables(marked)
    reasons = {(line[3], line[6]) for table in tables for line in table.values}
    assert reasons == {
        ("bct", ""), ("fct", "a training diverged: the scores say nothing of the method"),
    }  # fmt: skip
