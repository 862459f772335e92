//! A report as files: `index.html`, `figures/`, `tables/`, `findings.json` and
//! `diagnosis.json`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use neph_text::visible_file;
use neph_text::{Existing, write_whole};

use crate::Figure;
use crate::error::ReportError;
use crate::figure::draw;
use crate::page::{Contents, TITLE_END, page};
use crate::scene::{pdf, png, svg};
use neph_analysis::findings::{Statements, findings_of};
use neph_analysis::table::{summary, tables_with};
use neph_analysis::{CampaignData, Diagnoses, PlotSettings};

/// PNG pixels per CSS pixel: 192 dots per inch.
const PNG_SCALE: f64 = 2.0;
const PAGE_FILE: &str = "index.html";
/// A page's title stands within so many bytes: names of campaigns are lines.
const MAX_HEAD_BYTES: u64 = 1 << 16;

/// Writes everything into `folder`, and creates it if it does not exist. Files of an earlier report
/// are replaced or removed, [others' never](check_folder). Returns the files, the page first. `diagnoses` is the
/// result of [`diagnose`](neph_analysis::diagnose) for the same data.
///
/// # Errors
/// [`ReportError`] with the file or folder that could not be written, or that is not part of a report.
pub fn write_report(
    data: &CampaignData,
    settings: &PlotSettings,
    diagnoses: &Diagnoses,
    folder: &Path,
) -> Result<Vec<PathBuf>, ReportError> {
    check_folder(folder, Existing::Replace)?;
    let statements = Statements::of(data, settings);
    let findings = findings_of(data, settings, &diagnoses.causes, &statements);
    let figures = draw(data, settings);
    let rows = summary(data, settings);
    let tables = tables_with(data, settings, &statements.fleets);
    let html = page(&Contents {
        data,
        settings,
        diagnoses,
        findings: &findings,
        figures: &figures,
        summary: &rows,
        tables: &tables,
    });
    let figures_folder = create_folder(folder.join("figures"))?;
    let tables_folder = create_folder(folder.join("tables"))?;
    remove_stale_files(folder, &html)?;
    let mut written = vec![write_text(folder.join(PAGE_FILE), &html)?];
    written.extend(write_figures(&figures, &figures_folder, Existing::Replace)?);
    for table in &tables {
        let file = |ending: &str| tables_folder.join(format!("{}.{ending}", table.name));
        written.push(write_text(file("csv"), &table.csv())?);
        written.push(write_text(file("json"), &table.json())?);
    }
    let json = serde_json::to_string_pretty(&findings).map_err(ReportError::Findings)?;
    written.push(write_text(folder.join("findings.json"), &json)?);
    let json = serde_json::to_string_pretty(diagnoses).map_err(ReportError::Findings)?;
    written.push(write_text(folder.join("diagnosis.json"), &json)?);
    Ok(written)
}

/// Whether a report may be written into `folder`: it is not there or empty, or holds a report that is
/// to be replaced.
///
/// # Errors
/// [`ReportError::ForeignContent`] with what is no report's, or the folder cannot be read.
pub fn check_folder(folder: &Path, existing: Existing) -> Result<(), ReportError> {
    let folder_error = |source| ReportError::Folder {
        path: folder.to_owned(),
        source,
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // If a file is in its place, creating the content of the folder reports it.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(());
        }
        Err(error) => return Err(folder_error(error)),
    };
    if is_page(&folder.join(PAGE_FILE)).map_err(folder_error)? {
        return match existing {
            Existing::Replace => Ok(()),
            Existing::Keep => Err(ReportError::Exists {
                folder: folder.to_owned(),
            }),
        };
    }
    for entry in entries {
        let entry = entry.map_err(folder_error)?;
        // A report that was killed before its page stood leaves these.
        let table_and_figure_folders = ["figures", "tables"].map(|name| folder.join(name));
        let is_empty_subfolder = table_and_figure_folders.contains(&entry.path())
            && fs::read_dir(entry.path()).is_ok_and(|mut files| files.next().is_none());
        let name = entry.file_name().display().to_string();
        if !is_empty_subfolder && name != format!("{PAGE_FILE}.partial") {
            return Err(ReportError::ForeignContent {
                folder: folder.to_owned(),
                foreign: name,
            });
        }
    }
    Ok(())
}

/// Removes the figures and tables that the earlier page in `folder` links to and `new_page` does not.
/// No page links to a file of the user. The earlier page is the only record of these files, so they
/// go before it is replaced.
fn remove_stale_files(folder: &Path, new_page: &str) -> Result<(), ReportError> {
    // Without an earlier page there is no earlier report.
    let Ok(earlier_page) = fs::read(folder.join(PAGE_FILE)) else {
        return Ok(());
    };
    let earlier_page = String::from_utf8_lossy(&earlier_page);
    let new_files = linked_files(new_page);
    for file in linked_files(&earlier_page).difference(&new_files) {
        let path = folder.join(file);
        match fs::remove_file(&path) {
            Ok(()) => {}
            // The user has removed or replaced it.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {
            }
            Err(source) => return Err(ReportError::File { path, source }),
        }
    }
    Ok(())
}

/// The files in `figures/` and `tables/` that a page links to.
fn linked_files(page: &str) -> BTreeSet<&str> {
    let links = page.split("href=\"").skip(1);
    let links = links.filter_map(|rest| Some(rest.split_once('"')?.0));
    let is_report_file = |link: &&str| {
        let folder_and_name = link.split_once('/');
        folder_and_name.is_some_and(|(folder, name)| {
            matches!(folder, "figures" | "tables") && !name.contains('/') && name != ".."
        })
    };
    links.filter(is_report_file).collect()
}

/// Whether the file is a report's page: its title names neph, near the beginning.
fn is_page(path: &Path) -> io::Result<bool> {
    let mut beginning = Vec::new();
    // A pipe would be waited for.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(false);
    }
    match File::open(path) {
        Ok(file) => file.take(MAX_HEAD_BYTES).read_to_end(&mut beginning)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let title = format!("{TITLE_END}</title>");
    Ok(String::from_utf8_lossy(&beginning).contains(&title))
}

/// Writes figures into `folder`, each as SVG, PNG and PDF; it is made if it does not exist, and files of
/// the same names are kept or replaced. Returns the files.
///
/// # Errors
/// [`ReportError`] with the file or folder that could not be written.
pub fn write_figures(
    figures: &[Figure],
    folder: &Path,
    existing: Existing,
) -> Result<Vec<PathBuf>, ReportError> {
    let folder = create_folder(folder.to_owned())?;
    let mut written = Vec::new();
    for figure in figures {
        written.extend(write_figure(figure, &folder, existing)?);
    }
    Ok(written)
}

fn write_figure(
    figure: &Figure,
    folder: &Path,
    existing: Existing,
) -> Result<[PathBuf; 3], ReportError> {
    let file = |ending: &str| folder.join(format!("{}.{ending}", figure.name));
    let image = png(&figure.scene, PNG_SCALE).map_err(|source| ReportError::Image {
        name: figure.name.clone(),
        source,
    })?;
    let drawing = svg(&figure.scene, &figure.name, &figure.title);
    Ok([
        write_file(file("svg"), visible_file(&drawing).as_bytes(), existing)?,
        write_file(file("png"), &image, existing)?,
        write_file(file("pdf"), &pdf(&figure.scene, &figure.title), existing)?,
    ])
}

fn create_folder(path: PathBuf) -> Result<PathBuf, ReportError> {
    match fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(ReportError::Folder { path, source }),
    }
}

/// Names in it are from outside: control characters are removed, so that a terminal is safe.
fn write_text(path: PathBuf, text: &str) -> Result<PathBuf, ReportError> {
    write_file(path, visible_file(text).as_bytes(), Existing::Replace)
}

fn write_file(path: PathBuf, content: &[u8], existing: Existing) -> Result<PathBuf, ReportError> {
    match write_whole(&path, content, existing) {
        Ok(()) => Ok(path),
        Err(source) => Err(ReportError::File { path, source }),
    }
}
