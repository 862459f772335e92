//! Where output goes: links, pipes, folders, and places that take nothing.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::thread;

use neph_sys::process;

use crate::labs::{TWO_SITES, privileged, without_root};
use crate::neph::TestFolder;

/// A pipe of this test's own: nobody's device is put at risk.
fn create_pipe(path: &Path) {
    let status = process::command("mkfifo").arg(path).status();
    assert!(status.expect("mkfifo runs").success());
}

#[test]
fn an_export_writes_through_a_pipe_and_never_replaces_it() {
    let folder = TestFolder::with_campaign();
    let path = folder.path("pipe");
    create_pipe(&path);
    for (format, begin) in [("csv", "experiment"), ("parquet", "PAR1")] {
        let reader = thread::spawn({
            let path = path.clone();
            move || fs::read(path).expect("a pipe")
        });
        let ran = folder.neph(["export", "--format", format, "-o", "pipe"]);
        let is_pipe = fs::metadata(&path).is_ok_and(|metadata| metadata.file_type().is_fifo());
        assert!(is_pipe, "{format}: the pipe was replaced");
        assert_eq!(ran.status, 0, "{format}: {}", ran.err);
        let read = reader.join().expect("it has read");
        let read = String::from_utf8_lossy(&read);
        assert!(read.contains(begin), "{format}: {read:.100}");
    }
    assert_eq!(folder.files(), ["pipe"]);
}

#[test]
fn an_export_keeps_existing_files_and_follows_no_link() {
    let folder = TestFolder::with_campaign();
    fs::create_dir_all(folder.path("elsewhere/empty")).expect("a folder");
    fs::write(folder.path("elsewhere/x.csv"), "precious").expect("a file");
    symlink("elsewhere/x.csv", folder.path("link")).expect("a link");
    symlink("elsewhere/empty", folder.path("folder")).expect("a link");
    for (format, output) in [
        ("csv", "link"),
        ("parquet", "link"),
        ("csv", "elsewhere/x.csv"),
        ("latency-tester", "folder"),
    ] {
        let ran = folder.neph(["export", "--format", format, "-o", output]);
        assert_eq!(ran.status, 2, "{output}: {}", ran.err);
    }
    let content = fs::read_to_string(folder.path("elsewhere/x.csv")).expect("behind the link");
    assert_eq!(content, "precious");
    let export = ["export", "--format", "csv", "--force", "-o"];
    let ran = folder.neph(export.iter().copied().chain(["link"]));
    assert_eq!(ran.status, 2, "{}", ran.err);
    let ran = folder.neph(export.iter().copied().chain(["elsewhere/x.csv"]));
    assert_eq!(ran.status, 0, "{}", ran.err);
    let written = fs::read_to_string(folder.path("elsewhere/x.csv")).expect("replaced");
    assert_eq!(written.lines().count(), 81);
    assert_eq!(folder.files(), ["elsewhere", "folder", "link"]);
    let remaining = fs::read_dir(folder.path("elsewhere")).expect("a folder");
    assert_eq!(remaining.count(), 2, "no part is left");
}

#[test]
fn an_earlier_record_of_a_lab_is_refused_before_anything_is_built() {
    let folder = TestFolder::empty();
    fs::write(folder.path("two.toml"), TWO_SITES).expect("a file");
    fs::create_dir(folder.path("truth")).expect("a folder");
    let name = format!("p{}", std::process::id());
    for (record, extra_arg) in [("path.truth", None), ("routes_.truth", Some("--detach"))] {
        let file = folder.path("truth").join(record);
        fs::write(&file, "twelve megabytes").expect("a file");
        let args = [
            "lab", "up", "two.toml", "--name", &name, "--record", "truth",
        ];
        let ran = folder.neph(args.into_iter().chain(extra_arg));
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        let expected =
            format!("neph: truth/{record} is there already, from an earlier lab: name another");
        assert!(ran.err.contains(&expected), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        assert_eq!(fs::read_to_string(&file).expect("kept"), "twelve megabytes");
        fs::remove_file(&file).expect("ours");
    }
    let listed = folder.neph(["lab", "list"]);
    assert!(!listed.out.contains(&name), "{}", listed.out);
}

#[test]
fn missing_lab_features_are_reported_and_leave_no_folder() {
    let test = "missing_lab_features_are_reported_and_leave_no_folder";
    if !privileged(test) {
        return;
    }
    let folder = TestFolder::empty();
    let name = format!("lacks{}", std::process::id());
    for (requested, expected) in [
        (
            "congestion_control = \"nope\"",
            "write another as congestion_control",
        ),
        (
            "sysctls = { \"net.ipv4.nope\" = 1 }",
            "leave it out, or load the module",
        ),
        ("cpus = [1023]", "leave cpus out"),
    ] {
        let topology = TWO_SITES.replace("name = \"b\"\n", &format!("name = \"b\"\n{requested}\n"));
        fs::write(folder.path("two.toml"), topology).expect("a file");
        for extra_arg in [None, Some("--detach")] {
            let args = [
                "lab", "up", "two.toml", "--name", &name, "--record", "truth",
            ];
            let ran = folder.neph(args.into_iter().chain(extra_arg));
            assert_eq!(
                (ran.status, ran.out.as_str()),
                (1, ""),
                "{requested}: {}",
                ran.err
            );
            assert!(ran.err.contains(expected), "{requested}: {}", ran.err);
            assert!(!folder.path("truth").exists(), "{requested}, {extra_arg:?}");
        }
    }
    fs::create_dir(folder.path("truth")).expect("a folder");
    let args = [
        "lab", "up", "two.toml", "--name", &name, "--record", "truth",
    ];
    assert_eq!(folder.neph(args).status, 1);
    assert!(folder.path("truth").exists(), "one that was there stays");
}

#[test]
fn a_report_overwrites_only_its_own_folder() {
    let folder = TestFolder::with_campaign();
    for (args, status) in [
        (&["report", "-o", "own"][..], 0),
        (&["report", "-o", "own"], 2),
        (&["report", "-o", "own", "--force"], 0),
    ] {
        let ran = folder.neph(args.iter().copied());
        assert_eq!(ran.status, status, "{}", ran.err);
    }
    fs::create_dir(folder.path("site")).expect("a folder");
    fs::write(folder.path("site/index.html"), "<title>Mine</title>").expect("a file");
    let ran = folder.neph(["report", "-o", "site"]);
    assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
    let expected =
        "neph: site contains 'index.html', which is not part of a report: name a new folder";
    assert!(ran.err.contains(expected), "{}", ran.err);
    let remaining = fs::read_to_string(folder.path("site/index.html")).expect("kept");
    assert_eq!(remaining, "<title>Mine</title>");
    let files = fs::read_dir(folder.path("site")).expect("a folder");
    assert_eq!(files.count(), 1);
}

#[test]
fn an_unwritable_output_is_reported_with_its_remedy() {
    let folder = TestFolder::with_campaign();
    fs::create_dir(folder.path("folder")).expect("a folder");
    fs::write(folder.path("file"), "").expect("a file");
    let export = ["export", "--format", "csv", "-o"];
    let ping = ["ping", "udp://127.0.0.1:9", "-c", "1", "--no-icmp", "-o"];
    let trace = ["trace", "udp://127.0.0.1:9", "-o"];
    for command in [&export[..], &ping, &trace] {
        for (output, remedy) in [
            (
                "nosuch/x",
                "; make the folder nosuch first, or name another place",
            ),
            ("folder", "; give the name of a file in it"),
            ("file/x", "; name a place whose folders are folders"),
        ] {
            let ran = folder.neph(command.iter().copied().chain([output]));
            assert_eq!(ran.status, 2, "{command:?} {output}: {}", ran.err);
            let expected = format!("neph: cannot write {output}: ");
            let is_reported = ran.err.starts_with(&expected) && ran.err.contains(remedy);
            assert!(is_reported, "{}", ran.err);
        }
    }
    for command in ["report", "man"] {
        let ran = folder.neph([command, "--output", "file"]);
        assert_eq!(ran.status, 2, "{command}: {}", ran.err);
        assert!(ran.err.contains("name a"), "{command}: {}", ran.err);
    }
    assert_eq!(folder.files(), ["file", "folder"]);
}

#[test]
fn a_report_in_a_read_only_folder_fails_with_a_remedy() {
    let test = "a_report_in_a_read_only_folder_fails_with_a_remedy";
    if !privileged(test) {
        return;
    }
    let folder = TestFolder::with_campaign();
    let workspace = folder.text("ws");
    let opened = process::command("chmod")
        .args(["-R", "a+rwX", &workspace])
        .status();
    assert!(opened.expect("chmod runs").success());
    let ran = without_root(&folder, 0o755, ["report", "-o", "report"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    let remedy = "Permission denied (os error 13); name a place that you may write into";
    assert!(ran.err.contains(remedy), "{}", ran.err);
}
