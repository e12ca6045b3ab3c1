"""Finished stages: what is noticed of damage, what is published, what is freed."""

import os
import shutil
import stat
import threading

import pytest

from benchmark.config.files import read_sealed, write_sealed
from benchmark.errors import BenchError
from benchmark.harness.store import Store

FILES = {"vectors.npy": b"0123456789" * 10, "cases.json": b'{"old/old": 0.5}', "parts/a": b"x"}


def make(store, name, files=FILES, **meta):
    with store.writing(name) as work:
        for file, content in files.items():
            (work / file).parent.mkdir(exist_ok=True)
            (work / file).write_bytes(content)
        (work / "main.checkpoint.pt").write_bytes(b"of no use any more")
        store.publish(name, {"title": "embed", "kind": "embed", "facts": {}, "run": {}, **meta})
    return store.path(name)


def named(kind, number):
    """A stage's name, as the hash of its work makes it."""
    return f"{kind}-{number:024x}"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_a_stage_is_published_whole(store):
    folder = make(store, named("embed", 1), facts={"n": 10})
    assert store.has(named("embed", 1)) and store.damage(named("embed", 1)) is None
    assert store.meta(named("embed", 1))["facts"] == {"n": 10}
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert found == {*FILES, "stage.json"}
    assert not list((store.root / "work").iterdir())  # neither the folder nor its lock


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "deleted": (lambda path: path.unlink(), "is missing"),
    "flipped": (flipped, "is not what was written"),
    "emptied": (lambda path: path.write_bytes(b""), "is not what was written"),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b"0"), "is not what was written"),
    "zeroed": (
        lambda path: path.write_bytes(bytes(path.stat().st_size)), "is not what was written",
    ),
    "a link": (
        lambda path: (path.rename(path.parents[2] / "away"),
                      path.symlink_to(path.parents[2] / "away")),
        "is not what was written",
    ),
}  # fmt: skip


@pytest.mark.parametrize("file", [*FILES])
@pytest.mark.parametrize("damage", [*DAMAGES])
def test_every_damage_of_a_file_is_told(store, file, damage):
    folder = make(store, named("embed", 1))
    change, told = DAMAGES[damage]
    change(folder / file)
    assert store.damage(named("embed", 1)) == f"{file} {told}"


def test_a_file_too_many_is_damage(store):
    """A conversion that is not its own would be applied: parts are found by their names."""
    folder = make(store, "update-1")
    shutil.copy(folder / "cases.json", folder / "convert.safetensors")
    assert store.damage("update-1") == "convert.safetensors is not its own"


def test_damage_of_what_a_stage_says_of_itself(store):
    path = make(store, named("embed", 1)) / "stage.json"
    sound = path.read_text()
    for content in (
        "",
        "{}",
        "[1]",
        "\0",
        sound.replace(named("embed", 1), named("embed", 2)),
        sound[:-9],
    ):
        path.write_text(content)
        assert str(store.damage(named("embed", 1))).startswith("damaged: ")
        with pytest.raises(BenchError, match=r"stage\.json: damaged"):
            store.meta(named("embed", 1))
    path.write_text(sound)
    assert store.damage(named("embed", 1)) is None


def test_a_whole_stage_under_the_name_of_another_is_damage(store):
    make(store, named("embed", 1))
    folder = make(store, named("embed", 2), {**FILES, "vectors.npy": b"others"})
    shutil.rmtree(store.path(named("embed", 1)))
    shutil.copytree(folder, store.path(named("embed", 1)))
    assert store.damage(named("embed", 1)) == f"damaged: that of another stage, {named('embed', 2)}"


def test_an_edited_file_does_not_pass_with_a_new_hash_alone(store):
    folder = make(store, named("embed", 1))
    flipped(folder / "vectors.npy")
    meta = read_sealed(folder / "stage.json", 10**6)
    text = (folder / "stage.json").read_text()
    digest = meta["files"]["vectors.npy"]["digest"]
    (folder / "stage.json").write_text(text.replace(digest, "sha256:" + "0" * 64))
    assert "seal" in str(store.damage(named("embed", 1)))


def test_a_damaged_stage_is_written_anew(store):
    flipped(make(store, named("embed", 1)) / "vectors.npy")
    make(store, named("embed", 1), {"vectors.npy": b"again"})
    assert store.damage(named("embed", 1)) is None
    assert [p.name for p in sorted(store.path(named("embed", 1)).iterdir())] == [
        "stage.json",
        "vectors.npy",
    ]


def test_a_finished_stage_is_not_written_again(store):
    make(store, named("embed", 1))
    with store.writing(named("embed", 1)) as work:
        assert work is None


def test_work_outlives_a_failure(store):
    def attempt(fails):
        with store.writing(named("train", 1)) as work:
            before = sorted(p.name for p in work.iterdir())
            (work / "main.checkpoint.pt").write_bytes(b"1")
            if fails:
                raise KeyboardInterrupt
        return before

    with pytest.raises(KeyboardInterrupt):
        attempt(True)
    assert attempt(False) == ["main.checkpoint.pt"]
    assert not store.has(named("train", 1))


@pytest.mark.parametrize("stage", [f"train-{i}" for i in range(20)])
def test_runs_that_want_the_same_stage_take_turns(store, stage):
    order = []

    def run(name):
        with store.writing(stage) as work:
            order.append((name, work is None))
            if work is not None:
                store.publish(stage, {"title": "", "kind": "", "facts": {}, "run": {}})

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [there for _, there in order] == [False, True, True, True]


def test_a_stage_is_removed_once_its_writer_has_ended(store):
    """Its folder must not go while another run writes it: that run would fail, or lose it."""
    gone = threading.Event()

    def remove():
        store.remove(named("train", 1))
        gone.set()

    remover = threading.Thread(target=remove)
    with store.writing(named("train", 1)) as work:
        remover.start()
        assert not gone.wait(0.3)
        (work / "vectors.npy").write_bytes(b"1")
        store.publish(named("train", 1), {"title": "", "kind": "", "facts": {}, "run": {}})
    remover.join()
    assert not store.has(named("train", 1))
    make(store, named("train", 1))
    assert store.damage(named("train", 1)) is None and not list((store.root / "work").iterdir())


def test_nothing_is_removed_where_nothing_is(store):
    store.remove(named("train", 1))
    assert not store.root.exists()


def test_a_store_that_cannot_be_written_can_be_read(store):
    make(store, named("embed", 1))
    for path in (store.root, store.root / "stages", store.path(named("embed", 1))):
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    reader = Store(store.root)
    assert reader.has(named("embed", 1)) and reader.damage(named("embed", 1)) is None
    for path in (store.root, store.root / "stages", store.path(named("embed", 1))):
        path.chmod(stat.S_IRWXU)


def test_a_place_that_cannot_be_a_store(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(BenchError, match="--store: cannot write"),
        Store(tmp_path / "file").writing(named("train", 1)),
    ):
        pass


def test_clean_frees_what_is_of_no_use(store):
    make(store, named("embed", 1))
    flipped(make(store, named("embed", 2)) / "vectors.npy")
    with pytest.raises(KeyboardInterrupt), store.writing(named("train", 3)) as work:
        (work / "main.checkpoint.pt").write_bytes(b"12345")
        raise KeyboardInterrupt
    with store.writing(named("train", 4)):  # a run that is at work
        gone = store.clean()
        assert [(e.name, e.finished) for e in gone] == [
            (named("embed", 2), True),
            (named("train", 3), False),
        ]
        assert [e.name for e in store.entries()] == [named("embed", 1), named("train", 4)]
    assert [e.name for e in store.clean()] == [named("train", 4)]
    assert not list((store.root / "work").iterdir())


def test_what_others_keep_there_stays(store):
    """A folder of somebody's own that is given as a store loses nothing."""
    for kept in ("work/thesis/1.txt", "stages/theatre/plan.txt", "work/poetry.lock"):
        (store.root / kept).parent.mkdir(parents=True, exist_ok=True)
        (store.root / kept).write_text("kept")
    assert store.entries() == store.clean(older_than=0.0) == []
    assert sum(path.is_file() for path in store.root.rglob("*")) == 3


def test_links_lead_nowhere(store, tmp_path):
    """Files outside of the store are neither written nor freed, whatever the store links to."""
    make(store, named("embed", 1))
    outside = tmp_path / "outside"
    (outside / named("embed", 2)).mkdir(parents=True)
    (outside / named("embed", 2) / "kept").write_text("kept")
    (store.path(named("embed", 2))).symlink_to(outside / named("embed", 2))
    (store.path(named("embed", 1)) / "deep").symlink_to(outside)
    assert store.damage(named("embed", 1)) == "deep is not its own"
    assert [e.name for e in store.clean(older_than=0.0)] == [named("embed", 1)]
    shutil.rmtree(store.root / "stages")
    (store.root / "stages").symlink_to(outside)
    assert store.entries() == store.clean(older_than=0.0) == []
    with pytest.raises(BenchError, match="stages: expected a folder, got a link"):
        make(store, named("embed", 3))
    assert (outside / named("embed", 2) / "kept").read_text() == "kept"


@pytest.mark.parametrize("files", [None, -1, [["a"]], {"a": {}}, {"a": {"bytes": "1"}}])
def test_what_a_stage_says_is_checked(store, files):
    folder = make(store, named("embed", 1))
    meta = read_sealed(folder / "stage.json", 10**6)
    write_sealed(folder / "stage.json", meta | {"files": files})
    assert str(store.damage(named("embed", 1))).startswith("damaged: files")
    assert [e.name for e in store.clean()] == [named("embed", 1)]


def test_clean_frees_what_is_old(store):
    for name, days in ((named("embed", 1), 40), (named("embed", 2), 2)):
        folder = make(store, name)
        for path in (*folder.rglob("*"), folder):
            os.utime(path, (1, path.stat().st_mtime - days * 86400))
    assert store.clean() == []
    assert [e.name for e in store.clean(older_than=30 * 86400)] == [named("embed", 1)]


def test_a_clock_that_was_set_back_frees_nothing(store):
    folder = make(store, named("embed", 1))
    os.utime(folder / "vectors.npy", (2**33, 2**33))
    assert store.entries()[0].age == 0.0
    assert store.clean(older_than=1.0) == []
