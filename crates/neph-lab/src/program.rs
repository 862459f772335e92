//! Runs the programs that set up a lab: `ip`, `tc` and `bridge` of iproute2.
//!
//! Owns the detection of missing programs, the packages that have them, and error messages of programs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use neph_sys::process;
use neph_text::{FileKind, PrintableText, read_bytes};

/// An error of a program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not installed.
    #[error("the program '{program}' is missing: install {package}")]
    Missing {
        /// The program.
        program: String,
        /// The package that has it.
        package: String,
    },
    /// It needs libraries, where there will be none.
    #[error(
        "the program '{program}' ({}) needs libraries, and a container with nothing else shall run \
         it: install {package}",
        file.display()
    )]
    NotStatic {
        /// The program.
        program: String,
        /// Its file.
        file: PathBuf,
        /// The package with a static version.
        package: String,
    },
    /// It could not be run.
    #[error("run '{program}': {source}")]
    NotRun {
        /// The program.
        program: String,
        /// The error.
        source: io::Error,
    },
    /// It failed.
    #[error("'{command}' in namespace {namespace}: {complaint}")]
    Refused {
        /// The command.
        command: String,
        /// The namespace.
        namespace: String,
        /// Its standard error.
        complaint: String,
    },
}

/// The Debian packages of programs that labs commonly run.
const PACKAGES: &[(&str, &str)] = &[
    ("bird", "bird2"),
    ("bridge", "iproute2"),
    ("curl", "curl"),
    ("dnsmasq", "dnsmasq-base"),
    ("busybox", "busybox-static"),
    ("docker", "docker.io"),
    ("dockerd", "docker.io"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
    ("haproxy", "haproxy"),
    ("ip", "iproute2"),
    ("linux.uml", "user-mode-linux"),
    ("mkfifo", "coreutils"),
    ("iperf", "iperf"),
    ("iperf3", "iperf3"),
    ("nc", "netcat-openbsd"),
    ("nft", "nftables"),
    ("nginx", "nginx-light"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
    ("python3", "python3"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("socat", "socat"),
    ("openssl", "openssl"),
    ("sockperf", "sockperf"),
    ("tc", "iproute2"),
    ("tcpdump", "tcpdump"),
    ("tshark", "tshark"),
];

/// Why `program` did not run.
pub(crate) fn not_run(program: &str, source: io::Error) -> ProgramError {
    if source.kind() != io::ErrorKind::NotFound {
        let program = program.to_owned();
        return ProgramError::NotRun { program, source };
    }
    ProgramError::Missing {
        program: program.to_owned(),
        package: package_of(program),
    }
}

/// The package that has `program`.
fn package_of(program: &str) -> String {
    if program == "flanneld" {
        return "Flannel (make flannel builds target/flannel/flanneld), and put it on PATH"
            .to_owned();
    }
    let known = PACKAGES.iter().find(|(name, _)| *name == program);
    known.map_or_else(
        || "what has it, or write its whole path".to_owned(),
        |(_, package)| format!("the package {package}"),
    )
}

/// Searches for `program` in PATH.
pub(crate) fn require_program(program: &str) -> Result<(), ProgramError> {
    find(program).map(|_| ())
}

/// Searches for `program`, which must not need libraries: there will be no other file.
pub(crate) fn require_static(program: &str) -> Result<(), ProgramError> {
    let file = find(program)?;
    let failed = |source| not_run(program, source);
    let program_file = read_bytes(FileKind::Program, &file);
    if needs_loader(&program_file.map_err(io::Error::other).map_err(failed)?) {
        return Err(ProgramError::NotStatic {
            program: program.to_owned(),
            file,
            package: package_of(program),
        });
    }
    Ok(())
}

/// The file of `program`, from PATH.
pub(crate) fn find(program: &str) -> Result<PathBuf, ProgramError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .ok_or_else(|| not_run(program, io::ErrorKind::NotFound.into()))
}

/// Whether a program needs a loader for its libraries: one of its program headers is `PT_INTERP` (elf(5); 64
/// bits, little-endian, as on all supported hosts).
fn needs_loader(program: &[u8]) -> bool {
    const INTERPRETER: u32 = 3;
    let read_u16 = |at: usize| {
        let bytes = program.get(at..at + 2)?;
        Some(usize::from(u16::from_le_bytes(bytes.try_into().ok()?)))
    };
    let read_u32 = |at: usize| {
        let bytes = program.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let first = program.get(32..40).and_then(|bytes| {
        let bytes: [u8; 8] = bytes.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    });
    let (Some(first), Some(size), Some(count)) = (first, read_u16(54), read_u16(56)) else {
        return false;
    };
    program.starts_with(b"\x7fELF\x02\x01")
        && (0..count)
            .any(|number| read_u32(first.saturating_add(number * size)) == Some(INTERPRETER))
}

/// Runs `lines` through `ip -batch` inside the namespace; stops at the first error.
pub(crate) fn ip_batch(namespace: &str, lines: &[String]) -> Result<(), ProgramError> {
    batch(
        process::command("ip").args(["-n", namespace, "-batch", "-"]),
        "ip",
        namespace,
        lines,
    )
}

/// Runs `lines` through `ip -batch` and ignores errors, for taking down a lab. Discards its error output:
/// thousands of messages would fill the pipe before it has read all lines.
pub(crate) fn ip_batch_regardless(namespace: &str, lines: &[String]) -> Result<(), ProgramError> {
    let mut command = process::command("ip");
    command
        .args(["-n", namespace, "-force", "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(|source| not_run("ip", source))?;
    let mut input = child.stdin.take().expect("its standard input was piped");
    // It may have ended already: then there is nothing left to remove.
    let _ = input.write_all((lines.join("\n") + "\n").as_bytes());
    drop(input);
    let ended = child.wait().map(|_| ());
    ended.map_err(|source| not_run("ip", source))
}

/// Runs `lines` through `bridge -batch` inside the namespace; stops at the first error.
pub(crate) fn bridge_batch(namespace: &str, lines: &[String]) -> Result<(), ProgramError> {
    batch(
        process::command("bridge").args(["-n", namespace, "-batch", "-"]),
        "bridge",
        namespace,
        lines,
    )
}

/// Applies a file of rules through `nft`, atomically, on a thread inside the namespace.
pub(crate) fn nft(namespace: &str, rules: &str) -> Result<(), ProgramError> {
    let lines: Vec<String> = rules.lines().map(str::to_owned).collect();
    let mut command = process::command("nft");
    batch(command.args(["-f", "-"]), "nft", namespace, &lines)
}

/// Runs `openssl` with these arguments, which must not contain blanks.
pub(crate) fn openssl(namespace: &str, line: &str) -> Result<(), ProgramError> {
    let mut command = process::command("openssl");
    batch(command.args(line.split(' ')), "openssl", namespace, &[])
}

/// Runs one line of `tc` inside the namespace.
pub(crate) fn tc(namespace: &str, line: &str) -> Result<(), ProgramError> {
    let lines = [line.to_owned()];
    batch(
        process::command("tc").args(["-n", namespace, "-batch", "-"]),
        "tc",
        namespace,
        &lines,
    )
}

/// Runs a shell line in `folder`; `None` if it exits with status 0, else the last line that it wrote.
pub(crate) fn complaint(line: &str, folder: &Path) -> Result<Option<String>, ProgramError> {
    let mut command = process::command("sh");
    command.args(["-c", line]).current_dir(folder);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|source| not_run("sh", source))?;
    if output.status.success() {
        return Ok(None);
    }
    let output = [output.stdout, output.stderr].concat();
    let output = String::from_utf8_lossy(&output);
    let last = output.lines().map(str::trim).rfind(|line| !line.is_empty());
    Ok(Some(
        PrintableText::text(last.unwrap_or("it does not start")).into(),
    ))
}

fn batch(
    command: &mut Command,
    program: &'static str,
    namespace: &str,
    lines: &[String],
) -> Result<(), ProgramError> {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|source| not_run(program, source))?;
    let mut input = child.stdin.take().expect("its standard input was piped");
    // A batch that stops early closes its input: its error message is reported below.
    let written = input.write_all((lines.join("\n") + "\n").as_bytes());
    drop(input);
    let failed = |source| ProgramError::NotRun {
        program: program.to_owned(),
        source,
    };
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return written.map_err(failed);
    }
    let complaint = String::from_utf8_lossy(&output.stderr)
        .trim()
        .replace('\n', " ");
    // "Command failed -:3" names the line.
    let line = complaint
        .rsplit_once("-:")
        .and_then(|(_, number)| number.parse::<usize>().ok())
        .and_then(|number| lines.get(number.checked_sub(1)?));
    let command = format!("{program} {}", line.map_or("", String::as_str));
    Err(ProgramError::Refused {
        command,
        namespace: namespace.to_owned(),
        complaint: PrintableText::text(&complaint).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file of 64 bits with program headers of these kinds.
    fn program(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = u8::try_from(kinds.len()).expect("few");
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn a_program_with_libraries_is_distinguished_from_a_static_one() {
        assert!(needs_loader(&program(&[6, 3, 1])));
        assert!(!needs_loader(&program(&[1, 1])));
        assert!(!needs_loader(b"#!/bin/sh\n"));
        let cut = program(&[6, 3, 1]);
        assert!(!needs_loader(&cut[..60]));
    }

    #[test]
    fn a_missing_program_is_reported_with_its_package() {
        let message = require_program("no-such-x").expect_err("none").to_string();
        assert!(message.contains("'no-such-x' is missing: install what has it"));
        assert_eq!(package_of("busybox"), "the package busybox-static");
    }
}
