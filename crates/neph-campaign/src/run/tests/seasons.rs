//! Seasons: what may run now runs, what may not waits, and nothing is done twice.

use neph_model::{Experiment, ExperimentStatus};

use super::fake::FakeOutcome;
use super::{CampaignStatus, Lab};

/// Two seasons that share no minute, an experiment of ten minutes, and days to go.
const PLAN: &str = r#"
version = 1
name = "seasons"
interval = "1min"
messages = 10
blocks = 9
pause = "1s"
tries = 2
seed = 5
[[endpoint]]
name = "a"
url = "udp://a"
[[season]]
name = "low"
hours = "01:00-02:00"
[[season]]
name = "high"
hours = "06:00-22:00"
"#;

/// The hour of a day, and the minute, at which an experiment began and ended.
fn start_and_end_hours(experiment: &Experiment) -> (i64, i64) {
    let hour = |wall: neph_model::Wall| wall.unix_nanos() / 3_600_000_000_000 % 24;
    let end_nanos = experiment.ended.expect("it ended").unix_nanos() - 1;
    (
        hour(experiment.started),
        hour(neph_model::Wall::from_unix_nanos(end_nanos)),
    )
}

fn season(lab: &Lab, experiment: &Experiment) -> String {
    let matrix = crate::expand::scenarios(&lab.plan);
    let mut candidates = matrix.iter();
    let scenario = candidates.find(|scenario| scenario.id == experiment.scenario);
    let season = scenario.expect("of the matrix").season();
    season.expect("a season").to_owned()
}

#[test]
fn experiments_stay_within_their_season_and_use_it_to_its_end() {
    let mut lab = Lab::new(PLAN, &[]);
    let (campaign, progress) = lab.run_campaign().expect("a campaign");
    assert_eq!(campaign.status, CampaignStatus::Complete);
    assert_eq!((progress.complete, progress.total), (18, 18));
    for experiment in lab.experiments() {
        let (began, ended) = start_and_end_hours(&experiment);
        match season(&lab, &experiment).as_str() {
            "low" => assert_eq!((began, ended), (1, 1), "{experiment:?}"),
            _ => assert!(
                (6..22).contains(&began) && (6..22).contains(&ended),
                "{experiment:?}"
            ),
        }
    }
    // It began at 00:16. Five of ten minutes and a second fit into 01:00 to 02:00, so nine blocks
    // take two nights; the nine of the day fit into the first.
    assert_eq!(
        lab.event_log
            .0
            .iter()
            .filter(|line| line.starts_with("out of"))
            .collect::<Vec<_>>(),
        [
            "out of season until low at 3600 s",
            "out of season until high at 21600 s",
            "out of season until low at 90000 s"
        ]
    );
}

#[test]
fn a_kill_or_ctrl_c_in_a_season_repeats_only_the_interrupted_experiment() {
    let mut lab = Lab::new(
        PLAN,
        &[
            FakeOutcome::Complete,
            FakeOutcome::Killed,
            FakeOutcome::CtrlC,
        ],
    );
    lab.run_campaign().expect_err("killed");
    let (campaign, _) = lab.run_campaign().expect("interrupted");
    assert_eq!(campaign.status, CampaignStatus::Interrupted);
    let (campaign, progress) = lab.run_campaign().expect("resumed");
    assert_eq!(campaign.status, CampaignStatus::Complete);
    assert_eq!(progress.complete, 18);
    let complete = |experiment: &&Experiment| experiment.status == ExperimentStatus::Complete;
    let experiments = lab.experiments();
    assert_eq!(experiments.iter().filter(complete).count(), 18);
    assert_eq!(experiments.len(), 20);
}

#[test]
fn the_next_season_follows_from_the_hour_and_open_experiments() {
    let at_hour = |hour: i64| neph_model::Wall::from_unix_nanos(hour * 3_600_000_000_000);
    let mut lab = Lab::new(PLAN, &[FakeOutcome::CtrlC]);
    let (campaign, _) = lab.run_campaign().expect("interrupted");
    let next_season = |lab: &Lab, hour| {
        let past = lab.experiments();
        crate::run::next_season(&lab.plan, &campaign, &past, at_hour(hour))
    };
    assert_eq!(next_season(&lab, 1).as_deref(), Some("low"));
    assert_eq!(next_season(&lab, 6).as_deref(), Some("high"));
    // Neither is open: there is something to go on with all the same.
    assert!(next_season(&lab, 3).is_some());
    lab.run_campaign().expect("resumed");
    assert_eq!(next_season(&lab, 1), None);

    // Always open: the next is what was cut off, which is the second of the block.
    let always_open_plan = PLAN.replace("hours = \"01:00-02:00\"\n", "");
    let always_open_plan = always_open_plan.replace("hours = \"06:00-22:00\"\n", "");
    let mut lab = Lab::new(
        &always_open_plan.replace("seed = 5", "order = \"sequential\""),
        &[FakeOutcome::Complete, FakeOutcome::CtrlC],
    );
    let (campaign, _) = lab.run_campaign().expect("interrupted");
    let past = lab.experiments();
    let next_season = crate::run::next_season(&lab.plan, &campaign, &past, at_hour(0));
    assert_eq!(next_season.as_deref(), Some("high"));
}

#[test]
fn an_experiment_longer_than_every_season_is_refused_before_the_start() {
    let plan_text = PLAN.replace("messages = 10", "messages = 60");
    let source = neph_text::Source::new("p.toml", plan_text);
    let problems = crate::plan::parse(&source).expect_err("with its pause it is too long");
    assert!(
        problems[0]
            .to_string()
            .contains("longer than the season 'low'"),
        "{problems:?}"
    );
}
