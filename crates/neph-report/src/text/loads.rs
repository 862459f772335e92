//! Generated traffic in a terminal: a line for each load of each scenario with its rate at both ends.

use neph_analysis::{CampaignData, LoadCourse, PlotSettings};
use neph_model::{LoadEnd, Quantity};
use unicode_width::UnicodeWidthStr;

use super::fit_to_width;

/// Names are cut down to this.
const MAX_NAME_WIDTH: usize = 48;

/// The table with its heading; nothing without traffic.
pub(super) fn table(data: &CampaignData, settings: &PlotSettings) -> String {
    let labels = data.labels();
    let mut lines = Vec::new();
    for (scenario, label) in labels.iter().enumerate() {
        let courses = data.load_courses(scenario, settings);
        for courses_of_load in courses.chunk_by(|course, other| course.load == other.load) {
            lines.push((
                format!("{label} · {}", courses_of_load[0].load),
                rates(courses_of_load),
            ));
        }
    }
    let names: Vec<String> = lines.iter().map(|(name, _)| name.clone()).collect();
    let Some(longest) = names.iter().map(|name| name.width()).max() else {
        return String::new();
    };
    let width = longest.clamp(8, MAX_NAME_WIDTH);
    let mut out = fit_to_width("medians of loads", &[], width.max(16));
    out.push_str(&format!("{:>16}{:>16}\n", "sent", "received"));
    for (name, [sent, received]) in lines {
        out.push_str(&fit_to_width(&name, &names, width.max(16)));
        out.push_str(&format!("{sent:>16}{received:>16}\n"));
    }
    out
}

/// The median at each end; a dash where there is none.
fn rates(courses: &[LoadCourse]) -> [String; 2] {
    LoadEnd::ALL.map(|end| {
        let course = courses.iter().find(|course| course.end == end);
        let median = course.and_then(|course| course.summary()?.median.number());
        median.map_or_else(
            || "-".to_owned(),
            |rate| Quantity::LoadGoodput.to_text(rate),
        )
    })
}
