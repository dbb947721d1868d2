"""Intervals, tests and robust means for comparing learners over training seeds; numpy and scipy only.

Letters: S training seeds, I evaluation items of one seed. The seed is the unit of replication: items of one
trained model say how well *that model* is known, not how well the learner is.

Sources: Agarwal et al. 2021, "Deep RL at the Edge of the Statistical Precipice", https://arxiv.org/abs/2108.13264
(IQM, probability of improvement); Holm 1979; Wilson 1927; Cohen 1988 ch. 2 (power of the paired t-test).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

Floats = NDArray[np.float64]

BOOTSTRAP_FROM_SEEDS = 10  # a percentile bootstrap over 5 seeds covers 84 %, the t interval 94 %
RESAMPLES = 10_000
INCONCLUSIVE = "inconclusive"
FEW_SEEDS = 3  # with fewer, an interval over seeds is too wide to say anything
IDENTICAL = "identical"  # on every item of every seed: nothing was left to test


@dataclass(frozen=True)
class Interval:
    """A mean with its interval; `low` and `high` are nan where there is none, and `method` says why."""

    mean: float
    low: float
    high: float
    n: int
    method: str


@dataclass(frozen=True)
class Paired:
    """A paired difference A - B over seeds: interval, two-sided p value, smallest difference it could have shown."""

    interval: Interval
    p_value: float
    minimum_detectable: float
    by_seed: tuple[float, ...]


def finite(values: ArrayLike, name: str) -> Floats:
    """A non-empty [N] array of finite numbers, else a ValueError that names the argument and the value."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a non-empty list of numbers, got shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ValueError(f"{name} must be finite numbers, but value {bad[0]} is {array[bad[0]]}")
    return array


def t_interval(values: ArrayLike, confidence: float = 0.95, name: str = "values") -> Interval:
    """Mean over seeds with Student's t interval: mean +- t(S - 1) * sd / sqrt(S). One seed: no interval (nan)."""
    array = finite(values, name)
    mean, count = float(array.mean()), int(array.size)
    if count == 1:
        return Interval(mean, math.nan, math.nan, 1, "none: one seed")
    if np.ptp(array) == 0:  # the sd of equal floats may round to 1e-17
        return Interval(float(array[0]), float(array[0]), float(array[0]), count, "t over seeds")
    half = float(stats.t.ppf(0.5 + confidence / 2, count - 1) * array.std(ddof=1) / math.sqrt(count))
    return Interval(mean, mean - half, mean + half, count, "t over seeds")


def t_test_p(differences: ArrayLike) -> float:
    """Two-sided p value of the paired t-test over seeds; nan for one seed, 1 if all are 0, 0 if all equal another."""
    array = finite(differences, "differences")
    if array.size == 1:
        return math.nan
    if np.ptp(array) == 0:
        return 1.0 if array[0] == 0 else 0.0
    return float(stats.ttest_1samp(array, 0.0).pvalue)


def hierarchical_bootstrap(
    differences: Sequence[ArrayLike], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Floats:
    """Means of `resamples` two-level resamples: S seeds with replacement, then the items of each, again with.

    `differences[s]` is [I_s]: score of arm A minus score of arm B on the same item of the same seed, so pairing
    survives resampling. A seed counts once whatever its number of items. Returns [resamples].
    Items are taken as nested in seeds: where all seeds are evaluated on one and the same item set, what the arms'
    difference owes to that set is shared by the seeds and the interval does not hold it.
    """
    seeds = [finite(items, f"differences[{s}]") for s, items in enumerate(differences)]
    chosen = rng.integers(len(seeds), size=(resamples, len(seeds)))
    means: Floats = np.empty(chosen.shape)
    for s, items in enumerate(seeds):
        here = chosen == s
        # Drawing I items with replacement is a multinomial draw over the distinct values: exact, and much faster.
        distinct, counts = np.unique(items, return_counts=True)
        draws = rng.multinomial(items.size, counts / items.size, size=int(here.sum()))
        means[here] = draws @ distinct / items.size
    return np.asarray(means.mean(axis=1))


def paired_difference(differences: Sequence[ArrayLike], rng: np.random.Generator, confidence: float = 0.95) -> Paired:
    """Paired difference of two arms: t interval below 10 seeds, from 10 on the hierarchical bootstrap.

    `differences[s]` is [I_s], the item differences of seed s (one number where only the seed's mean is known).
    The p value comes from the same method as the interval, so the two do not contradict each other.
    """
    by_seed = finite([finite(items, f"differences[{s}]").mean() for s, items in enumerate(differences)], "differences")
    detectable = minimum_detectable_effect(by_seed)
    if by_seed.size < BOOTSTRAP_FROM_SEEDS:
        interval = t_interval(by_seed, confidence, "differences")
        return Paired(interval, t_test_p(by_seed), detectable, tuple(by_seed.tolist()))
    means = hierarchical_bootstrap(differences, rng)
    low, high = np.quantile(means, [0.5 - confidence / 2, 0.5 + confidence / 2])
    tail = min(int((means <= 0).sum()), int((means >= 0).sum()))
    p_value = min(1.0, 2 * (tail + 1) / (means.size + 1))  # + 1: the data themselves are one of the resamples
    interval = Interval(float(by_seed.mean()), float(low), float(high), int(by_seed.size), "hierarchical bootstrap")
    return Paired(interval, p_value, detectable, tuple(by_seed.tolist()))


def interquartile_mean(values: ArrayLike) -> float:
    """IQM: mean of the middle half, floor(N / 4) values cut at each end (Agarwal et al. 2021, section 4.3)."""
    array = np.sort(finite(values, "values"))
    cut = array.size // 4
    return float(array[cut : array.size - cut].mean())


def probability_of_improvement(first: ArrayLike, second: ArrayLike) -> float:
    """P(X > Y) + P(X = Y) / 2 over all pairs of runs: Mann-Whitney U / (N M) (Agarwal et al. 2021, section 4.3)."""
    gaps = finite(first, "first")[:, None] - finite(second, "second")[None, :]
    return float((gaps > 0).mean() + 0.5 * (gaps == 0).mean())


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down correction over a family of tests: max over the smaller ones of (m - rank) * p, at most 1.

    A nan (a test that could not be made) stays nan and does not count in m.
    """
    for name, p in p_values.items():
        if not (math.isnan(p) or 0 <= p <= 1):
            raise ValueError(f"p_values[{name!r}] must lie in [0, 1] or be nan, got {p}")
    known = sorted((p, name) for name, p in p_values.items() if not math.isnan(p))
    adjusted, largest = dict.fromkeys(p_values, math.nan), 0.0
    for rank, (p, name) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[name] = largest
    return adjusted


def paired_t_power(effect: float, n: int, alpha: float = 0.05) -> float:
    """Power of the two-sided paired t-test when the true mean difference is `effect` standard deviations.

    P(|T| > critical) for T noncentral t(n - 1, effect sqrt(n)), asked as T^2, which is noncentral F(1, n - 1):
    scipy's noncentral t returns nan in its far tail.
    """
    if effect == 0:
        return alpha
    critical = stats.t.ppf(1 - alpha / 2, n - 1)
    return float(stats.ncf.sf(critical**2, 1, n - 1, n * effect**2))


def minimum_detectable_effect(differences: ArrayLike, alpha: float = 0.05, power: float = 0.8) -> float:
    """Smallest true mean difference a paired t-test of this spread and number of seeds finds with this power.

    In the unit of `differences`; nan for one seed; 0 where all differences are equal (no spread was seen).
    """
    array = finite(differences, "differences")
    if array.size == 1:
        return math.nan
    if np.ptp(array) == 0:
        return 0.0
    high = 1.0
    while paired_t_power(high, array.size, alpha) < power:
        high *= 2
    effect = optimize.brentq(lambda d: paired_t_power(d, array.size, alpha) - power, 0.0, high)
    return float(effect * array.std(ddof=1))


def wilson_interval(scores: ArrayLike, confidence: float = 0.95) -> Interval:
    """Wilson's interval of one model's accuracy from its item scores in [0, 1]: for a single seed.

    It speaks of this trained model on other items, not of other seeds. Partial scores enter as a fraction of a
    success, which is conservative: no score in [0, 1] of mean p varies more than p (1 - p).
    """
    array = finite(scores, "scores")
    outside = array[(array < 0) | (array > 1)]
    if outside.size:
        raise ValueError(f"scores must lie in [0, 1], got {outside[0]}")
    z, count, mean = float(stats.norm.ppf(0.5 + confidence / 2)), int(array.size), float(array.mean())
    scale = 1 + z * z / count
    centre = (mean + z * z / (2 * count)) / scale
    half = z / scale * math.sqrt(mean * (1 - mean) / count + z * z / (4 * count * count))
    return Interval(mean, max(0.0, centre - half), min(1.0, centre + half), count, "Wilson over items")


def item_standard_error(scores: ArrayLike) -> float:
    """Standard error of one model's mean score from its items: sd / sqrt(I); nan for one item."""
    array = finite(scores, "scores")
    return float(array.std(ddof=1) / math.sqrt(array.size)) if array.size > 1 else math.nan


def verdict(interval: Interval, first: str, second: str) -> str:
    """`inconclusive` when the interval of first - second contains 0 or does not exist, else who is ahead."""
    if interval.low > 0:
        return f"{first} ahead"
    if interval.high < 0:
        return f"{second} ahead"
    return INCONCLUSIVE
