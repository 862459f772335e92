//! Holds every calculation that SciPy, `numpy` or statsmodels has against their results, which
//! `make.py` wrote to `fixture.txt`.
//!
//! Each entry of `CHECKS` states how far its results may be off; a fixture line without a check, and
//! a check without a line, is a failure.

use std::collections::BTreeMap;

use neph_stats::{Basis, ConfidenceInterval, Level, PairedShift, ShiftTest, Sorted, StatsError};

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
    check("signed_rank_exact", 1e-12, |a| signed(&a[0], &a[1])),
    check("signed_rank_normal", 1e-12, |a| signed(&a[0], &a[1])),
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
    check("holm", 1e-15, |a| neph_stats::holm(&a[0])),
];

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

fn ends(interval: ConfidenceInterval) -> Vec<f64> {
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

/// The two-sided p value against no shift, from the one-sided ones.
fn signed(candidate: &[f64], baseline: &[f64]) -> Result<Vec<f64>, StatsError> {
    let differences = candidate.iter().zip(baseline).map(|(a, b)| a - b).collect();
    let shift = PairedShift::of_differences(differences)?;
    Ok(vec![
        (2.0 * shift.p_above(0.0).min(shift.p_below(0.0))).min(1.0),
    ])
}

fn shifted(basis: Basis, test: ShiftTest) -> Vec<f64> {
    assert_eq!(test.basis, basis);
    vec![test.statistic, test.p]
}

fn numbers(list: &str) -> Vec<f64> {
    list.split_whitespace()
        .map(|n| n.parse().expect("the fixture holds numbers"))
        .collect()
}

/// The largest relative error, or what else is wrong.
fn largest_error(check: &Check, arguments: &str, expected: &str) -> Result<f64, String> {
    let lists = arguments.split(';').map(numbers).collect();
    let computed = (check.compute)(&lists).map_err(|error| error.to_string())?;
    let expected = numbers(expected);
    if computed.len() != expected.len() {
        return Err(format!("found {computed:?}, expected {expected:?}"));
    }
    let errors = computed
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
        "found {computed:?}, expected {expected:?}: off by {worst:e}"
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
            Err(reason) => failures.push(format!("{name} {arguments:.80}: {reason}")),
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
