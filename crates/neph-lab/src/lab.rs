//! A lab: a topology that is up, with its engines running.
//!
//! Owns the handle, taking it down, and finding labs by name. Bringing one up is in [`up`], the
//! engines' threads in [`carrier`]. What was acquired is in the undo journal, not here, so that
//! a lab whose owner was killed can be taken down by anybody.

mod carrier;
mod up;

use std::io;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use neph_sys::netns::{self, NetNs, NetNsError};
use neph_sys::offload::OffloadError;

use crate::counters::LinkCounters;
use crate::cue::Cue;
use crate::engine::{EngineError, Pace};
use crate::journal::{self, Acquired, UndoError, Whose, Witness};
use crate::program::ProgramError;
use crate::topology::Topology;
use carrier::Carrier;

/// How a lab is to be brought up.
#[derive(Clone, Debug)]
pub struct UpOptions {
    /// Its name: a lower-case letter, then at most 15 lower-case letters, digits or underscores.
    pub name: String,
    /// Where to record what the links did, if anywhere. Links that netem carries have no record.
    pub truth: Option<Recording>,
    /// Seeds loss and jitter of all links.
    pub seed: u64,
    /// How each engine runs. Rings share 128 MiB: with many links each gets less than asked.
    pub pace: Pace,
}

impl UpOptions {
    /// A lab called `name` that records nothing, with seed 1.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            truth: None,
            seed: 1,
            pace: Pace::default(),
        }
    }
}

/// Where and how much to record: `LINK.truth` for each link.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The folder for the files; must be there. They stay when the lab goes.
    pub folder: PathBuf,
    /// One in this many packets; 1 for all.
    pub every: NonZeroU32,
}

/// What went wrong with a lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The name does not fit.
    #[error(
        "lab name '{name}': begin with a lower-case letter, then at most 15 lower-case letters, \
         digits or underscores"
    )]
    Name {
        /// What was given.
        name: String,
    },
    /// The name is taken.
    #[error("a lab called '{name}' is {state}: choose another name or take it down first")]
    Taken {
        /// Which name.
        name: String,
        /// Up, or left behind.
        state: &'static str,
    },
    /// Labs need privileges.
    #[error("a lab needs root (CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN): {source}")]
    NotPermitted {
        /// What was refused.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The journal could not be written.
    #[error("write the undo journal of lab {lab}: {source}")]
    Journal {
        /// Which lab.
        lab: String,
        /// Why.
        source: io::Error,
    },
    /// A setting was refused.
    #[error("set {setting} to '{value}' in namespace {namespace}: {source}")]
    Setting {
        /// Its dotted name.
        setting: String,
        /// What it should be.
        value: String,
        /// Where.
        namespace: String,
        /// Why.
        source: io::Error,
    },
    /// There is no such site.
    #[error("lab {lab} has no site '{site}'")]
    NoSite {
        /// Which lab.
        lab: String,
        /// What was asked for.
        site: String,
    },
    /// A thread could not be started.
    #[error("start the engine of link {link}: {source}")]
    Thread {
        /// Which link.
        link: String,
        /// Why.
        source: io::Error,
    },
    /// A namespace could not be made or used.
    #[error(transparent)]
    NetNs(#[from] NetNsError),
    /// A program refused.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// An offload could not be switched off.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// A link could not be carried.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It could not be taken down.
    #[error(transparent)]
    Undo(#[from] UndoError),
}

/// A lab that is up. Dropping it takes it down; [`Lab::down`] does so and says how it went.
#[derive(Debug)]
pub struct Lab {
    name: String,
    topology: Topology,
    carriers: Vec<Carrier>,
    journal: Witness,
    cue: Arc<Cue>,
    abandoned: bool,
}

/// A lab that somebody brought up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabListing {
    /// Its name.
    pub name: String,
    /// The process that brought it up, if the journal says so.
    pub owner: Option<u32>,
    /// Whether that process is still there. If not, the lab was left behind by a crash.
    pub owner_alive: bool,
    /// The namespaces of its sites.
    pub namespaces: Vec<String>,
}

impl Lab {
    /// Brings `topology` up; on failure takes down what was done already. Needs root and the
    /// programs of iproute2.
    ///
    /// # Errors
    /// The name is taken, a privilege or a program is missing, or the kernel refused something.
    pub fn up(topology: &Topology, options: &UpOptions) -> Result<Self, LabError> {
        check_name(&options.name)?;
        up::up(topology, options)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it was made from.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The namespace of `site`, to run probers or reflectors in.
    ///
    /// # Errors
    /// There is no such site, or the lab was taken down by somebody else.
    pub fn namespace(&self, site: &str) -> Result<NetNs, LabError> {
        self.site(site)?;
        Ok(NetNs::open(&namespace_name(&self.name, site))?)
    }

    /// The addresses of `site`, IPv4 first.
    ///
    /// # Errors
    /// There is no such site.
    pub fn addresses(&self, site: &str) -> Result<Vec<IpAddr>, LabError> {
        Ok(self.topology.sites[self.site(site)?].addresses().collect())
    }

    /// The live counters of the link with this index in the topology; none when the kernel's
    /// netem carries it.
    pub fn counters(&self, link: usize) -> Option<&Arc<LinkCounters>> {
        self.carriers
            .iter()
            .find(|carrier| carrier.number() == link)
            .map(Carrier::counters)
    }

    /// Lets the schedules of all links begin anew now, as they did when the lab came up.
    pub fn cue(&self) {
        self.cue.give();
    }

    /// What [`Self::cue`] gives, for whoever has no lab at hand.
    pub fn cue_giver(&self) -> Arc<Cue> {
        Arc::clone(&self.cue)
    }

    /// Whether all engines still run.
    pub fn is_carrying(&self) -> bool {
        self.carriers.iter().all(Carrier::is_running)
    }

    /// Whether it was not taken down: anybody may do that by name, and another lab may have the
    /// name by now.
    pub fn is_there(&self) -> bool {
        self.journal.is_current(&self.name)
    }

    /// Stops the engines, waits until their records are written, and takes everything down.
    ///
    /// # Errors
    /// What could not be removed, or an engine's failure; everything was tried.
    pub fn down(mut self) -> Result<(), LabError> {
        self.abandoned = true;
        let carried = self.stop_carriers();
        journal::undo(&self.name, Whose::Own(&self.journal))?;
        carried
    }

    /// Stops the engines and leaves everything else as a crash of this process would.
    pub fn abandon(mut self) {
        self.abandoned = true;
    }

    /// Takes the lab called `name` down, whoever brought it up and whether or not that process
    /// lives. Taking down what is not there is fine.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn down_by_name(name: &str) -> Result<(), LabError> {
        check_name(name)?;
        Ok(journal::undo(name, Whose::Anybodys)?)
    }

    /// All labs of this machine, by name.
    ///
    /// # Errors
    /// Their journals cannot be read.
    pub fn list() -> Result<Vec<LabListing>, LabError> {
        let unreadable = |lab: &str| {
            let lab = lab.to_owned();
            |source| UndoError::Journal { lab, source }
        };
        let mut listings = Vec::new();
        for name in journal::labs().map_err(unreadable("(all)"))? {
            let story = journal::story(&name).map_err(unreadable(&name))?;
            let alive = |(pid, since)| journal::began(pid) == Some(since);
            let wire = namespace_name(&name, up::WIRE);
            let namespaces = story
                .acquired
                .into_iter()
                .filter_map(|acquired| match acquired {
                    Acquired::Namespace(namespace) if namespace != wire => Some(namespace),
                    _ => None,
                });
            listings.push(LabListing {
                namespaces: namespaces.collect(),
                owner: story.owner.map(|(pid, _)| pid),
                owner_alive: story.owner.is_some_and(alive),
                name,
            });
        }
        Ok(listings)
    }

    fn site(&self, site: &str) -> Result<usize, LabError> {
        self.topology
            .site_index(site)
            .ok_or_else(|| LabError::NoSite {
                lab: self.name.clone(),
                site: site.to_owned(),
            })
    }

    fn stop_carriers(&mut self) -> Result<(), LabError> {
        // All are told before any is waited for: closing its packet sockets takes the kernel
        // 57 ms a link (measured: 190 links one after the other, 10.8 s).
        let told: Vec<_> = self.carriers.drain(..).map(Carrier::tell_to_stop).collect();
        let mut outcome = Ok(());
        for stopping in told {
            if let Err(error) = stopping.wait() {
                outcome = Err(error.into());
            }
        }
        outcome
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Err(error) = self.stop_carriers() {
            tracing::warn!("lab {}: {error}", self.name);
        }
        if !self.abandoned
            && let Err(error) = journal::undo(&self.name, Whose::Own(&self.journal))
        {
            tracing::warn!("lab {}: {error}; take it down by name", self.name);
        }
    }
}

/// The namespace of `site` in the lab called `lab`. A lab's name has no hyphen, so no two labs
/// can mean the same namespace.
fn namespace_name(lab: &str, site: &str) -> String {
    format!("neph-{lab}-{site}")
}

fn check_name(name: &str) -> Result<(), LabError> {
    let fine = name.len() <= 16
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if fine {
        Ok(())
    } else {
        Err(LabError::Name {
            name: name.to_owned(),
        })
    }
}

/// Whether a namespace of this name is mounted.
fn exists(namespace: &str) -> bool {
    std::path::Path::new(netns::FOLDER).join(namespace).exists()
}
