//! The retention policy of a controller: tidies the workspaces of its schedules, each in a separate
//! process.
//!
//! Owns the times. A workspace with a run in progress is tidied later.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::{Child, Stdio};

use neph_control::{Book, RunnerFolder, Schedule};
use neph_model::{AgentName, Span, Wall};
use neph_sys::process::{self, ChildOptions};

use crate::tidy::RetentionArgs;

/// Time between two passes.
const PASS_INTERVAL: Span = Span::from_secs(6 * 3600);
/// Time until a failed pass is repeated: usually a run was in progress.
const RETRY_DELAY: Span = Span::from_secs(60);

/// Tidies workspaces, one at a time.
#[derive(Debug)]
pub(super) struct WorkspaceTidier {
    folder: RunnerFolder,
    retention: RetentionArgs,
    /// The next time of each schedule.
    due_times: BTreeMap<AgentName, Wall>,
    queue: VecDeque<Schedule>,
    /// The pass in progress.
    current_pass: Option<(AgentName, Child)>,
}

impl WorkspaceTidier {
    pub(super) const fn new(folder: RunnerFolder, retention: RetentionArgs) -> Self {
        Self {
            folder,
            retention,
            due_times: BTreeMap::new(),
            queue: VecDeque::new(),
            current_pass: None,
        }
    }

    /// Starts due passes; call this about once a second.
    pub(super) fn step(&mut self, now: Wall) {
        if let Some((name, child)) = &mut self.current_pass {
            let delay = match child.try_wait() {
                Ok(None) => return,
                Ok(Some(status)) if status.success() => PASS_INTERVAL,
                _ => RETRY_DELAY,
            };
            self.due_times.insert(name.clone(), now + delay);
            self.current_pass = None;
        }
        if self.queue.is_empty() {
            let schedules = Book::in_folder(&self.folder.control).schedules();
            let due_times = &self.due_times;
            let is_due =
                |schedule: &Schedule| due_times.get(&schedule.name).is_none_or(|due| *due <= now);
            // The code that runs schedules reports disk errors.
            let due_schedules = schedules.unwrap_or_default().into_iter().filter(is_due);
            self.queue.extend(due_schedules.filter(has_workspace));
        }
        let Some(schedule) = self.queue.pop_front() else {
            return;
        };
        match self.start(&schedule) {
            Ok(child) => self.current_pass = Some((schedule.name, child)),
            Err(error) => {
                tracing::warn!("{} cannot be tidied: {error}", schedule.workspace);
                self.due_times.insert(schedule.name, now + PASS_INTERVAL);
            }
        }
    }

    fn start(&self, schedule: &Schedule) -> std::io::Result<Child> {
        let mut command = process::command(&self.folder.program);
        command
            .args(["tidy", "--workspace", &schedule.workspace, "--plan"])
            .arg(&schedule.plan)
            .args(self.retention.arguments())
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        ChildOptions::default()
            .leads_session()
            .arrange(&mut command);
        command.spawn()
    }
}

fn has_workspace(schedule: &Schedule) -> bool {
    Path::new(&schedule.workspace).exists()
}
