//! The process of a run: neph itself, in a session of its own.
//!
//! Owns how it is started and how it is known whether it still runs. Its standard input is an open, locked file:
//! as long as the lock is held it runs, also when the controller that started it is gone.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use neph_model::CampaignId;
use neph_sys::process::{self, Birth};
use neph_text::{DiskError, FolderLock};

use super::Schedule;

/// What a run printed, in the folder of its schedule.
const OUTPUT: &str = "last.log";
/// Characters of what a run printed that are kept as a reason.
const LONGEST_REASON: usize = 500;

/// Where a runner works.
#[derive(Clone, Debug)]
pub struct RunnerFolder {
    /// The program that carries a campaign out: neph itself.
    pub program: PathBuf,
    /// The controller's folder.
    pub control: PathBuf,
}

impl RunnerFolder {
    /// Starts a run, or goes on with its campaign; `files` is the folder of its schedule.
    pub(super) fn spawn(
        &self,
        files: &Path,
        schedule: &Schedule,
        resumes: Option<CampaignId>,
    ) -> Result<Child, DiskError> {
        let busy = || DiskError::of("take", files)(io::ErrorKind::WouldBlock.into());
        let lock = take_run(files)?.ok_or_else(busy)?;
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
            // Reports to a service manager are the controller's.
            .env_remove("NOTIFY_SOCKET")
            .stdin(lock.into_stdio())
            .stdout(Stdio::null())
            .stderr(Stdio::from(output));
        Birth::default().leads_session().arrange(&mut command);
        command
            .spawn()
            .map_err(DiskError::of("start", &self.program))
    }
}

/// The lock that a run has as long as its process is there; `None` if one has it.
pub(super) fn take_run(files: &Path) -> Result<Option<FolderLock>, DiskError> {
    let folder = files.join("run");
    fs::create_dir_all(&folder).map_err(DiskError::of("make the folder", &folder))?;
    FolderLock::take(&folder)
}

/// The last line that a run printed: why it failed.
pub(super) fn last_words(files: &Path) -> String {
    let text = fs::read(files.join(OUTPUT)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut lines = text.lines().rev().map(str::trim);
    let last = lines.find(|line| !line.is_empty());
    let reason = last.unwrap_or("it ended and printed nothing");
    reason.chars().take(LONGEST_REASON).collect()
}
