//! When blocks were measured, by the clock.

use neph_analysis::{CampaignData, PlotSettings};
use neph_model::Wall;
use neph_report::draw;

use crate::synthetic::{self, METRO, fleet};
use crate::text_layout::{assert_no_overlap, texts};

/// 2026-11-25 06:05:00 UTC.
const MORNING: i64 = 1_795_586_700;
const HOUR: i64 = 3600;

/// Blocks that began every so many hours.
fn campaign_with_blocks_every(hours: i64, blocks: u32) -> CampaignData {
    let mut data = synthetic::campaign_over(&[METRO], blocks);
    for experiment in &mut data.experiments {
        let at = MORNING + i64::from(experiment.experiment.block) * hours * HOUR;
        experiment.experiment.started = Wall::from_unix_nanos(at * 1_000_000_000);
    }
    data
}

fn figure_texts(data: &CampaignData, kind: &str, offset: &str) -> Vec<String> {
    let settings = PlotSettings {
        utc_offset: offset.parse().expect(offset),
        ..PlotSettings::default()
    };
    let figures = draw(data, &settings);
    assert_no_overlap(&figures);
    let of_kind = figures.iter().filter(|figure| figure.kind == kind);
    let texts = of_kind.flat_map(|figure| texts(&figure.scene));
    texts.map(|(_, text)| text.text).collect()
}

#[test]
fn blocks_of_a_day_carry_the_time_at_which_they_started() {
    let data = campaign_with_blocks_every(5, 3);
    for (offset, times) in [
        ("UTC", ["06:05", "11:05", "16:05"]),
        ("+02:00", ["08:05", "13:05", "18:05"]),
    ] {
        let actual = figure_texts(&data, "per-block", offset);
        assert!(
            times
                .iter()
                .all(|time| actual.contains(&(*time).to_owned())),
            "{actual:#?}"
        );
        let actual = figure_texts(&data, "timeline", offset);
        for (time, block) in times.iter().zip(1..) {
            let label = format!("block {block}, {time}");
            assert!(
                actual.iter().any(|text| text.starts_with(&label)),
                "{label} in {actual:#?}"
            );
        }
    }
    let actual = figure_texts(&data, "per-block", "+02:00");
    assert!(
        actual.contains(&"block, experiment started at (UTC+02:00)".to_owned()),
        "{actual:#?}"
    );
}

#[test]
fn a_campaign_of_days_names_the_day() {
    let actual = figure_texts(&campaign_with_blocks_every(20, 3), "per-block", "UTC");
    for label in ["Nov 25 06:05", "Nov 26 02:05", "Nov 26 22:05"] {
        assert!(actual.contains(&label.to_owned()), "{label} in {actual:#?}");
    }
}

#[test]
fn many_blocks_leave_out_labels_instead_of_times() {
    let actual = figure_texts(&campaign_with_blocks_every(1, 12), "timeline", "UTC");
    let labelled = actual
        .iter()
        .filter(|text| text.contains(", ") && text.ends_with(":05"));
    assert!(labelled.count() >= 6, "{actual:#?}");
}

#[test]
fn fleet_figures_contain_the_time_of_the_first_message() {
    let data = fleet::seasons(2, 1);
    let actual = figure_texts(&data, "flow-spectrum", "UTC");
    let is_dated = |text: &&String| {
        text.starts_with("time since the first message (") && text.contains(" UTC)")
    };
    assert!(actual.iter().any(|text| is_dated(&text)), "{actual:#?}");
    let panels = figure_texts(&data, "flow-spectra", "UTC");
    assert!(
        panels.iter().any(|text| text.contains("block 2, ")),
        "{panels:#?}"
    );
}

#[test]
fn one_long_block_has_the_time_of_day_on_its_axis() {
    let mut data = synthetic::campaign(&synthetic::Shape {
        links: vec![METRO],
        intervals_ms: vec![10_000],
        sizes: vec![64],
        blocks: 1,
        messages: 300,
    });
    data.experiments[0].experiment.started = Wall::from_unix_nanos(MORNING * 1_000_000_000);
    // 300 messages every 10 s from 06:05 on: until 06:55.
    let actual = figure_texts(&data, "timeline", "UTC");
    for label in ["06:10", "06:50"] {
        assert!(actual.contains(&label.to_owned()), "{label} in {actual:#?}");
    }
    let actual = figure_texts(&data, "timeline", "-01:00");
    assert!(actual.contains(&"05:10".to_owned()), "{actual:#?}");
    assert!(!actual.contains(&"06:10".to_owned()), "{actual:#?}");
}
