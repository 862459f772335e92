//! The manifests against the schemas of Kubernetes, which Go fetches from its modules.

use std::fs;

use neph_sys::process;

use crate::prerequisites::{has_programs, root, try_run};

#[test]
fn the_api_of_kubernetes_takes_the_manifests() {
    if !has_programs(
        "the_api_of_kubernetes_takes_the_manifests",
        &["go", "python3"],
    ) {
        return;
    }
    let mut tool = process::command(root().join("tools/manifests"));
    let (is_ok, printed) = try_run(&mut tool);
    assert!(is_ok, "{printed}");
    assert!(
        printed.contains("Valid: 8, Invalid: 0, Errors: 0, Skipped: 0"),
        "{printed}"
    );
    // A key that no container has.
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = folder.path().join("wrong.yaml");
    let manifest = fs::read_to_string(root().join("deploy/kubernetes/reflector.yaml"));
    let manifest = manifest
        .expect("a manifest")
        .replace("containerPort:", "containerport:");
    fs::write(&wrong, manifest).expect("writable");
    let (is_ok, printed) = try_run(tool.arg(&wrong));
    assert!(!is_ok && printed.contains("containerport"), "{printed}");
}
