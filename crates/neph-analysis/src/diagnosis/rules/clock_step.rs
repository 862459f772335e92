//! A wall clock that stepped: kernel stamps around the step are dropped, and moments told in
//! wall-clock time jump.

use neph_model::{EventKind, Warning};

use crate::diagnosis::{Confidence, Found, Level, Need, Rule, Run, Sight};
use crate::numbers::millis;
use crate::words::{plural, real};

pub(crate) const RULE: Rule = Rule {
    name: "clock-step",
    title: "clock step",
    limits: "It sees our own clock only; the peer's wall clock enters nothing but the comparison of logs. A clock that is slewed fast, not stepped, it leaves alone: marks do not suffer from it.",
    covers: &[],
    needs: &[Need::WallClock],
    look,
};

/// chrony slews by at most 83.3 ms a second (8.3 %), ntpd by 0.5 ms: what moves the wall clock
/// further between two anchors, a second apart, was a step.
const SLEWED_MS: f64 = 100.0;

/// An experiment's steps.
struct Steps {
    /// As the probes saw them.
    told: u32,
    /// The farthest jump between two anchors in milliseconds, with its sign; 0 without one.
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
            if moved.abs() > SLEWED_MS * seconds {
                moved
            } else {
                0.0
            }
        });
        let jump = jumps.fold(
            0.0,
            |most: f64, one| if one.abs() > most.abs() { one } else { most },
        );
        let told = warned.max().unwrap_or(0);
        let told = told.max(u32::try_from(events).unwrap_or(u32::MAX));
        (told > 0 || jump != 0.0).then_some(Self { told, jump })
    }
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let groups = sight.grouped(|run| run.site().to_owned()).into_iter();
    groups
        .filter_map(|(site, runs)| told(&site, &runs))
        .collect()
}

fn told(site: &str, runs: &[&Run<'_>]) -> Option<Found> {
    let seen: Vec<(&Run<'_>, Steps)> = runs
        .iter()
        .filter_map(|run| Some((*run, Steps::of(run)?)))
        .collect();
    let jump = seen.iter().map(|(_, steps)| steps.jump);
    let jump = jump.max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
    let who = if site.is_empty() { "our host" } else { site };
    let how_far = if jump == 0.0 {
        String::new()
    } else {
        format!(", at the farthest by {}", millis(jump))
    };
    let cause = format!(
        "The wall clock of {who} stepped during {}{how_far}: kernel stamps around it were dropped, so stages are merged there; times of day before and after do not fit together. Round trips are not affected.",
        plural(seen.len(), "experiment"),
    );
    let remedy = "let the clock be slewed, not stepped (chrony: makestep only at start), and measure again what must be compared with other hosts' logs";
    let times: u32 = seen.iter().map(|(_, steps)| steps.told.max(1)).sum();
    let confidence = Confidence::new(Level::Sure, "the wall and the monotonic clock moved apart");
    let found = Found::new(cause, remedy.to_owned(), confidence)
        .with("steps", f64::from(times), "steps")
        .with("farthest step", jump, "ms")
        .with("experiments", real(seen.len()), "experiments")
        .seen_in(seen.iter().map(|(run, _)| *run));
    Some(found)
}
