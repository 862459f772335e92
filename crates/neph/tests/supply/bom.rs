//! The bill of materials (`CycloneDX` 1.5): its required fields, and that it names what is linked.

use std::collections::{BTreeMap, BTreeSet};

use neph_sys::process;
use serde_json::Value;

use crate::crates::{locked, metadata, root};

fn bill() -> (String, Value) {
    let output = process::command(root().join("tools/sbom"))
        .output()
        .expect("python3 is installed for tests");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let json = serde_json::from_str(&text).expect("JSON");
    (text, json)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} of {value}"))
}

#[test]
fn the_bill_of_materials_is_complete_and_its_references_exist() {
    let (first, bill) = bill();
    assert_eq!(self::bill().0, first, "two runs write the same");
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["specVersion"], "1.5");
    assert!(text(&bill, "serialNumber").starts_with("urn:uuid:"));
    let components = bill["components"].as_array().expect("components");
    let entries = components.iter().chain([&bill["metadata"]["component"]]);
    let references: BTreeSet<&str> = entries
        .clone()
        .map(|entry| text(entry, "bom-ref"))
        .collect();
    assert_eq!(
        references.len(),
        components.len() + 1,
        "none is there twice"
    );
    for entry in entries {
        let licenses = entry["licenses"].as_array().expect("licences");
        assert!(
            !text(entry, "name").is_empty() && licenses.len() == 1,
            "{entry}"
        );
        assert!(
            text(entry, "purl").contains(text(entry, "version")),
            "{entry}"
        );
    }
    let dependencies = bill["dependencies"].as_array().expect("dependencies");
    assert_eq!(dependencies.len(), references.len());
    for dependency in dependencies {
        let to = dependency["dependsOn"].as_array().into_iter().flatten();
        for reference in to.chain([&dependency["ref"]]).filter_map(Value::as_str) {
            assert!(references.contains(reference), "{reference}");
        }
    }
}

/// Crates that neph reaches over ordinary dependencies, without procedural macros: as Cargo resolves
/// the whole workspace, so with features that only tests ask for.
fn reachable(metadata: &Value) -> BTreeSet<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut names = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let is_macro = list(&package["targets"])
            .iter()
            .any(|list| list["kind"][0] == "proc-macro");
        if !is_macro {
            let name = format!("{} {}", text(&package, "name"), text(&package, "version"));
            names.insert(text(&package, "id").to_owned(), name);
        }
    }
    let nodes = list(&metadata["resolve"]["nodes"]);
    let nodes: BTreeMap<&str, &Value> = nodes.iter().map(|node| (text(node, "id"), node)).collect();
    let root = names
        .iter()
        .find(|(_, name)| name.starts_with("neph "))
        .expect("neph");
    let (mut reached, mut waiting) = (BTreeSet::new(), vec![root.0.clone()]);
    while let Some(id) = waiting.pop() {
        let Some(name) = names.get(&id).filter(|name| !reached.contains(*name)) else {
            continue;
        };
        reached.insert(name.clone());
        for entry in list(&nodes[id.as_str()]["deps"]) {
            if list(&entry["dep_kinds"])
                .iter()
                .any(|kind| kind["kind"].is_null())
            {
                waiting.push(text(&entry, "pkg").to_owned());
            }
        }
    }
    reached
}

#[test]
fn it_names_linked_crates_with_their_checksums_and_no_others() {
    let (_, bill) = bill();
    let reachable = reachable(&metadata());
    let locked = locked("Cargo.lock");
    let mut crates = 0;
    for entry in bill["components"].as_array().expect("components") {
        let (name, version) = (text(entry, "name"), text(entry, "version"));
        if text(entry, "purl").starts_with("pkg:cargo/") {
            crates += 1;
            let package = locked
                .iter()
                .find(|locked| (&*locked.name, &*locked.version) == (name, version));
            let checksum = package.and_then(|locked| locked.checksum.as_deref());
            assert_eq!(entry["hashes"][0]["content"].as_str(), checksum, "{entry}");
            assert!(
                checksum.is_some() && reachable.contains(&format!("{name} {version}")),
                "{entry}"
            );
        }
    }
    for name in [
        "rustls",
        "ring",
        "libsqlite3-sys",
        "sqlite",
        "rust-std",
        "neph-probe",
        "clap",
    ] {
        let mut entries = bill["components"].as_array().into_iter().flatten();
        assert!(entries.any(|entry| entry["name"] == name), "{name}");
    }
    for absent in ["proptest", "clap_derive", "cc", "tempfile"] {
        let mut entries = bill["components"].as_array().into_iter().flatten();
        assert!(
            !entries.any(|entry| entry["name"] == absent),
            "{absent} is linked into nothing"
        );
    }
    assert!(crates > 120, "{crates} crates");
}

/// Crates that left their path in a binary, as `ring-0.17.14`: most do, for messages of panics.
fn crates_in(binary: &[u8]) -> BTreeSet<String> {
    let mut crates = BTreeSet::new();
    let mut is_registry = false;
    for part in binary.split(|byte| *byte == b'/') {
        // Line tables end it with a zero.
        let name = part.split(|byte| *byte == 0).next().unwrap_or_default();
        if is_registry && let Ok(name) = std::str::from_utf8(name) {
            crates.insert(name.to_owned());
        }
        is_registry = part.starts_with(b"index.crates.io-");
    }
    crates
}

#[test]
fn it_names_every_crate_that_the_binary_shows() {
    let (_, bill) = bill();
    let components = bill["components"].as_array().expect("components");
    let name = |entry: &Value| format!("{}-{}", text(entry, "name"), text(entry, "version"));
    let names: BTreeSet<String> = components.iter().map(name).collect();
    let binary = std::fs::read(env!("CARGO_BIN_EXE_neph")).expect("it was built for tests");
    let crates = crates_in(&binary);
    assert!(crates.len() > 30, "{crates:?}");
    let missing: Vec<_> = crates.difference(&names).collect();
    assert!(missing.is_empty(), "linked and not named: {missing:?}");
}
