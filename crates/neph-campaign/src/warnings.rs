//! Which quality warnings an experiment earns, from its figures and its host's load. Pure.
//!
//! The thresholds and where they come from are with [`Limits`].

use neph_model::{Answer, Load, Measure, Warning};

use crate::meter::Meter;
use crate::plan::Limits;

/// The warnings that figures and load give rise to, in the order of [`Warning`].
pub(crate) fn warnings(meter: &Meter, load: Option<Load>, limits: &Limits) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let bound = limits.lateness_p99;
    if let Some((_, p99)) = meter.lateness().filter(|(_, p99)| *p99 > bound) {
        warnings.push(Warning::SenderLate { p99, bound });
    }
    let exceeds =
        |percent: fn(Load) -> f64, limit: f64| load.map(percent).filter(|percent| *percent > limit);
    if let Some(percent) = exceeds(|load| load.steal_percent, limits.steal_percent) {
        warnings.push(Warning::CpuStolen { percent });
    }
    if let Some(percent) = exceeds(|load| load.busy_percent, limits.busy_percent) {
        warnings.push(Warning::CpuSaturated { percent });
    }
    let percent = meter.unstamped_percent();
    if percent > limits.timestamps_missing_percent {
        warnings.push(Warning::TimestampsMissing { percent });
    }
    let times = meter.connections_lost();
    if times > 0 {
        warnings.push(Warning::Reconnected { times });
    }
    warnings.extend(error_answers_warning(meter));
    warnings.extend(local_send_warning(meter));
    warnings.extend(meter.residence_times().warning());
    let replies = meter.tally().replies;
    // An experiment without a reply has failed; measuring longer would not help.
    if (1..limits.min_replies).contains(&replies) {
        warnings.push(Warning::FewMessages { replies });
    }
    warnings
}

fn error_answers_warning(meter: &Meter) -> Option<Warning> {
    let tally = meter.tally();
    let errors = |answer: Answer| answer.is_error().then_some(answer);
    let most_frequent = meter.answers().most_frequent(errors);
    (tally.errors > 0).then_some(Warning::UnexpectedAnswers {
        messages: tally.errors,
        of: tally.messages,
        most_frequent: most_frequent.map(|(answer, _)| answer),
    })
}

fn local_send_warning(meter: &Meter) -> Option<Warning> {
    let local_fault = |answer| match answer {
        Answer::Local(fault) => Some(fault),
        _ => None,
    };
    let (fault, _) = meter.answers().most_frequent(local_fault)?;
    let counts = meter.answers().iter();
    let messages = counts.filter(|(answer, _)| local_fault(*answer).is_some());
    Some(Warning::NotSentHere {
        messages: messages.map(|(_, count)| count).sum(),
        of: meter.tally().messages,
        fault,
    })
}

/// Whether what is measured causes the warning itself: a throughput test may use all CPU time, and its
/// limit names that.
pub(crate) const fn is_expected(warning: &Warning, measure: &Measure) -> bool {
    matches!(
        (warning, measure),
        (Warning::CpuSaturated { .. }, Measure::Throughput(_))
    )
}
