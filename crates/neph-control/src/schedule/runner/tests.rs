//! Tests schedules in virtual time, with shell scripts as processes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use neph_model::Span;
use neph_sys::deadline::wait_until;

use super::super::Missed;
use super::*;

/// Timeout of a condition.
const LIMIT: Duration = Duration::from_secs(20);

/// The campaign in the store.
type SharedCampaign = Arc<Mutex<Option<FoundCampaign>>>;

#[derive(Debug)]
struct Store(SharedCampaign);

impl CampaignFinder for Store {
    fn find(&self, _schedule: &Schedule, _since: Wall) -> Option<FoundCampaign> {
        *self.0.lock().expect("whole")
    }
}

struct RunnerFixture {
    folder: tempfile::TempDir,
    store: SharedCampaign,
}

fn at(seconds: i64) -> Wall {
    Wall::from_unix_nanos(seconds * 1_000_000_000)
}

fn name() -> AgentName {
    "s".parse().expect("a name")
}

impl RunnerFixture {
    /// A controller whose runs execute this script.
    fn new(script: &str) -> Self {
        let fixture = Self {
            folder: tempfile::tempdir().expect("a folder"),
            store: Arc::default(),
        };
        let path = fixture.folder.path().join("program");
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> {}\n{script}\n",
            fixture.calls().display()
        );
        fs::write(&path, script).expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
        let schedule = Schedule {
            name: name(),
            plan: PathBuf::from("/plans/p.toml"),
            folder: fixture.folder.path().to_owned(),
            workspace: "/w".to_owned(),
            every: Span::from_secs(100),
            from: at(1000),
            until: None,
        };
        fixture.book().add(&schedule).expect("writable");
        fixture
    }

    fn calls(&self) -> PathBuf {
        self.folder.path().join("calls")
    }

    fn book(&self) -> Book {
        Book::in_folder(self.folder.path())
    }

    fn runner(&self, now: i64) -> Runner {
        let folder = RunnerFolder {
            program: self.folder.path().join("program"),
            control: self.folder.path().to_owned(),
        };
        Runner::new(folder, Box::new(Store(Arc::clone(&self.store))), at(now))
    }

    fn store(&self, status: CampaignStatus) -> CampaignId {
        let id = CampaignId::new();
        *self.store.lock().expect("whole") = Some(FoundCampaign { id, status });
        id
    }

    fn history(&self) -> Vec<Entry> {
        self.book().history(&name()).expect("readable")
    }

    fn called(&self) -> Vec<String> {
        let text = fs::read_to_string(self.calls()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Lets the open run end.
    fn release(&self) {
        fs::write(self.folder.path().join("go"), "").expect("writable");
    }

    fn outcomes(&self) -> Vec<Outcome> {
        let entries = self.history().into_iter();
        entries
            .filter_map(|entry| match entry {
                Entry::Ended { outcome, .. } => Some(outcome),
                _ => None,
            })
            .collect()
    }
}

/// Calls `turn` at this moment until `count` runs have ended.
fn ends(fixture: &RunnerFixture, runner: &mut Runner, now: i64, count: usize) {
    let ended = wait_until(LIMIT, || {
        runner.step(at(now)).expect("writable");
        fixture.outcomes().len() >= count
    });
    assert!(ended, "{:?}", fixture.history());
}

const UNTIL_RELEASED: &str = "while [ ! -e go ]; do sleep 0.02; done";

#[test]
fn a_run_starts_at_each_interval_and_its_outcome_is_stored() {
    let fixture = RunnerFixture::new(
        "case $(wc -l < calls) in 1) exit 0;; 2) exit 3;; *) echo; echo no plan >&2; exit 2;; esac",
    );
    let mut runner = fixture.runner(990);
    runner.step(at(999)).expect("writable");
    assert!(fixture.history().is_empty());
    for (count, now) in [(1, 1000), (2, 1101), (3, 1200)] {
        ends(&fixture, &mut runner, now, count);
    }
    let failed = Outcome::Failed {
        reason: "no plan".to_owned(),
    };
    assert_eq!(
        fixture.outcomes(),
        [Outcome::Complete, Outcome::Alarmed, failed]
    );
    let control = fixture.folder.path().display();
    let call = format!("run /plans/p.toml --control {control} --workspace /w --quiet --no-report");
    assert_eq!(fixture.called(), [call.clone(), call.clone(), call]);
    assert_eq!(fixture.history().len(), 6);
}

#[test]
fn runs_due_during_another_run_are_skipped() {
    let fixture = RunnerFixture::new(UNTIL_RELEASED);
    let mut runner = fixture.runner(990);
    for now in [1000, 1100, 1200] {
        runner.step(at(now)).expect("writable");
    }
    fixture.release();
    ends(&fixture, &mut runner, 1201, 1);
    let left_out = |due| Entry::LeftOut {
        due: at(due),
        reason: "the run before was not over".to_owned(),
    };
    assert_eq!(fixture.history()[1..3], [left_out(1100), left_out(1200)]);
    ends(&fixture, &mut runner, 1300, 2);
    assert_eq!(fixture.called().len(), 2);
}

#[test]
fn runs_due_without_a_running_controller_are_missed() {
    let fixture = RunnerFixture::new("exit 0");
    let mut runner = fixture.runner(990);
    ends(&fixture, &mut runner, 1000, 1);
    drop(runner);
    let mut runner = fixture.runner(1350);
    runner.step(at(1350)).expect("writable");
    let last = fixture.history().pop().expect("it was noted");
    let missed = Missed {
        first: at(1100),
        last: at(1300),
        count: 3,
    };
    // The last one was due 50 s before: too late.
    assert_eq!(last, Entry::missed(missed, CONTROLLER_NOT_RUNNING));
    // A suspended host is another reason.
    runner.step(at(1640)).expect("writable");
    let last = fixture.history().pop().expect("it was noted");
    assert!(
        matches!(&last, Entry::Missed { count: 3, reason, .. } if reason == CHECK_MISSED),
        "{last:?}"
    );
    assert_eq!(fixture.called().len(), 1);
}

#[test]
fn a_run_outlives_its_controller_and_is_monitored_by_the_next_one() {
    let fixture = RunnerFixture::new(UNTIL_RELEASED);
    let mut runner = fixture.runner(990);
    runner.step(at(1000)).expect("writable");
    assert!(wait_until(LIMIT, || fixture.called().len() == 1));
    // As after kill -9: nothing is ended.
    drop(runner);
    let mut runner = fixture.runner(1010);
    runner.step(at(1100)).expect("writable");
    assert!(matches!(
        fixture.history().last(),
        Some(Entry::LeftOut { .. })
    ));
    let campaign = fixture.store(CampaignStatus::Complete);
    fixture.release();
    ends(&fixture, &mut runner, 1101, 1);
    let last = fixture.history().pop();
    let is_found = |entry: &Entry| matches!(entry, Entry::Ended { campaign: Some(id), outcome: Outcome::Complete, .. } if *id == campaign);
    assert!(last.as_ref().is_some_and(is_found), "{last:?}");
    assert_eq!(fixture.called().len(), 1);
}

#[test]
fn an_interrupted_run_is_resumed_until_the_next_is_due() {
    for (now, should_continue) in [(1050, true), (1150, false)] {
        let fixture = RunnerFixture::new("case $1 in run) kill -9 $$;; *) exit 0;; esac");
        let mut runner = fixture.runner(990);
        runner.step(at(1000)).expect("writable");
        assert!(wait_until(LIMIT, || fixture.called().len() == 1));
        drop(runner);
        let campaign = fixture.store(CampaignStatus::Running);
        let mut runner = fixture.runner(now);
        ends(
            &fixture,
            &mut runner,
            now,
            if should_continue { 2 } else { 1 },
        );
        let resumed = fixture
            .called()
            .iter()
            .any(|call| call.starts_with(&format!("resume {campaign} --control")));
        assert_eq!(resumed, should_continue, "{now}");
        assert_eq!(fixture.outcomes()[0], Outcome::Interrupted);
    }
}

#[test]
fn a_stopping_controller_ends_its_runs_and_the_next_one_resumes_them() {
    let fixture = RunnerFixture::new(
        "case $1 in run) trap 'exit 130' TERM; while :; do sleep 0.02; done;; *) exit 0;; esac",
    );
    let mut runner = fixture.runner(990);
    runner.step(at(1000)).expect("writable");
    assert!(wait_until(LIMIT, || fixture.called().len() == 1));
    fixture.store(CampaignStatus::Interrupted);
    runner
        .stop(&|| at(1001), Duration::from_secs(20))
        .expect("writable");
    assert_eq!(fixture.outcomes(), [Outcome::Interrupted]);
    drop(runner);
    let mut runner = fixture.runner(1010);
    ends(&fixture, &mut runner, 1010, 2);
    assert!(
        fixture.called()[1].starts_with("resume "),
        "{:?}",
        fixture.called()
    );
}

#[test]
fn a_recorded_run_that_did_not_start_is_not_started_twice() {
    let fixture = RunnerFixture::new("exit 0");
    // As after a kill in between.
    let begun = Entry::Begun {
        due: at(1000),
        at: at(1000),
        resumes: None,
    };
    fixture.book().note(&name(), &begun).expect("writable");
    let mut runner = fixture.runner(1010);
    runner.step(at(1010)).expect("writable");
    assert!(matches!(fixture.outcomes()[..], [Outcome::Failed { .. }]));
    assert!(fixture.called().is_empty());
    ends(&fixture, &mut runner, 1100, 2);
    assert_eq!(fixture.called().len(), 1);
}

#[test]
fn the_run_of_a_removed_schedule_is_monitored_to_its_end() {
    let fixture =
        RunnerFixture::new("while [ ! -e \"$(dirname \"$0\")/end\" ]; do sleep 0.02; done");
    let mut runner = fixture.runner(990);
    runner.step(at(990)).expect("writable");
    let begun = runner.step(at(1000)).expect("writable");
    assert_eq!(begun, ["schedule s: a run began"]);
    fixture.book().remove(&name()).expect("it is there");
    assert!(runner.step(at(1001)).expect("readable").is_empty());
    assert_eq!(runner.removed.len(), 1);
    fs::write(fixture.folder.path().join("end"), "").expect("writable");
    let mut events = Vec::new();
    let is_reported = || {
        events.extend(runner.step(at(1002)).expect("readable"));
        !events.is_empty()
    };
    assert!(wait_until(LIMIT, is_reported));
    assert_eq!(events, ["schedule s, which was removed: complete"]);
    assert!(runner.removed.is_empty());
}

#[test]
fn a_schedule_is_added_once_and_stops_when_it_is_removed() {
    let fixture = RunnerFixture::new("exit 0");
    let book = fixture.book();
    let schedule = book
        .schedules()
        .expect("readable")
        .pop()
        .expect("it is there");
    let name_taken = book.add(&schedule).expect_err("it is there").to_string();
    assert!(
        name_taken.starts_with("there is a schedule s already"),
        "{name_taken}"
    );
    let mut runner = fixture.runner(990);
    ends(&fixture, &mut runner, 1000, 1);
    book.remove(&name()).expect("it is there");
    let none = book.remove(&name()).expect_err("it is gone").to_string();
    assert!(none.starts_with("there is no schedule s"), "{none}");
    runner.step(at(1100)).expect("readable");
    assert_eq!(fixture.called().len(), 1);
    // A line that a kill truncated has no effect.
    book.add(&schedule).expect("there is room");
    let path = fixture.folder.path().join("schedules/s/history.ndjson");
    fs::write(&path, "{\"what\":\"beg").expect("writable");
    ends(&fixture, &mut runner, 1200, 1);
    assert_eq!(fixture.history().len(), 3, "missed, begun, ended");
}
