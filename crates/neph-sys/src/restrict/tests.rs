//! What a restricted process can no longer do. A process of its own tries everything, first without
//! and then with the restriction: an attempt that fails both times shows nothing, and is an error here.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;

use super::*;
use crate::process;

/// Set for the process that tries; its value is whether it restricts itself.
const MODE: &str = "NEPH_RESTRICT_TEST";
/// The folder that may be written, and one that may not.
const FOLDERS: &str = "NEPH_RESTRICT_FOLDERS";

/// System calls that only the filter answers with `ENOSYS`, with arguments that change nothing.
#[rustfmt::skip]
const CALLS: &[(&str, libc::c_long, [libc::c_long; 4])] = &[
    ("ptrace", libc::SYS_ptrace, [-1, 0, 0, 0]),
    ("process_vm_readv", libc::SYS_process_vm_readv, [0, 0, 0, 0]),
    ("process_vm_writev", libc::SYS_process_vm_writev, [0, 0, 0, 0]),
    ("mount", libc::SYS_mount, [0, 0, 0, 0]),
    ("umount2", libc::SYS_umount2, [0, 0, 0, 0]),
    ("pivot_root", libc::SYS_pivot_root, [0, 0, 0, 0]),
    ("open_tree", libc::SYS_open_tree, [-1, 0, 0, 0]),
    ("move_mount", libc::SYS_move_mount, [-1, 0, -1, 0]),
    ("fsopen", libc::SYS_fsopen, [0, 0, 0, 0]),
    ("bpf", libc::SYS_bpf, [-1, 0, 0, 0]),
    ("unshare", libc::SYS_unshare, [0, 0, 0, 0]),
    ("setns", libc::SYS_setns, [-1, 0, 0, 0]),
    ("userfaultfd", libc::SYS_userfaultfd, [-1, 0, 0, 0]),
    ("perf_event_open", libc::SYS_perf_event_open, [0, 0, 0, 0]),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, [-1, 0, 0, 0]),
    ("name_to_handle_at", libc::SYS_name_to_handle_at, [-1, 0, 0, 0]),
    ("io_uring_setup", libc::SYS_io_uring_setup, [0, 0, 0, 0]),
    ("personality", libc::SYS_personality, [0xffff_ffff, 0, 0, 0]),
    ("reboot", libc::SYS_reboot, [0, 0, 0, 0]),
    ("swapon", libc::SYS_swapon, [0, 0, 0, 0]),
    ("swapoff", libc::SYS_swapoff, [0, 0, 0, 0]),
    ("keyctl", libc::SYS_keyctl, [-1, 0, 0, 0]),
    ("add_key", libc::SYS_add_key, [0, 0, 0, 0]),
    ("kexec_load", libc::SYS_kexec_load, [0, 17, 0, 0]),
    ("init_module", libc::SYS_init_module, [0, 0, 0, 0]),
    ("finit_module", libc::SYS_finit_module, [-1, 0, 0, 0]),
    ("delete_module", libc::SYS_delete_module, [0, 0, 0, 0]),
    ("execve", libc::SYS_execve, [0, 0, 0, 0]),
    ("execveat", libc::SYS_execveat, [-1, 0, 0, 0]),
    ("setuid", libc::SYS_setuid, [-1, 0, 0, 0]),
    ("chroot", libc::SYS_chroot, [0, 0, 0, 0]),
    ("sethostname", libc::SYS_sethostname, [0, -1, 0, 0]),
    ("kill", libc::SYS_kill, [0, -1, 0, 0]),
    ("pidfd_open", libc::SYS_pidfd_open, [-1, 0, 0, 0]),
    ("memfd_create", libc::SYS_memfd_create, [0, 0, 0, 0]),
    ("clone3", libc::SYS_clone3, [0, 0, 0, 0]),
    ("seccomp", libc::SYS_seccomp, [-1, 0, 0, 0]),
    ("capset", libc::SYS_capset, [0, 0, 0, 0]),
];

/// Everything that is tried, with the error's number; 0 for success.
fn attempts(inside: &str, outside: &str) -> Vec<(String, i32)> {
    let code = |outcome: io::Result<()>| match outcome {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(-1),
    };
    let write = |folder: &str, name: &str| {
        let path = format!("{folder}/{name}");
        let written = OpenOptions::new().create(true).append(true).open(&path);
        code(written.and_then(|_| fs::remove_file(path)))
    };
    let mut tried = vec![
        ("program", code(process::command("true").status().map(drop))),
        ("write inside", write(inside, "file")),
        ("write outside", write(outside, "file")),
        (
            "read outside",
            code(File::open(format!("{outside}/there")).map(drop)),
        ),
        (
            "thread",
            code(thread::Builder::new().spawn(|| ()).map(drop)),
        ),
        ("udp", code(UdpSocket::bind("127.0.0.1:0").map(drop))),
        ("crypto socket", code(socket(libc::AF_ALG))),
        ("tcp connect", code(connect())),
    ];
    for (name, number, [a, b, c, d]) in CALLS {
        // SAFETY: the arguments are integers, and as pointers null or invalid: the kernel refuses them
        // (personality only reads, unshare of nothing does nothing).
        let outcome = unsafe { libc::syscall(*number, *a, *b, *c, *d, 0, 0) };
        let error = io::Error::last_os_error();
        tried.push((name, if outcome < 0 { code(Err(error)) } else { 0 }));
    }
    let names = tried
        .into_iter()
        .map(|(name, code)| (name.to_owned(), code));
    names.collect()
}

fn socket(family: libc::c_int) -> io::Result<()> {
    // SAFETY: socket takes integers only.
    let fd = unsafe { libc::socket(family, libc::SOCK_SEQPACKET, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and has no other user.
    unsafe { libc::close(fd) };
    Ok(())
}

/// To a port without a listener: what counts is whether the attempt is permitted.
fn connect() -> io::Result<()> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    match TcpStream::connect(port) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// The process that tries; in a run of all tests it has nothing to do.
#[test]
fn child() {
    let Ok(mode) = std::env::var(MODE) else {
        return;
    };
    let folders = std::env::var(FOLDERS).expect("set by the parent");
    let (inside, outside) = folders.split_once(':').expect("two folders");
    if mode != "free" {
        let restriction = Restriction {
            user: None,
            capabilities: vec![Capability::CAP_NET_RAW],
            calls: Vec::new(),
            files: Files {
                write: vec![inside.into()],
                ..Files::default()
            },
            connects: mode == "connects",
        };
        let force = restriction.apply().expect("it can be restricted");
        println!(
            "\ntried landlock {}",
            i32::from(force.landlock == Force::On)
        );
        assert_eq!(force.seccomp, Force::On);
    }
    for (name, code) in attempts(inside, outside) {
        println!("\ntried {name} {code}");
    }
}

/// What the process of [`child`] reports in a mode.
fn tried(mode: &str) -> BTreeMap<String, i32> {
    let base = std::env::temp_dir().join(format!("neph-restrict-{}-{mode}", std::process::id()));
    let (inside, outside) = (base.join("inside"), base.join("outside"));
    fs::create_dir_all(&inside).expect("a folder");
    fs::create_dir_all(&outside).expect("a folder");
    fs::write(outside.join("there"), "x").expect("a file");
    let output = process::command(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            "restrict::tests::child",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(MODE, mode)
        .env(
            FOLDERS,
            format!("{}:{}", inside.display(), outside.display()),
        )
        .output()
        .expect("it runs");
    fs::remove_dir_all(base).expect("our own");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{output:?}");
    let lines = text.lines().filter_map(|line| line.strip_prefix("tried "));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, code)| (name.to_owned(), code.parse().expect("a number")))
        .collect()
}

#[test]
fn only_dangerous_calls_fail() {
    let (free, bound) = (tried("free"), tried("bound"));
    let mut shown = 0;
    for (name, _, _) in CALLS {
        assert_eq!(bound[*name], libc::ENOSYS, "{name}");
        // A kernel without it answers the same, and shows nothing.
        shown += usize::from(free[*name] != libc::ENOSYS);
    }
    assert!(
        shown * 10 > CALLS.len() * 8,
        "only {shown} show anything: {free:?}"
    );
    assert_eq!((free["program"], bound["program"]), (0, libc::ENOSYS));
    assert_eq!(bound["crypto socket"], libc::ENOSYS);
    for needed in ["write inside", "thread", "udp"] {
        assert_eq!((free[needed], bound[needed]), (0, 0), "{needed}");
    }
    if bound["landlock"] == 0 {
        println!("SKIP files of only_dangerous_calls_fail: this kernel has no Landlock");
        return;
    }
    for files in ["write outside", "read outside", "tcp connect"] {
        assert_eq!((free[files], bound[files]), (0, libc::EACCES), "{files}");
    }
}

#[test]
fn only_commands_that_connect_may_open_connections() {
    assert_eq!(tried("connects")["tcp connect"], 0);
}

#[test]
fn a_user_is_found_by_name_or_reported_as_unknown() {
    assert_eq!(
        User::from_name("root").expect("every host has it").name(),
        "root"
    );
    let error = User::from_name("no-such-user-here").expect_err("nobody");
    assert_eq!(
        error.to_string(),
        "there is no user 'no-such-user-here' on this host"
    );
    assert!(matches!(
        User::from_name("a\0b"),
        Err(UserError::Unknown { .. })
    ));
}
