//! Holds that no modules of a crate use each other in a circle. It reads `use` lines; a module and
//! its own ancestor or descendant may use each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{Modules, Uses};
use crate::sources;

/// Circles that stay, by crate and modules, each with its reason. At most five.
const ALLOWED_CYCLES: &[(&str, &str, &str)] = &[];

/// Circles that were there when this test came, by crate and modules. An entry may only get shorter
/// or go.
const KNOWN_CYCLES: &[(&str, &str)] = &[(
    "neph-campaign",
    "expand flow_sets plan::alarms plan::compare plan::fleet plan::model plan::parameter \
         plan::season plan::sections plan::typed",
)];

/// The modules of one circle.
pub(crate) type Cycle = BTreeSet<String>;

/// The circles among modules, each as large as possible.
pub(crate) fn cycles(uses: &Uses) -> BTreeSet<Cycle> {
    let graph: BTreeMap<&str, BTreeSet<&str>> = uses
        .keys()
        .map(|module| (module.as_str(), reachable_modules(uses, module)))
        .collect();
    let reaches = |from: &str, to: &str| graph.get(from).is_some_and(|graph| graph.contains(to));
    graph
        .iter()
        .filter(|(module, _)| reaches(module, module))
        .map(|(module, reachable)| {
            let cycle = reachable.iter().filter(|other| reaches(other, module));
            cycle.map(|other| (*other).to_owned()).collect()
        })
        .collect()
}

/// The modules that `module` uses, and those that they use, and so on.
fn reachable_modules<'a>(uses: &'a Uses, module: &str) -> BTreeSet<&'a str> {
    let mut reachable = BTreeSet::new();
    let mut pending = vec![module];
    while let Some(module) = pending.pop() {
        for used in uses.get(module).into_iter().flat_map(BTreeMap::keys) {
            if reachable.insert(used.as_str()) {
                pending.push(used);
            }
        }
    }
    reachable
}

/// Which modules of a circle use which names of each other, a line each.
fn uses_within_cycle(uses: &Uses, cycle: &Cycle) -> Vec<String> {
    let mut lines = Vec::new();
    for (user, used) in uses.iter().filter(|(user, _)| cycle.contains(*user)) {
        for (used, names) in used.iter().filter(|(used, _)| cycle.contains(*used)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            lines.push(format!("{user} uses {used}: {}", names.join(", ")));
        }
    }
    lines
}

/// For each crate which of its modules uses which.
fn uses_by_crate() -> BTreeMap<String, Uses> {
    let sources = sources();
    let mut crates: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for (path, text) in &sources {
        let path_in_crates = path.strip_prefix("crates/").expect("a file of a crate");
        if let Some((name, file)) = path_in_crates.split_once("/src/") {
            crates.entry(name).or_default().insert(file, text);
        }
    }
    let mut uses = BTreeMap::new();
    for (name, mut files) in crates {
        // Beside a library the program is a crate of its own.
        if files.contains_key("lib.rs") {
            files.remove("main.rs");
        }
        uses.insert(name.to_owned(), Modules::read(files).uses());
    }
    uses
}

#[test]
fn no_modules_use_each_other_in_a_cycle() {
    assert!(ALLOWED_CYCLES.len() <= 5, "at most five circles stay");
    let allowed = ALLOWED_CYCLES.iter().map(|(name, modules, reason)| {
        assert!(!reason.is_empty(), "{name}: {modules} needs a reason");
        (*name, *modules)
    });
    let mut expected_cycles: BTreeSet<(&str, Cycle)> = allowed
        .chain(KNOWN_CYCLES.iter().copied())
        .map(|(name, modules)| {
            let modules = modules.split_whitespace().map(str::to_owned);
            (name, modules.collect())
        })
        .collect();
    let mut new_cycles = Vec::new();
    let uses = uses_by_crate();
    for (name, uses) in &uses {
        for cycle in cycles(uses) {
            let entry = (name.as_str(), cycle);
            if !expected_cycles.remove(&entry) {
                let lines = uses_within_cycle(uses, &entry.1);
                new_cycles.push((entry, lines));
            }
        }
    }
    assert!(
        new_cycles.is_empty() && expected_cycles.is_empty(),
        "new circles, to be removed: {new_cycles:#?}\nentries of the lists above that are no circle any \
         more, to be removed or made shorter: {expected_cycles:#?}"
    );
}
