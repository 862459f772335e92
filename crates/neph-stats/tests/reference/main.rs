//! Holds every calculation that SciPy, `numpy` or statsmodels has against their results, which
//! `make.py` wrote to `fixture.txt`.
//!
//! Each entry of `CHECKS` states how far its results may be off; a fixture line without a check, and
//! a check without a line, is a failure.

use std::collections::BTreeMap;

use neph_stats::{
    Basis, Experiment, GroupTest, Interval, Level, Resampling, ShiftTest, Sorted, Statistic,
    StatsError,
};

type Lists = Vec<Vec<f64>>;
type Compute = fn(&Lists) -> Result<Vec<f64>, StatsError>;

struct Check {
    name: &'static str,
    /// Largest error relative to the expected number (absolute below 1e-290).
    tolerance: f64,
    compute: Compute,
}

const fn check(name: &'static str, tolerance: f64, compute: Compute) -> Check {
    Check {
        name,
        tolerance,
        compute,
    }
}

const CHECKS: &[Check] = &[
    check("gamma_above", 1e-12, |a| {
        Ok(vec![neph_stats::incomplete_gamma_above(a[0][0], a[0][1])])
    }),
    check("beta", 1e-12, |a| {
        Ok(vec![neph_stats::incomplete_beta(
            a[0][0], a[0][1], a[0][2], a[0][3],
        )])
    }),
    check("normal_above", 1e-12, |a| {
        Ok(vec![neph_stats::normal_above(a[0][0])])
    }),
    check("normal_quantile", 1e-12, |a| {
        Ok(vec![neph_stats::normal_quantile(a[0][0])])
    }),
    check("student_above", 1e-12, |a| {
        Ok(vec![neph_stats::student_above(a[0][0], a[0][1])])
    }),
    check("student_quantile", 1e-12, |a| {
        Ok(vec![neph_stats::student_quantile(a[0][0], a[0][1])])
    }),
    check("chi_square_above", 1e-12, |a| {
        Ok(vec![neph_stats::chi_square_above(a[0][0], a[0][1])])
    }),
    check("binomial_up_to", 1e-12, |a| {
        Ok(vec![neph_stats::binomial_up_to(
            count(a[0][0]),
            count(a[0][1]),
            a[0][2],
        )])
    }),
    check("binomial_above", 1e-12, |a| {
        Ok(vec![neph_stats::binomial_above(
            count(a[0][0]),
            count(a[0][1]),
            a[0][2],
        )])
    }),
    check("quantile", 1e-14, |a| {
        let q = neph_stats::quantile(Sorted::check(&a[1])?, 0, a[0][0])?;
        Ok([q.value(), q.low(), q.high()].map(number).to_vec())
    }),
    check("describe", 1e-12, describe),
    check("ecdf", 1e-15, |a| {
        let points = neph_stats::ecdf(Sorted::check(&a[0])?, 0, 500)?;
        Ok(points.iter().flat_map(|p| [p.value, p.share]).collect())
    }),
    check("proportion", 1e-12, |a| {
        Ok(ends(
            neph_stats::proportion(count(a[0][0]), count(a[0][1]))?.interval(),
        ))
    }),
    check("ranks", 0.0, |a| Ok(neph_stats::ranks(&a[0])?.of)),
    check("wilcoxon_exact", 1e-12, |a| {
        Ok(signed(Basis::Exact, neph_stats::wilcoxon(&a[0], &a[1])?))
    }),
    check("wilcoxon_normal", 1e-12, |a| {
        Ok(signed(Basis::Normal, neph_stats::wilcoxon(&a[0], &a[1])?))
    }),
    check("mannwhitney_exact", 1e-12, |a| {
        Ok(shifted(
            Basis::Exact,
            neph_stats::mann_whitney(&a[0], &a[1])?,
        ))
    }),
    check("mannwhitney_normal", 1e-12, |a| {
        Ok(shifted(
            Basis::Normal,
            neph_stats::mann_whitney(&a[0], &a[1])?,
        ))
    }),
    check("kruskal", 1e-11, |a| Ok(grouped(neph_stats::kruskal(a)?))),
    check("friedman", 1e-11, |a| Ok(grouped(neph_stats::friedman(a)?))),
    check("holm", 1e-15, |a| neph_stats::holm(&a[0])),
    // Two random resamplings differ: at 100,000 rounds each by well below 1 % of these numbers.
    check("bootstrap_mean", 0.01, |a| {
        bootstrap(&a[0], Statistic::Mean)
    }),
    check("bootstrap_median", 0.01, |a| {
        bootstrap(&a[0], Statistic::Quantile(0.5))
    }),
    check("bootstrap_difference", 0.05, |a| {
        let (first, second) = (singles(&a[0])?, singles(&a[1])?);
        let shift = neph_stats::bootstrap_difference(&first, &second, Statistic::Mean, RESAMPLING)?;
        Ok([
            vec![shift.estimate],
            shift.interval.map(ends).unwrap_or_default(),
        ]
        .concat())
    }),
];

const RESAMPLING: Resampling = Resampling {
    seed: 1,
    rounds: 100_000,
};

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the fixture has whole counts in these places"
)]
fn count(x: f64) -> usize {
    x as usize
}

fn number(level: Level) -> f64 {
    level.number().unwrap_or(f64::INFINITY)
}

fn ends(interval: Interval) -> Vec<f64> {
    vec![interval.low, interval.high]
}

fn describe(a: &Lists) -> Result<Vec<f64>, StatsError> {
    let d = neph_stats::describe(Sorted::check(&a[0])?)?;
    let five = [d.five.min, d.five.q1, d.five.median, d.five.q3, d.five.max];
    let spread = [vec![d.mean], d.sd.into_iter().collect()].concat();
    Ok([
        spread,
        d.mean_interval.map(ends).unwrap_or_default(),
        five.to_vec(),
    ]
    .concat())
}

/// SciPy gives the smaller of the two rank sums, Nephoscope that of the positive differences.
fn signed(basis: Basis, test: ShiftTest) -> Vec<f64> {
    assert_eq!(test.basis, basis);
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let all = (test.n * (test.n + 1)) as f64 / 2.0;
    vec![test.statistic.min(all - test.statistic), test.p]
}

fn shifted(basis: Basis, test: ShiftTest) -> Vec<f64> {
    assert_eq!(test.basis, basis);
    vec![test.statistic, test.p]
}

fn grouped(test: GroupTest) -> Vec<f64> {
    vec![test.statistic, test.p]
}

fn singles(values: &[f64]) -> Result<Vec<Experiment<'_>>, StatsError> {
    values
        .chunks(1)
        .map(|one| {
            Ok(Experiment {
                replies: Sorted::check(one)?,
                lost: 0,
            })
        })
        .collect()
}

fn bootstrap(values: &[f64], statistic: Statistic) -> Result<Vec<f64>, StatsError> {
    let found = neph_stats::bootstrap(&singles(values)?, statistic, RESAMPLING)?;
    Ok([found.value, found.low, found.high].map(number).to_vec())
}

fn numbers(list: &str) -> Vec<f64> {
    list.split_whitespace()
        .map(|n| n.parse().expect("the fixture holds numbers"))
        .collect()
}

/// The largest relative error, or what else is wrong.
fn largest_error(check: &Check, arguments: &str, expected: &str) -> Result<f64, String> {
    let lists = arguments.split(';').map(numbers).collect();
    let found = (check.compute)(&lists).map_err(|error| error.to_string())?;
    let expected = numbers(expected);
    if found.len() != expected.len() {
        return Err(format!("found {found:?}, expected {expected:?}"));
    }
    let errors = found
        .iter()
        .zip(&expected)
        .map(|(f, e)| (f - e).abs() / e.abs().max(1e-290));
    let worst = errors.fold(
        0.0,
        |worst: f64, e| if e.is_nan() { e } else { worst.max(e) },
    );
    if worst <= check.tolerance {
        return Ok(worst);
    }
    Err(format!(
        "found {found:?}, expected {expected:?}: off by {worst:e}"
    ))
}

#[test]
fn agrees_with_scipy() {
    let mut worst: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    let mut failures = Vec::new();
    for line in include_str!("fixture.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let mut fields = line.split(" | ");
        let mut field = || fields.next().expect("each line has three fields");
        let (name, arguments, expected) = (field(), field(), field());
        let check = CHECKS.iter().find(|check| check.name == name);
        let check = check.unwrap_or_else(|| panic!("no check is called {name}"));
        match largest_error(check, arguments, expected) {
            Ok(error) => {
                let entry = worst.entry(name).or_default();
                *entry = (entry.0 + 1, entry.1.max(error));
            }
            Err(why) => failures.push(format!("{name} {arguments:.80}: {why}")),
        }
    }
    println!("{worst:#?}");
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert_eq!(
        worst.len(),
        CHECKS.len(),
        "a check has no line in the fixture"
    );
}
