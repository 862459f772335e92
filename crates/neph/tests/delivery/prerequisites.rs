//! What tests of this target share: the repository's root, programs that must be there, and running them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use neph_sys::process;

/// The repository.
pub(crate) fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = crates.and_then(Path::parent);
    root.expect("two folders up").to_owned()
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_neph")).ancestors().nth(2);
    built.expect("target/PROFILE/neph").to_owned()
}

/// Reports that a test is skipped.
#[expect(clippy::print_stdout, reason = "a skipped test is reported")]
pub(crate) fn skip(test: &str, why: &str) {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "{test}: {why}"
    );
    println!("SKIP {test}: {why}");
}

/// Whether these programs are there; where one is not, the test is skipped.
pub(crate) fn has_programs(test: &str, programs: &[&str]) -> bool {
    let missing = programs.iter().find(|name| !is_installed(name));
    if let Some(name) = missing {
        skip(test, &format!("{name} is not installed"));
    }
    missing.is_none()
}

fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// The program under test.
pub(crate) fn neph() -> Command {
    let mut command = process::command(env!("CARGO_BIN_EXE_neph"));
    command.env_remove("NEPH_HEALTH").env("NO_COLOR", "1");
    command
}

/// Runs a command to its end; gives what it printed, errors behind.
pub(crate) fn try_run(command: &mut Command) -> (bool, String) {
    let output: Output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.success(), text)
}

/// Runs a program to its end, which must be good; gives what it printed.
pub(crate) fn run<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) -> String {
    let mut command = process::command(program);
    let (is_ok, text) = try_run(command.args(arguments));
    assert!(is_ok, "{command:?}: {text}");
    text
}

/// The static binary of `make static`, if it is of the commit that is tested.
pub(crate) fn static_binary(test: &str) -> Option<PathBuf> {
    let path = target().join("x86_64-unknown-linux-musl/release/neph");
    if !path.exists() {
        skip(test, "there is no static binary; make static builds it");
        return None;
    }
    let version = |program: &Path| run(program, &["--version"]);
    let (built, tested) = (
        version(&path),
        version(Path::new(env!("CARGO_BIN_EXE_neph"))),
    );
    if built != tested {
        let why = format!(
            "the static binary is {}, not {}",
            built.trim(),
            tested.trim()
        );
        skip(test, &why);
        return None;
    }
    Some(path)
}
