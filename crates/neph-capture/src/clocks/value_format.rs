//! Offsets and rates as text: always with their error bound, and with no digits below it except for steps.

use neph_text::decimals;

const UNITS: [(i64, &str); 4] = [
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
];

/// `+3.0000123 s ± 8.3 us`: the bound is rounded up.
pub fn offset(nanos: i64, bound: i64) -> String {
    format!("{} ± {}", value_text(nanos, bound), bound_text(bound))
}

/// `+500 us ± 20.5 ms`: a step has at least three digits. A detected step exists, however large its error
/// bound is.
pub fn step(by: i64, bound: i64) -> String {
    let digits = bound.min(by.saturating_abs() / 10);
    format!("{} ± {}", value_text(by, digits), bound_text(bound))
}

/// `+3.0000123 s`: digits down to a tenth of the bound.
pub fn value_text(nanos: i64, bound: i64) -> String {
    let (unit, name) = unit_of(nanos.saturating_abs().max(bound));
    let mut digits = 0;
    let mut last = unit;
    while last > 1 && last > bound / 10 {
        last /= 10;
        digits += 1;
    }
    // With integers: a float holds the nanoseconds of 104 days only.
    let half = last / 2;
    let rounded = nanos.unsigned_abs().saturating_add(half.unsigned_abs()) / last.unsigned_abs();
    let per_unit = (unit / last).unsigned_abs();
    let (integer, fraction) = (rounded / per_unit, rounded % per_unit);
    let sign = if nanos < 0 && rounded > 0 { '-' } else { '+' };
    if digits == 0 {
        return format!("{sign}{integer} {name}");
    }
    format!("{sign}{integer}.{fraction:0digits$} {name}")
}

/// A bound with three digits, rounded up.
pub fn bound_text(bound: i64) -> String {
    let (unit, name) = unit_of(bound);
    let units = bound / unit;
    let last = match units {
        100.. => unit,
        10.. => (unit / 10).max(1),
        _ => (unit / 100).max(1),
    };
    let rounded = bound.saturating_add(last - 1) / last;
    let per_unit = unit / last;
    let digits = usize::try_from(per_unit.ilog10()).unwrap_or(0);
    if digits == 0 {
        return format!("{rounded} {name}");
    }
    let (units, fraction) = (rounded / per_unit, rounded % per_unit);
    format!("{units}.{fraction:0digits$} {name}")
}

/// `+12.35 ± 0.12 ppm`, from fractions.
pub fn rate(fraction: f64, bound: f64) -> String {
    let (ppm, bound) = (fraction * 1e6, bound * 1e6);
    let digits = match bound {
        b if b >= 50.0 => 0,
        b if b >= 5.0 => 1,
        b if b >= 0.5 => 2,
        b if b >= 0.05 => 3,
        _ => 4,
    };
    let scale = 10_f64.powi(digits);
    let rounded_bound = (bound * scale).ceil() / scale;
    let digits = usize::try_from(digits).unwrap_or(0);
    format!(
        "{} ± {rounded_bound:.digits$} ppm",
        decimals::signed(ppm, digits)
    )
}

/// A fraction in parts per million, without binary rounding noise and without a minus before 0.
pub fn ppm(fraction: f64) -> f64 {
    // -0.0 + 0.0 is 0.0.
    (fraction * 1e12).round() / 1e6 + 0.0
}

fn unit_of(nanos: i64) -> (i64, &'static str) {
    let named_unit = UNITS.into_iter().find(|(unit, _)| nanos >= *unit);
    named_unit.unwrap_or((1, "ns"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_below_the_error_bound_are_omitted() {
        assert_eq!(offset(3_000_012_345, 8_201), "+3.0000123 s ± 8.21 us");
        assert_eq!(offset(-12_345, 8_201), "-12.3 us ± 8.21 us");
        assert_eq!(offset(0, 40), "+0 ns ± 40 ns");
        assert_eq!(offset(-999_999_999, 1), "-999.999999 ms ± 1 ns");
        assert_eq!(offset(7, 20_000_000), "+0 ms ± 20.0 ms");
        assert_eq!(
            value_text(1_795_381_460_775_046_037, 9),
            "+1795381460.775046037 s"
        );
        assert_eq!(offset(i64::MIN, 1_000_000_000), "-9223372036.9 s ± 1.00 s");
    }

    #[test]
    fn clock_steps_are_never_rounded_to_zero() {
        assert_eq!(step(500_000, 20_460_000), "+500 us ± 20.5 ms");
        assert_eq!(step(-1_234_567, 20_000_000), "-1.23 ms ± 20.0 ms");
        assert_eq!(step(12_345_678, 20_000_000), "+12.3 ms ± 20.0 ms");
        assert_eq!(step(3_000_012_345, 8_201), "+3.0000123 s ± 8.21 us");
        assert_eq!(step(i64::MIN, 1), "-9223372036.854775808 s ± 1 ns");
        assert_eq!(step(0, 40), "+0 ns ± 40 ns");
    }

    #[test]
    fn error_bounds_are_never_rounded_down() {
        assert_eq!(
            [999, 1_000, 1_001, 100_001].map(bound_text),
            ["999 ns", "1.00 us", "1.01 us", "101 us"]
        );
        assert_eq!(rate(12.345_6e-6, 0.101e-6), "+12.346 ± 0.101 ppm");
        assert_eq!(ppm(5e-8).to_string(), "0.05");
        assert_eq!(rate(-40e-6, 300e-6), "-40 ± 300 ppm");
    }

    #[test]
    fn values_rounded_to_zero_have_no_minus_sign() {
        assert_eq!(offset(-7, 20_000_000), "+0 ms ± 20.0 ms");
        assert_eq!(offset(-600_000, 20_000_000), "-1 ms ± 20.0 ms");
        assert_eq!(rate(-0.4e-6, 300e-6), "+0 ± 300 ppm");
        assert_eq!(ppm(-1e-14).to_string(), "0");
    }
}
