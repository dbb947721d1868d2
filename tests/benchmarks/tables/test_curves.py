"""Learning curves: axes, bands and file names."""

import pytest

from benchmarks.analysis.summary import summarise
from benchmarks.tables.curves import curve_figure, curve_name, limits
from tests.benchmarks.made_rows import SOLVED, make_rows


def test_the_accuracy_axis_follows_the_data_and_has_a_smallest_span():
    summary = summarise(make_rows({("ippo", s): (3, 3, 3) for s in range(2)}, modes=("sampled",)))
    # All at 30 %: a span of 10 points around it.
    assert limits(summary["tasks"]["relay"]) == pytest.approx((25, 35))
    # From 20 to 100 % (greedy 10 of 10): margin .08 * 80 = 6.4 below, limited to 101.5 above.
    assert limits(summarise(make_rows())["tasks"]["relay"]) == pytest.approx((13.6, 101.5))


def test_the_band_has_a_gap_where_all_seeds_are_equal():
    """At update 0 every seed of marft solves 3 of 10 items, and later they differ."""
    solved = {("marft", s): (3, 5 + s, 6 + s) for s in range(3)}
    figure = curve_figure("relay", summarise(make_rows(solved))["tasks"]["relay"])
    (band,) = figure.axes[0].collections
    assert min(x for path in band.get_paths() for x, _ in path.vertices) == 5


@pytest.mark.parametrize(("seeds", "bands"), [(1, 0), (2, 0), (3, 2)])
def test_a_band_is_drawn_from_three_seeds_on(seeds, bands):
    solved = {key: counts for key, counts in SOLVED.items() if key[1] < seeds}
    figure = curve_figure("relay", summarise(make_rows(solved, modes=("sampled",)))["tasks"]["relay"])
    assert len(figure.axes[0].collections) == bands
    assert ("band" in figure.legends[0].get_title().get_text()) == (bands > 0)


def test_task_names_become_safe_file_names():
    assert curve_name("relay/k=2 ../x") == "curve_relay-k-2-..-x.png"
