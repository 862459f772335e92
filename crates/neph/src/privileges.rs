//! The privileges that a command keeps; all others are dropped.
//!
//! Owns the table of capabilities ([`table`]), the option `--user`, and the message about active
//! restrictions. `restrict` of neph-sys applies them.

mod paths;
mod table;

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_documents::reflector::PrivilegesDocument;
use neph_sys::netns::{self, NetNs};
use neph_sys::restrict::{
    AppliedRestrictions, Capability, Extra, Files, Force, RestrictError, Restriction, User, is_root,
};

use crate::exit::Failure;

pub(crate) use table::Row;

/// The user that a command switches to.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct UserChoice {
    /// If root starts neph: switch to this user and its group, and keep only the privileges that the command needs
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

impl UserChoice {
    /// Whether a user was named.
    pub(crate) const fn is_named(&self) -> bool {
        self.user.is_some()
    }

    /// The user, if one was named.
    ///
    /// # Errors
    /// Exit 2: there is no such user, or neph may not switch to another user.
    pub(crate) fn find(&self) -> Result<Option<User>, Failure> {
        let Some(name) = &self.user else {
            return Ok(None);
        };
        let user = User::from_name(name)
            .map_err(|error| Failure::usage(format!("--user {name}: {error}")))?;
        if !is_root() {
            return Err(Failure::usage(format!(
                "--user {name}: only root can become another user; start neph as root, or leave out \
                 --user"
            )));
        }
        Ok(Some(user))
    }
}

/// The privileges that a command needs after its start.
#[derive(Clone, Debug)]
pub(crate) struct Needs {
    row: &'static Row,
    /// Capabilities of the row that the options need.
    capabilities: Vec<Capability>,
    calls: Vec<Extra>,
    files: Files,
    /// The namespace that the process enters.
    site: Option<String>,
    connects: bool,
}

/// Files that every command of the row may read, and the targets of symbolic links in the settings
/// of name resolution: some systems keep these in another folder.
fn readable_files(row: &Row) -> impl Iterator<Item = PathBuf> {
    const LINKED_NAMES: [&str; 4] = ["resolv.conf", "hosts", "nsswitch.conf", "localtime"];
    let etc = row.reads.iter().filter(|folder| **folder == "/etc");
    let linked_files = etc.flat_map(|etc| LINKED_NAMES.map(|name| Path::new(etc).join(name)));
    let linked_files = linked_files.filter_map(|link| link.canonicalize().ok());
    row.reads.iter().map(PathBuf::from).chain(linked_files)
}

impl Needs {
    /// The capabilities that the row always keeps, and the files that every command may read.
    pub(crate) fn of(row: &'static Row) -> Self {
        Self {
            row,
            capabilities: row.always_kept().collect(),
            calls: Vec::new(),
            files: Files {
                shared: readable_files(row).collect(),
                ..Files::default()
            },
            site: None,
            connects: true,
        }
    }

    /// No TCP connection is opened.
    pub(crate) const fn without_connections(mut self) -> Self {
        self.connects = false;
        self
    }

    /// Adds a capability that the row keeps with some options.
    pub(crate) fn capability(mut self, capability: Capability, is_needed: bool) -> Self {
        debug_assert!(self.row.has(capability), "{capability} is not in the table");
        if is_needed {
            self.capabilities.push(capability);
        }
        self
    }

    /// Allows BPF programs.
    pub(crate) fn bpf(mut self) -> Self {
        self.calls.push(Extra::Bpf);
        self
    }

    /// The process enters this namespace before it is restricted.
    pub(crate) fn at_site(mut self, site: Option<&str>) -> Self {
        self.site = site.map(str::to_owned);
        self
    }

    /// Allows threads to enter namespaces at run time.
    pub(crate) fn enters_namespaces(self, is_needed: bool) -> Self {
        let mut needs = self.capability(Capability::CAP_SYS_ADMIN, is_needed);
        if is_needed {
            needs.calls.push(Extra::EnterNamespace);
        }
        needs
    }

    /// Adds a file to read.
    pub(crate) fn reads(mut self, path: Option<&Path>) -> Self {
        self.files.read.extend(path.map(Path::to_owned));
        self
    }

    /// Adds a file to write, or a folder in which files are created.
    pub(crate) fn writes(mut self, path: Option<&Path>) -> Self {
        self.files
            .write
            .extend(path.and_then(paths::writable_target));
        self.files.write.extend(path.and_then(paths::existing_file));
        self
    }

    /// Adds a folder that is created if necessary, and in which files are created.
    pub(crate) fn creates_files_in(mut self, folder: Option<&Path>) -> Self {
        self.files.write.extend(folder.map(paths::writable_folder));
        self
    }

    /// Adds a workspace: its folder, its lock and its catalog, which another user may own.
    pub(crate) fn workspace(self, folder: Option<&Path>) -> Self {
        let mut needs = self.creates_files_in(folder);
        let files = folder.into_iter().flat_map(paths::files_in);
        needs.files.write.extend(files);
        needs
    }

    /// Switches to the user, if one was given, and drops all other privileges. Running threads are
    /// not covered, so there must be none.
    ///
    /// # Errors
    /// As [`UserChoice::find`]; the user may not read or write what is needed; the user or the
    /// capabilities cannot be changed.
    pub(crate) fn restrict(mut self, user: &UserChoice) -> Result<AppliedRestrictions, Failure> {
        let user = user.find()?;
        if let Some(site) = &self.site {
            // If it cannot be entered, the code that needs it reports that.
            let result = NetNs::open(site).and_then(|ns| netns::enter(&ns));
            if result.is_err() {
                self.calls.push(Extra::EnterNamespace);
            }
        }
        let restriction = Restriction {
            user,
            capabilities: self.capabilities,
            calls: self.calls,
            files: self.files,
            connects: self.connects,
        };
        restriction.apply().map_err(|error| match error {
            RestrictError::NoAccess { .. } => Failure::usage(format!(
                "--user: {error}; name another place, or give this user the right to it"
            )),
            RestrictError::Step { .. } => Failure::refused(format!("give up privileges: {error}")),
        })
    }
}

/// The active restrictions, in a sentence.
pub(crate) fn sentence(restrictions: &AppliedRestrictions) -> String {
    let capabilities: Vec<String> = restrictions
        .capabilities
        .iter()
        .map(ToString::to_string)
        .collect();
    let capabilities_text = if capabilities.is_empty() {
        "no capabilities".to_owned()
    } else {
        capabilities.join(" ")
    };
    let user = restrictions.user.as_ref();
    let user = user.map_or_else(String::new, |name| format!("user {name}, "));
    format!(
        "privileges: {user}{capabilities_text}, no_new_privs on, seccomp {}, landlock {}",
        status_text(&restrictions.seccomp),
        status_text(&restrictions.landlock)
    )
}

/// `on`, or `off` with the reason.
fn status_text(status: &Force) -> String {
    match status {
        Force::On => "on".to_owned(),
        Force::Off(reason) => format!("off ({reason})"),
    }
}

/// The active restrictions, as JSON.
pub(crate) fn document(restrictions: &AppliedRestrictions) -> PrivilegesDocument {
    let capabilities = restrictions.capabilities.iter().map(ToString::to_string);
    PrivilegesDocument {
        user: restrictions.user.clone(),
        capabilities: capabilities.collect(),
        no_new_privs: "on",
        seccomp: status_text(&restrictions.seccomp),
        landlock: status_text(&restrictions.landlock),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applied_privileges_are_printed_as_sentence_and_as_json() {
        let restrictions = AppliedRestrictions {
            user: Some("nobody".to_owned()),
            capabilities: vec![Capability::CAP_NET_RAW, Capability::CAP_SYS_NICE],
            seccomp: Force::On,
            landlock: Force::Off("this kernel has no Landlock".to_owned()),
        };
        assert_eq!(
            sentence(&restrictions),
            "privileges: user nobody, CAP_NET_RAW CAP_SYS_NICE, no_new_privs on, seccomp on, landlock \
             off (this kernel has no Landlock)"
        );
        let expected = serde_json::json!({
            "user": "nobody",
            "capabilities": ["CAP_NET_RAW", "CAP_SYS_NICE"],
            "no_new_privs": "on",
            "seccomp": "on",
            "landlock": "off (this kernel has no Landlock)",
        });
        assert_eq!(serde_json::json!(document(&restrictions)), expected);
        let bare = AppliedRestrictions {
            user: None,
            capabilities: Vec::new(),
            landlock: Force::On,
            ..restrictions
        };
        assert_eq!(
            sentence(&bare),
            "privileges: no capabilities, no_new_privs on, seccomp on, landlock on"
        );
    }

    #[test]
    fn an_unknown_user_is_named_in_the_error() {
        let choice = UserChoice {
            user: Some("no-such-user-here".to_owned()),
        };
        let Err(Failure::Usage(sentence)) = choice.find() else {
            panic!("it is taken");
        };
        assert!(
            sentence.contains("there is no user 'no-such-user-here'"),
            "{sentence}"
        );
    }
}
