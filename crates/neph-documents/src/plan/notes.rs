//! Notes for the reader of a valid plan.

use neph_campaign::estimate::{Estimate, estimate};
use neph_campaign::{Plan, expand};
use neph_model::Span;

use super::needed_blocks;
use super::time;

const NANOS_PER_MINUTE: i64 = 60_000_000_000;

/// All notes about a plan, for `neph check`, `neph plan` and `neph run`.
pub fn notes(plan: &Plan) -> Vec<String> {
    let notes = plan.notes.iter().cloned();
    notes
        .chain(needed_blocks::note(plan))
        .chain(late_blocks(plan))
        .collect()
}

/// A block that takes longer than the time until the next one makes each block start late.
fn late_blocks(plan: &Plan) -> Option<String> {
    let cost = estimate(plan, &expand::scenarios(plan));
    if !cost.outlasts_interval(plan) {
        return None;
    }
    let content = content_text(&cost);
    let block_time = time(cost.block);
    let path = plan.path.to_ascii_lowercase();
    let extension = path.rsplit('.').next().unwrap_or_default();
    let minutes = (cost.block.nanos() - 1) / NANOS_PER_MINUTE + 1;
    let (keys, value) = if matches!(extension, "yaml" | "yml") {
        (
            ["runs_interval", "runs_step_duration"],
            format!("runs_interval: {minutes}"),
        )
    } else {
        (
            ["block_interval", "duration"],
            format!("block_interval = \"{minutes}min\""),
        )
    };
    Some(format!(
        "a block takes {block_time} ({content}) and {} is {}: each block starts late; write {value}, or a \
         shorter {}",
        keys[0],
        time(plan.block_interval),
        keys[1],
    ))
}

/// `experiments 6 min 0 s, bandwidth checks 5 s`.
fn content_text(cost: &Estimate) -> String {
    let experiments = time(cost.block - cost.checks);
    if cost.checks == Span::ZERO {
        return format!("experiments {experiments}");
    }
    format!(
        "experiments {experiments}, bandwidth checks {}",
        time(cost.checks)
    )
}

#[cfg(test)]
mod tests {
    use neph_campaign::plan;
    use neph_text::Source;

    use super::*;

    fn late_blocks_note(name: &str, text: &str) -> Option<String> {
        late_blocks(&plan::read(&Source::new(name, text)).expect("a good plan"))
    }

    /// Two steps of 30 s fill a run of a minute; the bandwidth check of 5 s does not fit.
    #[test]
    fn a_run_that_is_shorter_than_its_steps_and_checks_is_reported() {
        let settings = "runs: 2\nruns_interval: 1\nruns_step_duration: 30\nendpoints:\n\
            - description: a\n  destination: \"10.0.0.1:80\"\nintervals: [25, 100]\nmsg_sizes: [64]\n";
        assert_eq!(late_blocks_note("s.yaml", settings), None);
        let settings_with_check =
            format!("{settings}iperf_destinations:\n- name: b\n  ip: 10.0.0.1\n  port: 5201\n");
        let expected = "a block takes 1 min 5 s (experiments 1 min 0 s, bandwidth checks 5 s) and \
            runs_interval is 1 min 0 s: each block starts late; write runs_interval: 2, or a shorter \
            runs_step_duration";
        assert_eq!(
            late_blocks_note("s.yaml", &settings_with_check).as_deref(),
            Some(expected)
        );
        let single_run = settings_with_check.replace("runs: 2", "runs: 1");
        assert_eq!(late_blocks_note("s.yaml", &single_run), None);
        let plan = "version = 1\nname = \"p\"\nblocks = 3\nblock_interval = \"10s\"\ninterval = \"1s\"\n\
            duration = \"20s\"\n[[endpoint]]\nname = \"a\"\nurl = \"ws://10.0.0.1:80\"\n";
        let note = late_blocks_note("p.toml", plan).expect("20 s do not fit into 10 s");
        assert!(
            note.starts_with("a block takes 20 s (experiments 20 s) and block_interval is 10 s"),
            "{note}"
        );
    }
}
