//! Holds that every file is built: a file that no `mod` names, and a fuzz target without its `[[bin]]`,
//! are passed over by the compiler in silence.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{root, sources};

/// The crate of a file, and the file's place in it.
fn crate_and_file(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("crates/")?.split_once('/')
}

/// What cargo builds by itself: the roots of libraries, programs, tests, benches and examples.
fn is_cargo_root(location: &str) -> bool {
    let parts: Vec<&str> = location.split('/').collect();
    match parts[..] {
        ["tests" | "benches" | "examples", file] => file != "mod.rs",
        ["build.rs"]
        | ["src", "lib.rs" | "main.rs"]
        | ["src", "bin", _]
        | ["tests" | "benches" | "examples", _, "main.rs"] => true,
        _ => false,
    }
}

/// The name by which a `mod` names a file: its stem, of `mod.rs` its folder.
fn module_name(location: &str) -> Option<&str> {
    let path = Path::new(location);
    let stem = path.file_stem()?.to_str()?;
    if stem == "mod" {
        return path.parent()?.file_name()?.to_str();
    }
    Some(stem)
}

/// The folder in which a file is, or whose `mod.rs` it is.
fn folder_of(path: &str) -> String {
    let path = Path::new(path.strip_suffix("/mod.rs").unwrap_or(path));
    path.parent()
        .map_or_else(String::new, |folder| folder.display().to_string())
}

/// The folder in which the modules are that a file names.
fn submodule_folder(path: &str) -> String {
    let own_path = Path::new(path);
    let stem = own_path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    if crate_and_file(path).is_some_and(|(_, file)| is_cargo_root(file)) || stem == "mod" {
        return own_path
            .parent()
            .map_or_else(String::new, |folder| folder.display().to_string());
    }
    own_path.with_extension("").display().to_string()
}

#[test]
fn every_file_of_a_crate_is_named_by_a_mod() {
    let sources = sources();
    let mut names: BTreeSet<(String, &str)> = BTreeSet::new();
    let mut paths = BTreeSet::new();
    for (path, text) in &sources {
        for line in text.lines().map(str::trim) {
            if let Some(path_attribute) = line.strip_prefix("#[path = \"") {
                paths.extend(
                    path_attribute
                        .split('"')
                        .next()
                        .and_then(|path| path.rsplit('/').next()),
                );
            }
            let module_name = line
                .strip_suffix(';')
                .and_then(|line| line.split_once("mod "));
            names.extend(module_name.map(|(_, name)| (submodule_folder(path), name)));
        }
    }
    let unreachable: Vec<&String> = sources
        .iter()
        .filter(|(path, _)| {
            let (_, location) = crate_and_file(path).expect("a file of a crate");
            let file = location.rsplit('/').next().unwrap_or(location);
            let is_named =
                module_name(location).is_some_and(|name| names.contains(&(folder_of(path), name)));
            !is_cargo_root(location) && !is_named && !paths.contains(file)
        })
        .map(|(path, _)| path)
        .collect();
    assert!(
        unreachable.is_empty(),
        "no `mod` names these: {unreachable:#?}"
    );
}

#[test]
fn every_fuzz_target_is_a_program() {
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("a manifest");
    let targets = fs::read_dir(root().join("fuzz/fuzz_targets")).expect("a folder");
    let names = targets.map(|entry| entry.expect("an entry").file_name());
    let unreachable: Vec<_> = names
        .filter(|name| {
            let line = format!("path = \"fuzz_targets/{}\"", name.display());
            !manifest.contains(&line)
        })
        .collect();
    assert!(
        unreachable.is_empty(),
        "fuzz/Cargo.toml has no [[bin]] for {unreachable:?}"
    );
}
