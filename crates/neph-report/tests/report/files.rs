//! What is written to disk.

use std::fs;
use std::path::{Path, PathBuf};

use neph_analysis::{CampaignData, Diagnoses, PlotSettings};
use neph_report::{ReportError, write_report};

use crate::synthetic;

/// Writes the report of measurements in which no cause was looked for.
fn report(data: &CampaignData, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    write_report(
        data,
        &PlotSettings::default(),
        &Diagnoses::default(),
        folder,
    )
}

#[test]
fn a_report_is_complete_and_needs_no_network() {
    let folder = tempfile::tempdir().unwrap();
    let data = synthetic::one_experiment();
    let written = report(&data, folder.path()).unwrap();
    assert_eq!(written[0], folder.path().join("index.html"));
    assert!(
        written
            .iter()
            .all(|file| file.metadata().is_ok_and(|m| m.len() > 0))
    );
    let page = std::fs::read_to_string(&written[0]).unwrap();
    for forbidden in ["http://", "https://", "<link", "<script src", "@import"] {
        let references = page
            .match_indices(forbidden)
            .filter(|(at, _)| !page[*at..].starts_with("http://www.w3.org/2000/svg"));
        assert_eq!(references.count(), 0, "{forbidden}");
    }
    for expected in [
        "What was measured",
        "Main findings",
        "What was flagged",
        "Provenance",
        "figures/timeline.pdf",
        "tables/summary.csv",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    for link in page
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        let target_exists = link.strip_prefix('#').map_or_else(
            || folder.path().join(link).exists(),
            |id| page.contains(&format!("id=\"{id}\"")),
        );
        assert!(target_exists, "{link} leads nowhere");
    }
}

#[test]
fn a_name_from_a_plan_cannot_become_markup() {
    let folder = tempfile::tempdir().unwrap();
    let mut data = synthetic::one_experiment();
    data.campaign.name = "<script>alert(1)</script>".into();
    data.scenarios[0].endpoint = "a<b>&\"c".into();
    let written = report(&data, folder.path()).unwrap();
    let page = std::fs::read_to_string(&written[0]).unwrap();
    assert!(!page.contains("<script>alert") && !page.contains("a<b>"));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken");
    std::fs::write(&path, "a file").unwrap();
    let error = report(&synthetic::one_experiment(), &path).unwrap_err();
    assert!(error.to_string().contains("taken/figures"), "{error}");
}

#[test]
fn a_long_run_is_drawn_in_few_marks() {
    let folder = tempfile::tempdir().unwrap();
    let data = synthetic::long_campaign(50_000);
    let written = report(&data, folder.path()).unwrap();
    let bytes = written[0].metadata().unwrap().len();
    assert!(bytes < 800_000, "{bytes} bytes for one scenario");
}

#[test]
fn a_report_is_written_over_a_report_and_over_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let data = synthetic::one_experiment();
    let into = |path: &Path| report(&data, path);
    let foreign = folder.path().join("index.html");
    for (name, is_folder) in [("index.html", false), ("notes", false), ("figures", true)] {
        let other_file = folder.path().join(name);
        let file = if is_folder {
            fs::create_dir(&other_file).unwrap();
            other_file.join("mine.svg")
        } else {
            other_file.clone()
        };
        fs::write(&file, "<title>Mine</title>").unwrap();
        let error = into(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains(&format!("'{name}', which is not part of a report")),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "<title>Mine</title>");
        fs::remove_file(&file).unwrap();
    }
    // As a kill leaves it: no page yet.
    fs::create_dir_all(folder.path().join("tables")).unwrap();
    fs::write(folder.path().join("index.html.partial"), "half").unwrap();
    into(folder.path()).unwrap();
    assert!(foreign.is_file());
    fs::write(folder.path().join("notes"), "beside the report").unwrap();
    into(folder.path()).unwrap();
}

#[test]
fn a_report_removes_files_that_only_the_earlier_report_had() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let data = synthetic::one_experiment();
    report(&data, folder.path()).unwrap();
    // As an earlier report with one more figure and one more table leaves it.
    let page = fs::read_to_string(path("index.html")).unwrap();
    let stale = ["figures/timetable.svg", "tables/earlier.csv"];
    let links = stale
        .map(|file| format!("<a href=\"{file}\">x</a>"))
        .concat();
    let outside = "<a href=\"figures/../notes\">x</a></body>";
    let earlier_page = page.replace("</body>", &format!("{links}{outside}"));
    assert_ne!(earlier_page, page);
    fs::write(path("index.html"), earlier_page).unwrap();
    let own_files = ["notes", "figures/mine.svg", "tables/mine.csv"];
    for file in stale.iter().chain(&own_files) {
        fs::write(path(file), "x").unwrap();
    }
    let written = report(&data, folder.path()).unwrap();
    for file in stale {
        assert!(!path(file).exists(), "{file} is stale");
    }
    for file in own_files {
        assert!(path(file).exists(), "{file} is the user's");
    }
    assert!(written.iter().all(|file| file.exists()));
}
