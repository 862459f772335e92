//! What is kept of schedules: a folder for each in the controller's folder, with the schedule and what became of
//! its runs.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use neph_agent::remote::{read_json, write_json};
use neph_model::{AgentName, CampaignId, Wall};
use neph_text::{DiskError, remove_folder, write_durable};
use serde::{Deserialize, Serialize};

use super::{Missed, Schedule};

/// Entries of a history that are kept at the least.
const KEPT: usize = 5_000;

/// Schedules could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The disk refuses.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The name is taken.
    #[error(
        "there is a schedule {0} already; neph control schedule --remove {0} ends it, --name gives this one another name"
    )]
    Taken(AgentName),
    /// There is no such schedule.
    #[error("there is no schedule {0}; neph control schedule lists those that there are")]
    None(AgentName),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// Everything was measured.
    Complete,
    /// Everything was measured, and an alarm of the plan was raised.
    Alarmed,
    /// Some scenario failed every try.
    Incomplete,
    /// It was stopped before its end.
    Interrupted,
    /// It could not be carried out.
    Failed {
        /// Why not.
        reason: String,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Alarmed => f.write_str("complete, an alarm was raised"),
            Self::Incomplete => f.write_str("incomplete: a scenario failed every try"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
        }
    }
}

/// What became of a run that was due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// It begins.
    Begun {
        /// When it was due.
        #[serde(rename = "due_unix_ns")]
        due: Wall,
        /// When.
        #[serde(rename = "at_unix_ns")]
        at: Wall,
        /// The campaign that it goes on with; of a new one there is none.
        resumes: Option<CampaignId>,
    },
    /// It ended.
    Ended {
        /// When it was due.
        #[serde(rename = "due_unix_ns")]
        due: Wall,
        /// When that was noticed.
        #[serde(rename = "at_unix_ns")]
        at: Wall,
        /// How.
        outcome: Outcome,
        /// Its campaign, if there is one.
        campaign: Option<CampaignId>,
    },
    /// Runs did not begin in time, and are not made up for.
    Missed {
        /// When the first of them was due.
        #[serde(rename = "first_unix_ns")]
        first: Wall,
        /// When the last of them was due.
        #[serde(rename = "last_unix_ns")]
        last: Wall,
        /// How many.
        count: u64,
        /// Why.
        reason: String,
    },
    /// It did not begin because the one before was not over.
    LeftOut {
        /// When it was due.
        #[serde(rename = "due_unix_ns")]
        due: Wall,
        /// Why.
        reason: String,
    },
}

impl Entry {
    pub(super) fn missed(missed: Missed, reason: &str) -> Self {
        Self::Missed {
            first: missed.first,
            last: missed.last,
            count: missed.count,
            reason: reason.to_owned(),
        }
    }

    /// The last moment that it decides on.
    pub const fn due(&self) -> Wall {
        match self {
            Self::Begun { due, .. } | Self::Ended { due, .. } | Self::LeftOut { due, .. } => *due,
            Self::Missed { last, .. } => *last,
        }
    }
}

/// The schedules of a controller.
#[derive(Clone, Debug)]
pub struct Book {
    folder: PathBuf,
}

impl Book {
    /// Those in the folder of a controller.
    pub fn in_folder(control: &Path) -> Self {
        Self {
            folder: control.join("schedules"),
        }
    }

    /// Where the files of a schedule are.
    pub(super) fn folder_of(&self, name: &AgentName) -> PathBuf {
        self.folder.join(name.as_str())
    }

    fn path_of(&self, name: &AgentName) -> PathBuf {
        self.folder_of(name).join("schedule.json")
    }

    fn history_path(&self, name: &AgentName) -> PathBuf {
        self.folder_of(name).join("history.ndjson")
    }

    /// Adds a schedule: it is kept when this returns.
    ///
    /// # Errors
    /// There is one of that name, or the disk refuses.
    pub fn add(&self, schedule: &Schedule) -> Result<(), BookError> {
        let path = self.path_of(&schedule.name);
        if path.exists() {
            return Err(BookError::Taken(schedule.name.clone()));
        }
        let folder = self.folder_of(&schedule.name);
        // What an earlier one of that name left.
        remove_folder(&folder)?;
        fs::create_dir_all(&folder).map_err(DiskError::of("make the folder", &folder))?;
        Ok(write_json(&path, schedule)?)
    }

    /// Ends a schedule. A run that is under way goes on.
    ///
    /// # Errors
    /// There is none of that name, or the disk refuses.
    pub fn remove(&self, name: &AgentName) -> Result<(), BookError> {
        let path = self.path_of(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(remove_folder(&self.folder_of(name))?),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(BookError::None(name.clone())),
            Err(error) => Err(DiskError::of("remove", &path)(error).into()),
        }
    }

    /// All schedules, by name.
    ///
    /// # Errors
    /// The disk refuses, or a file is of another version.
    pub fn all(&self) -> Result<Vec<Schedule>, BookError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(DiskError::of("list", &self.folder)(error).into()),
        };
        let mut all: Vec<Schedule> = Vec::new();
        for entry in entries {
            let entry = entry.map_err(DiskError::of("list", &self.folder))?;
            all.extend(read_json::<Schedule>(&entry.path().join("schedule.json"))?);
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// What became of the runs of a schedule, oldest first.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn history(&self, name: &AgentName) -> Result<Vec<Entry>, BookError> {
        let path = self.history_path(name);
        match fs::read_to_string(&path) {
            // A line that was cut off is of something that did not happen yet.
            Ok(text) => Ok(text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(DiskError::of("read", &path)(error).into()),
        }
    }

    /// Adds to the history of a schedule: it is kept when this returns, also after a loss of power.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn note(&self, name: &AgentName, entry: &Entry) -> Result<(), BookError> {
        let path = self.history_path(name);
        let append = || -> io::Result<()> {
            // After a line that was cut off.
            let mut line = vec![b'\n'];
            serde_json::to_writer(&mut line, entry)?;
            line.push(b'\n');
            let mut options = OpenOptions::new();
            let mut file: File = options.create(true).append(true).open(&path)?;
            file.write_all(&line)?;
            file.sync_data()
        };
        Ok(append().map_err(DiskError::of("write", &path))?)
    }

    /// Shortens a history that has become long.
    pub(super) fn shorten(&self, name: &AgentName) -> Result<(), BookError> {
        let history = self.history(name)?;
        if history.len() < 2 * KEPT {
            return Ok(());
        }
        let path = self.history_path(name);
        let mut text = Vec::new();
        let write = |text: &mut Vec<u8>| -> io::Result<()> {
            for entry in &history[history.len() - KEPT..] {
                serde_json::to_writer(&mut *text, entry)?;
                text.push(b'\n');
            }
            write_durable(&path, text)
        };
        Ok(write(&mut text).map_err(DiskError::of("write", &path))?)
    }
}
