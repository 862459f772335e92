//! How many flows are needed to know all paths after a router (the stopping rule of multipath detection;
//! Augustin, Friedman and Teixeira, "Multipath tracing with Paris traceroute", 2007).

/// Flows that must have passed a router with `known` next hops to rule out a further one. If there were
/// `known + 1`, each equally likely, one would be missed with a probability of at most `1 - confidence`: the
/// coupon collector's problem.
///
/// `known` from 1 to 1000, `confidence` between 0 and 1, both exclusive; `None` outside.
pub fn flows_to_rule_out(known: u32, confidence: f64) -> Option<u32> {
    let in_range = (1..=1000).contains(&known) && confidence > 0.0 && confidence < 1.0;
    if !in_range {
        return None;
    }
    // Probabilities of having seen 0, 1, 2 ... of all next hops. Inclusion and exclusion is shorter, but its
    // terms cancel beyond the precision of floats.
    let paths = usize::try_from(known).ok()? + 1;
    let total = f64::from(known + 1);
    let mut probabilities = vec![0.0; paths + 1];
    probabilities[0] = 1.0;
    let mut flows = 0;
    while probabilities[paths] < confidence {
        for (known_paths, unseen) in (1..=paths).rev().zip(0_u32..) {
            // `unseen` are still unseen when `known_paths` have been seen.
            let stays = (total - f64::from(unseen)) / total;
            let joins = f64::from(unseen + 1) / total;
            probabilities[known_paths] =
                probabilities[known_paths] * stays + probabilities[known_paths - 1] * joins;
        }
        probabilities[0] = 0.0;
        flows += 1;
        // With a confidence within float precision of 1 the sum may never reach it.
        if flows == 1_000_000 {
            return None;
        }
    }
    Some(flows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(confidence: f64) -> Vec<Option<u32>> {
        (1..=10)
            .map(|known| flows_to_rule_out(known, confidence))
            .collect()
    }

    #[test]
    fn the_probe_counts_match_the_paper() {
        // 95 %: the paper's own numbers.
        let published = [6, 11, 16, 21, 27, 33, 38, 44, 51, 57];
        assert_eq!(table(0.95), published.map(Some));
        // 99 %: 2 / 2^7 is more than 1 %, 2 / 2^8 less; the test below checks the others.
        let derived = [8, 15, 21, 28, 36, 43, 51, 58, 66, 74];
        assert_eq!(table(0.99), derived.map(Some));
    }

    #[test]
    fn the_probe_counts_match_inclusion_exclusion() {
        for known in 1..=12_u32 {
            let flows = flows_to_rule_out(known, 0.99).expect("in range");
            let missed = |flows: u32| -> f64 {
                let paths = f64::from(known + 1);
                let (mut sum, mut choose) = (0.0, 1.0);
                for out in 1..=known {
                    choose *= (paths - f64::from(out) + 1.0) / f64::from(out);
                    let stay = (1.0 - f64::from(out) / paths).powf(f64::from(flows));
                    sum += if out % 2 == 1 { choose } else { -choose } * stay;
                }
                sum
            };
            assert!(missed(flows) <= 0.01 && missed(flows - 1) > 0.01, "{known}");
        }
    }

    #[test]
    fn invalid_counts_and_confidences_are_refused() {
        assert_eq!(flows_to_rule_out(0, 0.95), None);
        assert_eq!(flows_to_rule_out(1001, 0.95), None);
        for confidence in [0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(flows_to_rule_out(1, confidence), None);
        }
        assert!(flows_to_rule_out(1000, 0.999).is_some());
    }
}
