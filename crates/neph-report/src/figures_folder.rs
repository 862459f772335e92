//! Whether figures may be written into a folder, asked before anything is read.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use neph_text::{Existing, PrintableText};

/// Refuses a place that is no folder, cannot be one or cannot be written to, before anything is read.
/// Also refuses, unless they are to be replaced, figures there whose names begin with `stem`. Leaves
/// nothing there.
///
/// # Errors
/// One of these.
pub fn check_figures(folder: &Path, stem: &str, existing: Existing) -> Result<(), String> {
    if folder.exists() && !folder.is_dir() {
        return Err("a folder is needed, and this is none".to_owned());
    }
    let ending = folder.extension().and_then(OsStr::to_str);
    if !folder.exists() && matches!(ending, Some("svg" | "png" | "pdf")) {
        return Err(
            "several figures are drawn, and a folder is needed; leave the file's name away"
                .to_owned(),
        );
    }
    if existing == Existing::Keep
        && let Some(existing_figure) = find_figure(folder, stem)
    {
        return Err(format!(
            "{} exists; name another folder, or replace it with --force",
            PrintableText::path(&existing_figure)
        ));
    }
    let ancestors = folder.ancestors();
    let missing_folders: Vec<&Path> = ancestors
        .take_while(|ancestor| !ancestor.exists())
        .collect();
    let write_test = fs::create_dir_all(folder).and_then(|()| {
        let path = folder.join(format!(".neph-{}", std::process::id()));
        File::create_new(&path)?;
        fs::remove_file(path)
    });
    for path in missing_folders {
        // What was not made, or is no more empty, stays.
        let _ = fs::remove_dir(path);
    }
    write_test
        .map_err(|error| format!("no figures can be written there: {error}; name another folder"))
}

/// A figure in the folder whose name begins with `stem_prefix`.
fn find_figure(folder: &Path, stem_prefix: &str) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.flatten();
    let mut paths = files.map(|file| file.path());
    paths.find(|path| {
        let stem = path.file_stem().and_then(OsStr::to_str);
        let ending = path.extension().and_then(OsStr::to_str);
        stem.is_some_and(|stem| stem.starts_with(stem_prefix))
            && matches!(ending, Some("svg" | "png" | "pdf"))
    })
}
