//! The crates of both lock files, and what Cargo knows of those that are built on this host.

use std::fs;
use std::path::{Path, PathBuf};

use neph_sys::process;
use serde_json::Value;

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn toml(path: &str) -> toml::Table {
    let text = fs::read_to_string(root().join(path)).expect(path);
    text.parse().expect(path)
}

/// A crate that a lock file names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Locked {
    pub(crate) name: String,
    pub(crate) version: String,
    /// `None` for our own.
    pub(crate) source: Option<String>,
    pub(crate) checksum: Option<String>,
    /// Names of the crates that it uses.
    pub(crate) uses: Vec<String>,
}

/// The crates of a lock file.
pub(crate) fn locked(path: &str) -> Vec<Locked> {
    let lock = toml(path);
    let entries = lock["package"].as_array().expect("packages").iter();
    entries
        .map(|package| {
            let text = |key: &str| package.get(key)?.as_str().map(str::to_owned);
            Locked {
                name: text("name").expect("a name"),
                version: text("version").expect("a version"),
                source: text("source"),
                checksum: text("checksum"),
                uses: package.get("dependencies").map_or_else(Vec::new, names),
            }
        })
        .collect()
}

/// The names in a package's list of dependencies: `name`, or `name version`.
fn names(list: &toml::Value) -> Vec<String> {
    let entries = list.as_array().into_iter().flatten();
    let first = entries.filter_map(|entry| entry.as_str()?.split(' ').next());
    first.map(str::to_owned).collect()
}

/// `cargo metadata` of what is built on this host, from what is on its disk.
pub(crate) fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = process::command(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", &host, "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}
