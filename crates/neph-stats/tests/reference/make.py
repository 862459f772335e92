"""Makes fixture.txt: what SciPy, NumPy and statsmodels say for fixed inputs.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scipy==1.17.1 numpy==2.4.6 statsmodels
    /tmp/venv/bin/python make.py > fixture.txt

One case a line: name | argument lists | expected numbers. Numbers of a list are apart by blanks,
lists by semicolons. Numbers are written so that they read back as the same floats.
"""

import itertools

import numpy as np
import scipy
from scipy import special, stats
from statsmodels.stats.multitest import multipletests
import statsmodels

rng = np.random.default_rng(20261121)


def case(name, arguments, expected):
    lists = ["" if not len(a) else " ".join(repr(float(v)) for v in a) for a in arguments]
    print(name, "; ".join(lists), " ".join(repr(float(v)) for v in expected), sep=" | ")


def latencies(n, digits):
    return np.round(rng.lognormal(3, 0.6, n), digits)


def distributions():
    for a, x in itertools.product([0.5, 1, 2.5, 10, 40, 1000, 5e5], [0.01, 0.5, 0.9, 1, 1.1, 2]):
        if special.gammaincc(a, a * x) > 1e-290:
            case("gamma_above", [[a, a * x]], [special.gammaincc(a, a * x)])
    for a, b in itertools.product([0.5, 1, 3, 20, 400, 1e5], [0.5, 2, 7.5, 90, 3000]):
        for x in [0.001, 0.1, a / (a + b), 0.5, 0.97]:
            if special.betainc(a, b, x) > 1e-290:
                case("beta", [[a, b, x, 1 - x]], [special.betainc(a, b, x)])
    for z in [-8, -3, -1.2, -0.1, 0, 0.3, 1, 1.959964, 3, 6, 10, 20, 37]:
        case("normal_above", [[z]], [stats.norm.sf(z)])
    for p in [1e-300, 1e-12, 1e-4, 0.025, 0.3, 0.5, 0.51, 0.9, 0.975, 0.999999]:
        case("normal_quantile", [[p]], [stats.norm.ppf(p)])
    for f, t in itertools.product([1, 2, 4.5, 9, 30, 1000, 1e6], [-4, -0.5, 0, 0.2, 1, 2.5, 8, 40]):
        if stats.t.sf(t, f) > 1e-290:
            case("student_above", [[t, f]], [stats.t.sf(t, f)])
    for f, p in itertools.product([1, 2, 5, 29, 400, 1e5], [0.005, 0.025, 0.2, 0.5, 0.9, 0.975]):
        case("student_quantile", [[p, f]], [stats.t.ppf(p, f)])
    for f, x in itertools.product([1, 2, 3, 10, 60], [0, 0.1, 1, 3.84, 12, 50, 300]):
        case("chi_square_above", [[x, f]], [stats.chi2.sf(x, f)])
    for n, p in itertools.product([5, 60, 1000, 300000], [0.01, 0.5, 0.9, 0.999]):
        for k in sorted({0, int(n * p * 0.9), int(n * p), min(n - 1, int(n * p * 1.02) + 1)}):
            if stats.binom.cdf(k, n, p) > 1e-290:
                case("binomial_up_to", [[k, n, p]], [stats.binom.cdf(k, n, p)])
            if stats.binom.sf(k, n, p) > 1e-290:
                case("binomial_above", [[k, n, p]], [stats.binom.sf(k, n, p)])


def samples():
    for n, p in itertools.product([6, 7, 50, 400, 3000], [0.1, 0.5, 0.75, 0.9, 0.99, 0.999]):
        x = np.sort(latencies(n, 6))
        test = stats.quantile_test(x, p=p)
        interval = test.confidence_interval(confidence_level=0.95)
        # Where SciPy has no value for one end, Nephoscope takes the outermost one: not compared.
        if np.isfinite([interval.low, interval.high]).all():
            case("quantile", [[p], x], [np.quantile(x, p), interval.low, interval.high])
    for n, offset in itertools.product([2, 3, 20, 500], [0, 1e9]):
        x = np.sort(latencies(n, 4) + offset)
        low, high = stats.t.interval(0.95, n - 1, loc=x.mean(), scale=stats.sem(x))
        five = np.quantile(x, [0, 0.25, 0.5, 0.75, 1])
        case("describe", [x], [np.mean(x), np.std(x, ddof=1), low, high, *five])
    for n in [1, 10, 120]:
        x = np.sort(latencies(n, 0))
        cdf = stats.ecdf(x).cdf
        case("ecdf", [x], [v for pair in zip(cdf.quantiles, cdf.probabilities) for v in pair])
    for hits, n in [(0, 10), (1, 10), (5, 10), (10, 10), (0, 6000), (3, 6000), (999, 10**6)]:
        interval = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
        case("proportion", [[hits, n]], [interval.low, interval.high])
    x = np.array([3.0, 1, 3, 7, 7, 7, 2])
    case("ranks", [x], stats.rankdata(x))


def signed_rank(name, x, y, **how):
    test = stats.wilcoxon(x, y, zero_method="wilcox", correction=True, **how)
    case(name, [x, y], [test.pvalue])


def rank_sum(name, x, y, **how):
    test = stats.mannwhitneyu(x, y, **how)
    case(name, [x, y], [test.statistic, test.pvalue])


def all_arrangements():
    return stats.PermutationMethod(n_resamples=np.inf)


def tests():
    for n in [1, 3, 6, 10, 25, 50]:
        signed_rank("signed_rank_exact", latencies(n, 9), latencies(n, 9) + 2, method="exact")
    for n, digits in [(51, 9), (1000, 9)]:
        signed_rank("signed_rank_normal", latencies(n, digits), latencies(n, digits) + 1,
                    method="asymptotic")
    for m, n in [(1, 1), (3, 4), (4, 4), (8, 5), (12, 12), (30, 20)]:
        rank_sum("mannwhitney_exact", latencies(m, 9), latencies(n, 9) + 3, method="exact")
    for m, n in [(4, 5), (6, 6), (8, 3)]:
        rank_sum("mannwhitney_exact", rng.integers(0, 5, m), rng.integers(1, 6, n),
                 method=all_arrangements())
    for m, n, digits in [(26, 25, 9), (40, 30, 0), (500, 300, 0)]:
        rank_sum("mannwhitney_normal", latencies(m, digits), latencies(n, digits) + 2,
                 method="asymptotic")
    for p in [[0.01, 0.04, 0.03, 0.005], [0.5, 0.5], [0.9, 1e-9, 0.2, 0.2, 0.03, 1.0]]:
        case("holm", [p], multipletests(p, method="holm")[1])


print(f"# Made by make.py with SciPy {scipy.__version__}, NumPy {np.__version__}, "
      f"statsmodels {statsmodels.__version__}. Do not edit.")
distributions()
samples()
tests()
