use neph_text::Source;

use super::*;
use crate::plan::parse;

const PLAN: &str = r#"
version = 1
name = "p"
interval = "1s"
duration = "30min"
[[endpoint]]
name = "a"
url = "udp://10.0.0.1"
"#;

fn seasons(text: &str) -> Vec<Season> {
    let plan = parse(&Source::new("p.toml", format!("{PLAN}{text}"))).expect("a good plan");
    plan.seasons
}

/// A moment of the week that begins on Monday, 16 November 2026.
fn moment(day: i64, hour: i64, minute: i64) -> Wall {
    const MONDAY: i64 = 1_794_787_200;
    Wall::from_unix_nanos((MONDAY + day * 86_400 + hour * 3_600 + minute * 60) * 1_000_000_000)
}

fn half_an_hour() -> Span {
    Span::from_secs(1_800)
}

#[test]
fn a_season_is_open_in_its_hours_on_its_days() {
    let text = "[[season]]\nname = \"low\"\nhours = \"01:00-05:00\"\ndays = [\"sat\", \"sun\"]\n";
    let low = &seasons(text)[0];
    assert_eq!(low.hours_text(), "01:00-05:00 UTC on sat, sun");
    assert!(low.is_open_for(moment(5, 1, 0), half_an_hour()));
    assert!(low.is_open_for(moment(6, 4, 30), half_an_hour()));
    assert!(
        !low.is_open_for(moment(6, 4, 31), half_an_hour()),
        "it ends too late"
    );
    assert!(
        !low.is_open_for(moment(4, 2, 0), half_an_hour()),
        "a Friday"
    );
    let next = |from| low.next_opening(from, half_an_hour());
    assert_eq!(next(moment(0, 12, 7)), Some(moment(5, 1, 0)));
    assert_eq!(next(moment(5, 4, 45)), Some(moment(6, 1, 0)));
    assert_eq!(next(moment(6, 2, 3)), Some(moment(6, 2, 3)));
    assert_eq!(next(moment(6, 4, 45)), Some(moment(12, 1, 0)));
    assert_eq!(
        low.next_opening(moment(0, 0, 0), Span::from_secs(5 * 3_600)),
        None
    );
}

#[test]
fn hours_may_cross_midnight_and_a_season_without_hours_is_always_open() {
    let text =
        "[[season]]\nname = \"night\"\nhours = \"22:00-05:00\"\n[[season]]\nname = \"any\"\n";
    let parsed = seasons(text);
    assert!(parsed[0].is_open_for(moment(2, 23, 50), half_an_hour()));
    assert!(!parsed[0].is_open_for(moment(2, 21, 50), half_an_hour()));
    assert_eq!(
        parsed[0].next_opening(moment(2, 6, 0), half_an_hour()),
        Some(moment(2, 22, 0))
    );
    let friday = "[[season]]\nname = \"n\"\nhours = \"22:00-02:00\"\ndays = \"fri\"\n";
    let friday = &seasons(friday)[0];
    let three_hours = Span::from_secs(3 * 3_600);
    assert!(
        friday.is_open_for(moment(4, 22, 30), three_hours),
        "into Saturday"
    );
    assert!(
        !friday.is_open_for(moment(4, 0, 30), half_an_hour()),
        "Thursday's"
    );
    assert_eq!(
        friday.next_opening(moment(5, 3, 0), three_hours),
        Some(moment(11, 22, 0))
    );
    assert_eq!(parsed[1].hours_text(), "at any time");
    assert!(parsed[1].is_open_for(moment(2, 6, 0), Span::from_secs(100 * 86_400)));
}

#[test]
fn endpoints_are_measured_in_all_seasons_unless_they_name_one() {
    let text = "[[season]]\nname = \"low\"\nhours = \"01:00-05:00\"\n[[season]]\nname = \"high\"\n";
    let labels = |plan: &str| -> Vec<String> {
        let plan = parse(&Source::new("p.toml", format!("{plan}{text}"))).expect("good");
        let scenarios = crate::expand::scenarios(&plan);
        scenarios.iter().map(neph_model::Scenario::label).collect()
    };
    assert_eq!(
        labels(PLAN),
        [
            "a · every 1 s · 104 B · season low",
            "a · every 1 s · 104 B · season high"
        ]
    );
    let only = format!("{PLAN}season = \"low\"\n");
    assert_eq!(labels(&only), ["a · every 1 s · 104 B"]);
}

#[test]
fn a_season_may_have_a_separate_topology() {
    let lab = "[lab]\ntopology = \"low.toml\"\nprober = \"p\"\n";
    let text = format!(
        "{PLAN}{lab}[[season]]\nname = \"low\"\n[[season]]\nname = \"high\"\n\
         topology = \"high.toml\"\n"
    );
    let plan = parse(&Source::new("p.toml", text.as_str())).expect("good");
    let files = |plan: &crate::Plan| -> Vec<String> {
        let topologies = plan.topologies().into_iter();
        topologies.map(|file| file.value.clone()).collect()
    };
    assert_eq!(files(&plan), ["low.toml", "high.toml"]);
    let season_topology = |season| plan.season_topology(season).map(|file| file.value.as_str());
    assert_eq!(season_topology(Some("low")), Some("low.toml"));
    assert_eq!(season_topology(Some("high")), Some("high.toml"));
    assert_eq!(season_topology(None), Some("low.toml"));
    // A lab with a mistake is one: what needs it is no mistake of its own.
    let wrong = text.replace("prober = \"p\"\n", "");
    let problems = parse(&Source::new("p.toml", wrong)).expect_err("wrong");
    assert!(
        problems.len() == 1 && problems[0].to_string().contains("'prober' is missing"),
        "{problems:?}"
    );
    for (wrong, part) in [
        (text.replace(lab, ""), "there is no lab"),
        (text.clone() + "[traceroute]\n", "once per block"),
    ] {
        let problems = parse(&Source::new("p.toml", wrong)).expect_err("wrong");
        assert!(problems[0].to_string().contains(part), "{problems:?}");
    }
}

#[test]
fn a_wrong_season_is_reported_at_its_position() {
    let message_of = |text: &str| {
        let problems = parse(&Source::new("p.toml", format!("{PLAN}{text}"))).expect_err("wrong");
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        messages.join("\n")
    };
    let season = "[[season]]\nname = \"low\"\n";
    for (text, part) in [
        (
            "season = \"low\"\n".to_owned(),
            "there is no season 'low'; add a [[season]]",
        ),
        (
            format!("season = \"lwo\"\n{season}"),
            "there is no season 'lwo'; did you mean 'low'",
        ),
        (format!("{season}{season}"), "two seasons are called 'low'"),
        (format!("{season}hours = \"1-5\"\n"), "\"1-5\" are no hours"),
        (
            format!("{season}hours = \"05:00-05:00\"\n"),
            "begin and end at the same time",
        ),
        (format!("{season}hours = \"25:00-05:00\"\n"), "are no hours"),
        (format!("{season}days = \"someday\"\n"), "someday"),
        (
            format!("{season}hours = \"01:00-01:20\"\n"),
            "an experiment of 1800 s is longer than the season 'low' is open",
        ),
    ] {
        let message = message_of(&text);
        assert!(message.contains(part), "{part} in {message}");
    }
}
