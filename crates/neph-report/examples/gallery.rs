//! Writes the reports of synthetic campaigns of 1, 12 and 60 scenarios, and of one beside somebody
//! else's slow server, to be looked at.
//! `cargo run -p neph-report --example gallery -- FOLDER`; with a number after it, instead one
//! scenario of so many messages, to see what a long run costs.

use std::error::Error;
use std::path::PathBuf;

use neph_report::{Equalization, PlotSettings, Tail, diagnose, text, write_report};

#[path = "../tests/report/synthetic/mod.rs"]
mod synthetic;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name a folder")?);
    let campaigns = match std::env::args().nth(2) {
        None => vec![
            synthetic::one(),
            synthetic::over(&[synthetic::METRO, synthetic::FOREIGN], 6),
            synthetic::twelve(),
            synthetic::sixty(),
        ],
        Some(messages) => vec![synthetic::long(messages.parse()?)],
    };
    for data in campaigns {
        let place = folder.join(&data.campaign.name);
        let settings = PlotSettings::default();
        let told = diagnose(&data, &settings);
        write_report(&data, &settings, &told, &place)?;
        let shown = text(&data, &settings, &told, 120);
        std::fs::write(place.join("terminal.txt"), shown)?;
        let tail = PlotSettings {
            tail: Tail::Logarithmic,
            equalization: Equalization::Separate,
            whisker_min: Some(1.0),
            whisker_max: Some(99.0),
            ..PlotSettings::default()
        };
        write_report(&data, &tail, &told, &place.join("other-settings"))?;
    }
    Ok(())
}
