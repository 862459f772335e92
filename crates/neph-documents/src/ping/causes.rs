//! The root causes in a ping: its latest messages are evaluated by the same rules, as a campaign of
//! one block. A rule that needs several experiments reports nothing.

use std::net::SocketAddr;

use neph_analysis::{CampaignData, Diagnoses, ExperimentData, PlotSettings, diagnose};
use neph_model::{
    ByteSize, Campaign, CampaignId, CampaignStatus, Experiment, ExperimentStatus, Flow, FlowRole,
    Instant, Local, Marks, Message, Parameter, Scenario, ScenarioId, Span, Wall,
};

use super::{FlowMeasured, PingResult};
use super::{Planned, PlannedFlows};

/// The results of the rules for this measurement.
pub fn causes(planned_flows: &PlannedFlows, watched: &PingResult) -> Diagnoses {
    diagnose(&campaign(planned_flows, watched), &PlotSettings::default())
}

/// A scenario for each requested flow, with the echo alongside all of them.
fn campaign(planned_flows: &PlannedFlows, watched: &PingResult) -> CampaignData {
    let flows = || planned_flows.flows.iter().zip(&watched.flows);
    let echo = flows().find(|(planned, _)| !planned.is_asked_for());
    let asked_for = flows().filter(|(planned, _)| planned.is_asked_for());
    let id = CampaignId::new();
    let mut data = CampaignData {
        campaign: nameless(id),
        scenarios: Vec::new(),
        experiments: Vec::new(),
        left_out: Vec::new(),
        throughputs: Vec::new(),
        traceroutes: Vec::new(),
    };
    for main in asked_for {
        let index = data.scenarios.len();
        let scenario = scenario(main.0, index);
        let members: Vec<(&Planned, &FlowMeasured)> = [main].into_iter().chain(echo).collect();
        let experiment = experiment(id, scenario.id, &members);
        data.experiments
            .push(ExperimentData::new(experiment, index, &messages(&members)));
        data.scenarios.push(scenario);
    }
    data
}

fn nameless(id: CampaignId) -> Campaign {
    Campaign {
        id,
        status: CampaignStatus::Complete,
        ..Campaign::begun("ping", Wall::from_unix_nanos(0))
    }
}

fn scenario(planned: &Planned, index: usize) -> Scenario {
    let spec = &planned.spec;
    let bytes = |size: usize| ByteSize(size as u64);
    let site = spec.site.iter();
    let site = site.map(|site| Parameter::Site(site.namespace().to_owned()));
    Scenario {
        id: ScenarioId(index as u64),
        index: u32::try_from(index).unwrap_or(u32::MAX),
        endpoint: spec.target.to_string(),
        target: spec.target.clone().into(),
        interval: spec.schedule.interval,
        request_size: bytes(spec.request_size),
        response_size: bytes(spec.response_size),
        messages: spec.schedule.messages().unwrap_or(0),
        parameters: site.collect(),
        varied: Vec::new(),
    }
}

fn experiment(
    campaign: CampaignId,
    scenario: ScenarioId,
    members: &[(&Planned, &FlowMeasured)],
) -> Experiment {
    let flows = members.iter().enumerate();
    Experiment {
        status: ExperimentStatus::Complete,
        flows: flows
            .map(|(index, (planned, _))| flow(planned, index))
            .collect(),
        tally: members[0].1.tally,
        ..Experiment::begun(campaign, scenario, Wall::from_unix_nanos(0))
    }
}

fn flow(planned: &Planned, index: usize) -> Flow {
    let spec = &planned.spec;
    let any = [0, 0, 0, 0].into();
    let is_icmp = spec.target.kind().is_echo();
    Flow {
        index: spec.index,
        role: if index == 0 {
            FlowRole::Main
        } else {
            FlowRole::Companion
        },
        probe: spec.target.kind(),
        name: spec.name.clone(),
        source: spec.source_port.map(|port| SocketAddr::new(any, port)),
        target: spec.address,
        reflector: spec.reflector && !is_icmp,
        same_clock: planned.discovery.same_clock,
    }
}

/// The stored messages, counted from the first of them.
fn messages(members: &[(&Planned, &FlowMeasured)]) -> Vec<Message> {
    let recent = || members.iter().flat_map(|(_, watched)| &watched.recent);
    let Some(origin) = recent().map(|message| message.marks.intended).min() else {
        return Vec::new();
    };
    let from = Instant::from_nanos(0) - origin;
    recent()
        .map(|message| Message {
            marks: shift_timestamps(&message.marks, from),
            ..*message
        })
        .collect()
}

fn shift_timestamps(timestamps: &Marks, shift: Span) -> Marks {
    let at = |timestamp: Option<Instant<Local>>| timestamp.map(|timestamp| timestamp + shift);
    Marks {
        intended: timestamps.intended + shift,
        dialled: at(timestamps.dialled),
        connected: at(timestamps.connected),
        opened: at(timestamps.opened),
        app_send: at(timestamps.app_send),
        queued: at(timestamps.queued),
        nic_tx: at(timestamps.nic_tx),
        acked: at(timestamps.acked),
        peer: timestamps.peer,
        nic_rx: at(timestamps.nic_rx),
        app_recv: at(timestamps.app_recv),
    }
}
