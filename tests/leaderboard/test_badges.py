"""A record that was trained again carries its badge on its own page and on the board's."""

import re

from support.records import make_record
from support.sites import write

from benchmark.records.files import read_record
from benchmark.records.verified import Verified, verification_path, write_verification
from leaderboard.site import build_folder


def shown(root, out):
    """Text of every page that speaks of a verified record, by its address."""
    build_folder(root, out)
    pages = {str(path.relative_to(out)): path.read_text() for path in out.rglob("*.html")}
    return {name: text for name, text in pages.items() if 'id="verified"' in text}


def test_a_badge_is_shown_and_a_damaged_one_is_not(tmp_path):
    some = [make_record("bct", seed=seed) for seed in range(3)]
    root = write([*some, make_record("independent")], tmp_path / "runs")
    for path in (record.path(root) for record in some[1:]):
        badge = Verified(
            record=str(read_record(path).seal), date="2026-01-31", machine={"cpu": "A <b> CPU"},
            bit_for_bit=True, points=0.0,
        )  # fmt: skip
        write_verification(path, badge)
    pages = shown(root, tmp_path / "site")
    assert len(pages) == 2
    for text in pages.values():
        assert "erified 2026-01-31, bit for bit, on A &lt;b&gt; CPU" in text
    (board,) = [text for text in pages.values() if "Trained again and compared:" in text]
    (told,) = re.findall(r'id="verified">(.*?)</dl>', board, re.S)
    assert told.count("<dt>") == 1 and " ".join(re.sub("<.*?>", "", told).split()).endswith(
        "CPU bct, seeds 1, 2"
    )
    verification_path(some[1].path(root)).unlink()
    damaged = verification_path(path)
    damaged.write_text(damaged.read_text().replace("2026", "2027"))
    assert shown(root, tmp_path / "site") == {}
    _, skipped = build_folder(root, tmp_path / "site")
    assert [each.file for each in skipped] == [str(damaged.relative_to(root))]
