//! The root causes in a ping: its latest messages are evaluated by the same rules, as a campaign of
//! one block. A rule that needs several experiments reports nothing.

use std::net::SocketAddr;

use neph_analysis::{CampaignData, Diagnoses, ExperimentData, PlotSettings, diagnose};
use neph_model::{
    ByteSize, Campaign, CampaignId, CampaignStatus, Experiment, ExperimentStatus, Flow, FlowRole,
    Instant, Local, Marks, Message, Parameter, Scenario, ScenarioId, Span, Wall,
};

use super::{FlowTotals, PingResult};
use super::{PlannedFlow, PlannedFlows};

/// The results of the rules for this measurement.
pub fn find_causes(planned_flows: &PlannedFlows, result: &PingResult) -> Diagnoses {
    diagnose(
        &build_campaign(planned_flows, result),
        &PlotSettings::default(),
    )
}

/// A scenario for each requested flow, with the echo alongside all of them.
fn build_campaign(planned_flows: &PlannedFlows, result: &PingResult) -> CampaignData {
    let flows = || planned_flows.flows.iter().zip(&result.flows);
    let echo = flows().find(|(planned, _)| !planned.is_requested());
    let requested_flows = flows().filter(|(planned, _)| planned.is_requested());
    let id = CampaignId::new();
    let mut data = CampaignData {
        campaign: build_unnamed_campaign(id),
        scenarios: Vec::new(),
        experiments: Vec::new(),
        left_out: Vec::new(),
        throughputs: Vec::new(),
        traceroutes: Vec::new(),
    };
    for main_flow in requested_flows {
        let index = data.scenarios.len();
        let scenario = build_scenario(main_flow.0, index);
        let members: Vec<(&PlannedFlow, &FlowTotals)> =
            [main_flow].into_iter().chain(echo).collect();
        let experiment = build_experiment(id, scenario.id, &members);
        data.experiments.push(ExperimentData::new(
            experiment,
            index,
            &collect_messages(&members),
        ));
        data.scenarios.push(scenario);
    }
    data
}

fn build_unnamed_campaign(id: CampaignId) -> Campaign {
    Campaign {
        id,
        status: CampaignStatus::Complete,
        ..Campaign::new("ping", Wall::from_unix_nanos(0))
    }
}

fn build_scenario(planned: &PlannedFlow, index: usize) -> Scenario {
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

fn build_experiment(
    campaign: CampaignId,
    scenario: ScenarioId,
    members: &[(&PlannedFlow, &FlowTotals)],
) -> Experiment {
    let flows = members.iter().enumerate();
    Experiment {
        status: ExperimentStatus::Complete,
        flows: flows
            .map(|(index, (planned, _))| build_flow(planned, index))
            .collect(),
        tally: members[0].1.tally,
        ..Experiment::new(campaign, scenario, Wall::from_unix_nanos(0))
    }
}

fn build_flow(planned: &PlannedFlow, index: usize) -> Flow {
    let spec = &planned.spec;
    let any_address = [0, 0, 0, 0].into();
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
        source: spec
            .source_port
            .map(|port| SocketAddr::new(any_address, port)),
        target: spec.address,
        reflector: spec.reflector && !is_icmp,
        same_clock: planned.discovery.same_clock,
    }
}

/// The stored messages, counted from the first of them.
fn collect_messages(members: &[(&PlannedFlow, &FlowTotals)]) -> Vec<Message> {
    let recent_messages = || {
        members
            .iter()
            .flat_map(|(_, totals)| &totals.recent_messages)
    };
    let Some(origin) = recent_messages()
        .map(|message| message.marks.intended)
        .min()
    else {
        return Vec::new();
    };
    let shift = Instant::from_nanos(0) - origin;
    recent_messages()
        .map(|message| Message {
            marks: shift_timestamps(&message.marks, shift),
            ..*message
        })
        .collect()
}

fn shift_timestamps(timestamps: &Marks, shift: Span) -> Marks {
    let shift_time =
        |timestamp: Option<Instant<Local>>| timestamp.map(|timestamp| timestamp + shift);
    Marks {
        intended: timestamps.intended + shift,
        dialled: shift_time(timestamps.dialled),
        connected: shift_time(timestamps.connected),
        opened: shift_time(timestamps.opened),
        app_send: shift_time(timestamps.app_send),
        queued: shift_time(timestamps.queued),
        nic_tx: shift_time(timestamps.nic_tx),
        acked: shift_time(timestamps.acked),
        peer: timestamps.peer,
        nic_rx: shift_time(timestamps.nic_rx),
        app_recv: shift_time(timestamps.app_recv),
    }
}
