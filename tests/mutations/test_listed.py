"""The list of mutations follows the code. ``make test-mutations`` runs it; these tests only read it."""

import ast

import pytest

from tests.mutations.__main__ import main
from tests.mutations.listed import ROOT, Mutation, load


@pytest.mark.parametrize("mutation", load(), ids=lambda m: m.name)
def test_a_mutation_applies_to_the_code(mutation):
    text = (ROOT / mutation.file).read_text()
    assert not mutation.problem(text), f"adapt the entry in tests/mutations/mutations.toml: {mutation.problem(text)}"
    assert ast.dump(ast.parse(mutation.apply(text))) != ast.dump(ast.parse(text)), "the mutation changes no code"
    for test in mutation.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), f"{test}: there is no such file"
        assert not name or f"def {name}(" in (ROOT / path).read_text(), f"{test}: there is no such test"


def test_help_has_the_exit_codes_and_the_duration(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0 and "Exit codes: 0, " in text and "Duration: " in text


def test_names_differ():
    names = [mutation.name for mutation in load()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("text", "count"), [("b", 0), ("a a", 2)])
def test_a_mutation_whose_code_is_missing_or_ambiguous_is_an_error(text, count):
    mutation = Mutation("x", "f.py", "a", "b", ())
    with pytest.raises(ValueError, match=f"mutation 'x' does not apply: 'a' occurs {count} times in f.py"):
        mutation.apply(text)
