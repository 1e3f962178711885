"""Numbers as people write them, and how sure they are."""
from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

SURE = 0.95     # of what repeated measurements would give, the part that an interval holds
# So few measurements have no such interval: the range of five holds the median with 94 %, that of
# three with 75 %. What stands for it is their range, and is called so.
FEWEST = 6


def number(value: float) -> str:
    """Three digits say all that a measurement knows: 36,000, 1.55, 0.0231."""
    if abs(value) < 1e-9:
        return "0"
    if not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.2e}")
    digits = 2 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, digits)}f}"


def chances_of_ranks(values: Iterable[float], ranks: Iterable[int]) -> list[tuple[float, float]]:
    """The bootstrap without its dice: which values come to have a rank (or the mean of several),
    and how likely, where as many as there are are drawn from them, with repetition."""
    ordered, ranks = sorted(values), list(ranks)
    n = len(ordered)

    def at_most(k: int, rank: int) -> float:
        """That the rank-th of those drawn is not above the k-th value."""
        return sum(math.comb(n, i) * (k / n) ** i * (1 - k / n) ** (n - i)
                   for i in range(rank, n + 1))

    return [(value, statistics.fmean(at_most(k + 1, m) - at_most(k, m) for m in ranks))
            for k, value in enumerate(ordered)]


def chances_of_median(values: Iterable[float]) -> list[tuple[float, float]]:
    """The median of an even number is one of both in the middle."""
    values = list(values)
    n = len(values)
    return chances_of_ranks(values, ((n + 1) // 2, n // 2 + 1))


def rank_of(share: float, count: int) -> int:
    """Of the least of `count` values that at least this share of them does not exceed."""
    return max(1, math.ceil(share * count - 1e-9))


def percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[rank_of(share, len(ordered)) - 1]


def middle_of(chances: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The interval that leaves out half of 1 - SURE at each end."""
    low = high = None
    below = 0.0
    for value, chance in sorted(chances):
        below += chance
        if low is None and below >= (1 - SURE) / 2:
            low = value
        if high is None and below >= 1 - (1 - SURE) / 2 - 1e-9:
            high = value
    assert low is not None and high is not None
    return low, high


def interval_of_median(values: Iterable[float]) -> tuple[float, float]:
    return middle_of(chances_of_median(values))


def ratio_of(ours: float, theirs: float) -> float:
    """Where nothing was done a rate is 0, and what an operation takes is infinite: so it is then
    of ours, whatever theirs is."""
    if not ours or ours == math.inf:
        return ours
    return ours / theirs if theirs else math.inf


def difference_of(ours: float, theirs: float) -> float:
    """Beyond somebody who did nothing is nobody."""
    return math.inf if math.inf in (ours, theirs) else ours - theirs


def interval_of_percentile(values: Iterable[float], share: float) -> tuple[float, float]:
    values = list(values)
    if len(values) < FEWEST:
        return min(values), max(values)
    return middle_of(chances_of_ranks(values, (rank_of(share, len(values)),)))


def interval_words(counts: Iterable[int]) -> str:
    """What an interval is, of figures that are medians of so many runs each."""
    several = {count for count in counts if count > 1}
    few = sorted(count for count in several if count < FEWEST)
    said = []
    if few:
        said.append(f"the range of {' or '.join(map(str, few))} runs")
    if several - set(few):
        said.append("95 % of the bootstrap's medians" + (f" of {FEWEST} or more" if few else ""))
    return ", or ".join(said)
