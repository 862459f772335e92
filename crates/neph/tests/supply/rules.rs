//! The rules of deny.toml, held against the lock files and the manifests.

use std::collections::BTreeMap;

use serde_json::Value;
use spdx::{Expression, ParseMode};

use crate::crates::{locked, metadata, toml};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn strings<'a>(list: &'a toml::Value, key: Option<&str>) -> Vec<&'a str> {
    let entries = list.as_array().expect("a list").iter();
    let text = |entry: &'a toml::Value| match key {
        Some(key) => entry[key].as_str(),
        None => entry.as_str(),
    };
    entries.map(|entry| text(entry).expect("a text")).collect()
}

#[test]
fn every_crate_comes_from_crates_io_and_has_a_checksum() {
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        for package in locked(lock) {
            let name = &package.name;
            let is_ours = package.source.is_none() && name.starts_with("neph");
            let is_theirs = package.source.as_deref() == Some(CRATES_IO)
                && package.checksum.as_ref().is_some_and(|sum| sum.len() == 64);
            assert!(is_ours || is_theirs, "{lock}: {package:?}");
        }
    }
}

#[test]
fn every_licence_is_one_that_is_allowed() {
    let rules = toml("deny.toml");
    let allowed = strings(&rules["licenses"]["allow"], None);
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 150, "{} packages", packages.len());
    for package in packages {
        let name = &package["name"];
        let license = package["license"].as_str();
        let license = license.unwrap_or_else(|| panic!("{name} has no licence"));
        let parsed = Expression::parse_mode(license, ParseMode::LAX);
        let parsed = parsed.unwrap_or_else(|error| panic!("{name}: {error}"));
        let is_allowed =
            parsed.evaluate(|license_req| allowed.contains(&license_req.to_string().as_str()));
        assert!(is_allowed, "{name} is under {license}: see deny.toml");
    }
}

#[test]
fn no_crate_is_there_that_is_banned() {
    let rules = toml("deny.toml");
    let banned = &rules["bans"]["deny"];
    assert!(strings(banned, Some("crate")).contains(&"openssl-sys"));
    let locked = locked("Cargo.lock");
    for entry in banned.as_array().expect("a list") {
        let name = entry["crate"].as_str().expect("a name");
        let allowed = entry.get("wrappers").map(|list| strings(list, None));
        let users = locked
            .iter()
            .filter(|package| package.uses.iter().any(|used| used == name));
        match allowed {
            None => assert!(locked.iter().all(|package| package.name != name), "{name}"),
            Some(allowed) => {
                for user in users {
                    let is_allowed = allowed.contains(&user.name.as_str());
                    assert!(is_allowed, "{} uses {name}: see deny.toml", user.name);
                }
            }
        }
    }
}

/// Two versions of a crate are two sets of faults to watch.
#[test]
fn only_listed_crates_are_there_in_several_versions() {
    let rules = toml("deny.toml");
    let listed = strings(&rules["bans"]["skip"], Some("crate"));
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in locked("Cargo.lock") {
        versions
            .entry(package.name)
            .or_default()
            .push(package.version);
    }
    versions.retain(|_, version| version.len() > 1);
    for (name, entries) in &versions {
        let is_listed = |version: &&String| listed.contains(&format!("{name}@{version}").as_str());
        let rest: Vec<_> = entries
            .iter()
            .filter(|version| !is_listed(version))
            .collect();
        assert_eq!(
            rest.len(),
            1,
            "{name} {entries:?}: list all but one under [bans] skip"
        );
    }
    for entry in listed {
        let (name, version) = entry.split_once('@').expect("NAME@VERSION");
        let is_there = versions
            .get(name)
            .is_some_and(|entries| entries.iter().any(|used| used == version));
        assert!(is_there, "{entry} is listed and not needed any more");
    }
}

#[test]
fn no_version_is_left_open() {
    for package in metadata()["packages"].as_array().expect("packages") {
        let is_ours = package["source"].is_null();
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        for dependency in
            dependencies.filter(|dependency| is_ours && dependency["source"] != Value::Null)
        {
            assert_ne!(
                dependency["req"], "*",
                "{}: {}",
                package["name"], dependency["name"]
            );
        }
    }
}
