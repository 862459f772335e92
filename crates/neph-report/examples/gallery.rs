//! Writes the reports of synthetic campaigns of 1, 12 and 60 scenarios, of one beside somebody
//! else's slow server, of fleets of 8, 512 and 50,000 flows, and of packets over 2 to 8 capture points, to
//! be looked at.
//! `cargo run -p neph-report --example gallery -- FOLDER`; with a number after it, instead one
//! scenario of so many messages, to see what a long run costs; with `fleets`, `hops` or `many`
//! (many blocks, many pairs), only these.

#![expect(
    clippy::disallowed_methods,
    reason = "it times the drawing; only an example"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use neph_analysis::{CampaignData, Equalization, PlotSettings, Tail, diagnose};
use neph_report::{draw, hops, svg, text, write_figures, write_report};

#[path = "../tests/report/synthetic/mod.rs"]
mod synthetic;

use synthetic::fleet::{FleetModel, PathStability};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name a folder")?);
    let campaigns = match std::env::args().nth(2).as_deref() {
        None => vec![
            synthetic::one_experiment(),
            synthetic::campaign_over(&[synthetic::METRO, synthetic::FOREIGN], 6),
            synthetic::twelve_scenarios(),
            synthetic::sixty_scenarios(),
        ],
        Some("fleets") => Vec::new(),
        Some("hops") => return draw_hops(&folder),
        Some("many") => return draw_many(&folder),
        Some(messages) => {
            return write_campaign(&synthetic::long_campaign(messages.parse()?), &folder);
        }
    };
    for data in campaigns {
        write_campaign(&data, &folder)?;
    }
    if std::env::args().len() == 2 {
        draw_hops(&folder)?;
    }
    let mut stored_fleet = STORED_FLEET.campaign();
    "fleet-read".clone_into(&mut stored_fleet.campaign.name);
    stored_fleet.experiments[0].fleet = Some(STORED_FLEET.view_from_messages());
    write_campaign(&stored_fleet, &folder)?;
    for fleet in FLEETS {
        let data = fleet.campaign();
        write_campaign(&data, &folder)?;
        write_sizes(&data, &folder)?;
    }
    Ok(())
}

const fn fleet_model(flows: u32, pairs: u32, seconds: i64, stability: PathStability) -> FleetModel {
    FleetModel {
        flows,
        pairs,
        seconds,
        stability,
    }
}

/// Of this one every message is made and read.
const STORED_FLEET: FleetModel = fleet_model(64, 2, 600, PathStability::Unstable);

/// Points, packets, and whether some are lost.
const PATHS: [(usize, usize, bool); 5] = [
    (2, 10, false),
    (2, 1_000_000, true),
    (4, 20_000, true),
    (5, 600, true),
    (8, 200_000, true),
];

const FLEETS: [FleetModel; 8] = [
    fleet_model(8, 1, 120, PathStability::Stable),
    fleet_model(8, 1, 300, PathStability::Unstable),
    fleet_model(512, 1, 7200, PathStability::Stable),
    fleet_model(512, 4, 7200, PathStability::Unstable),
    fleet_model(512, 16, 604_800, PathStability::Stable),
    fleet_model(50_000, 1, 7200, PathStability::Unstable),
    fleet_model(50_000, 16, 7200, PathStability::Unstable),
    fleet_model(50_000, 4, 7200, PathStability::Stable),
];

fn write_campaign(data: &CampaignData, folder: &Path) -> Result<(), Box<dyn Error>> {
    let path = folder.join(&data.campaign.name);
    let settings = PlotSettings::default();
    let diagnoses = diagnose(data, &settings);
    write_report(data, &settings, &diagnoses, &path)?;
    let report_text = text(data, &settings, &diagnoses, 120);
    std::fs::write(path.join("terminal.txt"), report_text)?;
    if data
        .experiments
        .iter()
        .any(|experiment| experiment.fleet.is_some())
    {
        return Ok(());
    }
    let tail = PlotSettings {
        tail: Tail::Logarithmic,
        equalization: Equalization::Separate,
        whisker_min: Some(1.0),
        whisker_max: Some(99.0),
        ..PlotSettings::default()
    };
    write_report(data, &tail, &diagnoses, &path.join("other-settings"))?;
    Ok(())
}

/// Two seasons in eight blocks, and 120 pairs, in one season and in two.
fn draw_many(folder: &Path) -> Result<(), Box<dyn Error>> {
    write_campaign(&synthetic::fleet::seasons(8, 1), folder)?;
    write_campaign(&synthetic::fleet::seasons(3, 12), folder)?;
    write_campaign(
        &fleet_model(1920, 120, 1200, PathStability::Unstable).campaign(),
        folder,
    )
}

/// The figures of packets over few and many points, of few and many packets.
fn draw_hops(folder: &Path) -> Result<(), Box<dyn Error>> {
    for (points, packets, has_loss) in PATHS {
        let path = synthetic::hops::PathModel {
            points,
            packets,
            has_loss,
        };
        let followed_packets = path.generate();
        let start = Instant::now();
        let figures = followed_packets.with_drawing(hops);
        let mut text = format!("drawn in {:?}\n", start.elapsed());
        let path = folder.join(format!("hops-{points}-{packets}"));
        for figure in &figures {
            let drawing = svg(&figure.scene, &figure.name, &figure.title);
            text.push_str(&format!("{} {} bytes\n", figure.name, drawing.len()));
        }
        write_figures(&figures, &path, neph_text::Existing::Replace)?;
        std::fs::write(path.join("sizes.txt"), text)?;
    }
    Ok(())
}

/// How long a fleet's figures took to draw, and how large they are.
fn write_sizes(data: &CampaignData, folder: &Path) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let figures = draw(data, &PlotSettings::default());
    let mut text = format!("drawn in {:?}\n", start.elapsed());
    for figure in figures {
        let drawing = svg(&figure.scene, &figure.name, &figure.title);
        text.push_str(&format!("{} {} bytes\n", figure.name, drawing.len()));
    }
    let path = folder.join(&data.campaign.name);
    std::fs::create_dir_all(&path)?;
    std::fs::write(path.join("sizes.txt"), text)?;
    Ok(())
}
