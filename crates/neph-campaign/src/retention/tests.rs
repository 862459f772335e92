//! Messages of a store that become minutes, and what is still known then.

use neph_model::{HostFacts, Instant, Marks, Provenance, ScenarioId, Seq};
use neph_store::{Access, open};

use super::*;

const DAY: i64 = 86_400;

struct TestStore {
    folder: tempfile::TempDir,
    campaign: Campaign,
    experiment: Experiment,
}

fn at(seconds: i64) -> Wall {
    Wall::from_unix_nanos(seconds * 1_000_000_000)
}

/// One in ten is lost; the others take 1 ms and a microsecond for each before.
fn message(seq: u64) -> Message {
    let due = i64::try_from(seq).expect("few") * 100_000_000;
    let round_trip_ns = 1_000_000 + i64::try_from(seq).expect("few") * 1_000;
    let mut marks = Marks::intended_at(Instant::from_nanos(due));
    marks.app_send = Some(Instant::from_nanos(due + 10));
    marks.app_recv = Some(Instant::from_nanos(due + round_trip_ns));
    let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
    message.outcome = if seq % 10 == 9 {
        Outcome::Lost
    } else {
        Outcome::Reply
    };
    message
}

impl TestStore {
    /// 1,500 messages in two and a half minutes, that ended at second 1000.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let campaign = Campaign::new("kept", at(800));
        let mut experiment = Experiment::new(campaign.id, ScenarioId(1), at(850));
        let mut store = open(&folder.path().display().to_string(), Access::Write).expect("free");
        store.add_campaign(&campaign, &[]).expect("added");
        let mut recorder = store.begin(&experiment).expect("begun");
        let messages: Vec<Message> = (0..1_500).map(message).collect();
        recorder.messages(&messages).expect("recorded");
        experiment.status = ExperimentStatus::Complete;
        experiment.ended = Some(at(1000));
        for message in &messages {
            experiment.tally.count(message.outcome);
        }
        let provenance = Provenance {
            experiment: experiment.id,
            version: "1".to_owned(),
            commit: "c".to_owned(),
            plan_hash: String::new(),
            site: None,
            host: HostFacts::default(),
            load: None,
            lateness_p50: None,
            lateness_p99: None,
        };
        store
            .finish(recorder, &experiment, &provenance)
            .expect("finished");
        let ended = CampaignStatus::Complete;
        store
            .set_campaign_status(campaign.id, ended, Some(at(1001)))
            .expect("set");
        let campaign = store.campaigns().expect("readable").remove(0);
        Self {
            folder,
            campaign,
            experiment,
        }
    }

    fn store(&self) -> Box<dyn Store> {
        open(&self.folder.path().display().to_string(), Access::Write).expect("free")
    }

    fn due(&self, store: &dyn Store, days: i64) -> Vec<DueReduction> {
        let now = at(1000 + days * DAY);
        due_reductions(store, &self.campaign, Retention::default(), now).expect("readable")
    }
}

#[test]
fn messages_are_stored_for_30_days_and_minutes_for_a_year() {
    let test = TestStore::new();
    let mut store = test.store();
    assert_eq!(test.due(store.as_ref(), 29), []);
    let due = test.due(store.as_ref(), 30);
    assert_eq!(due.len(), 1);
    assert_eq!(due[0].kind, ReductionKind::Messages);
    carry_out_reduction(store.as_mut(), &due[0], at(DAY)).expect("done");
    assert_eq!(test.due(store.as_ref(), 364), []);
    let due = test.due(store.as_ref(), 365);
    assert_eq!(due[0].kind, ReductionKind::Minutes);
    carry_out_reduction(store.as_mut(), &due[0], at(2 * DAY)).expect("done");
    assert_eq!(test.due(store.as_ref(), 10_000), []);
    let forever = Retention {
        messages: None,
        minutes: None,
    };
    let other = TestStore::new();
    let now = at(100_000 * DAY);
    let due = due_reductions(other.store().as_ref(), &other.campaign, forever, now);
    assert_eq!(due.expect("readable"), []);
}

#[test]
fn running_and_imported_campaigns_are_never_reduced() {
    let test = TestStore::new();
    for status in [CampaignStatus::Running, CampaignStatus::Imported] {
        let campaign = Campaign {
            status,
            ..test.campaign.clone()
        };
        let now = at(1000 * DAY);
        let due = due_reductions(test.store().as_ref(), &campaign, Retention::default(), now);
        assert_eq!(due.expect("readable"), []);
    }
}

#[test]
fn minute_summaries_keep_the_quantiles_and_loss_of_their_messages() {
    let test = TestStore::new();
    let mut store = test.store();
    let due = test.due(store.as_ref(), 30);
    carry_out_reduction(store.as_mut(), &due[0], at(DAY)).expect("done");
    let merged = MergedMinutes::load(store.as_ref(), &test.experiment).expect("readable");
    assert_eq!((merged.minutes, merged.tally), (3, test.experiment.tally));
    // Of the population with its loss: ranks 750 and 1350 of 1500, of which 1350 have a time.
    for (permille, seq) in [(500, 833), (899, 1_498)] {
        let exact = f64::from(1_000_000 + seq * 1_000);
        let quantile = merged.quantile(permille).expect("enough").nanos();
        let quantile = f64::from(u32::try_from(quantile).expect("some ms"));
        assert!(
            (quantile / exact - 1.0).abs() < 1.0 / 400.0,
            "{permille}: {quantile} {exact}"
        );
    }
    assert_eq!(merged.quantile(990), None, "it lies among the lost");
    assert_eq!(merged.quantile(999), None, "too few");
    assert_eq!(merged.min(), Some(Span::from_nanos(1_000_000)));
    assert_eq!(merged.max(), Some(Span::from_nanos(2_498_000)));
    let missing_messages = compute_minutes(store.as_ref(), &test.experiment).expect_err("gone");
    assert!(
        missing_messages.to_string().contains("single messages"),
        "{missing_messages}"
    );
}
