"""Orders of papers beside ours: pairs are counted by paper and by what our pictures are."""

from itertools import permutations

from support.records import make_record
from support.sites import boards_of

from benchmark.records.published import read_published
from benchmark.studies.transfer.compare import Agreement
from leaderboard.pages.evidence import PaperBeside, pairs_table, papers_beside

TRACKS = {"rendered": "glyphs", "photographs": "cifar100-small"}


def agreement(paper: str, same: int, pairs: int) -> Agreement:
    return Agreement(paper, "Table 1", "map", (), (), same, pairs)


def beside(paper: str, kind: str, same: int, pairs: int) -> PaperBeside:
    (board,) = boards_of([make_record("bct", track=TRACKS[kind])])
    return PaperBeside(agreement(paper, same, pairs), paper.upper(), board)


def test_pairs_are_summed_by_paper_and_kind():
    found = [
        beside("bct", "rendered", 1, 3), beside("bct", "rendered", 2, 3),
        beside("fct", "photographs", 6, 6), beside("bct", "photographs", 0, 1),
    ]  # fmt: skip
    table = pairs_table(found)
    assert [column.head for column in table.blocks[0].columns] == [
        "on photographs", "on rendered pictures",
    ]  # fmt: skip
    rows = {
        row.labels[0].text: [cell.text for block in row.cells for cell in block]
        for row in table.rows
    }
    assert rows == {"BCT": ["0 of 1", "3 of 6"], "FCT": ["6 of 6", ""]}
    assert table.rows[0].labels[0].href == "published/bct.html"


def test_the_verdict_of_a_table():
    same = [agreement("bct", n, 3).verdict for n in (0, 2, 3)]
    assert same == ["no", "2 of 3 pairs", "yes"]


def test_a_measured_tie_counts_alike_in_every_order():
    """The paper puts these methods in an order; here two of them, or all, have the same score."""
    numbers = read_published()
    for tied, expected in ((0.5, 0), (0.6, 3)):
        scores = {"bct": tied, "bct-extra": 0.5, "contrast": 0.5, "bt2": tied}
        counted = set()
        for names in permutations(scores):
            records = [make_record(m, scores[m], protocol="extended-class") for m in names]
            records.append(make_record("independent", protocol="extended-class"))
            found = [each.found for each in papers_beside(numbers, boards_of(records))]
            counted.add(tuple((f.same, f.pairs) for f in found if f.table == "Table 1, cifar100"))
        assert counted == {((expected, 6),)}
