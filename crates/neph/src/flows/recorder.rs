//! Stores the measurements of a fleet in a workspace.

use neph_agent::{FleetRecordCollector, scenario_of};
use neph_campaign::{Build, FleetKeeper, FleetStorage, RunError, StoredFleet};
use std::mem;

use neph_model::{
    Anchor, Campaign, CampaignStatus, ClassTransfer, Ending, FleetEndpoint, Instant, Local, Span,
    Stop, TracedRoute,
};
use neph_probe::{FleetReport, FleetSpec, Refusals, anchor, now};
use neph_store::Store;
use neph_text::is_hidden;

use super::Args;
use crate::exit::Failure;
use crate::workspace::Workspace;
use crate::{output, version};
use neph_store::find::LAST;

/// How often the reports of the fleet are recorded.
const RECORD_INTERVAL: Span = Span::from_millis(50);

/// Parses the name of a campaign.
pub(super) fn parse_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.contains(is_hidden) {
        return Err("a campaign's name is one line of visible characters and not empty".to_owned());
    }
    if text == LAST {
        return Err(format!(
            "'{LAST}' means the campaign that began last; choose another name"
        ));
    }
    Ok(text.to_owned())
}

/// Reports that an existing name now means the new campaign.
fn report_name_reuse(store: &dyn Store, name: &str) -> Result<(), Failure> {
    let campaigns = store.campaigns()?;
    let same_name_count = campaigns
        .iter()
        .filter(|campaign| campaign.name == name)
        .count();
    if same_name_count > 0 {
        output::say(&format!(
            "neph: {} '{name}' already: the name will mean this one; neph list has the ids of all",
            match same_name_count {
                1 => "a campaign is called".to_owned(),
                several => format!("{several} campaigns are called"),
            }
        ));
    }
    Ok(())
}

/// Nothing is written before the flows of the fleet are open: a failed start leaves no data.
#[derive(Debug)]
enum State {
    Waiting {
        store: Box<dyn Store>,
        storage: FleetStorage,
        spec: Box<FleetSpec>,
    },
    Recording(Box<Recording>),
    /// The store reported an error.
    Broken,
}

/// A fleet whose messages are stored.
#[derive(Debug)]
struct Recording {
    keeper: FleetKeeper,
    collector: FleetRecordCollector,
    routes: Vec<TracedRoute>,
    /// The time of the last record.
    last_record: Instant<Local>,
}

impl Recording {
    fn record_remaining(&mut self) -> Result<(), RunError> {
        self.keeper.record(&self.collector.records())?;
        self.keeper.record_routes(mem::take(&mut self.routes))
    }

    fn record(&mut self) -> Result<(), RunError> {
        let now = now();
        if now - self.last_record < RECORD_INTERVAL {
            return Ok(());
        }
        self.last_record = now;
        self.record_remaining()
    }

    fn finish(mut self, ending: Ending) -> Result<StoredFleet, RunError> {
        self.record_remaining()?;
        self.keeper.finish(self.collector.end(ending))
    }
}

/// The command with the options that define the measurement; never a secret.
fn command_line(args: &Args) -> String {
    let format_time = |span: Span| span.exact().replace(' ', "");
    let mut text = format!(
        "neph flows -n {} -i {}",
        args.flows,
        format_time(args.interval)
    );
    let options = [
        ("-w", args.duration.map(format_time)),
        ("-c", args.count.map(|count| count.to_string())),
        ("--renew", args.renew.map(format_time)),
        ("--first-port", args.first_port.map(|port| port.to_string())),
        (
            "--transfers",
            args.transfers.map(|number| number.to_string()),
        ),
    ];
    for (option, value) in options {
        if let Some(value) = value {
            text.push_str(&format!(" {option} {value}"));
        }
    }
    for (option, is_set) in [("--trace", args.trace), ("--advise", args.advise)] {
        if is_set {
            text.push_str(&format!(" {option}"));
        }
    }
    format!("{text} {}", args.targets.join(" "))
}

/// Writes the messages of a fleet into a workspace.
#[derive(Debug)]
pub(super) struct FleetRecorder {
    state: State,
    origin: Anchor<Local>,
    stop: Stop,
    /// Whether the fleet has an end without ctrl-C.
    has_end: bool,
}

impl FleetRecorder {
    /// Opens the workspace if the messages are to be saved. Call this before the fleet starts:
    /// times count from here.
    pub(super) fn new(args: &Args, spec: &FleetSpec, stop: &Stop) -> Result<Option<Self>, Failure> {
        let Some(name) = args.save.clone() else {
            return Ok(None);
        };
        let storage = FleetStorage {
            name: name.clone(),
            description: command_line(args),
            site: args.site.clone(),
            build: Build {
                version: version::VERSION.to_owned(),
                commit: version::COMMIT.to_owned(),
            },
        };
        let store = args.workspace.write()?;
        report_name_reuse(store.as_ref(), &name)?;
        Ok(Some(Self {
            state: State::Waiting {
                store,
                storage,
                spec: Box::new(spec.clone()),
            },
            origin: anchor(),
            stop: stop.clone(),
            has_end: spec.count.is_some(),
        }))
    }

    /// Adds a report of the fleet.
    pub(super) fn add_report(&mut self, report: &FleetReport) -> Result<(), Failure> {
        if matches!(self.state, State::Waiting { .. }) {
            self.begin()?;
        }
        if let State::Recording(recording) = &mut self.state {
            recording.collector.take(report.clone());
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let state = std::mem::replace(&mut self.state, State::Broken);
        if let State::Waiting {
            store,
            storage,
            spec,
        } = state
        {
            let (scenario, fleet) = (scenario_of(&spec), spec.fleet.clone());
            let keeper_result = FleetKeeper::begin(store, storage, scenario, fleet, self.origin);
            self.state = State::Recording(Box::new(Recording {
                keeper: keeper_result.map_err(|error| to_failure(&error))?,
                collector: FleetRecordCollector::begin(&spec, self.origin),
                routes: Vec::new(),
                last_record: self.origin.at,
            }));
        }
        Ok(())
    }

    /// Adds the route of a flow.
    pub(super) fn add_route(&mut self, route: TracedRoute) {
        if let State::Recording(recording) = &mut self.state {
            recording.routes.push(route);
        }
    }

    /// Records new data if it is due.
    pub(super) fn record(&mut self) -> Result<(), Failure> {
        let State::Recording(recording) = &mut self.state else {
            return Ok(());
        };
        let record_result = recording.record();
        record_result.map_err(|error| {
            // The store would refuse the same data again.
            self.state = State::Broken;
            to_failure(&error)
        })
    }

    /// Records the remaining data, before anything can fail.
    pub(super) fn record_remaining(&mut self) -> Result<(), Failure> {
        match &mut self.state {
            State::Recording(recording) => recording
                .record_remaining()
                .map_err(|error| to_failure(&error)),
            State::Waiting { .. } | State::Broken => Ok(()),
        }
    }

    /// Ends the fleet; the reflector refused `refusals_by_endpoint`. Ctrl-C completes a fleet without another
    /// end, and interrupts one with an end.
    pub(super) fn end(
        self,
        refusals_by_endpoint: &[(FleetEndpoint, Refusals)],
    ) -> Result<Option<WaitingFleet>, Failure> {
        let ending = if self.has_end && self.stop.is_set() {
            Ending::Interrupted
        } else {
            Ending::Complete
        };
        match self.state {
            State::Recording(mut recording) => {
                for (_, refusals) in refusals_by_endpoint {
                    recording.collector.add_refusals(refusals);
                }
                let stored_fleet = recording.finish(ending);
                Ok(Some(WaitingFleet(
                    stored_fleet.map_err(|error| to_failure(&error))?,
                )))
            }
            State::Waiting { .. } | State::Broken => Ok(None),
        }
    }

    /// The measurement cannot continue: the results so far are stored as failed. If the store
    /// refuses, the next writer of the workspace ends the experiment.
    pub(super) fn abort(self, reason: &Failure) {
        let ending = match reason {
            Failure::Usage(reason) | Failure::Refused(reason) => Ending::Failed(reason.clone()),
            // The reader closed the pipe on purpose.
            Failure::OutputClosed | Failure::Interrupted(_) | Failure::Text(..) => {
                Ending::Interrupted
            }
        };
        if let State::Recording(recording) = self.state {
            // The failure is already reported with its first reason.
            let stored_fleet = recording.finish(ending);
            drop(
                stored_fleet
                    .and_then(|stored_fleet| stored_fleet.end(&Ending::Complete, anchor().wall)),
            );
        }
    }
}

/// A fleet with stored messages that waits for its transfers.
#[derive(Debug)]
pub(super) struct WaitingFleet(StoredFleet);

impl WaitingFleet {
    /// Stores transfers on the source ports of its flows.
    pub(super) fn add_transfers(&mut self, transfers: &[ClassTransfer]) -> Result<(), Failure> {
        self.0
            .record_transfers(transfers)
            .map_err(|error| to_failure(&error))
    }

    /// Ends the experiment; `ending` is that of the transfers.
    pub(super) fn end(self, ending: &Ending) -> Result<Campaign, Failure> {
        self.0
            .end(ending, anchor().wall)
            .map_err(|error| to_failure(&error))
    }
}

fn to_failure(error: &RunError) -> Failure {
    let remedy = if error.is_disk_full() {
        "; the measurement ends here, and what was recorded is kept: free space, and measure again"
    } else {
        "; the measurement ends here, and what was recorded is kept"
    };
    Failure::refused(format!("{error}{remedy}"))
}

/// The name of the stored campaign, and the next steps.
pub(super) fn stored_message(campaign: &Campaign, workspace: &Workspace) -> String {
    let (name, id) = (&campaign.name, campaign.id);
    let option = if campaign.status == CampaignStatus::Complete {
        ""
    } else {
        " --everything"
    };
    format!(
        "neph: kept as campaign {name}, {}; neph report {id}{}{option} shows it",
        campaign.status.name(),
        workspace.option()
    )
}

/// Ends the stored fleet after another failure before its transfers.
pub(super) fn end_without_transfers(waiting_fleet: Option<WaitingFleet>) {
    // The first reason is already reported.
    drop(waiting_fleet.map(|waiting_fleet| waiting_fleet.end(&transfers_failed_ending())));
}

/// The ending of an experiment without its transfers.
pub(super) fn transfers_failed_ending() -> Ending {
    Ending::Failed("transfers could not be made".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_stored_with_its_measurement_options_and_without_secrets() {
        use clap::{Args as _, FromArgMatches};
        let words = "neph -n 64 -i 200ms -w 4min --trace --stamp-key env:PATH --save ncd udp://a";
        let command = Args::augment_args(clap::Command::new("neph"));
        let matches = command
            .try_get_matches_from(words.split(' '))
            .expect("options");
        let args = Args::from_arg_matches(&matches).expect("options");
        let expected = "neph flows -n 64 -i 200ms -w 240s --trace udp://a";
        assert_eq!(command_line(&args), expected);
    }

    #[test]
    fn a_campaign_name_is_one_line_and_not_last() {
        assert_eq!(parse_name("night 3").as_deref(), Ok("night 3"));
        for invalid in ["", "  ", "a\nb", "last"] {
            assert!(parse_name(invalid).is_err(), "{invalid:?}");
        }
    }
}
