//! The minimum of a function of a few numbers, without derivatives.
//!
//! Nelder and Mead (1965), with the coefficients of Lagarias et al. (1998), and a restart from the best point,
//! because a simplex may collapse before the minimum.

/// Where a function is least.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimum {
    /// The arguments.
    pub at: Vec<f64>,
    /// The value there.
    pub value: f64,
}

/// Iterations of one run of the simplex.
const MAX_ITERATIONS: usize = 2_000;
const RESTARTS: usize = 4;
/// Relative difference of values at which a run ends.
const TOLERANCE: f64 = 1e-13;

/// The minimum near `start`. `step` is the size of the first simplex, in each direction. A function value that
/// is not a number counts as infinite.
pub fn minimum(start: &[f64], step: f64, function: impl Fn(&[f64]) -> f64) -> Minimum {
    let value_of = |at: &[f64]| {
        let value = function(at);
        if value.is_nan() { f64::INFINITY } else { value }
    };
    let mut best = Minimum {
        value: value_of(start),
        at: start.to_vec(),
    };
    for _ in 0..=RESTARTS {
        let found = run(&best.at, step, &value_of);
        let gain = best.value - found.value;
        if found.value <= best.value {
            best = found;
        }
        if gain <= TOLERANCE * best.value.abs() {
            break;
        }
    }
    best
}

fn run(start: &[f64], step: f64, value_of: &dyn Fn(&[f64]) -> f64) -> Minimum {
    let point = |at: Vec<f64>| Minimum {
        value: value_of(&at),
        at,
    };
    let mut simplex = vec![point(start.to_vec())];
    for index in 0..start.len() {
        let mut at = start.to_vec();
        at[index] += step;
        simplex.push(point(at));
    }
    for _ in 0..MAX_ITERATIONS {
        simplex.sort_by(|one, other| one.value.total_cmp(&other.value));
        let (best, worst) = (simplex[0].value, simplex[simplex.len() - 1].value);
        if worst - best <= TOLERANCE * (best.abs() + TOLERANCE) {
            break;
        }
        let next = improved(&simplex, &point);
        match next {
            Some(next) => {
                let last = simplex.len() - 1;
                simplex[last] = next;
            }
            None => shrink(&mut simplex, &point),
        }
    }
    simplex.sort_by(|one, other| one.value.total_cmp(&other.value));
    simplex.swap_remove(0)
}

/// A point to replace the worst one of a sorted simplex; `None` if it has to shrink.
fn improved(simplex: &[Minimum], point: &dyn Fn(Vec<f64>) -> Minimum) -> Option<Minimum> {
    let (worst, rest) = simplex.split_last()?;
    let (best, second_worst) = (rest.first()?, rest.last()?);
    #[expect(clippy::cast_precision_loss, reason = "a few dimensions")]
    let count = rest.len() as f64;
    let centre: Vec<f64> = (0..worst.at.len())
        .map(|index| rest.iter().map(|vertex| vertex.at[index]).sum::<f64>() / count)
        .collect();
    let towards = |factor: f64| {
        let pairs = centre.iter().zip(&worst.at);
        point(
            pairs
                .map(|(centre, worst)| centre + factor * (centre - worst))
                .collect(),
        )
    };
    let reflected = towards(1.0);
    if reflected.value < best.value {
        let expanded = towards(2.0);
        return Some(if expanded.value < reflected.value {
            expanded
        } else {
            reflected
        });
    }
    if reflected.value < second_worst.value {
        return Some(reflected);
    }
    let (contracted, limit) = if reflected.value < worst.value {
        (towards(0.5), reflected.value)
    } else {
        (towards(-0.5), worst.value)
    };
    (contracted.value < limit).then_some(contracted)
}

fn shrink(simplex: &mut [Minimum], point: &dyn Fn(Vec<f64>) -> Minimum) {
    let Some((best, rest)) = simplex.split_first_mut() else {
        return;
    };
    for vertex in rest {
        let pairs = best.at.iter().zip(&vertex.at);
        *vertex = point(pairs.map(|(best, at)| best + 0.5 * (at - best)).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_of_known_functions_is_found() {
        let rosenbrock =
            |at: &[f64]| (1.0 - at[0]).powi(2) + 100.0 * (at[1] - at[0] * at[0]).powi(2);
        let found = minimum(&[-1.2, 1.0], 0.5, rosenbrock);
        assert!(
            found.at.iter().all(|one| (one - 1.0).abs() < 1e-5),
            "{found:?}"
        );
        let found = minimum(&[10.0], 1.0, |at| (at[0] - 3.0).abs());
        assert!((found.at[0] - 3.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn where_the_function_has_no_value_there_is_no_minimum() {
        let found = minimum(&[1.0, 1.0], 0.5, |at| {
            (at[0].ln() - 1.0).powi(2) + at[1].sqrt()
        });
        assert!((found.at[0] - 1.0_f64.exp()).abs() < 0.05, "{found:?}");
        assert!(found.at[1] >= 0.0 && found.value < 0.01, "{found:?}");
    }
}
