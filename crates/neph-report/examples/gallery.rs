//! Draws every figure of synthetic campaigns of 1, 12 and 60 scenarios as PNG, to be looked at.
//! `cargo run -p neph-report --example gallery -- FOLDER`

use std::error::Error;
use std::path::PathBuf;

use neph_report::{PlotSettings, draw, png};

#[path = "../tests/report/synthetic.rs"]
mod synthetic;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name a folder")?);
    let campaigns = [synthetic::one(), synthetic::twelve(), synthetic::sixty()];
    for data in campaigns {
        let place = folder.join(&data.campaign.name);
        std::fs::create_dir_all(&place)?;
        for figure in draw(&data, &PlotSettings::default()) {
            let file = place.join(format!("{}.png", figure.name));
            std::fs::write(file, png(&figure.scene, 1.5)?)?;
        }
    }
    Ok(())
}
