//! Runs the fleet and processes its reports.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use neph_agent::LoadMeter;
use neph_campaign::WatchedHosts;
use neph_flows::{Digest, PathEvent, Settings, add_advice};
use neph_model::{Ending, Instant, Local, Span, Stop};
use neph_probe::{FleetReport, FleetRun, FleetSpec, FleetTally, RefusalWatch, Silence, now};

use super::Args;
use super::fleet_outcome::{FleetOutcome, FleetSink};
use super::recorder::{self, FleetRecorder};
use super::tracing::Tracers;
use crate::exit::Failure;
use crate::metrics::flows::FlowsMetrics;
use crate::{awake, output, version};
use neph_documents::flows::{FlowsResult, FlowsWriter, Status, lines, status_interval};
use neph_documents::origin::Origin;
use neph_flows::follow::Traced;

/// How long to wait for a report before checking whether a status is due.
const STATUS_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// An endless run without any reply ends after this time.
const FIRST_REPLY_TIMEOUT: Span = Span::from_secs(15);
/// This long after the timeout of the first message, neph searches for the reason of missing replies.
const DIAGNOSIS_DELAY: Span = Span::from_secs(1);

/// A running fleet.
struct RunningFleet<'a> {
    digest: Digest,
    hosts: WatchedHosts,
    load: LoadMeter,
    report: &'a mut FlowsWriter,
    tracers: Option<Tracers>,
    recorder: Option<FleetRecorder>,
    metrics: FlowsMetrics,
    start: Instant<Local>,
    last_status: Instant<Local>,
    fleet_tally: Option<FleetTally>,
    early_end_reason: Option<String>,
    silence: Silence,
    not_sent: Option<String>,
    /// Time without a reply after which neph searches for the reason, and whether it has searched.
    patience: Span,
    is_diagnosed: bool,
    /// The reason that was found.
    silence_reasons: Vec<String>,
}

/// Runs the fleet to its end.
///
/// # Errors
/// The fleet cannot start, or results cannot be written.
pub(super) fn run(
    args: &Args,
    spec: FleetSpec,
    stop: &Stop,
    fleet_sink: FleetSink<'_>,
) -> Result<FleetOutcome, Failure> {
    let digest = Digest::new(&spec.fleet, Settings::of(&spec.fleet)).map_err(Failure::usage)?;
    let fleet_stop = Stop::new();
    let (fleet, is_endless) = (spec.fleet.clone(), spec.count.is_none());
    let (silence, patience) = (Silence::new(&spec), spec.timeout + DIAGNOSIS_DELAY);
    let refusals = RefusalWatch::begin(&spec);
    let FleetSink {
        report,
        recorder,
        metrics,
    } = fleet_sink;
    let fleet_run = FleetRun::start(spec, fleet_stop.clone())?;
    let start = now();
    let mut running_fleet = RunningFleet {
        digest,
        hosts: WatchedHosts::begin(),
        load: LoadMeter::begin(),
        report,
        tracers: args.trace.then(|| Tracers::new(&fleet, args.placement())),
        recorder,
        metrics,
        start,
        last_status: start,
        fleet_tally: None,
        early_end_reason: None,
        silence,
        not_sent: None,
        patience,
        is_diagnosed: false,
        silence_reasons: Vec::new(),
    };
    let outcome = loop {
        if stop.is_set() {
            fleet_stop.set();
        }
        match fleet_run.reports().recv_timeout(STATUS_CHECK_INTERVAL) {
            Ok(report) => {
                if let Err(error) = running_fleet.add_report(report, &fleet) {
                    break Err(error);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
        }
        if let Err(error) = running_fleet.do_periodic_work(&fleet) {
            break Err(error);
        }
        if is_endless && running_fleet.is_first_reply_overdue() {
            fleet_stop.set();
        }
    };
    fleet_stop.set();
    let join_result = fleet_run.join();
    outcome
        .and_then(|()| Ok(join_result?))
        .inspect_err(|error| {
            if let Some(recorder) = running_fleet.recorder.take() {
                recorder.abort(error);
            }
        })?;
    running_fleet.end(args, refusals, stop.is_set())
}

impl RunningFleet<'_> {
    fn add_report(
        &mut self,
        report: FleetReport,
        fleet: &neph_model::Fleet,
    ) -> Result<(), Failure> {
        if let Some(recorder) = &mut self.recorder {
            recorder.add_report(&report)?;
        }
        match report {
            FleetReport::Opened { sources, sharing } => {
                self.report.begin(fleet, &sources, sharing)?;
                if let Some(tracers) = &mut self.tracers {
                    tracers.tracker().begin(&sources);
                }
            }
            FleetReport::Messages(messages) => {
                self.hosts.record_messages(&messages);
                self.metrics.add_messages(&messages);
                for message in &messages {
                    self.digest.push(message);
                    self.report.message(fleet, message)?;
                }
                self.report_events()?;
            }
            FleetReport::Anchor(anchor) => self.report.anchor(anchor),
            FleetReport::ClockStepped(by) => {
                output::say(&format!("neph: this host's clock was set: by {by}"));
            }
            FleetReport::NotSent(why) => {
                output::say(&format!(
                    "neph: a message could not be sent: {why}; further ones are only counted"
                ));
                self.not_sent.get_or_insert(why);
            }
            FleetReport::Ended(tally) => self.fleet_tally = Some(tally),
        }
        Ok(())
    }

    /// Periodic work.
    fn do_periodic_work(&mut self, fleet: &neph_model::Fleet) -> Result<(), Failure> {
        if let Some(recorder) = &mut self.recorder {
            recorder.record()?;
        }
        self.report_status()?;
        self.diagnose_silence(fleet);
        self.report_routes()
    }

    /// Reports why no reply has arrived so far. Reports early, not only at the end of the run.
    fn diagnose_silence(&mut self, fleet: &neph_model::Fleet) {
        let is_due = now() - self.start > self.patience;
        if self.is_diagnosed || !is_due {
            return;
        }
        self.is_diagnosed = true;
        if self.digest.tally().replies == 0 {
            self.silence_reasons = self.silence.explain(fleet.endpoints.iter());
            for reason in &self.silence_reasons {
                output::say(&format!("neph: {reason}"));
            }
        }
    }

    fn report_events(&mut self) -> Result<(), Failure> {
        let fleet = &self.digest.fleet().clone();
        for event in self.digest.events() {
            self.metrics.add_event(&event);
            self.report.path_event(fleet, &event)?;
            match (&mut self.tracers, &event) {
                (Some(tracers), PathEvent::Changed(change)) => {
                    tracers.tracker().record_change(change);
                }
                (Some(tracers), PathEvent::Withdrawn(change)) => {
                    tracers.tracker().record_withdrawal(change);
                }
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// Processes new routes. If tracing is not possible, that is reported once.
    fn report_routes(&mut self) -> Result<(), Failure> {
        let traced_routes = self
            .tracers
            .as_mut()
            .map_or_else(|| Ok(Vec::new()), Tracers::poll);
        let traced_routes = traced_routes.unwrap_or_else(|error| {
            output::say(&format!("neph: no routes are traced: {error}"));
            self.tracers = None;
            Vec::new()
        });
        self.report_traced(traced_routes)
    }

    fn report_traced(&mut self, traced_routes: Vec<Traced>) -> Result<(), Failure> {
        let mut outcome = Ok(());
        for Traced { route, verdict } in traced_routes {
            if let Some(recorder) = &mut self.recorder {
                recorder.add_route(route);
            }
            let Some(verdict) = verdict else { continue };
            let comparison = verdict.comparison.ok().filter(|_| !verdict.is_withdrawn);
            if let Some(comparison) = comparison {
                self.digest.record_trace(&verdict.change, comparison.others);
            }
            outcome = outcome.and_then(|()| self.report.trace(self.digest.fleet(), &verdict));
        }
        Ok(outcome?)
    }

    /// A status when it is time for one: every few seconds, less often in a long run.
    fn report_status(&mut self) -> Result<(), Failure> {
        let now = now();
        let elapsed = now - self.start;
        if now - self.last_status < status_interval(elapsed) {
            return Ok(());
        }
        self.last_status = now;
        let status = Status {
            running: elapsed,
            tally: self.digest.tally(),
            changes: self.digest.changes(),
        };
        Ok(self.report.status(&status)?)
    }

    /// Whether no reply has ever arrived.
    fn is_first_reply_overdue(&mut self) -> bool {
        let tally = self.digest.tally();
        let is_overdue = tally.replies == 0 && now() - self.start > FIRST_REPLY_TIMEOUT;
        if is_overdue && self.early_end_reason.is_none() {
            self.early_end_reason = Some(format!(
                "no answer for {}, so it ended; with --count or --duration it continues",
                FIRST_REPLY_TIMEOUT.exact()
            ));
        }
        is_overdue
    }

    fn end(
        mut self,
        args: &Args,
        refusals: RefusalWatch,
        is_interrupted: bool,
    ) -> Result<FleetOutcome, Failure> {
        self.digest.finish();
        let event_result = self.report_events();
        let (traced_routes, uncompared) = self.tracers.take().map(Tracers::end).unwrap_or_default();
        let trace_result = self.report_traced(traced_routes);
        // Results are stored before any failure is reported.
        if let Some(recorder) = &mut self.recorder {
            recorder.record_remaining()?;
        }
        // Before reflectors are queried: the load must be that of the measurement.
        let warnings = self.hosts.warnings(self.load.load());
        let fleet_tally = self.fleet_tally.unwrap_or_default();
        let refusals = if fleet_tally.is_whole() {
            Vec::new()
        } else {
            refusals.end()
        };
        let recorder_result = self.recorder.take().map(|recorder| recorder.end(&refusals));
        let mut waiting_fleet = recorder_result.transpose()?.flatten();
        // Without transfers the stored data is complete: a later ctrl-C cannot interrupt it.
        let complete_fleet = waiting_fleet.take_if(|_| args.transfers.is_none());
        let end_result = complete_fleet.map(|fleet| fleet.end(&Ending::Complete));
        let campaign = end_result.transpose()?;
        if let Err(error) = event_result.and(trace_result) {
            recorder::end_without_transfers(waiting_fleet);
            return Err(error);
        }
        let mut view = self.digest.view();
        view.record_late_replies(fleet_tally.late);
        if args.advise {
            add_advice(&mut view);
        }
        let is_silence_reported = !self.silence_reasons.is_empty() && view.tally.replies == 0;
        let known_reasons = is_silence_reported.then_some(self.silence_reasons);
        let no_reply_reasons =
            lines::silence_reasons(&self.silence, &view, known_reasons, self.report.clock());
        let result = FlowsResult {
            origin: Origin {
                version: version::VERSION,
                commit: version::COMMIT,
                cpu_idle_disabled: awake::is_cpu_idle_disabled(),
            },
            view,
            sender_tally: fleet_tally,
            residence_p99: self.hosts.residence_p99(),
            late_p99: self.hosts.lateness_p99(),
            warnings,
            refused: refusals,
            clock: self.report.clock().clone(),
            no_reply_reasons,
            not_sent_reason: self.not_sent,
            interrupted: is_interrupted,
            uncompared,
            transfers: Vec::new(),
        };
        Ok(FleetOutcome {
            result,
            is_silence_reported,
            early_end_reason: self.early_end_reason,
            waiting_fleet,
            campaign,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use neph_model::{CampaignStatus, ReflectorSpec};
    use neph_probe::Reflector;
    use neph_store::{Access, open};

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::flows::fleet;

    /// A few messages to a reflector, stored in this folder.
    fn measure(folder: &str, more_args: &[&str]) -> FleetOutcome {
        let address = "127.0.0.1:0".parse().expect("an address");
        let reflector = Reflector::start(&ReflectorSpec::at(address)).expect("a port");
        let target = format!("tcp://{}", reflector.address());
        let all_args = ["neph", "flows", &target, "-n", "2", "-c", "2", "-i", "20ms"];
        let output_args = ["--quiet", "--output", "/dev/null", "--workspace", folder];
        let all_args = [&all_args[..], &output_args, &["--save", "night"], more_args].concat();
        let cli = Cli::try_parse_from(all_args).expect("good words");
        let Command::Flows(args) = cli.command else {
            panic!("another command");
        };
        let spec = fleet::build_spec(&args).expect("a fleet");
        let stop = Stop::new();
        let recorder = FleetRecorder::new(&args, &spec, &stop).expect("a workspace");
        let mut report = FlowsWriter::new(args.format, Box::new(std::io::sink()));
        let metrics = FlowsMetrics::of(None, &spec.fleet);
        let fleet_sink = FleetSink {
            report: &mut report,
            recorder,
            metrics,
        };
        run(&args, spec, &stop, fleet_sink).expect("measured")
    }

    fn stored_status(folder: &str) -> CampaignStatus {
        let store = open(folder, Access::Read).expect("a workspace");
        store.campaigns().expect("readable")[0].status
    }

    #[test]
    fn a_saved_fleet_ends_with_its_messages_unless_transfers_follow() {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let [without_transfers, with_transfers] =
            folders.each_ref().map(|folder| folder.path().display());
        let (without_transfers, with_transfers) =
            (without_transfers.to_string(), with_transfers.to_string());
        let outcome = measure(&without_transfers, &[]);
        assert!(outcome.waiting_fleet.is_none());
        let campaign = outcome.campaign.expect("it has ended");
        assert_eq!(campaign.status, CampaignStatus::Complete);
        assert_eq!(stored_status(&without_transfers), CampaignStatus::Complete);

        let outcome = measure(&with_transfers, &["--transfers", "2"]);
        assert!(outcome.campaign.is_none());
        assert_eq!(stored_status(&with_transfers), CampaignStatus::Running);
        recorder::end_without_transfers(outcome.waiting_fleet);
        assert_eq!(stored_status(&with_transfers), CampaignStatus::Incomplete);
    }
}
