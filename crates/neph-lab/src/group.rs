//! A site's share of the host: control groups for its CPUs and CPU time.
//!
//! Owns the mounts of control groups, their contents and their removal. Version 1 (one mount per controller)
//! and version 2 (one for all) differ in names. Version 2 also moves only whole processes, no single threads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neph_sys::clock;
use neph_sys::deadline::Deadline;

use crate::gate::Share;
use crate::topology::Site;

/// The shortest quota of a group per period, in microseconds (limit of the kernel).
const MIN_QUOTA_MICROS: u64 = 1_000;
/// The period of CPU time in microseconds; longer for small shares, whose quota would be too short. Short, so
/// that processes do not wait long.
const PERIOD_MICROS: u64 = 10_000;
/// How long the kernel may take to notice that a group is empty.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The mount of one controller's groups.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CgroupMount {
    path: PathBuf,
    is_unified: bool,
}

/// The mounts of control groups on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CgroupMounts {
    cpu: Option<CgroupMount>,
    cpuset: Option<CgroupMount>,
}

/// A group, and what is written into its files, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// The controllers to enable in the parent folder, if any.
    parent_controllers: Option<&'static str>,
    /// File and content.
    pub(crate) settings: Vec<(&'static str, String)>,
}

/// A site requests what this host cannot provide.
#[derive(Debug, thiserror::Error)]
#[error("{key} of site '{site}': {why}; {remedy}")]
pub struct GroupError {
    key: &'static str,
    site: String,
    why: String,
    remedy: String,
}

impl GroupError {
    fn new(key: &'static str, site: &str, why: String) -> Self {
        let remedy = format!("leave {key} out, or run where control groups can be made");
        Self {
            key,
            site: site.to_owned(),
            why,
            remedy,
        }
    }
}

impl CgroupMounts {
    /// From the kernel.
    pub(crate) fn of_host() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let read_controllers =
            |mount: &Path| fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
        Self::parse(&mounts, read_controllers)
    }

    /// From the lines of /proc/self/mounts; `read_controllers` returns the controllers of a version 2 mount.
    fn parse(mounts: &str, read_controllers: impl Fn(&Path) -> String) -> Self {
        let mut cgroup_mounts = Self::default();
        for line in mounts.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, mount, kind, options, ..] = fields[..] else {
                continue;
            };
            let mount = PathBuf::from(mount);
            let (controllers, is_unified) = match kind {
                "cgroup" => (options.replace(',', " "), false),
                "cgroup2" => (read_controllers(&mount), true),
                _ => continue,
            };
            let cgroup_mount = CgroupMount {
                path: mount,
                is_unified,
            };
            for controller in controllers.split_whitespace() {
                match controller {
                    "cpu" => cgroup_mounts.cpu = Some(cgroup_mount.clone()),
                    "cpuset" => cgroup_mounts.cpuset = Some(cgroup_mount.clone()),
                    _ => {}
                }
            }
        }
        cgroup_mounts
    }

    /// The groups that `site` needs; empty if it requests nothing.
    pub(crate) fn groups_for(&self, name: &str, site: &Site) -> Result<Vec<Group>, GroupError> {
        let mut groups: Vec<Group> = Vec::new();
        let mut add = |cgroup_mount: &Option<CgroupMount>,
                       key: &'static str,
                       build_settings: SettingsBuilder| {
            let cgroup_mount = cgroup_mount.as_ref().ok_or_else(|| {
                let why = "the kernel's controller for it is not mounted here";
                GroupError::new(key, &site.name, why.to_owned())
            })?;
            let settings = build_settings(cgroup_mount);
            let folder = cgroup_mount.path.join(name);
            match groups.iter_mut().find(|group| group.folder == folder) {
                Some(group) => group.settings.extend(settings),
                None => groups.push(Group {
                    folder,
                    parent_controllers: cgroup_mount.is_unified.then_some("+cpu +cpuset"),
                    settings,
                }),
            }
            Ok(())
        };
        if let Some(share) = site.cpu_share {
            add(
                &self.cpu,
                "cpu_share",
                Box::new(move |cgroup_mount| cpu_time_settings(share, cgroup_mount)),
            )?;
        }
        if !site.cpus.is_empty() {
            let cpus: Vec<String> = site.cpus.iter().map(u16::to_string).collect();
            add(
                &self.cpuset,
                "cpus",
                Box::new(move |cgroup_mount| cpuset_settings(&cpus.join(","), cgroup_mount)),
            )?;
        }
        Ok(groups)
    }

    /// The existing folders of groups called `name`.
    pub(crate) fn existing_folders(&self, name: &str) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = [&self.cpu, &self.cpuset]
            .into_iter()
            .flatten()
            .map(|cgroup_mount| cgroup_mount.path.join(name))
            .filter(|folder| folder.exists())
            .collect();
        folders.dedup();
        folders
    }
}

type SettingsBuilder = Box<dyn Fn(&CgroupMount) -> Vec<(&'static str, String)>>;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "microseconds far below 2^53, and positive"
)]
#[expect(clippy::cast_precision_loss, reason = "a thousand is exact")]
fn cpu_time_settings(share: Share, cgroup_mount: &CgroupMount) -> Vec<(&'static str, String)> {
    let fraction = share.fraction();
    let period = PERIOD_MICROS.max((MIN_QUOTA_MICROS as f64 / fraction).ceil() as u64);
    let quota = (period as f64 * fraction).round() as u64;
    if cgroup_mount.is_unified {
        return vec![("cpu.max", format!("{quota} {period}"))];
    }
    vec![
        ("cpu.cfs_period_us", period.to_string()),
        ("cpu.cfs_quota_us", quota.to_string()),
    ]
}

fn cpuset_settings(cpus: &str, cgroup_mount: &CgroupMount) -> Vec<(&'static str, String)> {
    let cpus = ("cpuset.cpus", cpus.to_owned());
    if cgroup_mount.is_unified {
        return vec![cpus];
    }
    // A group needs memory nodes before it can have processes: it gets all of them.
    let memory = fs::read_to_string(cgroup_mount.path.join("cpuset.mems")).unwrap_or_default();
    vec![cpus, ("cpuset.mems", memory.trim().to_owned())]
}

impl Group {
    /// The file of the parent folder that is written first, and its content, if any.
    pub(crate) fn parent_setting(&self) -> Option<(PathBuf, &'static str)> {
        let parent = self.folder.parent()?;
        Some((
            parent.join("cgroup.subtree_control"),
            self.parent_controllers?,
        ))
    }

    /// Creates the group.
    pub(crate) fn create(&self, site: &str) -> Result<(), GroupError> {
        let refused = |key: &'static str, file: &str, error: &io::Error| {
            let why = format!("write {}: {error}", self.folder.join(file).display());
            GroupError::new(key, site, why)
        };
        if let Some((file, text)) = self.parent_setting() {
            // Refused if another program manages the host's groups; reported when the file is missing.
            let _ = fs::write(file, text);
        }
        fs::create_dir_all(&self.folder).map_err(|error| refused("cpu_share", "", &error))?;
        for (file, text) in &self.settings {
            if *file == "cpuset.cpus" {
                let parent_cpus = self.folder.parent().map_or_else(String::new, cpus_of);
                check_cpus(site, text, parent_cpus.trim())?;
            }
            let key = if file.starts_with("cpuset") {
                "cpus"
            } else {
                "cpu_share"
            };
            fs::write(self.folder.join(file), text).map_err(|error| refused(key, file, &error))?;
        }
        Ok(())
    }
}

/// The CPUs of a group or its children in the kernel's format: `0-1,4`.
fn cpus_of(folder: &Path) -> String {
    let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let effective = read("cpuset.cpus.effective").or_else(|| read("cpuset.cpus"));
    effective.unwrap_or_default()
}

/// Checks that `parent_cpus` contains all CPUs of `wanted`; if it is empty, the kernel decides later.
fn check_cpus(site: &str, wanted: &str, parent_cpus: &str) -> Result<(), GroupError> {
    let number = |text: &str| text.parse::<u32>().ok();
    let ranges: Vec<(u32, u32)> = parent_cpus
        .split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((number(first)?, number(last)?))
        })
        .collect();
    let is_available = |cpu: u32| {
        ranges
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&cpu))
    };
    let missing = wanted
        .split(',')
        .filter_map(number)
        .find(|cpu| !is_available(*cpu));
    match missing {
        Some(cpu) if !ranges.is_empty() => Err(GroupError {
            key: "cpus",
            site: site.to_owned(),
            why: format!("there is no CPU {cpu} here"),
            remedy: format!("write CPUs of {parent_cpus}, or leave cpus out"),
        }),
        _ => Ok(()),
    }
}

/// The folder of a group called `name` below every mount, existing or not.
pub(crate) fn folders(name: &str) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let groups = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (mount, kind) = (fields.next()?, fields.next()?);
        matches!(kind, "cgroup" | "cgroup2").then(|| Path::new(mount).join(name))
    });
    groups.collect()
}

/// Removes the group and its children; their processes move to the parent. No group is no error.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path())?;
        }
    }
    // Below a read-only mount the kernel returns this error even for a missing folder.
    if !folder.exists() {
        return Ok(());
    }
    let deadline = Deadline::after(REMOVAL_TIMEOUT);
    loop {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if deadline.has_passed() => return Err(error),
            Err(_) => move_up(folder),
            Ok(()) => return Ok(()),
        }
        clock::nap(Duration::from_millis(5));
    }
}

/// A process that ends meanwhile need not be moved.
fn move_up(folder: &Path) {
    let file = if folder.join("tasks").exists() {
        "tasks"
    } else {
        "cgroup.procs"
    };
    let pids = fs::read_to_string(folder.join(file)).unwrap_or_default();
    let Some(parent) = folder.parent() else {
        return;
    };
    for number in pids.lines() {
        let _ = fs::write(parent.join(file), number);
    }
}

#[cfg(test)]
#[path = "group/tests.rs"]
mod tests;
