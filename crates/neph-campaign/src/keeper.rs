//! Keeps a fleet that runs without a plan: a campaign of one experiment, in which everything is as
//! it would be if a plan had asked for it.

mod kept;

use std::num::{NonZeroU16, NonZeroU32};
use std::sync::{Arc, Mutex};

use neph_model::{
    Anchor, Campaign, Ending, Experiment, ExperimentResult, Fleet, FleetEndpoint, HostFacts,
    Instant, Lifetime, Own, Parameter, Provenance, Scenario, ScenarioId, Span, Target, Targets,
    TracedRoute, Warning,
};
use neph_probe::{FleetReport, FleetSpec, Refusals};
use neph_store::Store;

use crate::cores::LoadMeter;
use crate::expand::identity;
use crate::local::{caps, host_of, intake::Intake};
use crate::meter::{Meter, MeteredRecorder, lock};
use crate::plan::Limits;
use crate::run::experiment::{provenance as provenance_of, settle, take};
use crate::run::{Build, RunError, storing};
pub use kept::FleetKept;
use kept::since;

/// How often what the fleet told is recorded.
const TICK: Span = Span::from_millis(50);

/// As what a fleet is kept.
#[derive(Clone, Debug)]
pub struct Keeping {
    /// The campaign's name.
    pub name: String,
    /// What was asked for, in the place of a plan's path.
    pub asked: String,
    /// The lab site that it measures from.
    pub site: Option<String>,
    /// The program that measures.
    pub build: Build,
}

/// A fleet that is being kept. What [`Self::record`] has recorded survives a kill.
#[derive(Debug)]
pub struct FleetKeeper {
    store: Box<dyn Store>,
    keeping: Keeping,
    campaign: Campaign,
    experiment: Experiment,
    recorder: MeteredRecorder,
    meter: Arc<Mutex<Meter>>,
    intake: Intake,
    routes: Vec<TracedRoute>,
    /// What the caps of reflectors refused to it.
    refused: Vec<Warning>,
    origin: Instant<Own>,
    recorded: Instant<Own>,
    host: HostFacts,
    load: LoadMeter,
}

impl FleetKeeper {
    /// Begins the campaign and its only experiment. Own marks will count from `origin`, which is
    /// not later than the fleet's first message.
    ///
    /// # Errors
    /// The store refused.
    pub fn begin(
        mut store: Box<dyn Store>,
        keeping: Keeping,
        spec: &FleetSpec,
        origin: Anchor<Own>,
    ) -> Result<Self, RunError> {
        // What could not be read is left empty, as everywhere in a provenance.
        let host = host_of(spec.site.as_ref()).unwrap_or_default();
        storing("recover what was cut off", store.recover())?;
        let scenario = scenario(spec);
        let campaign = campaign(&keeping, origin);
        let experiment = experiment(&campaign, &scenario, spec);
        let added = store.add_campaign(&campaign, &[scenario]);
        storing("add the campaign", added)?;
        let recorder = storing("begin an experiment", store.begin(&experiment))?;
        let meter = Arc::new(Mutex::new(Meter::new(false)));
        Ok(Self {
            store,
            keeping,
            campaign,
            experiment,
            recorder: MeteredRecorder::new(recorder, Arc::clone(&meter)),
            meter,
            intake: Intake::new(origin),
            routes: Vec::new(),
            refused: Vec::new(),
            origin: origin.at,
            recorded: origin.at,
            host,
            load: LoadMeter::begin(),
        })
    }

    /// Takes in what the fleet told.
    pub fn take(&mut self, report: FleetReport) {
        self.intake.one_of_fleet(report);
    }

    /// Takes in the route of one of its flows.
    pub fn route(&mut self, mut route: TracedRoute) {
        route.at = since(self.origin, route.at);
        if let Some(change) = &mut route.change {
            change.at = since(self.origin, change.at);
        }
        self.routes.push(route);
    }

    /// Records what was taken in, if it is time to; call it a few times a second.
    ///
    /// # Errors
    /// The store refused.
    pub fn record(&mut self) -> Result<(), RunError> {
        let now = neph_probe::now();
        if now - self.recorded < TICK {
            return Ok(());
        }
        self.recorded = now;
        self.record_rest()
    }

    /// Takes note of what the caps of one of its reflectors refused.
    pub fn refused(&mut self, by: &Refusals) {
        self.refused.extend(caps::refusal_warnings(by));
    }

    /// Records the rest and ends the experiment. A fleet to which nobody replied has failed,
    /// whatever `ending` says.
    ///
    /// # Errors
    /// The store refused.
    pub fn finish(mut self, ending: Ending) -> Result<FleetKept, RunError> {
        self.record_rest()?;
        let ending = match ending {
            Ending::Complete => self.intake.verdict(),
            other => other,
        };
        let mut warnings = self.intake.warnings();
        warnings.append(&mut self.refused);
        let carried = ExperimentResult {
            trace: None,
            ending,
            ended: neph_probe::anchor().wall,
            flows: Vec::new(),
            late: self.intake.fleet().map(|tally| tally.late),
            warnings,
            anchors: self.intake.into_anchors(),
            host: self.host,
            load: self.load.load(),
        };
        let mut experiment = self.experiment;
        let mut meter = lock(&self.meter);
        meter.late_replies(carried.late.unwrap_or(0));
        let end = take(carried, &mut experiment);
        settle(&mut experiment, &end, &meter, &Limits::default());
        let provenance = Provenance {
            site: self.keeping.site,
            ..provenance_of(&experiment, "", &self.keeping.build, end, &meter)
        };
        let recorder = self.recorder.into_inner();
        let finished = self.store.finish(recorder, &experiment, &provenance);
        storing("finish an experiment", finished)?;
        Ok(FleetKept {
            store: self.store,
            campaign: self.campaign,
            experiment,
            origin: self.origin,
        })
    }

    /// Records at once what was taken in.
    ///
    /// # Errors
    /// The store refused.
    pub fn record_rest(&mut self) -> Result<(), RunError> {
        let recorded = self.recorder.keep(&self.intake.records());
        storing("record what is measured", recorded)?;
        if self.routes.is_empty() {
            return Ok(());
        }
        let added = self
            .store
            .add_traced_routes(self.experiment.id, &self.routes);
        self.routes.clear();
        storing("add the routes of flows", added)
    }
}

fn campaign(keeping: &Keeping, origin: Anchor<Own>) -> Campaign {
    Campaign {
        plan_path: keeping.asked.clone(),
        ..Campaign::begun(&keeping.name, origin.wall)
    }
}

fn experiment(campaign: &Campaign, scenario: &Scenario, spec: &FleetSpec) -> Experiment {
    Experiment {
        fleet: Some(spec.fleet.clone()),
        ..Experiment::begun(campaign.id, scenario.id, campaign.started)
    }
}

/// What a plan would fix. A fleet that runs until it is stopped has 0 messages.
fn scenario(spec: &FleetSpec) -> Scenario {
    let fleet = &spec.fleet;
    let names: Vec<&str> = fleet
        .endpoints
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let flows = NonZeroU32::new(fleet.lanes).map(Parameter::Flows);
    let renewal = fleet.renewal.map(|life| Parameter::Renewal(Lifetime(life)));
    let port = spec.first_port.and_then(NonZeroU16::new);
    let optional = [flows, renewal, port.map(Parameter::SourcePort)];
    let timeout = Parameter::Timeout(spec.timeout);
    let parameters = optional.into_iter().flatten().chain([timeout]).collect();
    let scenario = Scenario {
        id: ScenarioId(0),
        index: 0,
        endpoint: names.join(", "),
        target: targets(fleet),
        probe: fleet.probe,
        interval: fleet.interval,
        request_size: spec.sent_size(),
        response_size: spec.asked_size(),
        messages: spec.count.unwrap_or(0),
        parameters,
        varied: Vec::new(),
    };
    Scenario {
        id: identity(&scenario),
        ..scenario
    }
}

/// Where its endpoints are, as they were named.
fn targets(fleet: &Fleet) -> Targets {
    let named = |one: &FleetEndpoint| {
        let whole = format!("{}://{}", fleet.probe, one.name);
        Target::parse(&one.name).or_else(|_| Target::parse(&whole))
    };
    let found: Result<Vec<Target>, _> = fleet.endpoints.iter().map(named).collect();
    found.map_or_else(|error| Targets::Called(error.text), Targets::Known)
}

#[cfg(test)]
mod tests;
