//! A report as files: `index.html`, `figures/`, `tables/`, `findings.json` and
//! `diagnosis.json`.

use std::fs;
use std::path::{Path, PathBuf};

use neph_store::write_whole;

use crate::error::ReportError;
use crate::figure::draw;
use crate::findings::{compared, findings_beside};
use crate::page::{Contents, page};
use crate::scene::{pdf, png, svg};
use crate::table::{summary, tables_with};
use crate::{CampaignData, Diagnoses, Figure, PlotSettings};

/// PNG pixels per CSS pixel: 192 dots per inch.
const SCALE: f64 = 2.0;

/// Writes everything into `folder`, which is made if it does not exist; files of an earlier report
/// are overwritten. Returns the files, the page first. `told` is what [`diagnose`](crate::diagnose)
/// says of the same.
///
/// # Errors
/// [`ReportError`] with the file or folder that could not be written.
pub fn write_report(
    data: &CampaignData,
    settings: &PlotSettings,
    told: &Diagnoses,
    folder: &Path,
) -> Result<Vec<PathBuf>, ReportError> {
    let fleets = compared(data, settings);
    let found = findings_beside(data, settings, (&told.causes, &fleets));
    let figures = draw(data, settings);
    let rows = summary(data, settings);
    let tables = tables_with(data, settings, &fleets);
    let places = (make(folder.join("figures"))?, make(folder.join("tables"))?);
    let html = page(&Contents {
        data,
        settings,
        told,
        findings: &found,
        figures: &figures,
        summary: &rows,
        tables: &tables,
    });
    let mut written = vec![write(folder.join("index.html"), html.as_bytes())?];
    for figure in &figures {
        written.extend(figure_files(figure, &places.0)?);
    }
    for table in &tables {
        let file = |ending: &str| places.1.join(format!("{}.{ending}", table.name));
        written.push(write(file("csv"), table.csv().as_bytes())?);
        written.push(write(file("json"), table.json().as_bytes())?);
    }
    let json = serde_json::to_string_pretty(&found).map_err(ReportError::Findings)?;
    written.push(write(folder.join("findings.json"), json.as_bytes())?);
    let json = serde_json::to_string_pretty(told).map_err(ReportError::Findings)?;
    written.push(write(folder.join("diagnosis.json"), json.as_bytes())?);
    Ok(written)
}

fn figure_files(figure: &Figure, folder: &Path) -> Result<[PathBuf; 3], ReportError> {
    let file = |ending: &str| folder.join(format!("{}.{ending}", figure.name));
    let image = png(&figure.scene, SCALE).map_err(|source| ReportError::Image {
        name: figure.name.clone(),
        source,
    })?;
    let drawing = svg(&figure.scene, &figure.name, &figure.title);
    Ok([
        write(file("svg"), drawing.as_bytes())?,
        write(file("png"), &image)?,
        write(file("pdf"), &pdf(&figure.scene, &figure.title))?,
    ])
}

fn make(path: PathBuf) -> Result<PathBuf, ReportError> {
    match fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(ReportError::Folder { path, source }),
    }
}

fn write(path: PathBuf, content: &[u8]) -> Result<PathBuf, ReportError> {
    match write_whole(&path, content) {
        Ok(()) => Ok(path),
        Err(source) => Err(ReportError::File { path, source }),
    }
}
