//! The background process that runs a lab, from the side of the command that starts it.
//!
//! The background process writes the table of the lab and then one byte when the lab is up. The
//! command reads its output until then, and passes ctrl-C on.

use std::io::{self, Read, Write};
use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use neph_model::Stop;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::process::{self, ChildOptions, Request};

use crate::exit::{Failure, Outcome};
use crate::{interrupt, output};

/// The byte that means that the lab is up.
pub(super) const READY_MARK: char = '\u{4}';
/// Interval of checks while waiting.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Size of a read: the capacity of a pipe.
const READ_SIZE: usize = 64 * 1024;

/// The lab to start in the background.
pub(super) struct BackgroundLab<'a> {
    /// The topology file.
    pub(super) file: &'a Path,
    pub(super) name: &'a str,
    /// The digest of its confirmed commands. The user confirms in the foreground; the file may
    /// change before the background process reads it.
    pub(super) approved: &'a str,
    /// The folder of link records, and the sampling: one packet in N.
    pub(super) record: Option<(&'a Path, NonZeroU32)>,
}

/// Starts the background process, and waits until the lab is up.
pub(super) fn detach(background_lab: &BackgroundLab<'_>) -> Result<Outcome, Failure> {
    let to_failure = |error: io::Error| Failure::refused(format!("start the keeper: {error}"));
    let stop = interrupt::stop_on_ctrl_c()?;
    let mut keeper = start(background_lab).map_err(to_failure)?;
    let table = read_table(&mut keeper, &stop).map_err(to_failure)?;
    let mut stderr = keeper.stderr.take().expect("piped");
    let Some(table) = table else {
        let mut reason = String::new();
        stderr.read_to_string(&mut reason).map_err(to_failure)?;
        let status = keeper.wait().map_err(to_failure)?;
        if stop.is_set() && !matches!(status.code(), Some(1 | 2)) {
            return Err(Failure::Interrupted(format!(
                "lab {} was stopped while it came up; nothing of it is left",
                background_lab.name
            )));
        }
        // Warnings, and the reason of the end in the last line.
        let (warnings, reason) = reason
            .trim()
            .rsplit_once('\n')
            .unwrap_or_else(|| ("", reason.trim()));
        if !warnings.is_empty() {
            output::report_lines(warnings);
        }
        return Err(Failure::Refused(
            reason.strip_prefix("neph: ").unwrap_or(reason).to_owned(),
        ));
    };
    let mut out = output::data();
    out.write_all(&table)?;
    out.flush()?;
    // Warnings so far; later ones are not shown.
    let text = read_available(&mut stderr).map_err(to_failure)?;
    if !text.is_empty() {
        output::report_lines(String::from_utf8_lossy(&text).trim_end());
    }
    output::say(&format!(
        "neph lab: {name} is up, kept by process {}; neph lab down {name} takes it down",
        keeper.id(),
        name = background_lab.name
    ));
    Ok(Outcome::Done)
}

fn start(background_lab: &BackgroundLab<'_>) -> io::Result<Child> {
    let mut command = process::command(std::env::current_exe()?);
    command.args(["lab", "up", "--keeper", "--name", background_lab.name]);
    if let Some((folder, sampling)) = background_lab.record {
        command.arg("--record").arg(folder);
        command.arg("--every").arg(sampling.to_string());
    }
    command
        .args(["--approved", background_lab.approved, "--"])
        .arg(background_lab.file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    ChildOptions::default()
        .leads_session()
        .arrange(&mut command);
    command.spawn()
}

/// The table when the lab is up; `None` if the background process has ended.
fn read_table(keeper: &mut Child, stop: &Stop) -> io::Result<Option<Vec<u8>>> {
    let mut stdout = keeper.stdout.take().expect("piped");
    let mut received = Vec::new();
    let mut is_stop_requested = false;
    loop {
        let mut awaited = [Awaited::readable(stdout.as_fd())];
        ppoll::wait(&mut awaited, Some(CHECK_INTERVAL))?;
        if stop.is_set() && !is_stop_requested {
            is_stop_requested = true;
            process::ask(keeper.id(), Request::End)?;
        }
        if !awaited[0].has_something() {
            continue;
        }
        let mut chunk = vec![0; READ_SIZE];
        let length = stdout.read(&mut chunk)?;
        received.extend_from_slice(&chunk[..length]);
        if length == 0 {
            return Ok(None);
        }
        let ready_line = format!("{READY_MARK}\n");
        if let (Some(table), false) = (
            received.strip_suffix(ready_line.as_bytes()),
            is_stop_requested,
        ) {
            return Ok(Some(table.to_vec()));
        }
    }
}

/// Reads the available data without waiting.
fn read_available(source: &mut (impl Read + AsFd)) -> io::Result<Vec<u8>> {
    let mut awaited = [Awaited::readable(source.as_fd())];
    ppoll::wait(&mut awaited, Some(Duration::ZERO))?;
    let mut text = Vec::new();
    if awaited[0].is_readable() {
        text.resize(READ_SIZE, 0);
        let length = source.read(&mut text)?;
        text.truncate(length);
    }
    Ok(text)
}
