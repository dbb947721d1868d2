"""The schema of rows.jsonl: every malformed row is one line with file and line number, and the docs page agrees."""

from pathlib import Path

import pytest

from benchmarks.analysis import rows_schema
from benchmarks.analysis.read_rows import ReportError, load_rows
from tests.benchmarks.made_rows import eval_row, make_rows, train_row, write_rows

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "rows.md"
BAD_ROWS = {
    "accuracy nan": (
        eval_row("ippo", 0, 0, 3, accuracy=float("nan")),
        r"accuracy must be a number in \[0, 1\], got nan",
    ),
    "wrong mean": (eval_row("ippo", 0, 0, 3, accuracy=0.5), "accuracy 0.5 is not the mean of its item scores, 0.3000"),
    "score nan": (
        eval_row("ippo", 0, 0, 3, item_score=[float("nan")] * 10),
        r"entry 0 of item_score must be a number in \[0, 1\], got nan",
    ),
    "lengths": (eval_row("ippo", 0, 0, 3, item_index=[1]), "must have n=10 entries each, got 1 and 10"),
    "mode": (eval_row("ippo", 0, 0, 3, mode="argmax"), 'mode must be "sampled" or "greedy", got \'argmax\''),
    "seed": (eval_row("ippo", "one", 0, 3), "seed must be an integer >= 0, got 'one'"),
    "reward": (train_row("ippo", 0, 1, reward="high"), "train row: reward must be a number or null, got 'high'"),
    "nested": (
        eval_row("ippo", 0, 0, 3, messages={"actor_0": {"replies": 1}}),
        r"messages\['actor_0'\] without tokens, empty",
    ),
    "missing": ({"kind": "eval", "arm": "ippo"}, "eval row without task, seed, update"),
    "head": ({"kind": "comparison", "config": {}}, "comparison row without config_hash, data, sessions"),
    "unknown kind": ({"kind": "cell"}, "kind='cell': expected one of comparison, run, train, eval"),
    "not an object": ([1], "expected an object with a 'kind'"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_bad_row_is_named_with_its_line(tmp_path, name):
    row, message = BAD_ROWS[name]
    folder = write_rows(tmp_path / "r", [make_rows()[0], row, *make_rows()[1:]])
    with pytest.raises(ReportError, match=rf"rows.jsonl, line 2: .*{message}") as error:
        load_rows(folder)
    assert "\n" not in str(error.value)


def test_further_metrics_of_a_learner_are_allowed(tmp_path):
    rows = [*make_rows(), train_row("ippo", 3, 1, own_metric=[1, 2])]
    assert load_rows(write_rows(tmp_path / "r", rows)) == rows


def test_the_page_holds_the_tables_of_the_schema():
    """After a change of the schema, replace the tables of the page by ``rows_schema.markdown_tables()``."""
    page = PAGE.read_text()
    for name, table in rows_schema.markdown_tables().items():
        assert f"## {name}\n" in page and table in page, name
