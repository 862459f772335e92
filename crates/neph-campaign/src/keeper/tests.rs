use std::path::Path;

use neph_model::{
    ByteSize, CampaignStatus, Ending, ExperimentStatus, FleetEndpoint, FleetMessage, FleetOutcome,
    FleetReply, HostFacts, Parameters, ProbeKind, ReadBy, ScenarioId, Slot, Span, Targets, Wall,
    Warning,
};
use neph_store::{Access, SentWithin};

use super::*;

fn endpoint(name: &str) -> FleetEndpoint {
    FleetEndpoint {
        name: name.to_owned(),
        address: ([192, 0, 2, 1], 862).into(),
    }
}

fn fleet() -> Fleet {
    Fleet {
        probe: ProbeKind::Udp,
        slots: 4,
        endpoints: vec![endpoint("udp://a"), endpoint("udp://b")],
        interval: Span::from_millis(100),
        lifetime: None,
        criteria: Some(neph_model::Criteria {
            window: 8,
            ..neph_model::Criteria::after(Span::from_secs(1))
        }),
    }
}

fn scenario() -> Scenario {
    Scenario {
        id: ScenarioId(0),
        index: 0,
        endpoint: "udp://a, udp://b".to_owned(),
        target: Targets::read("udp://a", ProbeKind::Udp),
        interval: Span::from_millis(100),
        request_size: ByteSize(64),
        response_size: ByteSize(64),
        messages: 2,
        parameters: Parameters::default(),
        varied: Vec::new(),
    }
}

fn open_store(path: &Path, access: Access) -> Box<dyn Store> {
    neph_store::open(&path.display().to_string(), access).expect("a workspace")
}

fn begin(path: &Path, origin: Anchor<Local>) -> FleetKeeper {
    let store = open_store(path, Access::Write);
    let storage = FleetStorage {
        name: "night".to_owned(),
        description: "neph flows udp://a udp://b".to_owned(),
        site: None,
        build: Build {
            version: "1".to_owned(),
            commit: "c".to_owned(),
        },
    };
    FleetKeeper::begin(store, storage, scenario(), fleet(), origin).expect("a store that takes it")
}

/// A fleet whose messages were all replied to.
fn keeper_with_replies(path: &Path, origin: Anchor<Local>) -> FleetKeeper {
    let mut keeper = begin(path, origin);
    keeper
        .record(&messages(reply_outcome()))
        .expect("a store that works");
    keeper
}

/// Two messages of each slot, 100 ms apart, the first 5 ms after the start.
fn messages(outcome: FleetOutcome) -> Records {
    let message = |number: u32| FleetMessage {
        slot: Slot(number % 4),
        source_port: 10_000,
        seq: number / 4,
        sent: Instant::from_nanos(5_000_000 + 100_000_000 * i64::from(number / 4)),
        late: Span::from_micros(3),
        outcome,
    };
    Records {
        fleet: (0..8).map(message).collect(),
        ..Records::default()
    }
}

/// How it ended; one reply came too late.
fn result(ending: Ending) -> ExperimentResult {
    ExperimentResult {
        ending,
        ended: now(),
        flows: Vec::new(),
        quantities: None,
        late: Some(1),
        trace: None,
        anchors: vec![(0, now().unix_nanos())],
        host: HostFacts::default(),
        load: None,
        warnings: vec![Warning::DroppedHere { packets: 2 }],
    }
}

fn origin() -> Anchor<Local> {
    Anchor {
        at: Instant::from_nanos(7_000),
        wall: now(),
    }
}

fn now() -> Wall {
    Wall::from_unix_nanos(1_700_000_000_000_000_000)
}

fn reply_outcome() -> FleetOutcome {
    FleetOutcome::Reply(FleetReply {
        round_trip: Span::from_millis(7),
        read_by: ReadBy::Kernel,
        peer_report: None,
        ttl: None,
        copies: 0,
        answer: None,
    })
}

fn read_fleet(path: &Path) -> (Campaign, Experiment, Vec<FleetMessage>) {
    let store = open_store(path, Access::Read);
    let campaign = store.campaigns().expect("campaigns").remove(0);
    let experiment = store
        .experiments(campaign.id)
        .expect("experiments")
        .remove(0);
    let mut messages = Vec::new();
    store
        .visit_fleet(experiment.id, SentWithin::ALL, &mut |batch| {
            messages.extend_from_slice(batch);
            Ok(())
        })
        .expect("messages");
    (campaign, experiment, messages)
}

#[test]
fn a_fleet_is_stored_as_a_campaign_of_one_experiment() {
    let folder = tempfile::tempdir().expect("a folder");
    let keeper = keeper_with_replies(folder.path(), origin());
    let stored = keeper
        .finish(result(Ending::Complete))
        .expect("a store that works");
    let ended = stored
        .end(&Ending::Complete, now())
        .expect("a store that works");
    let (campaign, experiment, messages) = read_fleet(folder.path());
    assert_eq!(ended, campaign);
    assert_eq!(campaign.status, CampaignStatus::Complete);
    assert_eq!(
        (campaign.name.as_str(), campaign.plan_path.as_str()),
        ("night", "neph flows udp://a udp://b")
    );
    assert_eq!(experiment.status, ExperimentStatus::Complete);
    assert_eq!(experiment.fleet, Some(fleet()));
    let tally = experiment.tally;
    assert_eq!((tally.messages, tally.replies, tally.late), (8, 8, 1));
    let warnings = &experiment.warnings;
    assert!(
        warnings.contains(&Warning::DroppedHere { packets: 2 }),
        "{warnings:?}"
    );
    let send_times: Vec<i64> = messages
        .iter()
        .map(|message| message.sent.nanos())
        .collect();
    assert_eq!(send_times.len(), 8);
    assert!(
        send_times
            .iter()
            .all(|at| [5_000_000, 105_000_000].contains(at))
    );
}

#[test]
fn interrupted_and_failed_fleets_are_stored_with_their_status() {
    for (ending, outcome, expected_status) in [
        (
            Ending::Interrupted,
            reply_outcome(),
            (CampaignStatus::Interrupted, ExperimentStatus::Interrupted),
        ),
        (
            Ending::Failed("no reply".to_owned()),
            FleetOutcome::Lost,
            (CampaignStatus::Incomplete, ExperimentStatus::Failed),
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut keeper = begin(folder.path(), origin());
        keeper
            .record(&messages(outcome))
            .expect("a store that works");
        let stored = keeper.finish(result(ending)).expect("a store that works");
        stored
            .end(&Ending::Complete, now())
            .expect("a store that works");
        let (campaign, experiment, messages) = read_fleet(folder.path());
        assert_eq!((campaign.status, experiment.status), expected_status);
        assert_eq!(messages.len(), 8);
    }
}

#[test]
fn recorded_messages_and_routes_survive_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut keeper = keeper_with_replies(folder.path(), origin());
    keeper
        .record_routes(vec![traced_route(origin())])
        .expect("a store that works");
    drop(keeper);
    // The next writer finds it, and ends what was cut off.
    let next_keeper = begin(folder.path(), origin());
    let (campaign, experiment, messages) = read_fleet(folder.path());
    assert_eq!(campaign.status, CampaignStatus::Interrupted);
    assert_eq!(experiment.status, ExperimentStatus::Interrupted);
    assert_eq!(messages.len(), 8);
    assert_eq!(read_route_times(folder.path(), &experiment), [(7, Some(5))]);
    drop(next_keeper);
}

/// The route of the first flow 7 ns after the start, for a change 5 ns after it.
fn traced_route(origin: Anchor<Local>) -> TracedRoute {
    let change = neph_model::TracedChange {
        at: origin.at + Span::from_nanos(5),
        before: None,
        other_routers: None,
    };
    TracedRoute {
        slot: Slot(0),
        at: origin.at + Span::from_nanos(7),
        route: neph_model::FlowRoute {
            source_port: 10_000,
            hops: Vec::new(),
            hash: neph_model::PathHash(1),
            end: neph_model::TraceEnd::Silent,
        },
        change: Some(change),
    }
}

/// When each route was found, and for which change.
fn read_route_times(path: &Path, experiment: &Experiment) -> Vec<(i64, Option<i64>)> {
    let store = open_store(path, Access::Read);
    let mut route_times = Vec::new();
    let mut collect = |batch: &[TracedRoute]| {
        let time_and_change = |route: &TracedRoute| {
            (
                route.at.nanos(),
                route.change.map(|change| change.at.nanos()),
            )
        };
        route_times.extend(batch.iter().map(time_and_change));
        Ok(())
    };
    let result = store.visit_traced_routes(experiment.id, &mut collect);
    result.expect("routes");
    route_times
}

#[test]
fn transfers_are_stored_and_their_ending_sets_the_campaign_status() {
    use neph_model::{ClassTransfer, SourcePortOutcome, SourcePortTransfer};

    for (ending, expected_status) in [
        (Some(Ending::Complete), CampaignStatus::Complete),
        (Some(Ending::Interrupted), CampaignStatus::Interrupted),
        (
            Some(Ending::Failed("no".to_owned())),
            CampaignStatus::Incomplete,
        ),
        // Killed.
        (None, CampaignStatus::Interrupted),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let keeper = keeper_with_replies(folder.path(), origin());
        let mut stored = keeper
            .finish(result(Ending::Complete))
            .expect("a store that works");
        let transfer = |nanos| ClassTransfer {
            endpoint: 1,
            class: 0,
            size: ByteSize(1024),
            transfer: SourcePortTransfer {
                source_port: 10_000,
                pass: 0,
                begun: Instant::from_nanos(nanos),
                outcome: SourcePortOutcome::Failed("refused".to_owned()),
            },
        };
        let added_transfer = transfer(origin().at.nanos() + 9);
        stored
            .record_transfers(&[added_transfer])
            .expect("a store that works");
        if let Some(ending) = ending {
            stored.end(&ending, now()).expect("a store that works");
        } else {
            drop(stored);
            drop(begin(folder.path(), origin()));
        }
        let (campaign, experiment, _) = read_fleet(folder.path());
        let statuses = (campaign.status, experiment.status);
        assert_eq!(statuses, (expected_status, ExperimentStatus::Complete));
        let store = open_store(folder.path(), Access::Read);
        let transfers = store.transfers(experiment.id).expect("transfers");
        assert_eq!(transfers, [transfer(9)], "marks count from the start");
    }
}
