//! A step of the wall clock. Kernel timestamps around the step are dropped, and wall-clock times jump.

use neph_model::{EventKind, Warning};

use crate::diagnosis::{Confidence, Level, Need, Rule, RuleInput, RuleResult, Run};
use crate::numbers::millis;
use crate::text::{plural, to_f64};

pub(crate) const RULE: Rule = Rule {
    name: "clock-step",
    title: "clock step",
    limits: "The rule sees the clock of the client host only. It does not report a clock that is slewed: timestamps stay correct.",
    covers: &[],
    needs: &[Need::WallClock],
    evaluate,
};

/// chrony slews by at most 83.3 ms a second (8.3 %), ntpd by 0.5 ms. A larger change between two anchors, a
/// second apart, is a step.
const MAX_SLEW_MS: f64 = 100.0;

/// An experiment's steps.
struct Steps {
    /// As the probes reported them.
    reports: u32,
    /// The largest jump between two anchors in milliseconds, with its sign; 0 without a jump.
    jump: f64,
}

impl Steps {
    fn of(run: &Run<'_>) -> Option<Self> {
        let experiment = &run.experiment.experiment;
        let warned = experiment.warnings.iter().map(|warning| match warning {
            Warning::ClockStepped { times } => *times,
            _ => 0,
        });
        let events = run.experiment.events.iter();
        let events = events
            .filter(|event| event.kind == EventKind::ClockStepped)
            .count();
        let anchors: Vec<_> = experiment.anchors().collect();
        let jumps = anchors.windows(2).map(|pair| {
            let seconds = (pair[1].at - pair[0].at).secs_f64().max(1.0);
            let moved = (pair[1].offset() - pair[0].offset()).millis_f64();
            if moved.abs() > MAX_SLEW_MS * seconds {
                moved
            } else {
                0.0
            }
        });
        let jump = jumps.fold(0.0, |largest: f64, step| {
            if step.abs() > largest.abs() {
                step
            } else {
                largest
            }
        });
        let reports = warned.max().unwrap_or(0);
        let reports = reports.max(u32::try_from(events).unwrap_or(u32::MAX));
        (reports > 0 || jump != 0.0).then_some(Self { reports, jump })
    }
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let groups = input.grouped(|run| run.site().to_owned()).into_iter();
    groups
        .filter_map(|(site, runs)| diagnose_group(&site, &runs))
        .collect()
}

fn diagnose_group(site: &str, runs: &[&Run<'_>]) -> Option<RuleResult> {
    let observed: Vec<(&Run<'_>, Steps)> = runs
        .iter()
        .filter_map(|run| Some((*run, Steps::of(run)?)))
        .collect();
    let jump = observed.iter().map(|(_, steps)| steps.jump);
    let jump = jump.max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
    let host = if site.is_empty() {
        "the client host"
    } else {
        site
    };
    let size_text = if jump == 0.0 {
        String::new()
    } else {
        format!(", by up to {}", millis(jump))
    };
    let cause = format!(
        "The wall clock of {host} stepped during {}{size_text}. Kernel timestamps around the step are discarded, so stages are merged there, and wall-clock times before and after do not match. Round trips are not affected.",
        plural(observed.len(), "experiment"),
    );
    let remedy = "configure the clock to slew (chrony: makestep only at start), and repeat measurements that are compared with logs of other hosts";
    let step_count: u32 = observed.iter().map(|(_, steps)| steps.reports.max(1)).sum();
    let confidence = Confidence::new(
        Level::Sure,
        "the difference between wall clock and monotonic clock jumped",
    );
    let result = RuleResult::new(cause, remedy.to_owned(), confidence)
        .with("steps", f64::from(step_count), "steps")
        .with("farthest step", jump, "ms")
        .with("experiments", to_f64(observed.len()), "experiments")
        .observed_in(observed.iter().map(|(run, _)| *run));
    Some(result)
}
