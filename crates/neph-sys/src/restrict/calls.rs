//! System calls that a restricted process may make; the kernel answers `ENOSYS` to all others.
//!
//! Owns the table, an allow list. It omits calls of newer kernels and of other binary interfaces (x32).
//! It omits calls that start programs, mount, trace, load code into the kernel or change namespaces.
//! `ENOSYS`, because C libraries then fall back to an older call that is in it.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Calls that some commands need beyond the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extra {
    /// bpf(2): the kernel runs programs for us.
    Bpf,
    /// setns(2): threads move to another network namespace.
    EnterNamespace,
}

impl Extra {
    const fn number(self) -> libc::c_long {
        match self {
            Self::Bpf => libc::SYS_bpf,
            Self::EnterNamespace => libc::SYS_setns,
        }
    }
}

/// Files and descriptors.
const FILES: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_copy_file_range,
    libc::SYS_splice,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_mkdirat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_umask,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_eventfd2,
];

/// Memory.
const MEMORY: &[libc::c_long] = &[
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_mlockall,
    libc::SYS_munlockall,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_membarrier,
];

/// Threads, signals to the own process, scheduling.
const THREADS: &[libc::c_long] = &[
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_tgkill,
    libc::SYS_tkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_getparam,
    libc::SYS_sched_setparam,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_getpriority,
    libc::SYS_getcpu,
];

/// Clocks, timers, waiting.
const TIME: &[libc::c_long] = &[
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    // They only read without CAP_SYS_TIME, which no command keeps.
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_times,
    libc::SYS_getrusage,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
];

/// Sockets that exist; which can be made is in [`conditional`].
const SOCKETS: &[libc::c_long] = &[
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
];

/// What this process and this host are.
const IDENTITY: &[libc::c_long] = &[
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    libc::SYS_prlimit64,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_capget,
];

/// Forms that only this processor has, and musl or old C libraries use.
#[cfg(target_arch = "x86_64")]
const OF_PROCESSOR: &[libc::c_long] = &[
    libc::SYS_renameat,
    libc::SYS_sendfile,
    libc::SYS_sync_file_range,
    libc::SYS_fadvise64,
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_chmod,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_eventfd,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_getdents,
    libc::SYS_getpgrp,
    libc::SYS_time,
];
/// By number, in the order above: the libc crate does not name them.
#[cfg(not(target_arch = "x86_64"))]
const OF_PROCESSOR: &[libc::c_long] = &[38, 71, 84, 223, 163, 164];

/// New threads: all of these flags, and none that makes a namespace. So no new process either.
const THREAD: libc::c_int = libc::CLONE_THREAD;
const NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP;

/// Families of sockets. Others (`AF_ALG`, `AF_VSOCK`, `AF_XDP`) are parts of the kernel without use here.
const FAMILIES: [libc::c_int; 5] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
    libc::AF_PACKET,
];

/// Requests of ioctl(2) beyond those of sockets: terminals are asked for their size, not typed into.
const REQUESTS: [u32; 8] = [
    0x5401,      // TCGETS
    0x802c_542a, // TCGETS2
    0x5411,      // TIOCOUTQ
    0x5413,      // TIOCGWINSZ
    0x541b,      // FIONREAD
    0x5421,      // FIONBIO
    0x5450,      // FIONCLEX
    0x5451,      // FIOCLEX
];
/// `SIOC...` of linux/sockios.h.
const OF_SOCKETS: (u32, u32) = (0xff00, 0x8900);

/// Options of prctl(2): names and timer slack of threads, names of memory.
const OPTIONS: [libc::c_int; 6] = [
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_SET_TIMERSLACK,
    libc::PR_GET_TIMERSLACK,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_SET_VMA,
];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filter as the kernel runs it; why there is none for this processor.
pub(super) fn program(extra: &[Extra]) -> Result<BpfProgram, String> {
    let wrong = |error: seccompiler::BackendError| error.to_string();
    let processor = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| format!("no filter for {} processors", std::env::consts::ARCH))?;
    let groups = [
        FILES,
        MEMORY,
        THREADS,
        TIME,
        SOCKETS,
        IDENTITY,
        OF_PROCESSOR,
    ];
    let numbers = groups.into_iter().flatten().copied();
    let numbers = numbers.chain(extra.iter().map(|extra| extra.number()));
    let mut rules: Rules = numbers.map(|number| (number, Vec::new())).collect();
    rules.extend(conditional().map_err(wrong)?);
    let refused = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, processor);
    filter.and_then(TryInto::try_into).map_err(wrong)
}

/// Calls that pass with some arguments only.
fn conditional() -> Result<Rules, seccompiler::BackendError> {
    let thread = Compare::MaskedEq(u64::from((THREAD | NAMESPACES).cast_unsigned()));
    let clone = argument(0, thread, THREAD.cast_unsigned())?;
    let (mask, sockets) = OF_SOCKETS;
    let mut requests = vec![argument(1, Compare::MaskedEq(mask.into()), sockets)?];
    requests.extend(any_of(1, &REQUESTS)?);
    Ok(Rules::from([
        (libc::SYS_clone, vec![clone]),
        (libc::SYS_ioctl, requests),
        (
            libc::SYS_socket,
            any_of(0, &FAMILIES.map(libc::c_int::cast_unsigned))?,
        ),
        (
            libc::SYS_socketpair,
            any_of(0, &[libc::AF_UNIX.cast_unsigned()])?,
        ),
        (
            libc::SYS_prctl,
            any_of(0, &OPTIONS.map(libc::c_int::cast_unsigned))?,
        ),
    ]))
}

fn any_of(index: u8, values: &[u32]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let rules = values
        .iter()
        .map(|value| argument(index, Compare::Eq, *value));
    rules.collect()
}

/// A call whose argument at `place` compares so; only its lower 32 bits count.
fn argument(
    index: u8,
    compare: Compare,
    value: u32,
) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = SeccompCondition::new(index, Length::Dword, compare, value.into())?;
    SeccompRule::new(vec![condition])
}
