//! Ticks: round values along a scale whose labels never touch each other.

use super::{Scale, Spacing};

/// A labelled place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// Round values between a scale's ends. `label_length_px` returns the pixels that a label takes along the
/// axis, `axis_length_px` is the length of the axis. Labels keep 8 pixels between them.
pub(crate) fn ticks(
    scale: &Scale,
    axis_length_px: f64,
    label_length_px: &dyn Fn(&str) -> f64,
) -> Vec<Tick> {
    let candidates: Vec<Vec<f64>> = match scale.spacing {
        Spacing::Linear => linear_candidates(scale),
        Spacing::Logarithmic => logarithmic_candidates(scale),
    };
    let fitting_ticks = candidates
        .into_iter()
        .map(|values| make_ticks(scale, &values))
        .find(|ticks| {
            !ticks.is_empty() && labels_fit(scale, ticks, axis_length_px, label_length_px)
        });
    fitting_ticks.unwrap_or_default()
}

fn labels_fit(
    scale: &Scale,
    ticks: &[Tick],
    axis_length_px: f64,
    label_length_px: &dyn Fn(&str) -> f64,
) -> bool {
    ticks.windows(2).all(|neighbours| {
        let distance_px =
            (scale.share(neighbours[1].value) - scale.share(neighbours[0].value)) * axis_length_px;
        let two_lengths_px = [0, 1].map(|index| label_length_px(&neighbours[index].label));
        distance_px >= two_lengths_px[0].midpoint(two_lengths_px[1]) + 8.0
    })
}

/// Sets of multiples of 1, 2 or 5 times a power of ten, the finest (at most 8 ticks) first.
fn linear_candidates(scale: &Scale) -> Vec<Vec<f64>> {
    let span = scale.high - scale.low;
    let mut step_power = (span / 7.0).log10().floor();
    let mut candidates = Vec::new();
    for _ in 0..4 {
        for factor in [1.0, 2.0, 5.0] {
            let step = factor * 10_f64.powf(step_power);
            let first = (scale.low / step - 1e-9).ceil();
            let last = (scale.high / step + 1e-9).floor();
            if last - first > 7.0 {
                continue;
            }
            let mut values = Vec::new();
            let mut multiple = first;
            while multiple <= last {
                values.push(multiple * step);
                multiple += 1.0;
            }
            candidates.push(values);
        }
        step_power += 1.0;
    }
    candidates.retain(|values| !values.is_empty());
    candidates
}

/// 1-2-5 in each power of ten, then 1-3, then powers of ten, then every second of them ... For a
/// range that holds less than two of these, linear ticks.
fn logarithmic_candidates(scale: &Scale) -> Vec<Vec<f64>> {
    let first = (scale.low.log10() - 1e-9).floor();
    let last = (scale.high.log10() + 1e-9).ceil();
    let is_on_scale =
        |value: &f64| *value >= scale.low * (1.0 - 1e-9) && *value <= scale.high * (1.0 + 1e-9);
    let multiples = |power_step: f64, factors: &[f64]| {
        let mut values = Vec::new();
        let mut power = (first / power_step).floor() * power_step;
        while power <= last {
            values.extend(
                factors
                    .iter()
                    .map(|factor| factor * 10_f64.powf(power))
                    .filter(is_on_scale),
            );
            power += power_step;
        }
        values
    };
    let mut candidates = vec![
        multiples(1.0, &[1.0, 2.0, 5.0]),
        multiples(1.0, &[1.0, 3.0]),
        multiples(1.0, &[1.0]),
        multiples(2.0, &[1.0]),
        multiples(3.0, &[1.0]),
        multiples(6.0, &[1.0]),
    ];
    candidates.retain(|values| values.len() >= 2);
    if candidates.first().is_none_or(|finest| finest.len() < 3) {
        let mut finer = linear_candidates(scale);
        finer.append(&mut candidates);
        return finer;
    }
    candidates
}

fn make_ticks(scale: &Scale, values: &[f64]) -> Vec<Tick> {
    let step = match values {
        [first, second, ..] if scale.spacing == Spacing::Linear => second - first,
        _ => 0.0,
    };
    values
        .iter()
        .map(|value| Tick {
            value: *value,
            label: format_value(*value, step),
        })
        .collect()
}

/// As many decimals as the step, or the value itself, needs.
fn format_value(value: f64, step: f64) -> String {
    let resolution = if step > 0.0 { step } else { value.abs() };
    let power = if resolution > 0.0 {
        (resolution.log10() + 1e-9).floor()
    } else {
        0.0
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 9 decimals"
    )]
    let decimals = (-power).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    let text = if text
        .trim_start_matches('-')
        .chars()
        .all(|character| "0.".contains(character))
    {
        "0".to_owned()
    } else {
        text
    };
    text.replacen('-', "−", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale, axis_length_px: f64) -> Vec<String> {
        let label_length_px =
            |text: &str| 6.0 * f64::from(u16::try_from(text.chars().count()).unwrap());
        ticks(scale, axis_length_px, &label_length_px)
            .into_iter()
            .map(|tick| tick.label)
            .collect()
    }

    #[test]
    fn linear_ticks_are_round_and_get_sparser_with_less_room() {
        let scale = Scale::linear(0.0, 52.0);
        assert_eq!(labels(&scale, 400.0).join(" "), "0 10 20 30 40 50");
        assert_eq!(labels(&scale, 90.0).join(" "), "0 20 40");
        assert_eq!(
            labels(&Scale::linear(-0.3, 0.21), 400.0).join(" "),
            "−0.3 −0.2 −0.1 0 0.1 0.2"
        );
        assert_eq!(
            labels(&Scale::linear(40.01, 40.04), 300.0).join(" "),
            "40.010 40.015 40.020 40.025 40.030 40.035 40.040"
        );
    }

    #[test]
    fn logarithmic_ticks_thin_out_to_powers_of_ten() {
        let scale = Scale::logarithmic(0.9, 2000.0);
        assert_eq!(
            labels(&scale, 500.0).join(" "),
            "1 2 5 10 20 50 100 200 500 1000 2000"
        );
        assert_eq!(labels(&scale, 140.0).join(" "), "1 10 100 1000");
    }

    #[test]
    fn labels_never_touch_at_any_scale() {
        let label_length_px =
            |text: &str| 6.0 * f64::from(u16::try_from(text.chars().count()).unwrap());
        for low in [0.0001, 0.7, 3.9, 39.7, 1234.0] {
            for ratio in [1.00001, 1.01, 1.7, 12.0, 1e5] {
                for axis_length_px in [40.0, 120.0, 600.0] {
                    for scale in [
                        Scale::linear(low, low * ratio),
                        Scale::logarithmic(low, low * ratio),
                    ] {
                        let ticks = ticks(&scale, axis_length_px, &label_length_px);
                        assert!(
                            labels_fit(&scale, &ticks, axis_length_px, &label_length_px),
                            "{scale:?} {ticks:?}"
                        );
                    }
                }
            }
        }
    }
}
