//! Where output goes: links, pipes, folders, and places that take nothing.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::neph::Place;

/// A pipe of this test's own: nobody's device is put at risk.
fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo runs").success());
}

#[test]
fn an_export_writes_through_a_pipe_and_never_replaces_it() {
    let place = Place::measured();
    let path = place.path("pipe");
    pipe(&path);
    for (format, begin) in [("csv", "experiment"), ("parquet", "PAR1")] {
        let reader = thread::spawn({
            let path = path.clone();
            move || fs::read(path).expect("a pipe")
        });
        let ran = place.neph(["export", "--format", format, "-o", "pipe"]);
        let is_pipe = fs::metadata(&path).is_ok_and(|found| found.file_type().is_fifo());
        assert!(is_pipe, "{format}: the pipe was replaced");
        assert_eq!(ran.status, 0, "{format}: {}", ran.err);
        let read = reader.join().expect("it has read");
        let read = String::from_utf8_lossy(&read);
        assert!(read.contains(begin), "{format}: {read:.100}");
    }
    assert_eq!(place.files(), ["pipe"]);
}

#[test]
fn an_export_follows_links_to_files_and_folders() {
    let place = Place::measured();
    fs::create_dir_all(place.path("elsewhere/empty")).expect("a folder");
    symlink("elsewhere/x.csv", place.path("link")).expect("a link");
    symlink("elsewhere/empty", place.path("folder")).expect("a link");
    for (format, output) in [
        ("csv", "link"),
        ("csv", "link"),
        ("latency-tester", "folder"),
    ] {
        let ran = place.neph(["export", "--format", format, "-o", output]);
        assert_eq!(ran.status, 0, "{output}: {}", ran.err);
        assert!(place.path(output).is_symlink(), "{output} was replaced");
    }
    let written = fs::read_to_string(place.path("elsewhere/x.csv")).expect("behind the link");
    assert_eq!(written.lines().count(), 81);
    assert!(place.path("elsewhere/empty/raw-data").is_dir());
    assert_eq!(place.files(), ["elsewhere", "folder", "link"]);
    let left = fs::read_dir(place.path("elsewhere")).expect("a folder");
    assert_eq!(left.count(), 2, "no part is left");
}
