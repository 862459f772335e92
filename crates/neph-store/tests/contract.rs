//! What every store must do, whatever is behind it. A further store adds a line to `STORES_TESTED`.

#![expect(
    clippy::print_stdout,
    reason = "a skipped test and a killed child say so"
)]

mod fleets;
mod found;
mod kill;
mod readers;
mod values;

use std::net::IpAddr;

use neph_model::{
    CampaignStatus, CpuUse, EventKind, Experiment, ExperimentId, ExperimentStatus, Outcome,
    PingBetween, Sample, SeriesName, Span, TraceKind, Wall, Warning,
};
use neph_store::{Access, Store, StoreError, open};
use values::{
    campaign, event, experiment, flow_trace, message, provenance, route, scenario, throughput,
};

/// Where a store can be opened again and again until the test ends.
struct Place {
    url: String,
    _folder: tempfile::TempDir,
}

impl Place {
    fn open(&self, access: Access) -> Box<dyn Store> {
        open(&self.url, access).expect("a store that opens")
    }
}

fn embedded() -> Place {
    let folder = tempfile::tempdir().expect("a temporary folder");
    Place {
        url: format!("file://{}", folder.path().display()),
        _folder: folder,
    }
}

/// A fresh, empty place for each kind of store.
const STORES_TESTED: &[fn() -> Place] = &[embedded];

fn each(test: impl Fn(&Place)) {
    for fresh in STORES_TESTED {
        test(&fresh());
    }
}

/// A store with a campaign, and a running experiment of it that is not begun yet.
fn prepared(place: &Place) -> (Box<dyn Store>, Experiment) {
    let mut store = place.open(Access::Write);
    let campaign = campaign();
    store
        .add_campaign(&campaign, &[scenario(0), scenario(1)])
        .expect("a new campaign");
    (store, experiment(campaign.id))
}

fn complete(experiment: &Experiment) -> Experiment {
    let mut ended = experiment.clone();
    ended.status = ExperimentStatus::Complete;
    ended.ended = Some(Wall::from_unix_nanos(experiment.started.unix_nanos() + 7));
    ended.tally.messages = 3;
    ended.tally.late = 1;
    ended.response_p50 = Some(Span::from_nanos(41_900_001));
    ended.anchors = vec![(0, 5), (1_000_000_000, 1_000_000_006)];
    ended.warnings = vec![
        Warning::FewMessages { replies: 3 },
        Warning::CpuStolen { percent: 12.5 },
    ];
    ended.flows[0].source = "10.0.0.9:4711".parse().ok();
    ended
}

#[test]
fn campaigns_and_their_matrix_read_back_oldest_first() {
    each(|place| {
        let mut store = place.open(Access::Write);
        let mut young = campaign();
        young.started = Wall::from_unix_nanos(2_000);
        let mut old = campaign();
        old.started = Wall::from_unix_nanos(1_000);
        old.ended = Some(Wall::from_unix_nanos(1_500));
        // The same scenario belongs to both.
        store
            .add_campaign(&young, &[scenario(1), scenario(0)])
            .expect("added");
        store.add_campaign(&old, &[scenario(0)]).expect("added");
        assert_eq!(
            store.campaigns().expect("readable"),
            [old.clone(), young.clone()]
        );
        let matrix = store.scenarios(young.id).expect("readable");
        assert_eq!(matrix, [scenario(0), scenario(1)]);
        assert_eq!(store.scenarios(old.id).expect("readable"), [scenario(0)]);
        store
            .add_campaign(&old, &[])
            .expect_err("it is there already");
    });
}

#[test]
fn a_campaigns_status_is_kept_and_an_unknown_campaign_refused() {
    each(|place| {
        let (mut store, experiment) = prepared(place);
        let ended = Some(Wall::from_unix_nanos(9));
        let status = CampaignStatus::Interrupted;
        store
            .set_campaign_status(experiment.campaign, status, ended)
            .expect("set");
        let found = &place.open(Access::Read).campaigns().expect("readable")[0];
        assert_eq!((found.status, found.ended), (status, ended));
        store
            .set_campaign_status(campaign().id, status, None)
            .expect_err("there is no such campaign");
    });
}

#[test]
fn a_finished_experiment_reads_back_in_order() {
    each(|place| {
        let (mut store, experiment) = prepared(place);
        let mut recorder = store.begin(&experiment).expect("begun");
        assert_eq!(recorder.experiment(), experiment.id);
        recorder
            .messages(&[message(1, 0), message(0, 1)])
            .expect("recorded");
        recorder
            .event(&event(20, EventKind::ConnectionLost))
            .expect("recorded");
        recorder.messages(&[]).expect("nothing to record");
        recorder
            .event(&event(10, EventKind::Connected))
            .expect("recorded");
        let steal = |at, value| Sample {
            series: SeriesName::Cpu(CpuUse::Steal),
            at,
            value,
        };
        let busy = Sample {
            series: SeriesName::Cpu(CpuUse::Busy),
            at: 5,
            value: 0.25,
        };
        for sample in [steal(2, 1.0), steal(1, 2.0), busy] {
            recorder.sample(&sample).expect("recorded");
        }
        recorder.messages(&[message(0, 0)]).expect("recorded");
        let ended = complete(&experiment);
        let provenance = provenance(experiment.id);
        store
            .finish(recorder, &ended, &provenance)
            .expect("finished");
        drop(store);

        let store = place.open(Access::Read);
        assert_eq!(
            store.experiments(ended.campaign).expect("readable"),
            std::slice::from_ref(&ended)
        );
        let messages = store.messages(ended.id).expect("readable");
        assert_eq!(messages, [message(0, 0), message(0, 1), message(1, 0)]);
        let events = store.events(ended.id).expect("readable");
        assert_eq!(
            events,
            [
                event(10, EventKind::Connected),
                event(20, EventKind::ConnectionLost)
            ]
        );
        let samples = store.samples(ended.id).expect("readable");
        assert_eq!(samples, [busy, steal(1, 2.0), steal(2, 1.0)]);
        assert_eq!(
            store.provenance(ended.id).expect("readable"),
            Some(provenance)
        );
    });
}

#[test]
fn a_running_experiment_can_be_watched() {
    each(|place| {
        let (mut store, experiment) = prepared(place);
        let mut recorder = store.begin(&experiment).expect("begun");
        let reader = place.open(Access::Read);
        for seq in 0..10 {
            recorder.messages(&[message(0, seq)]).expect("recorded");
            let seen = reader.messages(experiment.id).expect("readable");
            assert_eq!(seen.last(), Some(&message(0, seq)));
            assert_eq!(seen.len() as u64, seq + 1);
        }
        recorder
            .event(&event(1, EventKind::Refused))
            .expect("recorded");
        assert_eq!(reader.events(experiment.id).expect("readable").len(), 1);
        assert_eq!(reader.provenance(experiment.id).expect("readable"), None);
        let found = &reader.experiments(experiment.campaign).expect("readable")[0];
        assert_eq!(found.status, ExperimentStatus::Running);
    });
}

#[test]
fn an_experiment_without_its_writer_becomes_an_interrupted_one() {
    each(|place| {
        let (mut store, experiment) = prepared(place);
        let mut recorder = store.begin(&experiment).expect("begun");
        let mut lost = message(0, 1);
        lost.outcome = Outcome::Lost;
        recorder
            .messages(&[message(0, 0), lost, message(1, 0)])
            .expect("recorded");
        recorder
            .event(&event(3, EventKind::LateReply))
            .expect("recorded");
        drop((recorder, store));

        let mut store = place.open(Access::Write);
        let recovered = store.recover().expect("recovered");
        assert_eq!(recovered.len(), 1);
        assert_eq!(
            store.experiments(experiment.campaign).expect("readable"),
            recovered
        );
        let found = &recovered[0];
        assert_eq!(found.status, ExperimentStatus::Interrupted);
        assert!(
            found.reason.as_ref().expect("told").contains("3 messages"),
            "{found:?}"
        );
        let tally = found.tally;
        assert_eq!(
            (tally.messages, tally.replies, tally.lost, tally.late),
            (2, 1, 1, 1)
        );
        assert_eq!(
            store.messages(experiment.id).expect("readable"),
            [message(0, 0), lost, message(1, 0)]
        );
        assert_eq!(store.events(experiment.id).expect("readable").len(), 1);
        assert_eq!(store.recover().expect("nothing left"), []);
    });
}

#[test]
fn experiments_come_by_block_position_and_attempt() {
    each(|place| {
        let (mut store, first) = prepared(place);
        let mut expected = Vec::new();
        for (block, position, attempt) in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)] {
            let mut experiment = first.clone();
            experiment.id = ExperimentId::new();
            (experiment.block, experiment.position, experiment.attempt) =
                (block, position, attempt);
            let recorder = store.begin(&experiment).expect("begun");
            let ended = complete(&experiment);
            store
                .finish(recorder, &ended, &provenance(ended.id))
                .expect("finished");
            expected.insert(0, ended);
        }
        assert_eq!(
            store.experiments(first.campaign).expect("readable"),
            expected
        );
        assert_eq!(store.messages(expected[0].id).expect("an empty one"), []);
    });
}

#[test]
fn checks_come_by_time() {
    each(|place| {
        let (mut store, experiment) = prepared(place);
        let campaign = experiment.campaign;
        for at in [20, 10] {
            store
                .add_throughput(campaign, &throughput(at))
                .expect("added");
            store.add_traceroute(campaign, &route(at)).expect("added");
        }
        let store = place.open(Access::Read);
        let checks = store.throughputs(campaign).expect("readable");
        assert_eq!(checks, [throughput(10), throughput(20)]);
        let routes = store.traceroutes(campaign).expect("readable");
        assert_eq!(routes, [route(10), route(20)]);
    });
}

#[test]
fn pings_between_experiments_come_by_time() {
    each(|place| {
        let (mut store, experiment) = prepared(place);
        let campaign = experiment.campaign;
        let ping = |at: i64, round_trip: Option<i64>| PingBetween {
            block: 1,
            name: "far".to_owned(),
            address: IpAddr::from([10, 0, 0, 1]),
            sent: Wall::from_unix_nanos(at),
            outcome: round_trip.map_or(Outcome::Lost, |_| Outcome::Reply),
            round_trip: round_trip.map(Span::from_millis),
        };
        let (early, late) = (ping(10, Some(7)), ping(20, None));
        let given = [late.clone(), early.clone()];
        store.add_pings_between(campaign, &given).expect("added");
        drop(store);
        let store = place.open(Access::Read);
        let pings = store.pings_between(campaign).expect("readable");
        assert_eq!(pings, [early, late]);
    });
}

#[test]
fn traces_of_flows_come_by_time_while_an_experiment_runs_and_afterwards() {
    each(|place| {
        let (mut store, experiment) = prepared(place);
        let id = experiment.id;
        let recorder = store.begin(&experiment).expect("begun");
        let (early, late) = (
            flow_trace(10, TraceKind::Udp, None),
            flow_trace(20, TraceKind::Syn, Some(false)),
        );
        for trace in [&late, &early] {
            store.add_flow_trace(id, trace).expect("added");
        }
        let expected = [early, late];
        assert_eq!(store.flow_traces(id).expect("readable"), expected);
        let ended = complete(&experiment);
        store
            .finish(recorder, &ended, &provenance(id))
            .expect("finished");
        store
            .add_flow_trace(ExperimentId::new(), &expected[0])
            .expect_err("nobody knows that experiment");
        let store = place.open(Access::Read);
        assert_eq!(store.flow_traces(id).expect("readable"), expected);
        assert_eq!(store.flow_traces(ExperimentId::new()).expect("none"), []);
    });
}

#[test]
fn what_does_not_belong_together_is_refused() {
    each(|place| {
        let (mut store, experiment) = prepared(place);
        let recorder = store.begin(&experiment).expect("begun");
        store.begin(&experiment).expect_err("it has begun already");
        let mut other = complete(&experiment);
        other.id = ExperimentId::new();
        let error = store
            .finish(recorder, &other, &provenance(other.id))
            .expect_err("another's recorder");
        assert!(matches!(error, StoreError::WrongFinish { .. }), "{error}");
        let unknown = store.messages(other.id).expect_err("unknown");
        assert!(
            unknown.to_string().contains(&other.id.to_string()),
            "{unknown}"
        );
        let mut stray = experiment.clone();
        stray.id = ExperimentId::new();
        stray.campaign = campaign().id;
        store.begin(&stray).expect_err("its campaign is unknown");
        stray.campaign = experiment.campaign;
        store
            .begin(&stray)
            .expect("the refusal left nothing behind");
    });
}

#[test]
fn writing_is_for_one_and_reading_for_all() {
    each(|place| {
        let (store, experiment) = prepared(place);
        let error = open(&place.url, Access::Write).expect_err("taken");
        assert!(matches!(error, StoreError::Locked { .. }), "{error}");
        let mut reader = place.open(Access::Read);
        let error = reader.begin(&experiment).expect_err("reading only");
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
        reader.recover().expect_err("reading only");
        drop(store);
        place.open(Access::Write);
    });
}
