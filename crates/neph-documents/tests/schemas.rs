//! docs/schema/ is what the structs say. `NEPH_BLESS=1 cargo test -p neph-documents` writes it anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use neph_documents::schema::{KINDS, Kind};
use neph_documents::version::VERSION;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

fn text(kind: &Kind) -> String {
    format!("{:#}\n", kind.schema().to_value())
}

/// The table of docs/schema/README.md.
fn index() -> String {
    let rows = KINDS
        .iter()
        .map(|kind| format!("| [{0}]({0}.json) | `{1}` |\n", kind.name, kind.command));
    format!(
        "# Documents for programs\n\n\
         This folder has a JSON Schema (draft 2020-12) for every JSON document that neph writes, \
         generated from the code that writes the document. Times are in nanoseconds. Points in time \
         are integers; durations from statistics (such as a mean) may have a fraction. A key ends \
         with the unit of its number. The number of a key that ends in `_unix_ns` counts from \
         1970-01-01 UTC. `null` means that there is no value; the description of the key explains \
         why.\n\n\
         These are the schemas of version {VERSION}. A result has this version in the key `schema`. \
         In JSON, the key is in the object itself; for `neph read`, `neph hops` and `neph clock`, it is in \
         the object `summary`. In NDJSON, the key is in the last line. Lists have no version, neither as JSON nor as NDJSON. `neph watch` writes \
         lines of the schemas watch-line, read-line (flows, the summary and `--samples`) and alarm-watch. [changes.md](changes.md) lists \
         what each version changed.\n\n\
         | schema | command |\n|---|---|\n{}",
        rows.collect::<String>()
    )
}

fn assert_is_current(name: &str, text: &str) {
    let path = folder().join(name);
    if std::env::var_os("NEPH_BLESS").is_some() {
        fs::create_dir_all(folder()).expect("docs/schema");
        fs::write(&path, text).expect("it can be written");
    }
    let content = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        content == text,
        "docs/schema/{name} is not what the structs say: NEPH_BLESS=1 cargo test -p neph-documents"
    );
}

#[test]
fn the_schemas_of_docs_are_those_of_the_structs() {
    for kind in KINDS {
        assert_is_current(&format!("{}.json", kind.name), &text(kind));
    }
    assert_is_current("README.md", &index());
}

#[test]
fn docs_have_no_other_schema() {
    let known: BTreeSet<String> = KINDS
        .iter()
        .map(|kind| format!("{}.json", kind.name))
        .collect();
    assert_eq!(known.len(), KINDS.len(), "names are used once");
    let files = fs::read_dir(folder()).expect("docs/schema");
    for file in files {
        let name = file
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned();
        let is_known = known.contains(&name) || name == "README.md" || name == "changes.md";
        assert!(is_known, "docs/schema/{name} belongs to no document");
    }
}

/// Keys without a description, with their place.
fn collect_undescribed_keys(value: &Value, path: &str, missing: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                for (key, schema) in properties {
                    let is_tag = schema.get("const").is_some();
                    if !is_tag && schema.get("description").is_none() {
                        missing.push(format!("{path}/{key}"));
                    }
                }
            }
            for (key, value) in object {
                collect_undescribed_keys(value, &format!("{path}/{key}"), missing);
            }
        }
        Value::Array(elements) => elements
            .iter()
            .for_each(|element| collect_undescribed_keys(element, path, missing)),
        _ => {}
    }
}

#[test]
fn every_key_has_a_description() {
    let mut missing = Vec::new();
    for kind in KINDS {
        collect_undescribed_keys(kind.schema().as_value(), kind.name, &mut missing);
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
