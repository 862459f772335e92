//! Storage of schedules: a folder for each in the controller's folder, with the schedule and the
//! history of its runs.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use neph_agent::remote::{read_json, write_json};
use neph_model::{AgentName, CampaignId, Wall};
use neph_text::{DiskError, remove_folder, write_durable};
use serde::{Deserialize, Serialize};

use super::{Missed, Schedule};

/// Minimum number of entries that a shortened history keeps.
const MIN_KEPT_ENTRIES: usize = 5_000;

/// Errors of the storage of schedules.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// A disk operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The name is in use.
    #[error(
        "there is a schedule {0} already; neph control schedule --remove {0} ends it, --name gives this one another name"
    )]
    NameTaken(AgentName),
    /// No such schedule.
    #[error("there is no schedule {0}; neph control schedule lists those that there are")]
    UnknownSchedule(AgentName),
}

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// Everything was measured.
    Complete,
    /// Everything was measured, and an alarm of the plan was raised.
    Alarmed,
    /// A scenario failed in every attempt.
    Incomplete,
    /// It was stopped before its end.
    Interrupted,
    /// It could not be carried out.
    Failed {
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Alarmed => f.write_str("complete, an alarm was raised"),
            Self::Incomplete => f.write_str("incomplete: a scenario has no complete experiment"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
        }
    }
}

/// An entry of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// A run begins.
    Begun {
        /// When it was due.
        #[serde(rename = "due_unix_ns")]
        due: Wall,
        /// Time of the start.
        #[serde(rename = "at_unix_ns")]
        at: Wall,
        /// The campaign that it resumes; absent for a new one.
        resumes: Option<CampaignId>,
    },
    /// A run ended.
    Ended {
        /// When it was due.
        #[serde(rename = "due_unix_ns")]
        due: Wall,
        /// When the end was noticed.
        #[serde(rename = "at_unix_ns")]
        at: Wall,
        /// Its outcome.
        outcome: Outcome,
        /// Its campaign, if there is one.
        campaign: Option<CampaignId>,
    },
    /// Runs that did not begin in time and are skipped.
    Missed {
        /// When the first of them was due.
        #[serde(rename = "first_unix_ns")]
        first: Wall,
        /// When the last of them was due.
        #[serde(rename = "last_unix_ns")]
        last: Wall,
        /// How many.
        count: u64,
        /// The reason.
        reason: String,
    },
    /// A run that did not begin because the previous one was not over.
    LeftOut {
        /// When it was due.
        #[serde(rename = "due_unix_ns")]
        due: Wall,
        /// The reason.
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

    /// The last due time that this entry covers.
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
    /// The schedules in the folder of a controller.
    pub fn in_folder(control: &Path) -> Self {
        Self {
            folder: control.join("schedules"),
        }
    }

    /// The folder of a schedule.
    pub(super) fn folder_of(&self, name: &AgentName) -> PathBuf {
        self.folder.join(name.as_str())
    }

    fn path_of(&self, name: &AgentName) -> PathBuf {
        self.folder_of(name).join("schedule.json")
    }

    fn history_path(&self, name: &AgentName) -> PathBuf {
        self.folder_of(name).join("history.ndjson")
    }

    /// Adds a schedule; it is stored when this returns.
    ///
    /// # Errors
    /// The name is in use, or a disk operation failed.
    pub fn add(&self, schedule: &Schedule) -> Result<(), BookError> {
        let path = self.path_of(&schedule.name);
        if path.exists() {
            return Err(BookError::NameTaken(schedule.name.clone()));
        }
        let folder = self.folder_of(&schedule.name);
        // Files of an earlier schedule with the same name.
        remove_folder(&folder)?;
        fs::create_dir_all(&folder).map_err(DiskError::of("make the folder", &folder))?;
        Ok(write_json(&path, schedule)?)
    }

    /// Removes a schedule with its history. A running run continues. Returns the schedule; `None` if
    /// its file was damaged.
    ///
    /// # Errors
    /// No such schedule, or a disk operation failed.
    pub fn remove(&self, name: &AgentName) -> Result<Option<Schedule>, BookError> {
        let path = self.path_of(name);
        let removed = read_json::<Schedule>(&path).ok().flatten();
        match fs::remove_file(&path) {
            Ok(()) => {
                remove_folder(&self.folder_of(name))?;
                Ok(removed)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(BookError::UnknownSchedule(name.clone()))
            }
            Err(error) => Err(DiskError::of("remove", &path)(error).into()),
        }
    }

    /// All schedules, by name.
    ///
    /// # Errors
    /// A disk operation failed, or a file has another version.
    pub fn schedules(&self) -> Result<Vec<Schedule>, BookError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(DiskError::of("list", &self.folder)(error).into()),
        };
        let mut schedules: Vec<Schedule> = Vec::new();
        for entry in entries {
            let entry = entry.map_err(DiskError::of("list", &self.folder))?;
            schedules.extend(read_json::<Schedule>(&entry.path().join("schedule.json"))?);
        }
        schedules.sort_by(|schedule, other| schedule.name.cmp(&other.name));
        Ok(schedules)
    }

    /// The history of a schedule, oldest entry first.
    ///
    /// # Errors
    /// A disk operation failed.
    pub fn history(&self, name: &AgentName) -> Result<Vec<Entry>, BookError> {
        let path = self.history_path(name);
        match fs::read_to_string(&path) {
            // A truncated line is ignored: its event has not happened yet.
            Ok(text) => Ok(text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(DiskError::of("read", &path)(error).into()),
        }
    }

    /// Adds an entry to the history of a schedule; it survives a power failure when this returns.
    ///
    /// # Errors
    /// A disk operation failed.
    pub fn note(&self, name: &AgentName, entry: &Entry) -> Result<(), BookError> {
        let path = self.history_path(name);
        let append = || -> io::Result<()> {
            // The previous line may be truncated.
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

    /// Shortens a long history.
    pub(super) fn shorten(&self, name: &AgentName) -> Result<(), BookError> {
        let history = self.history(name)?;
        if history.len() < 2 * MIN_KEPT_ENTRIES {
            return Ok(());
        }
        let path = self.history_path(name);
        let mut text = Vec::new();
        let write = |text: &mut Vec<u8>| -> io::Result<()> {
            for entry in &history[history.len() - MIN_KEPT_ENTRIES..] {
                serde_json::to_writer(&mut *text, entry)?;
                text.push(b'\n');
            }
            write_durable(&path, text)
        };
        Ok(write(&mut text).map_err(DiskError::of("write", &path))?)
    }
}
