"""Intervals and tests against tables, published definitions and hand derivations."""

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.analysis import intervals


def close(value, expected, tolerance=1e-6):
    return value == pytest.approx(expected, abs=tolerance)


def test_t_interval_of_three_values():
    # mean 2, sd 1, t(.975, 2) = 4.30265 from the t table: half-width 4.30265 / sqrt(3) = 2.48414.
    found = intervals.t_interval([1, 2, 3])
    assert close(found.mean, 2) and close(found.low, -0.48414, 1e-5) and close(found.high, 4.48414, 1e-5)
    assert found.n == 3 and found.method == "t over seeds"


def test_one_seed_has_no_interval():
    found = intervals.t_interval([0.5])
    assert found.mean == 0.5 and math.isnan(found.low) and math.isnan(found.high)
    assert found.method == "none: one seed"
    paired = intervals.paired_difference([[1.0, 0.0, 0.0]], np.random.default_rng(0))
    assert math.isnan(paired.p_value) and math.isnan(paired.minimum_detectable)
    assert intervals.verdict(paired.interval, "marft", "ippo") == "inconclusive"


@pytest.mark.parametrize(
    ("by_seed", "reason"),
    [
        ([0.1, 0.1], "two seeds"),
        ([0.1, 0.3], "two seeds"),
        ([0.1] * 3, "no spread over seeds"),  # 0.1 + 0.1 + 0.1 is not 0.3 in floats: the sd comes out as 1e-17
        ([0.8 - 0.7, 0.9 - 0.8, 0.6 - 0.5], "no spread over seeds"),  # equal but for the rounding of the floats
        ([0.0] * 5, "no spread over seeds"),
        ([-0.25] * 12, "no spread over seeds"),  # as many seeds as the bootstrap takes
    ],
)
def test_two_seeds_and_equal_seeds_have_no_interval_no_test_and_no_winner(by_seed, reason):
    """The items of a seed differ, so that a bootstrap of the items would find an interval."""
    found = intervals.t_interval(by_seed)
    assert found.mean == pytest.approx(np.mean(by_seed)) and found.method == f"none: {reason}"
    assert math.isnan(found.low) and math.isnan(found.high)
    paired = intervals.paired_difference([[d - 0.01, d + 0.01] for d in by_seed], np.random.default_rng(0))
    assert paired.interval.method == f"none: {reason}" and math.isnan(paired.interval.low)
    assert math.isnan(paired.p_value) and math.isnan(paired.minimum_detectable)
    assert intervals.verdict(paired.interval, "marft", "ippo") == "inconclusive"


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.01, 0.2, "marft ahead"),
        (-0.2, -0.01, "ippo ahead"),
        (-0.1, 0.1, "inconclusive"),
        (0.0, 0.1, "inconclusive"),  # an interval that touches 0 contains it
        (-0.1, 0.0, "inconclusive"),
        (math.nan, math.nan, "inconclusive"),
    ],
)
def test_verdicts(low, high, word):
    assert intervals.verdict(intervals.Interval(0.0, low, high, 5, ""), "marft", "ippo") == word


def test_nan_is_an_error_that_names_the_argument_and_the_position():
    with pytest.raises(ValueError, match=r"accuracies must be finite numbers, but value 1 is nan"):
        intervals.t_interval([0.5, math.nan], name="accuracies")
    with pytest.raises(ValueError, match=r"differences\[1\] must be finite numbers, but value 0 is inf"):
        intervals.paired_difference([[0.0], [math.inf]], np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"values must be a non-empty list"):
        intervals.interquartile_mean([])


def test_paired_difference_of_few_seeds_is_the_paired_t_test():
    # Differences .1 .2 .3: mean .2, sd .1, t = .2 / (.1 / sqrt 3) = 3.4641, two-sided p on 2 df .0742.
    paired = intervals.paired_difference([[0.1], [0.2], [0.3]], np.random.default_rng(0))
    assert close(paired.interval.low, 0.2 - 0.248414, 1e-5) and close(paired.interval.high, 0.2 + 0.248414, 1e-5)
    assert close(paired.p_value, 0.0742, 1e-4)
    assert intervals.verdict(paired.interval, "a", "b") == "inconclusive"  # agrees with p > .05


def test_pairing_removes_the_variance_between_seeds():
    # Seeds differ by 40 points, arms by 1 to 3: an unpaired test would not find this.
    first, second = np.array([0.21, 0.42, 0.63, 0.81]), np.array([0.20, 0.40, 0.60, 0.79])
    paired = intervals.paired_difference([[d] for d in first - second], np.random.default_rng(0))
    assert intervals.verdict(paired.interval, "a", "b") == "a ahead"


def test_ten_seeds_use_the_bootstrap_nine_the_t_interval():
    rng = np.random.default_rng(5)
    items = [rng.choice([-1.0, 0.0, 1.0], size=40) for _ in range(10)]
    assert intervals.paired_difference(items[:9], np.random.default_rng(0)).interval.method == "t over seeds"
    assert intervals.paired_difference(items, np.random.default_rng(0)).interval.method == "hierarchical bootstrap"


def test_the_bootstrap_depends_on_its_generator_only():
    items = [np.random.default_rng(s).choice([-1.0, 0.0, 1.0], size=40) for s in range(10)]
    once, again, other = (intervals.paired_difference(items, np.random.default_rng(g)).interval for g in (1, 1, 2))
    assert once == again and once.low != other.low


def test_the_bootstrap_has_the_variance_of_both_levels():
    # By hand: S = 4 seeds with means 0, .2, .4, .6: variance over seeds .2^2 * 5/4 = .05 (divisor S). Items of
    # every seed: mean +- .5 in equal parts, variance .25 (divisor I), I = 10. Var = (.05 + .25 / 10) / 4 = .01875.
    items = [[mean - 0.5] * 5 + [mean + 0.5] * 5 for mean in (0.0, 0.2, 0.4, 0.6)]
    means = intervals.hierarchical_bootstrap(items, np.random.default_rng(0), 40_000)
    assert close(means.mean(), 0.3, 3e-3) and close(means.var(), 0.01875, 5e-4)


def test_the_bootstrap_interval_covers_the_true_difference():
    # 10 seeds whose true differences scatter by 5 points around 3, 100 items each with 10 % discordant pairs.
    rng, covered, simulations = np.random.default_rng(0), 0, 200
    for _ in range(simulations):
        items = []
        for shift in rng.normal(0.03, 0.05, size=10):
            up, down = max(0.0, 0.1 + shift / 2), max(0.0, 0.1 - shift / 2)
            items.append(rng.choice([1.0, -1.0, 0.0], p=[up, down, 1 - up - down], size=100))
        low, high = np.quantile(intervals.hierarchical_bootstrap(items, rng, 500), [0.025, 0.975])
        covered += low <= 0.03 <= high
    assert 0.91 <= covered / simulations <= 0.985


def test_interquartile_mean_is_rliables():
    # 1..8: two values are left out at each end; mean of 3, 4, 5, 6.
    assert intervals.interquartile_mean([8, 1, 7, 2, 6, 3, 5, 4]) == 4.5
    for count in range(1, 14):  # rliable's own definition: scipy's trim_mean with a quarter left out
        values = np.random.default_rng(count).normal(size=count)
        assert close(intervals.interquartile_mean(values), stats.trim_mean(values, 0.25), 1e-12)


def test_probability_of_improvement_is_mann_whitney():
    # Pairs of (1, 3) against (0, 1): 1>0, 1=1, 3>0, 3>1: (3 + 1/2) / 4.
    assert intervals.probability_of_improvement([1, 3], [0, 1]) == 0.875
    first, second = np.random.default_rng(0).normal(0.5, 1, 7), np.random.default_rng(1).normal(size=9)
    published = stats.mannwhitneyu(first, second).statistic / (7 * 9)
    assert close(intervals.probability_of_improvement(first, second), published, 1e-12)


def test_holm_of_known_p_values():
    # Sorted .01 .02 .03 .04 times 4 3 2 1 = .04 .06 .06 .04; step-down keeps the running maximum.
    found = intervals.holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.02})
    assert {k: round(p, 10) for k, p in found.items()} == {"a": 0.04, "d": 0.06, "c": 0.06, "b": 0.06}
    assert intervals.holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert intervals.holm({"a": 0.03}) == {"a": 0.03}


def test_holm_leaves_out_tests_that_could_not_be_made():
    found = intervals.holm({"a": 0.02, "b": math.nan})
    assert found["a"] == 0.02 and math.isnan(found["b"])
    with pytest.raises(ValueError, match=r"p_values\['a'\] must be in \[0, 1\] or nan, got 1.5"):
        intervals.holm({"a": 1.5})


@pytest.mark.parametrize(("effect", "n", "power"), [(0.5, 34, 0.8078), (1.0, 10, 0.8031), (0.8, 15, 0.8213)])
def test_power_of_the_paired_t_test_is_published(effect, n, power):
    # G*Power 3.1, matched pairs, two tails, alpha .05.
    assert close(intervals.paired_t_power(effect, n), power, 1e-3)


def test_power_without_an_effect_is_alpha():
    assert intervals.paired_t_power(0.0, 10) == 0.05


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_minimum_detectable_effect_is_found_four_times_in_five(n):
    differences = np.arange(n) / 10
    effect = intervals.minimum_detectable_effect(differences)
    samples = np.random.default_rng(0).normal(effect, differences.std(ddof=1), size=(20_000, n))
    assert close((stats.ttest_1samp(samples, 0.0, axis=1).pvalue < 0.05).mean(), 0.8, 0.01)


def test_wilson_interval_of_one_model():
    # 8 of 10 (Wilson 1927, z = 1.96): centre (.8 + .19207) / 1.38415 = .71674, half 1.95996 / 1.38415 *
    # sqrt(.016 + .0096036) = .22657: [.4902, .9433].
    found = intervals.wilson_interval([1] * 8 + [0] * 2)
    assert close(found.low, 0.4902, 1e-4) and close(found.high, 0.9433, 1e-4) and found.n == 10
    perfect = intervals.wilson_interval([1] * 10)  # not [1, 1]: low = 10 / (10 + 3.8415)
    assert close(perfect.low, 0.72247, 1e-5) and close(perfect.high, 1.0)
    with pytest.raises(ValueError, match=r"scores must be in \[0, 1\], got 2"):
        intervals.wilson_interval([0, 2])


def test_item_standard_error():
    # 0, 0, 1, 1: sd (divisor 3) = sqrt(1/3), over sqrt 4.
    assert close(intervals.item_standard_error([0, 0, 1, 1]), math.sqrt(1 / 3) / 2)
    assert math.isnan(intervals.item_standard_error([1]))
