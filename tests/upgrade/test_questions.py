"""Constraints are asked once, on a terminal; a pty stands for it."""

import json
import os
import pty
import select
import sys

import pytest
from support.upgrades import planted, write_upgrade

QUESTIONS = [
    ("Does the old model still embed queries?", "n"),
    ("Are the items kept, so that they can be embedded again?", ""),
    ("May a second model run on a query?", "x"),  # asked again, as it is neither yes nor no
    ("May a second model run on a query?", "n"),
    ("May items be embedded while a query waits?", ""),
]


def talk(words, answers):
    """Run the command on a terminal and answer; what it showed, and its exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"COLUMNS": "100", "TERM": "dumb"}
        os.execv(sys.executable, [sys.executable, "-m", "benchmark.cli.app", *words])
    shown, waiting = "", list(answers)
    while select.select([terminal], [], [], 240)[0]:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # how Linux says that the other side is closed
            break
        if not piece:
            break
        shown += piece.decode("utf-8", "replace")
        if waiting and shown.rstrip().endswith("]:") and waiting[0][0] in shown:
            question, answer = waiting.pop(0)
            assert question in shown.splitlines()[-1]
            os.write(terminal, f"{answer}\n".encode())
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.slow
def test_what_the_user_cannot_do_is_asked_once(tmp_path):
    words = write_upgrade(tmp_path, planted(n=400, q=30, dim=8))
    words = [*map(str, words), "--all", "--no-rewrite", "--json", f"{tmp_path}/out.json"]
    shown, code = talk(words, QUESTIONS)
    assert code == 0, shown
    for question, _ in QUESTIONS:
        assert shown.count(question) == 1 + ("second model" in question), question
    assert "May stored vectors be rewritten" not in shown  # an option has said it
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["constraints"] == {
        "old_model": False, "sources": True, "index": False, "extra_runs": False,
        "rescoring": False,
    }  # fmt: skip
    left_out = document["left_out"]
    assert "the old model is gone" in left_out["keep-old"]
    assert "one model run a query, no more" in left_out["rrf"]
    assert "the index stays as it is" in left_out["procrustes"]
    assert "the old model is gone" in " ".join(shown.split())
