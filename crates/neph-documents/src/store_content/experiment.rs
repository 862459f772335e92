//! An experiment: its scenario, the outcomes of its messages, and the facts needed to judge it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use neph_model::{
    Campaign, Event, Experiment, Fleet, Flow, Provenance, Sample, Span, Tally, UtcOffset,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::experiment_rows::{
    EventRow, ExperimentFacts, FleetFacts, FlowRow, ProvenanceFacts, ReducedFacts, SeriesRow,
    TallyFacts, WarningRow,
};
use super::quantities::QuantityRow;
use super::{ClassTransferRow, RoutesFacts, TracedFacts};
use crate::p50::P50;
use crate::sections::{Pairs, Sections};
use crate::trace::PathRow;
use crate::version::Version;

/// The input of an experiment's document.
#[derive(Clone, Debug)]
pub struct ExperimentParts<'s> {
    /// Its campaign.
    pub campaign: &'s Campaign,
    /// The experiment.
    pub experiment: &'s Experiment,
    /// The label of its scenario.
    pub label: String,
    /// Whether its scenario measures a transfer, which has no messages.
    pub is_transfer: bool,
    /// The load that its scenario generates.
    pub load: Option<String>,
    /// Its status.
    pub status: &'s str,
    /// The median response time of its messages.
    pub p50: P50,
    /// Its events.
    pub events: &'s [Event],
    /// Its samples, those of a series together.
    pub samples: &'s [Sample],
    /// Where and how it was measured.
    pub provenance: Option<&'s Provenance>,
    /// Transfers on the source ports of its latency classes.
    pub transfers: Vec<ClassTransferRow>,
    /// The distribution that remains of its messages, if these were removed.
    pub reduced: Option<ReducedFacts>,
    /// Numbers of routes that were traced during the experiment.
    pub traced: Option<TracedFacts>,
    /// The paths of its flows, if they were traced.
    pub paths: Option<TracedPaths>,
    /// The time zone in which its times are shown.
    pub offset: UtcOffset,
}

/// The result of the latest trace of an experiment's flows.
#[derive(Clone, Debug)]
pub struct TracedPaths {
    /// The paths.
    pub paths: Vec<PathRow>,
    /// Numbers of incomplete routes.
    pub incomplete: Option<RoutesFacts>,
}

/// An experiment with its results and its provenance.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExperimentDocument {
    /// Version of this schema.
    pub schema: Version,
    /// Facts about the experiment.
    pub experiment: ExperimentFacts,
    /// Outcomes of its messages.
    pub tally: TallyFacts,
    /// Whether it measures a transfer, which has no messages.
    #[serde(skip)]
    pub is_transfer: bool,
    /// Results of a transfer; empty if it measured messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quantities: Vec<QuantityRow>,
    /// What limited the transfer, one sentence per direction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Distribution that remains of its messages; null if the messages are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduced: Option<ReducedFacts>,
    /// Facts about its fleet; null without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetFacts>,
    /// Its flows.
    pub flows: Vec<FlowRow>,
    /// Transfers on the source ports of its latency classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<ClassTransferRow>,
    /// Numbers of routes that were traced during the experiment; null without a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traced: Option<TracedFacts>,
    /// Paths of its flows; null if they were not traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<PathRow>>,
    /// Numbers of incomplete routes; null if all are complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<RoutesFacts>,
    /// Its warnings.
    pub warnings: Vec<WarningRow>,
    /// Events that are not messages.
    pub events: Vec<EventRow>,
    /// Series of samples.
    pub series: Vec<SeriesRow>,
    /// Where and how it was measured; null if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<ProvenanceFacts>,
    /// Offloads of the host's interfaces by name; null if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offloads: Option<BTreeMap<String, String>>,
    /// Kernel settings by name; null if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sysctls: Option<BTreeMap<String, String>>,
}

impl ExperimentDocument {
    /// The document of these parts.
    pub fn of(parts: ExperimentParts<'_>) -> Self {
        let experiment = parts.experiment;
        let host = parts.provenance.map(|provenance| &provenance.host);
        let (paths, routes) = parts
            .paths
            .clone()
            .map(|paths| (paths.paths, paths.incomplete))
            .unzip();
        Self {
            schema: Version,
            experiment: properties_of(&parts),
            tally: tally_facts(&experiment.tally, parts.p50),
            is_transfer: parts.is_transfer,
            quantities: QuantityRow::of_results(experiment.quantities.as_ref()),
            limits: limit_sentences(experiment),
            reduced: parts.reduced,
            fleet: experiment.fleet.as_ref().map(fleet_facts),
            flows: experiment.flows.iter().map(flow_row).collect(),
            traced: parts.traced,
            paths,
            routes: routes.flatten(),
            warnings: warning_rows(experiment, parts.load.as_deref()),
            events: parts.events.iter().map(event_row).collect(),
            series: series_rows(parts.samples),
            provenance: parts.provenance.map(provenance_facts),
            offloads: host.map(|host| host.offloads.clone()),
            sysctls: host.map(|host| host.sysctls.clone()),
            transfers: parts.transfers,
        }
    }

    /// The text form.
    pub fn text(&self) -> String {
        let mut sections = Sections::default();
        sections.pairs("Experiment", &Pairs::of(&self.experiment));
        if !self.is_transfer {
            sections.pairs("Messages", &Pairs::of(&self.tally));
        }
        sections.table("Transfer", &self.quantities);
        if !self.limits.is_empty() {
            sections.quote("What limits it", &self.limits.join("\n"));
        }
        if let Some(reduced) = &self.reduced {
            sections.pairs("Kept of its messages", &Pairs::of(reduced));
        }
        if let Some(fleet) = &self.fleet {
            let endpoints = fleet.endpoints.iter();
            let pairs = endpoints.fold(Pairs::of(fleet), |pairs, endpoint| {
                pairs.with_pair("endpoint", endpoint)
            });
            sections.pairs("Fleet", &pairs);
        }
        sections.table("Flows", &self.flows);
        sections.table("Transfers on its classes' ports", &self.transfers);
        if let Some(traced) = &self.traced {
            sections.pairs("Traced while it ran", &Pairs::of(traced));
        }
        sections.table(
            "Paths of its flows",
            self.paths.as_deref().unwrap_or_default(),
        );
        if let Some(routes) = &self.routes {
            sections.pairs("Its routes", &Pairs::of(routes));
        }
        sections.table("Warnings", &self.warnings);
        sections.table("Events", &self.events);
        sections.table("Series", &self.series);
        if let Some(provenance) = &self.provenance {
            sections.pairs("Provenance", &Pairs::of(provenance));
        }
        for (title, settings) in [("Offloads", &self.offloads), ("Sysctls", &self.sysctls)] {
            sections.pairs(title, &settings.iter().flatten().collect());
        }
        sections.text()
    }
}

fn properties_of(parts: &ExperimentParts<'_>) -> ExperimentFacts {
    let experiment = parts.experiment;
    ExperimentFacts {
        id: experiment.id.to_string(),
        campaign: parts.campaign.id.to_string(),
        scenario: parts.label.clone(),
        scenario_id: experiment.scenario.to_string(),
        block: experiment.block,
        position: experiment.position,
        attempt: experiment.attempt,
        status: parts.status.to_owned(),
        started_unix_ns: experiment.started,
        ended_unix_ns: experiment.ended,
        reason: experiment.reason.clone(),
        campaign_name: parts.campaign.name.clone(),
        offset: parts.offset,
    }
}

const fn tally_facts(tally: &Tally, p50: P50) -> TallyFacts {
    TallyFacts {
        messages: tally.messages,
        replies: tally.replies,
        errors: tally.errors,
        lost: tally.lost,
        failed: tally.failed,
        duplicates: tally.duplicates,
        reordered: tally.reordered,
        late: tally.late,
        response_p50_ns: p50.time(),
        p50,
    }
}

fn limit_sentences(experiment: &Experiment) -> Vec<String> {
    let quantities = experiment.quantities.as_ref();
    quantities
        .map(|quantities| quantities.limits.clone())
        .unwrap_or_default()
}

fn fleet_facts(fleet: &Fleet) -> FleetFacts {
    let criteria = fleet.criteria.unwrap_or_default();
    let (quorum, window) = (criteria.quorum, criteria.window);
    let tolerance = criteria.tolerance.exact();
    let endpoints = fleet.endpoints.iter();
    let endpoints = endpoints.map(|endpoint| format!("{} ({})", endpoint.name, endpoint.address));
    FleetFacts {
        slots: fleet.slots,
        probe: fleet.probe.name(),
        interval_ns: fleet.interval,
        flow_lifetime_ns: fleet.lifetime,
        criteria: format!("{quorum} of {window} round trips within {tolerance}"),
        endpoints: endpoints.collect(),
    }
}

fn flow_row(flow: &Flow) -> FlowRow {
    // An imported flow may not name its peer.
    let is_known = |target: &SocketAddr| !target.ip().is_unspecified() || target.port() != 0;
    FlowRow {
        flow: flow.index.0,
        role: flow.role.name(),
        probe: flow.probe.name(),
        name: flow.name.clone(),
        source: flow.source.map(|address| address.to_string()),
        target: Some(flow.target)
            .filter(is_known)
            .map(|address| address.to_string()),
        reflector: flow.reflector,
        same_clock: flow.same_clock,
    }
}

fn warning_rows(experiment: &Experiment, load: Option<&str>) -> Vec<WarningRow> {
    let generated_load = experiment.generated_load(load);
    let rows = experiment.warnings.iter().map(|warning| WarningRow {
        warning: warning.clone(),
        advice: warning.advice_under(generated_load.as_deref().as_slice()),
    });
    rows.collect()
}

fn event_row(event: &Event) -> EventRow {
    EventRow {
        at_ns: Span::from_nanos(event.at),
        flow: event.flow.0,
        kind: event.kind.name(),
        text: event.text.clone(),
    }
}

/// Each series with its range.
fn series_rows(samples: &[Sample]) -> Vec<SeriesRow> {
    let groups = samples.chunk_by(|a, b| a.series == b.series);
    let rows = groups.map(|group| {
        let values = || group.iter().map(|sample| sample.value);
        SeriesRow {
            series: group[0].series.to_string(),
            count: group.len() as u64,
            min: values().fold(f64::INFINITY, f64::min),
            max: values().fold(f64::NEG_INFINITY, f64::max),
            values: group.iter().map(|point| (point.at, point.value)).collect(),
        }
    });
    rows.collect()
}

fn provenance_facts(provenance: &Provenance) -> ProvenanceFacts {
    let host = &provenance.host;
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    ProvenanceFacts {
        neph: format!("{} ({})", provenance.version, provenance.commit),
        plan_hash: text(&provenance.plan_hash),
        site: provenance.site.clone(),
        host: text(&host.host),
        kernel: text(&host.kernel),
        cpu: text(&host.cpu),
        clock_source: text(&host.clock_source),
        clock_sync: text(&host.clock_sync),
        congestion_control: host.congestion_control.clone(),
        lateness_p50_ns: provenance.lateness_p50,
        lateness_p99_ns: provenance.lateness_p99,
        busy_percent: provenance.load.map(|load| load.busy_percent),
        steal_percent: provenance.load.map(|load| load.steal_percent),
        load_average: provenance.load.map(|load| load.load_average),
    }
}
