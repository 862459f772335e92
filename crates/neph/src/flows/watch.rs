//! Runs the fleet and processes its reports.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use neph_agent::LoadMeter;
use neph_campaign::WatchedHosts;
use neph_flows::{Digest, PathEvent, Settings, add_advice};
use neph_model::{Ending, Instant, Local, Span, Stop};
use neph_probe::{FleetReport, FleetRun, FleetSpec, FleetTally, RefusalWatch, Silence, now};

use super::Args;
use super::keep::{self, Keep};
use super::tracing::Tracers;
use super::watched::{FleetSink, Watched};
use crate::exit::Failure;
use crate::metrics::flows::FlowsMetrics;
use crate::{awake, output, version};
use neph_documents::flows::{FlowsResult, FlowsWriter, Status, lines, status_interval};
use neph_documents::origin::Origin;
use neph_flows::follow::Traced;

/// How long to wait for a report before checking whether a status is due.
const TICK: Duration = Duration::from_millis(200);
/// An endless run without any reply ends after this time.
const FIRST_REPLY_TIMEOUT: Span = Span::from_secs(15);
/// This long after the timeout of the first message, neph searches for the reason of missing replies.
const LOOK: Span = Span::from_secs(1);

/// A running fleet.
struct Watch<'a> {
    digest: Digest,
    hosts: WatchedHosts,
    load: LoadMeter,
    report: &'a mut FlowsWriter,
    tracers: Option<Tracers>,
    keep: Option<Keep>,
    metrics: FlowsMetrics,
    began: Instant<Local>,
    reported: Instant<Local>,
    fleet_tally: Option<FleetTally>,
    given_up: Option<String>,
    silence: Silence,
    not_sent: Option<String>,
    /// Time without a reply after which neph searches for the reason, and whether it has searched.
    patience: Span,
    is_looked_into: bool,
    /// The reason that was found.
    found: Vec<String>,
}

/// Runs the fleet to its end.
///
/// # Errors
/// The fleet cannot start, or results cannot be written.
pub(super) fn run(
    args: &Args,
    spec: FleetSpec,
    stop: &Stop,
    listener: FleetSink<'_>,
) -> Result<Watched, Failure> {
    let digest = Digest::new(&spec.fleet, Settings::of(&spec.fleet)).map_err(Failure::usage)?;
    let is_endless = spec.count.is_none();
    let own_stop = Stop::new();
    let fleet = spec.fleet.clone();
    let (silence, patience) = (Silence::new(&spec), spec.timeout + LOOK);
    let refusals = RefusalWatch::begin(&spec);
    let FleetSink {
        report,
        keep,
        metrics,
    } = listener;
    let running = FleetRun::start(spec, own_stop.clone())?;
    let began = now();
    let mut watch = Watch {
        digest,
        hosts: WatchedHosts::begin(),
        load: LoadMeter::begin(),
        report,
        tracers: args.trace.then(|| Tracers::new(&fleet, args.placement())),
        keep,
        metrics,
        began,
        reported: began,
        fleet_tally: None,
        given_up: None,
        silence,
        not_sent: None,
        patience,
        is_looked_into: false,
        found: Vec::new(),
    };
    let outcome = loop {
        if stop.is_set() {
            own_stop.set();
        }
        match running.reports().recv_timeout(TICK) {
            Ok(report) => {
                if let Err(error) = watch.take(report, &fleet) {
                    break Err(error);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
        }
        if let Err(error) = watch.go_on(&fleet) {
            break Err(error);
        }
        if is_endless && watch.is_hopeless() {
            own_stop.set();
        }
    };
    own_stop.set();
    let ran = running.join();
    outcome.and_then(|()| Ok(ran?)).inspect_err(|error| {
        if let Some(keep) = watch.keep.take() {
            keep.broken_off(error);
        }
    })?;
    watch.end(args, refusals, stop.is_set())
}

impl Watch<'_> {
    fn take(&mut self, report: FleetReport, fleet: &neph_model::Fleet) -> Result<(), Failure> {
        if let Some(keep) = &mut self.keep {
            keep.take(&report)?;
        }
        match report {
            FleetReport::Opened { sources, how } => {
                self.report.begin(fleet, &sources, how)?;
                if let Some(tracers) = &mut self.tracers {
                    tracers.wanted().begin(&sources);
                }
            }
            FleetReport::Messages(messages) => {
                self.hosts.take(&messages);
                self.metrics.messages(&messages);
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
    fn go_on(&mut self, fleet: &neph_model::Fleet) -> Result<(), Failure> {
        if let Some(keep) = &mut self.keep {
            keep.record()?;
        }
        self.status()?;
        self.look_into(fleet);
        self.trace()
    }

    /// Reports why no reply has arrived so far. Reports early, not only at the end of the run.
    fn look_into(&mut self, fleet: &neph_model::Fleet) {
        let is_time = now() - self.began > self.patience;
        if self.is_looked_into || !is_time {
            return;
        }
        self.is_looked_into = true;
        if self.digest.tally().replies == 0 {
            self.found = self.silence.why(fleet.endpoints.iter());
            for why in &self.found {
                output::say(&format!("neph: {why}"));
            }
        }
    }

    fn report_events(&mut self) -> Result<(), Failure> {
        let fleet = &self.digest.fleet().clone();
        for events in self.digest.events() {
            self.metrics.events(&events);
            self.report.path_event(fleet, &events)?;
            match (&mut self.tracers, &events) {
                (Some(tracers), PathEvent::Changed(change)) => {
                    tracers.wanted().record_change(change);
                }
                (Some(tracers), PathEvent::Withdrawn(change)) => {
                    tracers.wanted().record_withdrawal(change);
                }
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// Processes new routes. If tracing is not possible, that is reported once.
    fn trace(&mut self) -> Result<(), Failure> {
        let traced = self
            .tracers
            .as_mut()
            .map_or_else(|| Ok(Vec::new()), Tracers::poll);
        let traced = traced.unwrap_or_else(|error| {
            output::say(&format!("neph: no routes are traced: {error}"));
            self.tracers = None;
            Vec::new()
        });
        self.report_traced(traced)
    }

    fn report_traced(&mut self, traced: Vec<Traced>) -> Result<(), Failure> {
        let mut outcome = Ok(());
        for Traced { route, verdict } in traced {
            if let Some(keep) = &mut self.keep {
                keep.route(route);
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
    fn status(&mut self) -> Result<(), Failure> {
        let now = now();
        let running = now - self.began;
        if now - self.reported < status_interval(running) {
            return Ok(());
        }
        self.reported = now;
        let status = Status {
            running,
            tally: self.digest.tally(),
            changes: self.digest.changes(),
        };
        Ok(self.report.status(&status)?)
    }

    /// Whether no reply has ever arrived.
    fn is_hopeless(&mut self) -> bool {
        let tally = self.digest.tally();
        let hopeless = tally.replies == 0 && now() - self.began > FIRST_REPLY_TIMEOUT;
        if hopeless && self.given_up.is_none() {
            self.given_up = Some(format!(
                "no answer for {}, so it ended; with --count or --duration it continues",
                FIRST_REPLY_TIMEOUT.exact()
            ));
        }
        hopeless
    }

    fn end(
        mut self,
        args: &Args,
        refusals: RefusalWatch,
        interrupted: bool,
    ) -> Result<Watched, Failure> {
        self.digest.finish();
        let reported_events = self.report_events();
        let (traced, uncompared) = self.tracers.take().map(Tracers::end).unwrap_or_default();
        let reported_traced = self.report_traced(traced);
        // Results are stored before any failure is reported.
        if let Some(keep) = &mut self.keep {
            keep.record_rest()?;
        }
        // Before reflectors are queried: the load must be that of the measurement.
        let warnings = self.hosts.warnings(&self.load.load());
        let fleet_tally = self.fleet_tally.unwrap_or_default();
        let refused = if fleet_tally.is_whole() {
            Vec::new()
        } else {
            refusals.end()
        };
        let keep = self.keep.take().map(|keep| keep.end(&refused));
        let mut waiting = keep.transpose()?.flatten();
        // Without transfers the stored data is complete: a later ctrl-C cannot interrupt it.
        let ended = match args.transfers {
            None => waiting.take().map(|waiting| waiting.end(&Ending::Complete)),
            Some(_) => None,
        };
        let campaign = ended.transpose()?;
        if let Err(error) = reported_events.and(reported_traced) {
            keep::not_made(waiting);
            return Err(error);
        }
        let mut view = self.digest.view();
        view.record_late_replies(fleet_tally.late);
        if args.advise {
            add_advice(&mut view);
        }
        let is_silence_reported = !self.found.is_empty() && view.tally.replies == 0;
        let known_reasons = is_silence_reported.then_some(self.found);
        let no_reply_reasons =
            lines::silence_reasons(&self.silence, &view, known_reasons, self.report.clock());
        let result = FlowsResult {
            origin: Origin {
                version: version::VERSION,
                commit: version::COMMIT,
                cpu_idle_disabled: awake::is_kept(),
            },
            view,
            sender_tally: fleet_tally,
            residence_p99: self.hosts.stay_p99(),
            late_p99: self.hosts.late_p99(),
            warnings,
            refused,
            clock: self.report.clock().clone(),
            no_reply_reasons,
            not_sent_reason: self.not_sent,
            interrupted,
            uncompared,
            transfers: Vec::new(),
        };
        Ok(Watched {
            result,
            is_silence_reported,
            given_up: self.given_up,
            waiting_fleet: waiting,
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
    fn measured(folder: &str, more: &[&str]) -> Watched {
        let at = "127.0.0.1:0".parse().expect("an address");
        let reflector = Reflector::start(&ReflectorSpec::at(at)).expect("a port");
        let target = format!("tcp://{}", reflector.address());
        let all_args = ["neph", "flows", &target, "-n", "2", "-c", "2", "-i", "20ms"];
        let stored = ["--quiet", "--output", "/dev/null", "--workspace", folder];
        let all_args = [&all_args[..], &stored, &["--save", "night"], more].concat();
        let cli = Cli::try_parse_from(all_args).expect("good words");
        let Command::Flows(args) = cli.command else {
            panic!("another command");
        };
        let spec = fleet::spec(&args).expect("a fleet");
        let stop = Stop::new();
        let keep = Keep::new(&args, &spec, &stop).expect("a workspace");
        let mut report = FlowsWriter::new(args.format, Box::new(std::io::sink()));
        let metrics = FlowsMetrics::of(None, &spec.fleet);
        let listener = FleetSink {
            report: &mut report,
            keep,
            metrics,
        };
        run(&args, spec, &stop, listener).expect("measured")
    }

    fn status(folder: &str) -> CampaignStatus {
        let store = open(folder, Access::Read).expect("a workspace");
        store.campaigns().expect("readable")[0].status
    }

    #[test]
    fn a_saved_fleet_ends_with_its_messages_unless_transfers_follow() {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let [single, more] = folders.each_ref().map(|folder| folder.path().display());
        let (single, more) = (single.to_string(), more.to_string());
        let watched = measured(&single, &[]);
        assert!(watched.waiting_fleet.is_none());
        let campaign = watched.campaign.expect("it has ended");
        assert_eq!(campaign.status, CampaignStatus::Complete);
        assert_eq!(status(&single), CampaignStatus::Complete);

        let watched = measured(&more, &["--transfers", "2"]);
        assert!(watched.campaign.is_none());
        assert_eq!(status(&more), CampaignStatus::Running);
        keep::not_made(watched.waiting_fleet);
        assert_eq!(status(&more), CampaignStatus::Incomplete);
    }
}
