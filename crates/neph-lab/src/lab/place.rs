//! A place at a site: its namespace and its share of the machine, for whatever is to run there.

use std::path::PathBuf;
use std::process::Command;
use std::thread;

use neph_sys::netns::{self, NetNs};
use neph_sys::process::Birth;

use super::{LabError, check_name, namespace_name};
use crate::group::{self, Homes};

/// Where something can be run as a site runs it: in its network namespace, on its CPUs, within
/// its share of CPU time.
#[derive(Debug)]
pub struct Place {
    site: String,
    namespace: NetNs,
    groups: Vec<PathBuf>,
}

impl Place {
    /// The place at `site` of the lab called `lab`, whoever brought it up.
    ///
    /// # Errors
    /// There is no such lab or site.
    pub fn open(lab: &str, site: &str) -> Result<Self, LabError> {
        check_name(lab)?;
        let name = namespace_name(lab, site);
        let namespace = NetNs::open(&name).map_err(|_| LabError::NoSite {
            lab: lab.to_owned(),
            site: site.to_owned(),
        })?;
        Ok(Self {
            site: site.to_owned(),
            namespace,
            groups: Homes::here().existing(&name),
        })
    }

    /// The site's namespace.
    pub fn namespace(&self) -> &NetNs {
        &self.namespace
    }

    /// Runs `work` here on a fresh thread; threads that it starts are here too. Its panic goes on
    /// in the caller.
    ///
    /// # Errors
    /// The namespace or a control group cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        let here = || self.enter().map(|()| work());
        thread::scope(|scope| scope.spawn(here).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Moves the calling thread here, and no other.
    pub(crate) fn enter(&self) -> Result<(), LabError> {
        self.groups.iter().try_for_each(|folder| {
            group::enter_thread(folder).map_err(|source| self.not_entered(folder, source))
        })?;
        Ok(netns::enter(&self.namespace)?)
    }

    /// Has `command` begin within the site's share of the machine. Its namespace is that of the
    /// thread which starts it: [`Self::enter_process`].
    ///
    /// # Errors
    /// A control group's name cannot be told to the kernel.
    pub fn arrange(&self, birth: Birth, command: &mut Command) -> Result<(), LabError> {
        let mut birth = birth;
        for folder in &self.groups {
            birth = birth
                .in_group(&folder.join("cgroup.procs"))
                .map_err(|source| self.not_entered(folder, source))?;
        }
        birth.arrange(command);
        Ok(())
    }

    /// Moves the calling thread into the site's namespace: what it starts from now on is there.
    ///
    /// # Errors
    /// Not permitted.
    pub fn enter_process(&self) -> Result<(), LabError> {
        Ok(netns::enter(&self.namespace)?)
    }

    fn not_entered(&self, folder: &std::path::Path, source: std::io::Error) -> LabError {
        LabError::Place {
            site: self.site.clone(),
            group: folder.to_owned(),
            source,
        }
    }
}
