//! Progress of a campaign on standard error: a live line on a terminal, otherwise one line per
//! experiment.

use std::collections::BTreeSet;

use neph_campaign::{CampaignEvent, CampaignProgress, Observer, RunningFigures};
use neph_model::{
    Campaign, CampaignId, Experiment, ExperimentStatus, Scenario, Span, Throughput, Traceroute,
    Unanswered, Warning,
};

use super::alarm_reporter::AlarmReporter;
use crate::metrics::RunningExporters;
use crate::metrics::run::RunMetrics;
use crate::output;
use neph_documents::plan::time;
use neph_documents::wall_time;
use neph_text::counted::counted;

/// Shows progress.
#[derive(Debug)]
pub(super) struct ProgressReporter {
    is_terminal: bool,
    is_quiet: bool,
    remaining: Span,
    completed_share: String,
    /// The campaign, after it is in the store.
    campaign: Option<CampaignId>,
    /// Why there are no ICMP echoes, if known.
    echo_failure_reasons: BTreeSet<String>,
    alarm_reporter: AlarmReporter,
    metrics: RunMetrics,
    exporters: Option<RunningExporters>,
}

impl ProgressReporter {
    pub(super) fn new(is_quiet: bool, alarm_reporter: AlarmReporter) -> Self {
        Self {
            is_terminal: output::can_rewrite(),
            is_quiet,
            remaining: Span::ZERO,
            completed_share: String::new(),
            campaign: None,
            echo_failure_reasons: BTreeSet::new(),
            alarm_reporter,
            metrics: RunMetrics::default(),
            exporters: None,
        }
    }

    /// As above, and exports counts.
    pub(super) fn with_metrics(self, metrics: RunMetrics, exporters: RunningExporters) -> Self {
        Self {
            metrics,
            exporters: Some(exporters),
            ..self
        }
    }

    /// Ends: waits for pending webhook reports, for a limited time.
    pub(super) fn finish(self) {
        self.alarm_reporter.finish();
        if let Some(exporters) = self.exporters {
            exporters.finish();
        }
    }

    pub(super) const fn campaign(&self) -> Option<CampaignId> {
        self.campaign
    }

    /// The displayed warnings: the reason of missing ICMP echoes only once.
    fn warning_text(&mut self, warning: &Warning) -> String {
        match warning {
            Warning::EchoMissing { reason, .. }
                if !self.echo_failure_reasons.insert(reason.clone()) =>
            {
                format!("  ! {}: no ICMP echo, as before", warning.code())
            }
            // The reason was shown when the lab came up.
            Warning::NamespaceFallback { .. } => {
                format!("  ! {}: namespaces instead of guests", warning.code())
            }
            _ => format!("  ! {warning}"),
        }
    }

    fn set_progress(&mut self, progress: CampaignProgress, remaining: Option<Span>) {
        self.remaining = remaining.unwrap_or(self.remaining);
        self.completed_share = format!("{}/{}", progress.complete, progress.total);
    }

    /// Alarms are printed even without progress output.
    fn report_alarm(&self, event: &CampaignEvent<'_>) {
        if let CampaignEvent::Alarm {
            experiment,
            scenario,
            change,
        } = event
        {
            self.update_line("");
            self.alarm_reporter.report(experiment, scenario, change);
        }
    }

    /// Prints the result of an experiment, with its warnings.
    fn print_experiment_end(
        &mut self,
        experiment: &Experiment,
        scenario: &Scenario,
        figures: &RunningFigures,
    ) {
        let (block, label) = (experiment.block + 1, scenario.label());
        let warning_texts = experiment
            .warnings
            .iter()
            .map(|warning| self.warning_text(warning));
        let warnings_text: String = warning_texts.collect();
        let end_text = end_text(experiment, figures) + &warnings_text;
        self.print_line(&format!(
            "[{}] block {block} {label}: {end_text}",
            self.completed_share
        ));
    }

    /// Updates the progress line.
    fn update_line(&self, line: &str) {
        if self.is_terminal && !self.is_quiet {
            output::rewrite(line);
        }
    }

    /// Prints a permanent line.
    fn print_line(&self, line: &str) {
        if !self.is_quiet {
            self.update_line("");
            output::say(line);
        }
    }
}

/// The progress of an experiment in words: the seconds of a transfer, otherwise messages and their
/// values.
fn progress_text(scenario: &Scenario, due_messages: u64, figures: &[RunningFigures]) -> String {
    let total = scenario.messages;
    if scenario.measure().is_transfer() {
        return format!("{due_messages}/{total} s");
    }
    let flow_suffix = scenario.flows().map_or("", |_| " of each flow");
    format!(
        "{due_messages}/{total} messages{flow_suffix}, {}",
        figures_line_of_all(figures)
    )
}

impl Observer for ProgressReporter {
    fn report(&mut self, event: &CampaignEvent<'_>) {
        self.metrics.add_event(event);
        match event {
            CampaignEvent::Begun {
                campaign,
                scenarios,
                progress,
                remaining,
            } => {
                self.campaign = Some(campaign.id);
                self.set_progress(*progress, Some(*remaining));
                self.print_line(&begin_line(
                    campaign,
                    scenarios.len(),
                    *progress,
                    *remaining,
                ));
            }
            CampaignEvent::Waiting { block, .. } => {
                self.print_line(&format!("waiting for block {}", block + 1));
            }
            CampaignEvent::OutOfSeason { season, until } => {
                let until = wall_time::utc(*until);
                self.print_line(&format!("waiting for the season '{season}', until {until}"));
            }
            CampaignEvent::CheckBegun(order) => {
                let pair = pair(order.site.as_deref(), &order.server.name);
                self.update_line(&format!("throughput check {pair} ..."));
            }
            CampaignEvent::CheckEnded(check) => self.print_line(&check_line(check)),
            CampaignEvent::TracerouteEnded(route) => self.print_line(&route_line(route)),
            CampaignEvent::ExperimentBegun {
                progress,
                remaining,
                ..
            } => {
                self.set_progress(*progress, Some(*remaining));
            }
            CampaignEvent::Running {
                scenario,
                progress,
                figures,
            } => {
                let remaining = time((self.remaining - progress.elapsed).max(Span::ZERO));
                let (done, label) = (&self.completed_share, running_label(scenario, figures));
                let progress = progress_text(scenario, progress.due, figures);
                self.update_line(&format!("[{done}] {label}: {progress} | {remaining} left"));
            }
            CampaignEvent::ExperimentEnded {
                experiment,
                scenario,
                figures,
                progress,
            } => {
                self.set_progress(*progress, None);
                self.print_experiment_end(experiment, scenario, figures);
            }
            // The final status needs the store.
            CampaignEvent::Ended { .. } => self.update_line(""),
            _ => self.report_alarm(event),
        }
    }
}

fn begin_line(
    campaign: &Campaign,
    scenarios: usize,
    progress: CampaignProgress,
    remaining: Span,
) -> String {
    let Campaign {
        name,
        id,
        blocks,
        seed,
        ..
    } = campaign;
    let remaining_text = time(remaining);
    let CampaignProgress {
        total,
        complete,
        open,
        ..
    } = progress;
    let completed_text = match complete {
        0 => String::new(),
        _ => format!(
            ", {complete} of {} complete, {open} to do",
            counted(total, "experiment")
        ),
    };
    format!(
        "campaign {name} ({id}): {} x {}{completed_text}, about {remaining_text}, \
         seed {seed}",
        counted(scenarios as u64, "scenario"),
        counted((*blocks).into(), "block")
    )
}

fn check_line(check: &Throughput) -> String {
    let pair = pair(check.site.as_deref(), &check.endpoint);
    match &check.failure {
        None => format!("throughput {pair}: {}", check.goodput),
        Some(reason) => format!("throughput {pair}: no figure: {reason}"),
    }
}

/// `from a to b`, `to b`
fn pair(site: Option<&str>, endpoint: &str) -> String {
    let prefix = site.map_or_else(String::new, |site| format!("from {site} "));
    format!("{prefix}to {endpoint}")
}

fn route_line(route: &Traceroute) -> String {
    let pair = pair(route.site.as_deref(), &route.endpoint);
    let hops = counted(route.hops.len() as u64, "hop");
    let uncertain_length = route.length().filter(|length| !length.is_sure());
    match &route.failure {
        None if uncertain_length.is_some() => format!("traceroute {pair}: at most {hops}"),
        None if !route.reached => format!("traceroute {pair}: {hops}, not reached"),
        None => format!("traceroute {pair}: {hops}"),
        Some(reason) => format!("traceroute {pair}: none: {reason}"),
    }
}

fn end_text(experiment: &Experiment, figures: &RunningFigures) -> String {
    match experiment.status {
        ExperimentStatus::Complete => match &experiment.quantities {
            Some(quantities) => quantities.in_a_line(),
            None => figures_line(figures),
        },
        status => {
            let reason = experiment.reason.as_deref().unwrap_or("no reason reported");
            format!("{}: {reason}", status.name())
        }
    }
}

/// The scenario, or the first of several concurrent ones.
fn running_label(scenario: &Scenario, figures: &[RunningFigures]) -> String {
    let label = scenario.label();
    match figures.len() {
        0 | 1 => label,
        count => format!("{label} and {}", counted(count as u64 - 1, "other")),
    }
}

/// A median over several pairs would describe none of them: their medians are shown as a range.
fn figures_line_of_all(figures_list: &[RunningFigures]) -> String {
    if let [single] = figures_list {
        return figures_line(single);
    }
    let medians = || figures_list.iter().filter_map(|figures| figures.median);
    let unanswered: Unanswered = figures_list
        .iter()
        .map(|figures| figures.tally.without_response())
        .sum();
    let median_text = match (medians().min(), medians().max()) {
        (Some(min), Some(max)) => format!("medians {min} to {max}"),
        _ if figures_list.iter().any(|figures| figures.tally.replies > 0) => {
            format!("medians: {}", unanswered.word())
        }
        _ => "no reply".to_owned(),
    };
    median_text + &missing_text(unanswered)
}

fn figures_line(figures: &RunningFigures) -> String {
    let unanswered = figures.tally.without_response();
    let median_text = match figures.median {
        Some(median) => format!("median {median}"),
        None if figures.tally.replies > 0 => format!("median: {}", unanswered.word()),
        None => "no reply".to_owned(),
    };
    let p99_text = figures
        .p99
        .map_or_else(String::new, |p99| format!(", p99 {p99}"));
    median_text + &p99_text + &missing_text(unanswered)
}

/// `, 3 without a reply`; empty for none.
fn missing_text(unanswered: Unanswered) -> String {
    match unanswered.count() {
        0 => String::new(),
        count => format!(", {count} without a reply"),
    }
}

#[cfg(test)]
mod tests;
