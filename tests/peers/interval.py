"""The ratio of two programs from pairs of runs: Hodges and Lehmann's estimate, and the interval that inverts Wilcoxon's
signed-rank test (J. L. Hodges, E. L. Lehmann, Annals of Mathematical Statistics 34, 1963). Exact: the ranks' distribution is
counted, not approximated."""

from math import exp, log


def ratio(pairs, level=0.95):
    """(estimate, low, high) of a / b. With too few pairs for the level, the interval is the whole range of the pairs."""
    logs = [log(a / b) for a, b in pairs]
    n = len(logs)
    walsh = sorted((logs[i] + logs[j]) / 2 for i in range(n) for j in range(i, n))
    drop = max(0, critical(n, level))
    return tuple(exp(x) for x in (median(walsh), walsh[drop], walsh[len(walsh) - 1 - drop]))


def critical(n, level):
    """How many Walsh averages lie outside the interval on each side: the largest c with P(W < c) <= (1 - level) / 2."""
    ways = [1]
    for rank in range(1, n + 1):
        longer = ways + [0] * rank
        for total, count in enumerate(ways):
            longer[total + rank] += count
        ways = longer
    below, c = 0, 0
    while (below + ways[c]) / 2**n <= (1 - level) / 2:
        below += ways[c]
        c += 1
    return c


def median(values):
    """Of sorted values, at least one."""
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


if __name__ == "__main__":
    # Textbook values: the two-sided 5 % critical values of the signed-rank statistic are 0, 8 and 52 for n = 6, 10 and 20.
    assert [critical(n, 0.95) - 1 for n in (6, 10, 20)] == [0, 8, 52], [critical(n, 0.95) for n in (6, 10, 20)]
    assert ratio([(2.0, 1.0)] * 20) == (2.0, 2.0, 2.0)
    low_high = ratio([(1.0 + i / 100, 1.0) for i in range(20)])
    assert low_high[1] < low_high[0] < low_high[2]
    print("ok")
