//! Every test target is run by `make test`: the Makefile names them.

use std::collections::BTreeSet;
use std::fs;

use super::{path_from_root, root, sources};

/// The names behind `--test` in the Makefile.
fn named_targets() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("Makefile")).expect("a Makefile");
    let args: Vec<&str> = text.split_whitespace().collect();
    let pairs = args.windows(2).filter(|pair| pair[0] == "--test");
    let names = pairs.map(|pair| pair[1].trim_matches('"').to_owned());
    // `make deny` names one of them too.
    names.collect()
}

/// The names of test targets: files of `tests`, and folders there with a `main.rs`.
fn targets() -> BTreeSet<String> {
    let mut targets = BTreeSet::new();
    for (path, _) in sources() {
        let parts: Vec<&str> = path.split('/').collect();
        match parts[..] {
            ["crates", _, "tests", file] => {
                targets.extend(file.strip_suffix(".rs").map(str::to_owned));
            }
            ["crates", _, "tests", folder, "main.rs"] => {
                targets.insert(folder.to_owned());
            }
            _ => {}
        }
    }
    assert!(
        !targets.is_empty(),
        "{}",
        path_from_root(&root().join("crates"))
    );
    targets
}

#[test]
fn the_makefile_runs_every_test_target() {
    let (names, targets) = (named_targets(), targets());
    assert_eq!(names, targets, "the Makefile's, and those that there are");
}
