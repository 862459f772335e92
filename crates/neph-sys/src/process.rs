//! Programs that end with the process that started them, and an exact way to wait for their end.
//!
//! The only module that starts programs. Owns what is done between fork and exec, signals, and
//! process descriptors. Does not decide which programs run.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The command that starts `program`, which is looked for in `PATH` unless it is a path.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where a command is made"
)]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// What is asked of a program before it begins.
#[derive(Clone, Debug, Default)]
pub struct ChildOptions {
    groups: Vec<CString>,
    dies_with_thread: bool,
    leads_session: bool,
    ignores_ctrl_c: bool,
}

impl ChildOptions {
    /// The program is killed (SIGKILL) when the thread that starts it ends, and does not begin
    /// at all if that is gone by then. Its own children get no signal.
    #[must_use]
    pub fn dies_with_thread(mut self) -> Self {
        self.dies_with_thread = true;
        self
    }

    /// The program leads a session of its own: no terminal's ctrl-C or hang-up reaches it.
    #[must_use]
    pub fn leads_session(mut self) -> Self {
        self.leads_session = true;
        self
    }

    /// A ctrl-C at the terminal does not end the program: SIGINT is ignored, also by children that do
    /// not handle it. The program keeps the terminal, so that it may ask for a password.
    #[must_use]
    pub fn ignores_ctrl_c(mut self) -> Self {
        self.ignores_ctrl_c = true;
        self
    }

    /// The program belongs to the control group whose `cgroup.procs` this is.
    ///
    /// # Errors
    /// The path holds a zero byte.
    pub fn in_group(mut self, procs: &Path) -> io::Result<Self> {
        self.groups
            .push(CString::new(procs.as_os_str().as_encoded_bytes())?);
        Ok(self)
    }

    /// Has `command` do all this between fork and exec.
    pub fn arrange(self, command: &mut Command) {
        let parent = std::process::id();
        let before_exec = move || {
            if self.leads_session {
                // SAFETY: setsid touches no memory; it fails only for a group's leader, which a
                // freshly forked process is not.
                unsafe { libc::setsid() };
            }
            if self.ignores_ctrl_c {
                // SAFETY: signal touches no memory of this process; it fails only for signals that are none.
                unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
            }
            if self.dies_with_thread {
                die_with(parent)?;
            }
            self.groups.iter().try_for_each(join)
        };
        // SAFETY: the closure makes system calls only; it neither allocates nor locks: its paths
        // are C strings made before the fork, and its errors carry a number.
        unsafe { command.pre_exec(before_exec) };
    }
}

fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes one integer and touches no memory.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: getppid cannot fail and touches no memory. A parent that died before the line above
    // sends no signal any more.
    if unsafe { libc::getppid() }.cast_unsigned() != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

fn join(group: &CString) -> io::Result<()> {
    // SAFETY: the path is a C string that outlives the call.
    let file = unsafe { libc::open(group.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: one byte is read from a constant; "0" means the writing process.
    let written = unsafe { libc::write(file, c"0".as_ptr().cast(), 1) };
    let error = io::Error::last_os_error();
    // SAFETY: the descriptor was opened above and has no other user.
    unsafe { libc::close(file) };
    if written == 1 { Ok(()) } else { Err(error) }
}

/// How a program is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// SIGTERM: it may tidy up.
    End,
    /// SIGKILL: it may not.
    Kill,
}

impl Request {
    const fn signal(self) -> libc::c_int {
        match self {
            Self::End => libc::SIGTERM,
            Self::Kill => libc::SIGKILL,
        }
    }
}

/// Asks process `pid` to end. One that is gone is as good as asked.
///
/// # Errors
/// Not permitted.
pub fn ask(pid: u32, request: Request) -> io::Result<()> {
    send(pid.cast_signed(), request)
}

/// Asks all of the group that `pid` leads to end.
///
/// # Errors
/// Not permitted.
pub fn ask_group(pid: u32, request: Request) -> io::Result<()> {
    send(-pid.cast_signed(), request)
}

fn send(target: libc::pid_t, request: Request) -> io::Result<()> {
    // 0, 1 and -1 would mean others than one process.
    if matches!(target, -1..=1) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: kill touches no memory.
    if unsafe { libc::kill(target, request.signal()) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(()),
        _ => Err(error),
    }
}

/// A descriptor that becomes readable when process `pid` ends. The caller must not have waited
/// for it, so that the number is still its own.
///
/// # Errors
/// There is no such process, or the kernel is older than 5.3.
pub fn descriptor(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.cast_signed(), 0) };
    let Ok(fd @ 0..) = libc::c_int::try_from(fd) else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: the kernel has just created this descriptor, and it has no other owner.
    let owned = unsafe { OwnedFd::from_raw_fd(fd) };
    debug_assert!(owned.as_raw_fd() >= 0);
    Ok(owned)
}

/// Asks the process that `descriptor` stands for to end, and no other: its number may be another's
/// by now. One that is gone is as good as asked.
///
/// # Errors
/// Not permitted.
pub fn ask_through(descriptor: BorrowedFd<'_>, request: Request) -> io::Result<()> {
    let (fd, signal) = (descriptor.as_raw_fd(), request.signal());
    let no_siginfo = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: pidfd_send_signal reads no memory where it is given no siginfo.
    if unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, no_siginfo, 0) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(()),
        _ => Err(error),
    }
}

/// Whether this process was started with SIGHUP ignored, as nohup does: it is to outlive its
/// terminal.
pub fn outlives_terminal() -> bool {
    // SAFETY: a zeroed sigaction is a good one; the kernel fills it in and changes nothing.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut action);
        action
    };
    action.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::process::ExitStatusExt;
    use std::time::Duration;

    use crate::deadline::Stopwatch;

    use super::*;
    use crate::ppoll::{self, Awaited};

    fn sleeper() -> Command {
        let mut command = command("sleep");
        command.arg("60");
        command
    }

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let mut child = std::thread::spawn(|| {
            let mut command = sleeper();
            ChildOptions::default()
                .dies_with_thread()
                .arrange(&mut command);
            command.spawn().expect("sleep is everywhere")
        })
        .join()
        .expect("the thread ends");
        let began = Stopwatch::start();
        child.wait().expect("it ends");
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "killed, not done"
        );
    }

    #[test]
    fn a_program_that_ignores_ctrl_c_ends_on_sigterm() {
        let mut command = command("sh");
        command.args(["-c", "kill -INT $$; kill -TERM $$"]);
        ChildOptions::default()
            .ignores_ctrl_c()
            .arrange(&mut command);
        let status = command.status().expect("sh is everywhere");
        assert_eq!(status.signal(), Some(libc::SIGTERM));
    }

    #[test]
    fn the_end_of_a_process_is_detected_and_signals_reach_it() {
        let mut command = sleeper();
        command.process_group(0);
        let mut child = command.spawn().expect("sleep is everywhere");
        let descriptor = descriptor(child.id()).expect("it runs");
        let mut awaited = [Awaited::readable(descriptor.as_fd())];
        ppoll::wait(&mut awaited, Some(Duration::ZERO)).expect("waited");
        assert!(!awaited[0].is_readable(), "it runs");
        ask_group(child.id(), Request::End).expect("our own child");
        ppoll::wait(&mut awaited, Some(Duration::from_secs(30))).expect("waited");
        assert!(awaited[0].is_readable(), "it ended");
        assert!(!child.wait().expect("it ended").success());
        assert!(ask(1, Request::Kill).is_err(), "init is nobody's to end");
    }

    #[test]
    fn stopping_an_ended_process_succeeds_even_if_its_pid_was_reused() {
        let mut child = sleeper().spawn().expect("sleep is everywhere");
        let descriptor = descriptor(child.id()).expect("it runs");
        ask_through(descriptor.as_fd(), Request::End).expect("our own child");
        assert!(!child.wait().expect("it ended").success());
        ask_through(descriptor.as_fd(), Request::Kill).expect("nobody is asked");
    }

    #[test]
    fn a_program_does_not_start_without_its_control_group() {
        let mut command = sleeper();
        let child_options = ChildOptions::default().in_group(Path::new("/no/such/group"));
        child_options.expect("no zero byte").arrange(&mut command);
        let error = command.spawn().expect_err("nowhere to be");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
