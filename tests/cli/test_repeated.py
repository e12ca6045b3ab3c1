"""Options that are given twice: lists add up, all others are refused; none wins in silence."""

import json

import pytest
import typer
import typer.main
from support.command import call, verbs
from support.records import make_record

from benchmark.cli.app import app
from benchmark.cli.verbs import LISTS, Command
from benchmark.records.files import write_record

VERBS = dict(verbs(typer.main.get_command(app)))


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_every_option_of_every_verb(words):
    """By the parser of the verb, before anything is read."""
    command = VERBS[words]
    assert isinstance(command, Command)
    tried = 0
    for param in command.params:
        if param.param_type_name != "option" or param.name in ("help", "version"):
            continue
        given = [max(param.opts, key=len)] + ([] if param.is_flag else ["x"])
        again = [param.secondary_opts[0]] if param.secondary_opts else given
        context = typer.Context(command, info_name="bench")
        parse = command.make_parser(context).parse_args
        tried += 1
        if param.name in LISTS:
            assert parse(given + again)[0][param.name] == "x,x"
        elif param.multiple:
            assert parse(given + again)[0][param.name] == ["x", "x"]
        elif param.is_flag and not param.secondary_opts:
            parse(given + again)
        else:
            with pytest.raises(Exception, match=f"{given[0]}: expected once, got it twice"):
                parse(given + again)
    assert tried or words in {("doctor",), ("schema",), ("pairs", "packages")}


def test_lists_are_of_names_that_verbs_have():
    names = {param.name for command in VERBS.values() for param in command.params}
    assert names >= LISTS


def test_methods_and_seeds_of_a_run_add_up(tmp_path):
    code, out, _ = call(
        "run", "-m", "bct", "--methods", "fct,l2", "-m", "mixbct", "-p", "open-class", "-t", "toy",
        "--seeds", "0", "--seeds", "2-3", "--dry-run", "--store", tmp_path,
    )  # fmt: skip
    assert code == 0
    for name in ("bct", "fct", "l2", "mixbct"):
        assert all(f"record  {name}, seed {seed}: " in out for seed in (0, 2, 3))


def test_methods_of_a_table_add_up(tmp_path):
    for method in ("independent", "bct", "l2", "fct"):
        record = make_record(method)
        write_record(record.path(tmp_path), record)
    code, out, _ = call("table", tmp_path, "-m", "bct", "-m", "l2", "-f", "csv")
    assert code == 0 and "bct" in out and "l2" in out and "fct" not in out
    code, out, _ = call("show", tmp_path, "-m", "bct", "-m", "fct", "--json")
    assert [each["method"] for each in json.loads(out)] == ["bct", "fct"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "-m", "bct", "-p", "open-class", "-p", "open-data", "--dry-run"), "--protocol"),
        (("run", "-m", "bct", "-p", "open-class", "-t", "toy", "-t", "glyphs"), "--track"),
        (("upgrade", "--demo", "--no-rewrite", "--rewrite"), "--rewrite"),
        (("perf", "ranking", "--json", "a", "--json", "b"), "--json"),
        (("results", "status", "--data-root", "omniglot=.", "--data-root", "omniglot=.."),
         "--data-root: 'omniglot' is given twice"),
    ],
)  # fmt: skip
def test_what_takes_one_value_is_refused(words, said):
    code, out, err = call(*words)
    assert code == 2 and out == "" and err.count("\n") == 1 and said in err and "twice" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "-m", "BCT", "-p", "open-class"), "did you mean 'bct'"),
        (("run", "-m", "bct", "-p", "OPEN-CLASS"), "did you mean 'open-class'"),
        (("info", "MixBCT"), "did you mean 'mixbct'"),
        (("run", "-m", "bct", "-p", "open-class", "-t", "Glyphs"), "did you mean 'glyphs'"),
    ],
)
def test_capitals_are_near(words, said):
    code, _, err = call(*words)
    assert code == 2 and said in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("verfy", "x"), "bench: No such command 'verfy'. Did you mean 'verify', 'perf'?"),
        (("upgrade", "--demo", "--index", "hsnw"),
         "bench: upgrade: Invalid value for '--index': unknown choice 'hsnw'; did you mean "
         "'hnsw'?"),
        (("compare", "bct", "bct"), "bench: compare: expected two different ones, got 'bct' twice"),
    ],
)  # fmt: skip
def test_words_that_are_none_of_the_choices(words, said):
    code, _, err = call(*words)
    assert (code, err) == (2, f"{said}\n")
