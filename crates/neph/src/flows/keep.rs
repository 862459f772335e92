//! Keeps what a fleet measures in a workspace.

use neph_agent::{FleetIntake, scenario_of};
use neph_campaign::{Build, FleetKeeper, FleetKept, Keeping, RunError};
use std::mem;

use neph_model::{
    Anchor, Campaign, CampaignStatus, ClassTransfer, Ending, FleetEndpoint, Instant, Own, Span,
    Stop, TracedRoute,
};
use neph_probe::{FleetReport, FleetSpec, Refusals, anchor, now};
use neph_store::Store;
use neph_text::is_hidden;

use super::Args;
use crate::exit::Failure;
use crate::{output, version};
use neph_store::find::LAST;

/// How often the reports of the fleet are recorded.
const TICK: Span = Span::from_millis(50);

/// Reads a campaign's name.
pub(super) fn name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.contains(is_hidden) {
        return Err("a campaign's name is one line of visible characters and not empty".to_owned());
    }
    if text == LAST {
        return Err(format!(
            "'{LAST}' stands for the campaign that was begun last; choose another name"
        ));
    }
    Ok(text.to_owned())
}

/// Reports what a name that was given before means from now on.
fn report_earlier(store: &dyn Store, name: &str) -> Result<(), Failure> {
    let campaigns = store.campaigns()?;
    let earlier = campaigns.iter().filter(|one| one.name == name).count();
    if earlier > 0 {
        output::say(&format!(
            "neph: {} '{name}' already: the name will mean this one; neph list has the ids of all",
            match earlier {
                1 => "a campaign is called".to_owned(),
                several => format!("{several} campaigns are called"),
            }
        ));
    }
    Ok(())
}

/// Nothing is written before the fleet's flows are open: what cannot begin leaves nothing behind.
#[derive(Debug)]
enum State {
    Waiting {
        store: Box<dyn Store>,
        keeping: Keeping,
        spec: Box<FleetSpec>,
    },
    Going(Box<Going>),
    /// The store refused.
    Broken,
}

/// A fleet whose messages are being kept.
#[derive(Debug)]
struct Going {
    keeper: FleetKeeper,
    intake: FleetIntake,
    routes: Vec<TracedRoute>,
    /// When something was recorded last.
    recorded: Instant<Own>,
}

impl Going {
    fn record_rest(&mut self) -> Result<(), RunError> {
        self.keeper.keep(&self.intake.records())?;
        self.keeper.routes(mem::take(&mut self.routes))
    }

    fn record(&mut self) -> Result<(), RunError> {
        let now = now();
        if now - self.recorded < TICK {
            return Ok(());
        }
        self.recorded = now;
        self.record_rest()
    }

    fn finish(mut self, ending: Ending) -> Result<FleetKept, RunError> {
        self.record_rest()?;
        self.keeper.finish(self.intake.end(ending))
    }
}

/// The command with the options that say what was measured; never a secret.
fn asked(args: &Args) -> String {
    let time = |span: Span| span.exact().replace(' ', "");
    let mut words = format!("neph flows -n {} -i {}", args.flows, time(args.interval));
    let given = [
        ("-w", args.duration.map(time)),
        ("-c", args.count.map(|count| count.to_string())),
        ("--renew", args.renew.map(time)),
        ("--first-port", args.first_port.map(|port| port.to_string())),
        (
            "--transfers",
            args.transfers.map(|number| number.to_string()),
        ),
    ];
    for (option, value) in given {
        if let Some(value) = value {
            words.push_str(&format!(" {option} {value}"));
        }
    }
    for (option, on) in [("--trace", args.trace), ("--advise", args.advise)] {
        if on {
            words.push_str(&format!(" {option}"));
        }
    }
    format!("{words} {}", args.targets.join(" "))
}

/// A fleet's messages on their way into a workspace.
#[derive(Debug)]
pub(super) struct Keep {
    state: State,
    origin: Anchor<Own>,
    stop: Stop,
    /// Whether the fleet would have ended by itself.
    has_end: bool,
}

impl Keep {
    /// Opens the workspace, where the user wants to keep the messages. Before the fleet starts:
    /// time counts from here.
    pub(super) fn new(args: &Args, spec: &FleetSpec, stop: &Stop) -> Result<Option<Self>, Failure> {
        let Some(name) = args.save.clone() else {
            return Ok(None);
        };
        let keeping = Keeping {
            name: name.clone(),
            asked: asked(args),
            site: args.site.clone(),
            build: Build {
                version: version::VERSION.to_owned(),
                commit: version::COMMIT.to_owned(),
            },
        };
        let store = args.workspace.write()?;
        report_earlier(store.as_ref(), &name)?;
        Ok(Some(Self {
            state: State::Waiting {
                store,
                keeping,
                spec: Box::new(spec.clone()),
            },
            origin: anchor(),
            stop: stop.clone(),
            has_end: spec.count.is_some(),
        }))
    }

    /// Takes in a report of the fleet.
    pub(super) fn take(&mut self, report: &FleetReport) -> Result<(), Failure> {
        if matches!(self.state, State::Waiting { .. }) {
            self.begin()?;
        }
        if let State::Going(going) = &mut self.state {
            going.intake.take(report.clone());
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let state = std::mem::replace(&mut self.state, State::Broken);
        if let State::Waiting {
            store,
            keeping,
            spec,
        } = state
        {
            let (scenario, fleet) = (scenario_of(&spec), spec.fleet.clone());
            let begun = FleetKeeper::begin(store, keeping, scenario, fleet, self.origin);
            self.state = State::Going(Box::new(Going {
                keeper: begun.map_err(|error| refused(&error))?,
                intake: FleetIntake::begin(&spec, self.origin),
                routes: Vec::new(),
                recorded: self.origin.at,
            }));
        }
        Ok(())
    }

    /// Takes in the route of one of its flows.
    pub(super) fn route(&mut self, route: TracedRoute) {
        if let State::Going(going) = &mut self.state {
            going.routes.push(route);
        }
    }

    /// Records what was taken in, if it is time to.
    pub(super) fn record(&mut self) -> Result<(), Failure> {
        let State::Going(going) = &mut self.state else {
            return Ok(());
        };
        let recorded = going.record();
        recorded.map_err(|error| {
            // What a store refused it would refuse again.
            self.state = State::Broken;
            refused(&error)
        })
    }

    /// Records the rest, so that it is safe before anything else happens.
    pub(super) fn record_rest(&mut self) -> Result<(), Failure> {
        match &mut self.state {
            State::Going(going) => going.record_rest().map_err(|error| refused(&error)),
            State::Waiting { .. } | State::Broken => Ok(()),
        }
    }

    /// The fleet is over, and `by_caps` was refused to it. Ctrl-C is the end of one that had no
    /// other, and interrupts one that had.
    pub(super) fn end(
        self,
        by_caps: &[(FleetEndpoint, Refusals)],
    ) -> Result<Option<Kept>, Failure> {
        let ending = if self.has_end && self.stop.is_set() {
            Ending::Interrupted
        } else {
            Ending::Complete
        };
        match self.state {
            State::Going(mut going) => {
                for (_, one) in by_caps {
                    going.intake.refused(one);
                }
                let kept = going.finish(ending);
                Ok(Some(Kept(kept.map_err(|error| refused(&error))?)))
            }
            State::Waiting { .. } | State::Broken => Ok(None),
        }
    }

    /// The measurement cannot go on: the results so far are kept as failed. If the store refuses, the
    /// next writer of the workspace ends it.
    pub(super) fn broken_off(self, why: &Failure) {
        let ending = match why {
            Failure::Usage(why) | Failure::Refused(why) => Ending::Failed(why.clone()),
            // The reader closed the pipe, so it has seen enough.
            Failure::OutputClosed | Failure::Interrupted(_) | Failure::Text(..) => {
                Ending::Interrupted
            }
        };
        if let State::Going(going) = self.state {
            // The failure is already reported, by its first reason.
            let kept = going.finish(ending);
            drop(kept.and_then(|kept| kept.end(&Ending::Complete, anchor().wall)));
        }
    }
}

/// A fleet whose messages are kept, until what comes after them is.
#[derive(Debug)]
pub(super) struct Kept(FleetKept);

impl Kept {
    /// Keeps transfers on the ports of its flows.
    pub(super) fn transfers(&mut self, made: &[ClassTransfer]) -> Result<(), Failure> {
        self.0.transfers(made).map_err(|error| refused(&error))
    }

    /// Nothing more comes; `ending` is that of the transfers.
    pub(super) fn end(self, ending: &Ending) -> Result<Campaign, Failure> {
        self.0
            .end(ending, anchor().wall)
            .map_err(|error| refused(&error))
    }
}

fn refused(error: &RunError) -> Failure {
    let way_on = if error.is_disk_full() {
        "; the measurement ends here, and what was recorded is kept: free space, and measure again"
    } else {
        "; the measurement ends here, and what was recorded is kept"
    };
    Failure::refused(format!("{error}{way_on}"))
}

/// What it was kept as, and what can be done with it.
pub(super) fn reported(campaign: &Campaign) -> String {
    let (name, id) = (&campaign.name, campaign.id);
    let everything = if campaign.status == CampaignStatus::Complete {
        ""
    } else {
        " --everything"
    };
    format!(
        "neph: kept as campaign {name}, {}; neph report {id}{everything} shows it",
        campaign.status.name()
    )
}

/// Something else failed before transfers could be made: ends what the fleet is kept as.
pub(super) fn not_made(kept: Option<Kept>) {
    // The first reason is reported already.
    drop(kept.map(|kept| kept.end(&without_transfers())));
}

/// How a fleet's experiment ends whose transfers were not made.
pub(super) fn without_transfers() -> Ending {
    Ending::Failed("transfers could not be made".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_kept_with_what_says_what_was_measured_and_without_secrets() {
        use clap::{Args as _, FromArgMatches};
        let given = "neph -n 64 -i 200ms -w 4min --trace --stamp-key env:PATH --save ncd udp://a";
        let command = Args::augment_args(clap::Command::new("neph"));
        let matches = command
            .try_get_matches_from(given.split(' '))
            .expect("options");
        let args = Args::from_arg_matches(&matches).expect("options");
        let reported = "neph flows -n 64 -i 200ms -w 240s --trace udp://a";
        assert_eq!(asked(&args), reported);
    }

    #[test]
    fn a_name_is_one_line_and_not_the_word_for_the_last() {
        assert_eq!(name("night 3").as_deref(), Ok("night 3"));
        for wrong in ["", "  ", "a\nb", "last"] {
            assert!(name(wrong).is_err(), "{wrong:?}");
        }
    }
}
