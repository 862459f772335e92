use neph_model::{
    Campaign, Experiment, Fleet, FleetMessage, FleetOutcome, FleetReply, HostFacts, Instant,
    Parameters, ProbeKind, Provenance, ReadBy, Slot, Span, Tally, Targets, Wall,
};
use neph_store::{Access, open};

use super::*;

const MESSAGES: u32 = 9;

/// A campaign with two ended fleets of nine messages of 7 ms each; `stored_medians` has the
/// stored median of each, if any.
fn store_two_fleets(
    location: &str,
    stored_medians: &[Option<Span>; 2],
) -> (Box<dyn Store>, Vec<Experiment>) {
    let mut store = open(location, Access::Write).expect("a new workspace");
    let campaign = Campaign::new("fleets", Wall::from_unix_nanos(0));
    let scenario = scenario();
    store
        .add_campaign(&campaign, std::slice::from_ref(&scenario))
        .expect("added");
    for (position, span) in (0..).zip(stored_medians) {
        let mut experiment = Experiment::new(campaign.id, scenario.id, campaign.started);
        experiment.position = position;
        experiment.fleet = Some(fleet());
        let mut recorder = store.begin(&experiment).expect("begun");
        let messages: Vec<FleetMessage> = (0..MESSAGES).map(message).collect();
        recorder.fleet(&messages).expect("recorded");
        experiment.status = ExperimentStatus::Complete;
        experiment.tally = Tally {
            messages: MESSAGES.into(),
            replies: MESSAGES.into(),
            ..Tally::default()
        };
        experiment.response_p50 = *span;
        store
            .finish(recorder, &experiment, &provenance(&experiment))
            .expect("finished");
    }
    let experiments = store.experiments(campaign.id).expect("readable");
    (store, experiments)
}

fn scenario() -> Scenario {
    Scenario {
        id: ScenarioId(1),
        index: 0,
        endpoint: "here".to_owned(),
        target: Targets::read("udp://127.0.0.1", ProbeKind::Udp),
        interval: Span::from_millis(100),
        request_size: neph_model::ByteSize(64),
        response_size: neph_model::ByteSize(64),
        messages: MESSAGES.into(),
        parameters: Parameters::new(),
        varied: Vec::new(),
    }
}

fn fleet() -> Fleet {
    Fleet {
        probe: ProbeKind::Udp,
        slots: 1,
        endpoints: Vec::new(),
        interval: Span::from_millis(100),
        lifetime: None,
        criteria: None,
    }
}

/// A reply of the only flow, 7 ms after its request; requests are 100 ms apart.
pub(crate) fn message(seq: u32) -> FleetMessage {
    FleetMessage {
        slot: Slot(0),
        source_port: 10_000,
        seq,
        sent: Instant::from_nanos(i64::from(seq) * 100_000_000),
        late: Span::ZERO,
        outcome: FleetOutcome::Reply(FleetReply {
            round_trip: Span::from_millis(7),
            read_by: ReadBy::Kernel,
            peer_report: None,
            ttl: None,
            copies: 0,
            answer: None,
        }),
    }
}

fn provenance(experiment: &Experiment) -> Provenance {
    Provenance {
        experiment: experiment.id,
        version: String::new(),
        commit: String::new(),
        plan_hash: String::new(),
        site: None,
        host: HostFacts::default(),
        load: None,
        lateness_p50: None,
        lateness_p99: None,
    }
}

/// The medians if at most `message_budget` messages may be read, and how many of these are left.
fn medians(
    stored_medians: &[Option<Span>; 2],
    mut message_budget: u64,
) -> (Vec<Option<Span>>, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, experiments) =
        store_two_fleets(&folder.path().display().to_string(), stored_medians);
    let medians = experiments.iter().map(|experiment| {
        let flow_numbers =
            FlowNumbers::of(store.as_ref(), experiment, &mut message_budget).expect("readable");
        assert_eq!(flow_numbers.messages, u64::from(MESSAGES));
        flow_numbers.p50.time()
    });
    (medians.collect(), message_budget)
}

#[test]
fn only_missing_medians_are_computed_within_a_message_limit() {
    let span = Some(Span::from_millis(3));
    assert_eq!(medians(&[span, span], 100), (vec![span, span], 100));
    let (p50s, message_budget) = medians(&[span, None], 100);
    assert_eq!((p50s[0], message_budget), (span, 91));
    let computed_ns = p50s[1].expect("messages have it").nanos();
    assert!(
        (7_000_000..=7_007_000).contains(&computed_ns),
        "{computed_ns}"
    );
    // Enough for one of them.
    let (p50s, message_budget) = medians(&[None, None], 17);
    assert_eq!(
        (p50s[0].is_some(), p50s[1], message_budget),
        (true, None, 8)
    );
}
