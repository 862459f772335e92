//! The Debian package: what is in it, for whom, and that nothing of it starts by itself.

use std::process::Command;

use neph_sys::process;

use crate::prerequisites::{has_programs, root, run, static_binary, target, try_run};

const TARGET: &str = "x86_64-unknown-linux-musl";

fn tool() -> Command {
    let mut tool = process::command(root().join("tools/deb"));
    // Packed less, and in a fifth of the time.
    tool.args([TARGET, "--fast"])
        .env("CARGO_TARGET_DIR", target());
    tool
}

/// Files that the package must have, each with its mode.
const FILES: [(&str, &str); 19] = [
    ("-rwxr-xr-x", "./usr/bin/neph"),
    ("-rw-r--r--", "./usr/lib/systemd/system/neph-agent.service"),
    (
        "-rw-r--r--",
        "./usr/lib/systemd/system/neph-control.service",
    ),
    (
        "-rw-r--r--",
        "./usr/lib/systemd/system/neph-reflector.service",
    ),
    ("-rw-r--r--", "./usr/lib/sysusers.d/neph.conf"),
    ("-rw-r--r--", "./etc/default/neph-agent"),
    ("-rw-r--r--", "./etc/default/neph-control"),
    ("-rw-r--r--", "./etc/default/neph-reflector"),
    ("-rw-r--r--", "./usr/share/man/man1/neph.1.gz"),
    ("-rw-r--r--", "./usr/share/man/man1/neph-agent.1.gz"),
    ("-rw-r--r--", "./usr/share/man/man1/neph-control-serve.1.gz"),
    ("-rw-r--r--", "./usr/share/man/man1/neph-health.1.gz"),
    ("-rw-r--r--", "./usr/share/man/man1/neph-reflect.1.gz"),
    ("-rw-r--r--", "./usr/share/bash-completion/completions/neph"),
    (
        "-rw-r--r--",
        "./usr/share/fish/vendor_completions.d/neph.fish",
    ),
    ("-rw-r--r--", "./usr/share/zsh/vendor-completions/_neph"),
    ("-rw-r--r--", "./usr/share/doc/neph/copyright"),
    ("-rw-r--r--", "./usr/share/doc/neph/neph.cdx.json.gz"),
    ("-rw-r--r--", "./usr/share/doc/neph/deploy.md.gz"),
];

#[test]
fn the_package_has_program_units_pages_and_completions_and_starts_nothing() {
    let test = "the_package_has_program_units_pages_and_completions_and_starts_nothing";
    if !has_programs(test, &["cargo-deb", "dpkg-deb", "git"]) || static_binary(test).is_none() {
        return;
    }
    let (is_ok, printed) = try_run(&mut tool());
    assert!(is_ok, "{printed}");
    let package = printed.lines().last().expect("its path").to_owned();
    let sum = run("sha256sum", &[&package]);
    let listing = run("dpkg-deb", &["-c", &package]);
    for (mode, path) in FILES {
        let is_file = |line: &&str| line.starts_with(mode) && line.ends_with(&format!(" {path}"));
        let line = listing.lines().find(is_file);
        let line = line.unwrap_or_else(|| panic!("{mode} {path}: {listing}"));
        assert!(
            line.contains(" root/root ") || line.contains(" 0/0 "),
            "{line}"
        );
    }
    let field = |name: &str| run("dpkg-deb", &["-f", &package, name]).trim().to_owned();
    assert_eq!(field("Package"), "neph");
    assert_eq!(field("Version"), format!("{}-1", env!("CARGO_PKG_VERSION")));
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().display().to_string();
    run("dpkg-deb", &["-R", &package, &at]);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert_eq!(
        read("DEBIAN/conffiles").lines().collect::<Vec<_>>(),
        ["neph-agent", "neph-control", "neph-reflector"].map(|name| format!("/etc/default/{name}"))
    );
    let postinst = read("DEBIAN/postinst");
    assert!(postinst.contains("systemd-sysusers"), "{postinst}");
    // What an administrator has enabled stays so, what runs is started anew, and nothing else is.
    let count = |text: &str| postinst.matches(text).count();
    let enabled = count("deb-systemd-helper enable");
    assert_eq!(enabled, count("--quiet was-enabled"), "{postinst}");
    let invoked = count("deb-systemd-invoke");
    assert_eq!(
        invoked,
        count("deb-systemd-invoke try-restart"),
        "{postinst}"
    );
    let version = run(folder.path().join("usr/bin/neph"), &["--version"]);
    assert!(version.starts_with("neph "), "{version}");
    // The same binary, the same package.
    assert!(try_run(&mut tool()).0);
    assert_eq!(run("sha256sum", &[&package]), sum);
}
