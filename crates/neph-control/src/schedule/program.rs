//! The process of a run: neph in a separate session.
//!
//! Owns how it is started and how to detect whether it runs. Its standard input is an open, locked
//! file. It runs while the lock exists, even if the controller that started it has ended.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use neph_model::CampaignId;
use neph_sys::process::{self, ChildOptions};
use neph_text::{DiskError, FolderLock};

use super::Schedule;

/// Output of a run, in the folder of its schedule.
const OUTPUT: &str = "last.log";
/// Maximum characters of the output that become a reason.
const MAX_REASON_CHARS: usize = 500;

/// Paths of a runner.
#[derive(Clone, Debug)]
pub struct RunnerFolder {
    /// The program for campaigns: neph itself.
    pub program: PathBuf,
    /// The controller's folder.
    pub control: PathBuf,
}

impl RunnerFolder {
    /// Starts a run or resumes its campaign; `files` is the folder of its schedule.
    pub(super) fn spawn(
        &self,
        files: &Path,
        schedule: &Schedule,
        resumes: Option<CampaignId>,
    ) -> Result<Child, DiskError> {
        let busy = || DiskError::of("take", files)(io::ErrorKind::WouldBlock.into());
        let lock = take_run_lock(files)?.ok_or_else(busy)?;
        let path = files.join(OUTPUT);
        let output = File::create(&path).map_err(DiskError::of("make", &path))?;
        let mut command = process::command(&self.program);
        match resumes {
            None => command.arg("run").arg(&schedule.plan),
            Some(campaign) => command.arg("resume").arg(campaign.to_string()),
        };
        command
            .arg("--control")
            .arg(&self.control)
            .args(["--workspace", &schedule.workspace])
            .args(["--quiet", "--no-report"])
            .current_dir(&schedule.folder)
            // Only the controller reports to the service manager.
            .env_remove("NOTIFY_SOCKET")
            .stdin(lock.into_stdio())
            .stdout(Stdio::null())
            .stderr(Stdio::from(output));
        ChildOptions::default()
            .leads_session()
            .arrange(&mut command);
        command
            .spawn()
            .map_err(DiskError::of("start", &self.program))
    }
}

/// Takes the lock that a run holds during its life; `None` if a run holds it.
pub(super) fn take_run_lock(files: &Path) -> Result<Option<FolderLock>, DiskError> {
    let folder = files.join("run");
    fs::create_dir_all(&folder).map_err(DiskError::of("make the folder", &folder))?;
    FolderLock::take(&folder)
}

/// The last line of a run's output: why it failed.
pub(super) fn failure_reason(files: &Path) -> String {
    let text = fs::read(files.join(OUTPUT)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut lines = text.lines().rev().map(str::trim);
    let last = lines.find(|line| !line.is_empty());
    let reason = last.unwrap_or("it ended and printed nothing");
    let reason = reason.strip_prefix("neph: ").unwrap_or(reason);
    reason.chars().take(MAX_REASON_CHARS).collect()
}
