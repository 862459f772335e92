//! How the kernel schedules threads: real-time priority, idle periods, timer slack, CPUs, memory.
//!
//! Owns the system calls and their errors. Callers decide which threads get a priority, and those
//! must sleep. `SCHED_FIFO` at full duty stalls for 50 ms in each second (`sched_rt_runtime_us`,
//! measured), so a real-time thread never busy-polls without a budget.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::io;
use std::mem::{size_of, zeroed};
use std::time::Duration;

/// A change of the calling thread's scheduling that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {source}")]
pub struct SchedError {
    operation: String,
    source: io::Error,
}

fn refused(operation: impl Into<String>) -> SchedError {
    SchedError {
        operation: operation.into(),
        source: io::Error::last_os_error(),
    }
}

/// Gives the calling thread `SCHED_FIFO` with `priority` (1 to 99).
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE`, `EINVAL` outside 1 to 99.
pub fn use_fifo(priority: u8) -> Result<(), SchedError> {
    set_scheduler(0, libc::SCHED_FIFO, priority)
        .map_err(|()| refused(format!("give this thread SCHED_FIFO priority {priority}")))
}

/// Gives the calling thread the ordinary time-sharing policy back.
///
/// # Errors
/// The error of the kernel; leaving a real-time policy is always permitted.
pub fn use_normal() -> Result<(), SchedError> {
    Thread(0).use_normal()
}

/// A thread whose scheduling another may change too, as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(libc::pid_t);

impl Thread {
    /// The calling thread.
    pub fn this() -> Self {
        // SAFETY: gettid cannot fail and touches no memory.
        Self(unsafe { libc::gettid() })
    }

    /// Whether it has the ordinary time-sharing policy.
    pub fn is_normal(self) -> bool {
        // SAFETY: takes an integer only. The raw call, because musl's wrapper is ENOSYS.
        let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, self.0) };
        policy == libc::c_long::from(libc::SCHED_OTHER)
    }

    /// Lets it run only where no thread of the ordinary policy wants the processor (`SCHED_IDLE`): its
    /// wake-up does not preempt a running one. Against threads that never sleep it has 3 parts of 1027.
    ///
    /// # Errors
    /// Leaving the ordinary policy so is always permitted; `ESRCH` where the thread is gone.
    pub fn use_idle(self) -> Result<(), SchedError> {
        set_scheduler(self.0, libc::SCHED_IDLE, 0)
            .map_err(|()| refused("give a thread the policy of idle times"))
    }

    /// Gives it the ordinary time-sharing policy back.
    ///
    /// # Errors
    /// `EPERM` where it has `SCHED_IDLE`, and neither `CAP_SYS_NICE` nor `RLIMIT_NICE` permits to leave
    /// that; leaving a real-time policy is always permitted.
    pub fn use_normal(self) -> Result<(), SchedError> {
        set_scheduler(self.0, libc::SCHED_OTHER, 0)
            .map_err(|()| refused("give a thread the ordinary scheduling policy"))
    }
}

/// Of the calling thread, where it is 0.
fn set_scheduler(thread: libc::pid_t, policy: libc::c_int, priority: u8) -> Result<(), ()> {
    let parameter = libc::c_int::from(priority);
    // SAFETY: sched_setscheduler(thread, policy, &sched_param) reads one struct sched_param, which on
    // Linux is a single int, alive for the call. The raw call, because musl's wrapper is ENOSYS.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            thread,
            policy,
            std::ptr::from_ref(&parameter),
        )
    };
    if outcome == 0 { Ok(()) } else { Err(()) }
}

/// Sets how late the kernel may wake the calling thread to save power: 50 us by default, 1 ns is
/// the least. Real-time threads have none anyway.
///
/// # Errors
/// Refused only by a seccomp filter.
pub fn set_timer_slack(slack: Duration) -> Result<(), SchedError> {
    let nanos = libc::c_ulong::try_from(slack.as_nanos())
        .unwrap_or(libc::c_ulong::MAX)
        .max(1);
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory of this process.
    match unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanos, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(refused(format!("set the timer slack to {nanos} ns"))),
    }
}

/// Locks all memory of the process, present and future, so that no page fault delays it.
///
/// Only for a process that does nothing else (a link engine of its own).
///
/// # Errors
/// `ENOMEM` or `EPERM` where `RLIMIT_MEMLOCK` is too small and `CAP_IPC_LOCK` is missing.
pub fn lock_all_memory() -> Result<(), SchedError> {
    // SAFETY: mlockall changes residency, not contents or mappings.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(refused("lock all memory of this process")),
    }
}

/// Lets the calling thread run on these CPUs only (numbered from 0).
///
/// # Errors
/// `EINVAL` when none of them exists or is permitted; numbers above 1023 are refused likewise.
pub fn pin_to_cpus(cpus: &[usize]) -> Result<(), SchedError> {
    // SAFETY: cpu_set_t is a plain bit mask for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    for &cpu in cpus
        .iter()
        .filter(|&&cpu| cpu < 8 * size_of::<libc::cpu_set_t>())
    {
        // SAFETY: the number was just checked to lie inside the mask.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the mask is alive for the call and its true size is passed; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) } {
        0 => Ok(()),
        _ => Err(refused(format!("pin this thread to the CPUs {cpus:?}"))),
    }
}

/// The CPU that the calling thread is on at this moment (about 20 ns, no system call where the C library
/// has restartable sequences or a vDSO).
pub fn current_cpu() -> Option<u32> {
    // SAFETY: it takes no argument and touches no memory of this process.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// How many CPUs the calling thread may run on.
///
/// # Errors
/// `EINVAL` where the kernel knows of more than 1024 CPUs.
pub fn permitted_cpus() -> Result<usize, SchedError> {
    // SAFETY: cpu_set_t is a plain bit mask for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the mask is alive for the call and its true size is passed; 0 is the calling thread.
    if unsafe { libc::sched_getaffinity(0, size, &raw mut set) } != 0 {
        return Err(refused("count the CPUs that may be used"));
    }
    // SAFETY: it reads the mask, which is initialised, and nothing else.
    let count = unsafe { libc::CPU_COUNT(&set) };
    Ok(usize::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinning_needs_at_least_one_permitted_cpu() {
        std::thread::spawn(|| {
            pin_to_cpus(&[0]).expect("every machine has a CPU 0");
            assert_eq!(current_cpu(), Some(0));
            assert!(pin_to_cpus(&[]).is_err());
            assert_eq!(permitted_cpus().ok(), Some(1));
        })
        .join()
        .expect("the thread ends");
    }

    #[test]
    fn a_priority_out_of_range_is_refused_by_name() {
        let error = use_fifo(100).expect_err("99 is the highest");
        assert!(error.to_string().contains("priority 100"), "{error}");
    }

    #[test]
    fn the_scheduling_of_another_thread_is_lowered_and_restored() {
        let (report, receiver) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            report.send(Thread::this()).expect("it has a reader");
            let _ = ended.recv();
        });
        let thread = receiver.recv().expect("it reports");
        assert!(thread.is_normal());
        thread.use_idle().expect("always permitted");
        assert!(!thread.is_normal() && Thread::this().is_normal());
        // Not every user may leave idle priority; then an error is returned.
        assert_eq!(thread.use_normal().is_ok(), thread.is_normal());
        drop(end);
        other.join().expect("the thread ends");
    }

    #[test]
    fn the_timer_slack_is_set() {
        std::thread::spawn(|| {
            set_timer_slack(Duration::from_nanos(1)).expect("slack can be set");
            // SAFETY: PR_GET_TIMERSLACK takes no pointer.
            assert_eq!(unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }, 1);
        })
        .join()
        .expect("the thread ends");
    }
}
