//! Messages without a valid reply: how many were lost, and where most; how many were errors, or
//! could not be sent.

use neph_stats::{ConfidenceInterval, grouped_share, proportion};

use super::{Finding, FindingKind};
use crate::numbers::{count, percent};
use crate::text::{plural, to_f64};
use crate::{CampaignData, PlotSettings};

/// How a scenario's messages ended.
struct MessageOutcomes {
    scenario: usize,
    lost: usize,
    sent: usize,
    /// The 95 % confidence interval of the share of losses, from how much experiments differ: losses come
    /// together.
    interval: Option<ConfidenceInterval>,
    errors: usize,
    failed: usize,
    messages: usize,
}

impl MessageOutcomes {
    fn of(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Self {
        let (mut lost, mut errors, mut failed, mut messages) = (0, 0, 0, 0);
        let mut groups = Vec::new();
        for flow in data.main_flows(scenario, settings) {
            lost += flow.lost();
            groups.push((flow.lost(), flow.exchanges.len() - flow.failed()));
            errors += flow.errors();
            failed += flow.failed();
            messages += flow.exchanges.len();
        }
        Self {
            scenario,
            lost,
            sent: messages - failed,
            interval: grouped_share(&groups).ok().map(|share| share.interval),
            errors,
            failed,
            messages,
        }
    }

    fn share(&self) -> f64 {
        to_f64(self.lost) / to_f64(self.sent.max(1))
    }
}

pub(crate) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    if data.is_imported() {
        let text = "How many messages were lost is not known: the imported files hold replies only, so that quantiles are those of the replies.";
        return vec![Finding::new(FindingKind::Notable, "loss", text.to_owned())];
    }
    let indices = data.measured(settings).into_iter();
    let outcomes: Vec<MessageOutcomes> = indices
        .map(|scenario| MessageOutcomes::of(data, settings, scenario))
        .filter(|outcome| outcome.messages > 0)
        .collect();
    let not_sent_text = not_sent_text(data, &outcomes);
    let sentences = [
        errors_text(data, &outcomes),
        lost_text(data, &outcomes),
        not_sent_text,
    ]
    .into_iter()
    .flatten();
    let sentences: Vec<String> = sentences.collect();
    if sentences.is_empty() {
        return Vec::new();
    }
    let affected = outcomes
        .iter()
        .filter(|outcome| outcome.share() > 0.0)
        .count();
    let worst = outcomes
        .iter()
        .map(MessageOutcomes::share)
        .fold(0.0, f64::max);
    let failed = outcomes.iter().map(|outcome| outcome.failed).sum();
    let finding = Finding::new(FindingKind::Notable, "loss", sentences.join(" "))
        .with("scenarios_with_loss", to_f64(affected))
        .with("worst_share", worst)
        .with(
            "errors",
            to_f64(outcomes.iter().map(|outcome| outcome.errors).sum()),
        )
        .with("not_sent", to_f64(failed));
    vec![finding]
}

/// The sentence about messages that were sent; none if no message was.
fn lost_text(data: &CampaignData, outcomes: &[MessageOutcomes]) -> Option<String> {
    let with_sent: Vec<&MessageOutcomes> =
        outcomes.iter().filter(|outcome| outcome.sent > 0).collect();
    let affected = with_sent.iter().filter(|outcome| outcome.lost > 0).count();
    let by_share = |a: &&&MessageOutcomes, b: &&&MessageOutcomes| {
        let order = a.share().total_cmp(&b.share());
        order.then(b.scenario.cmp(&a.scenario))
    };
    let worst = with_sent.iter().max_by(by_share)?;
    if affected == 0 {
        let total = with_sent.iter().map(|outcome| outcome.sent).sum();
        let limit = proportion(0, total).map_or(1.0, |share| share.interval().high);
        // Messages that could not be sent might have been lost too.
        let subject = if outcomes.iter().any(|outcome| outcome.failed > 0) {
            "messages that were sent were lost"
        } else {
            "messages were lost"
        };
        return Some(format!(
            "0 of {} {subject}: the loss rate of single messages is below {} (95 % confidence). This bound does not hold for losses that come in bursts.",
            count(total),
            percent(limit)
        ));
    }
    let interval = worst.interval.map_or_else(String::new, |interval| {
        let (low, high) = (percent(interval.low), percent(interval.high));
        format!(", 95 % confidence interval {low} to {high}")
    });
    let scenarios_text = match with_sent.len() {
        1 => String::new(),
        total => format!(
            ", the scenario with the largest share; {affected} of {} had losses",
            plural(total, "scenario")
        ),
    };
    Some(format!(
        "{} of {} ({}{interval}) were lost in '{}'{scenarios_text}.",
        worst.lost,
        plural(worst.sent, "message"),
        percent(worst.share()),
        data.scenarios[worst.scenario].label(),
    ))
}

/// The sentence about messages that were answered, but not as expected; none if there are none.
fn errors_text(data: &CampaignData, outcomes: &[MessageOutcomes]) -> Option<String> {
    let errors: usize = outcomes.iter().map(|outcome| outcome.errors).sum();
    let affected = outcomes.iter().filter(|outcome| outcome.errors > 0).count();
    let worst = outcomes.iter().rev().max_by_key(|outcome| outcome.errors)?;
    (errors > 0).then(|| {
        format!(
            "{} not answered as expected (an HTTP error, an incomplete reply), in {affected} of {}, most in '{}': {} of {}. Such messages count as slower than every reply.",
            match errors {
                1 => "1 message was".to_owned(),
                more => format!("{} messages were", count(more)),
            },
            plural(outcomes.len(), "scenario"),
            data.scenarios[worst.scenario].label(),
            count(worst.errors),
            count(worst.messages),
        )
    })
}

/// The sentence about messages that could not be sent; none if all were.
fn not_sent_text(data: &CampaignData, outcomes: &[MessageOutcomes]) -> Option<String> {
    let failed: usize = outcomes.iter().map(|outcome| outcome.failed).sum();
    let affected = outcomes.iter().filter(|outcome| outcome.failed > 0).count();
    let worst = outcomes.iter().rev().max_by_key(|outcome| outcome.failed)?;
    (failed > 0).then(|| {
        format!(
            "{} could not be sent, in {affected} of {}, most in '{}': {} of {}. In response time, messages that were not sent count as slower than every reply.",
            plural(failed, "message"),
            plural(outcomes.len(), "scenario"),
            data.scenarios[worst.scenario].label(),
            count(worst.failed),
            count(worst.messages),
        )
    })
}
