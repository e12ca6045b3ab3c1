"""Tables and names of files of anybody's images; and links among them."""

import csv
import shutil
import time
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import small_sets
from support.command import call
from support.pictures import write_noise
from support.refused import refused_data
from support.toy_runs import run_below

from benchmark.data.folder import Folder
from benchmark.data.listing import Pattern, of_table
from benchmark.errors import BenchError

CLASSES = [f"c{i:02d}" for i in range(16)]
NAMES = r"(?P<class>c\d+)/(?P<group>day|night)-cam(?P<camera>\d)-\d\.png"


@pytest.fixture(scope="module")
def seen_by_cameras(tmp_path_factory):
    """Sixteen classes, a third of them by night, each twice by each of two cameras."""
    root = tmp_path_factory.mktemp("photos")
    for i, name in enumerate(CLASSES):
        for camera in "12":
            for n in "01":
                group = "night" if i % 3 == 0 else "day"
                color = (15 * i, 255 - 15 * i, 100)
                write_noise(root / name / f"{group}-cam{camera}-{n}.png", color)
    return root


def write_table(root, rows, name="items.csv"):
    """A table of some rows, whose keys are its header."""
    with (root / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return root


def row(name, n, part, **more):
    return {"file": f"{name}-{n}.png", "class": name, "part": part, **more}


@pytest.fixture
def listed(tmp_path):
    """Images in one folder; a table says everything of them."""
    rows = []
    for i, name in enumerate(CLASSES):
        parts = (
            ("train", "train", "seen", "seen") if i < 12 else ("query", "gallery", "test", "test")
        )
        for n, part in enumerate(parts):
            write_noise(tmp_path / f"{name}-{n}.png", (10 * i, 100, 200))
            group = "left" if i % 4 == 0 else "right"
            rows.append(row(name, n, part, camera=f"cam {n % 2}", group=group))
    write_noise(tmp_path / "not-in-the-table.png")
    return write_table(tmp_path, rows), rows


def test_a_table_says_class_part_camera_and_group(listed, check):
    root, rows = listed
    dataset = Folder().load(root)
    check(dataset)
    assert len(dataset.train) == 24 and set(dataset.class_names[:12]) == set(CLASSES[:12])
    test, seen = dataset.evaluations["test"], dataset.evaluations["seen"]
    assert (len(test), len(test.query), len(test.gallery)) == (16, 12, 12)
    assert (len(seen), len(seen.query), len(seen.gallery)) == (24, 24, 24)
    assert set(test.query.tolist()) & set(test.gallery.tolist()) != set()
    of_class = dict(zip(dataset.class_names, dataset.class_groups, strict=True))
    assert of_class == {r["class"]: r["group"] for r in rows}
    for label, camera, group in zip(test.labels, test.camera, test.group, strict=True):
        assert test.group_names[group] == of_class[dataset.class_names[label]]
        assert camera in (0, 1)
    assert np.bincount(test.camera).tolist() == [8, 8]
    assert dataset.facts["layout"] == "table items.csv" and dataset.facts["cameras"] == 2


def test_names_of_files_say_camera_and_group(seen_by_cameras, check):
    dataset = Folder(pattern=NAMES).load(seen_by_cameras)
    check(dataset)
    test = dataset.evaluations["test"]
    assert set(test.camera.tolist()) == {0, 1} and test.group_names == ("day", "night")
    for name, group in zip(dataset.class_names, dataset.class_groups, strict=True):
        assert (group == "night") == (CLASSES.index(name) % 3 == 0)
    plain = Folder().load(seen_by_cameras)
    assert plain.class_names == dataset.class_names
    assert len(set(plain.evaluations["test"].camera.tolist())) == len(plain.evaluations["test"])


def test_folders_of_parts_stay_where_nothing_else_says_them(tmp_path):
    for part, classes in (("train", "abcd"), ("gallery", "xyz"), ("query", "xyz"), ("seen", "ab")):
        for c in classes:
            for i in range(2):
                write_noise(tmp_path / part / c / f"cam{i}.png")
    plain = Folder().load(tmp_path)
    said = Folder(pattern=r".*/cam(?P<camera>\d)\.png").load(tmp_path)
    assert plain.class_names == said.class_names
    for name in ("test", "seen"):
        one, other = plain.evaluations[name], said.evaluations[name]
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.query, other.query)
    assert len(plain.evaluations["seen"]) == 4
    write_noise(tmp_path / "seen" / "x" / "0.png")
    write_noise(tmp_path / "seen" / "x" / "1.png")
    refused(tmp_path, "seen: expected a class of train, got x")


def test_more_beside_the_folders_of_parts_is_refused(tmp_path):
    """They would be classes, or be left out."""
    root = small_sets.parted(tmp_path)
    every = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*.*"))]
    said = [{"file": name, "camera": "1"} for name in every]
    for extra in (root / "val", root / "loose.png"):
        write_noise(extra if extra.suffix else extra / "x" / "0.png")
        words = f"{extra}: unexpected beside train, gallery, query: expected at most seen"
        refused(root, words)
        refused(root, words, pattern="(?:.*/)?(?P<camera>[^/]+)")
        Folder().load(write_table(root, said))  # what the table does not list is not read
        more = "loose.png" if extra.suffix else "val/x/0.png"
        write_table(root, [*said, {"file": more, "camera": "1"}])
        refused(root, words)
        (root / "items.csv").unlink()
        if extra.suffix:
            extra.unlink()
        else:
            shutil.rmtree(extra)


def test_the_order_of_the_lines_does_not_matter(listed):
    root, rows = listed
    base = Folder().load(root)
    write_table(root, rows[::-1])
    assert Folder().load(root).fingerprint() == base.fingerprint()


def test_the_source_follows_the_table(listed):
    root, rows = listed
    base = Folder().source(root)
    rows[0]["camera"] = "cam 1"
    write_table(root, rows)
    assert Folder().source(root) != base


# --- protocols that need more than classes


def test_what_protocols_need_is_looked_for(listed, seen_by_cameras, tmp_path):
    def dry(*words):
        return call("run", "-t", "folder", "--dry-run", *words)

    groups = ("--set", "track.groups={scarce: [left], home: [right], away: [left]}")
    for protocol in ("market1501", "class-range", "unseen", "bias", "out-of-domain", "disjoint"):
        code, out, err = dry("-p", protocol, "--data-root", listed[0], *groups)
        assert code == 0 and " stages, " in out, err
        code, out, err = dry("-p", protocol, "--data-root", seen_by_cameras, *groups)
        assert code == 2 and "items.csv in the data root, or data.pattern, may say" in err
    words = ("-p", "market1501", "--set", f"data.pattern='{NAMES}'")
    for place in ((), ("--data-root", seen_by_cameras)):
        assert dry(*words, *place)[0] == 0
    code, _, err = dry("-p", "bias", "--data-root", listed[0])
    assert code == 2 and "no group 'scarce'; it names none (track.groups)" in err


@pytest.mark.parametrize(
    ("protocol", "scores"),
    [("market1501", {"minp"}), ("bias", {"group_scarce__cmc_at_1", "group_others__cmc_at_1"})],
)
def test_such_protocols_run_on_own_images(seen_by_cameras, tmp_path, small, protocol, scores):
    settings = small | {
        "data.pattern": NAMES, "data.image_size": 16, "recipe.batch_size": 8,
        "recipe.transform_steps": 5,
    }  # fmt: skip
    if protocol == "bias":
        settings |= {"track.groups": {"scarce": ["night"]}, "old.thinned": {"scarce": 0.5}}
    record = run_below(
        tmp_path, ["procrustes"], protocol, "folder", data_root=seen_by_cameras, settings=settings
    )[-1]
    assert record.status == "done" and scores <= set(record.scores["new/old"])
    assert record.dataset.facts["groups"] == 2


# --- what is refused


refused = partial(refused_data, "folder")


def test_wrong_bytes_and_names_of_tables(listed):
    root, _ = listed
    refused(root, "other.csv: data.items: there is no such table", items="other.csv")
    refused(root, "items: expected a file's name", items="../items.csv")
    refused(root, "expected a table or data.pattern, got both", pattern=NAMES)
    (root / "items.csv").write_bytes(b"file,class\ncaf\xe9.png,a\n")
    refused(root, "expected a CSV table in UTF-8")


def test_groups_whose_scores_would_have_one_name_are_refused(listed):
    root, rows = listed
    for row in rows:
        if row["class"] == rows[0]["class"]:
            row["group"] = row["group"].upper()
    write_table(root, rows)
    refused(root, "groups: expected names that differ by more than case, spaces and _, got")


def test_a_class_has_one_group_and_a_photograph_one_camera(listed):
    root, rows = listed
    rows[0]["group"] = "right"
    write_table(root, rows)
    refused(root, "class c00: expected one group, got right and left")
    with pytest.raises(BenchError, match="class c00: expected one group"):
        Folder().files(root)  # by which a plan tells it, too
    rows[0]["group"] = "left"
    write_table(root, rows)
    (root / "c13-0.png").write_bytes((root / "c13-1.png").read_bytes())
    refused(root, "expected camera cam 1 as of", "which is the same photograph, got cam 0")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "expected a regular expression of RE2: missing )"),
        ("(?P<class>a)(?=b)", "expected a regular expression of RE2: invalid perl operator"),
        ("(a)(?P<class>b)", "contains unnamed groups, write (?:...)"),
        (".*", "expected named groups, (?P<class>...), of class, camera, group, part"),
        ("(?P<clas>.*)", "unknown group 'clas'; did you mean 'class'?"),
        ("(?P<class>.*)" + "x" * 1000, "expected at most 1000 letters"),
        (r"(?P<class>c\d+)/day.*", "expected a path that data.pattern matches"),
        (r"(?P<class>c\d+)/(?P<camera>x?).*", "camera: expected a name of"),
    ],
)
def test_wrong_patterns(seen_by_cameras, pattern, words, capfd):
    refused(seen_by_cameras, words, pattern=pattern)
    assert capfd.readouterr().err == "", "RE2 writes errors of its own"


def test_no_pattern_is_slow():
    """It would take the standard library longer than the world is old."""
    start = time.process_time()  # other programs may have the processor meanwhile
    assert Pattern("(?P<class>(?:a+)+)b").groups(["a" * 1000]) == [None]
    assert time.process_time() - start < 10


# --- links


@pytest.fixture
def flat(tmp_path):
    return small_sets.flat(tmp_path / "root", n=2)


def test_a_folder_reached_twice_is_refused(flat):
    (flat / "g").symlink_to("a")
    refused(flat, f"{flat / 'g'}: is the same folder as {flat / 'a'}: expected each folder once")
    (flat / "g").unlink()
    (flat / "b" / "more").symlink_to(flat / "a")
    refused(flat, f"{flat / 'b' / 'more'}: is the same folder as {flat / 'a'}")
    (flat / "b" / "more").unlink()
    (flat / "c" / "loop").symlink_to(flat / "c")
    refused(flat, "c/loop: is the same folder as")


def test_a_link_that_leads_nowhere_is_refused(flat):
    for place in (flat / "g", flat / "a" / "2.png", flat / "a" / "deeper"):
        place.symlink_to("nothing")
        refused(flat, f"{place}: the link leads nowhere")
        place.unlink()
    Folder().load(flat)


def test_folders_elsewhere_may_be_linked_once(flat, tmp_path):
    base = Folder().load(flat)
    (flat / "a").rename(tmp_path / "elsewhere")
    (flat / "a").symlink_to(tmp_path / "elsewhere")
    (flat / "b").rename(flat / "c" / "within")
    (tmp_path / "deep").mkdir()
    (flat / "c" / "within").rename(tmp_path / "deep" / "b")
    (flat / "b").mkdir()
    (flat / "b" / "linked").symlink_to(tmp_path / "deep" / "b")
    linked = Folder().load(flat)
    assert linked.class_names == base.class_names
    assert linked.fingerprint() == base.fingerprint()


NAME = st.text(st.sampled_from("ab ,\"'é中#;\t"), min_size=1, max_size=6).map(str.strip)


@given(st.lists(NAME.filter(bool).filter(str.isprintable), min_size=1, max_size=6, unique=True))
def test_any_names_survive_a_table(tmp_path_factory, names):
    root = tmp_path_factory.mktemp("table")
    for i in range(len(names)):
        (root / f"{i}.png").write_bytes(b"")
    rows = [{"file": f"{i}.png", "class": name, "camera": name} for i, name in enumerate(names)]
    items = of_table(write_table(root, rows) / "items.csv", root)
    assert [(item.class_name, item.camera) for item in items] == [(n, n) for n in names]
