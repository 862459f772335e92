//! Threads that hash. Each uses a share of the time, measured by its CPU clock.

use std::fs;
use std::thread;

use neph_model::{Span, Stop};
use neph_sys::clock::{self, RawNanos, Spin};
use neph_sys::sched;
use sha2::{Digest, Sha256};

use crate::duty_cycle::{DutyCycle, HELD, PERIOD};
use crate::error::LoadError;
use crate::start_counter::StartCounter;

/// Bytes per hash: about ten microseconds of work.
const HASHED_BYTES: usize = 4096;
/// How long the target must be reached until the load counts as running.
const MIN_JUDGED_TIME: Span = Span::from_millis(100);

/// Threads that work for a share of the time.
#[derive(Clone, Debug)]
pub struct CpuLoad {
    /// The share: above 0, at most 1.
    pub share: f64,
    /// One thread each, on this CPU or on any.
    pub cpus: Vec<Option<usize>>,
    /// Duration of the load.
    pub duration: Span,
}

/// Result of one thread.
#[derive(Clone, Copy, Debug)]
pub struct CpuThreadResult {
    /// The CPU that it was pinned to.
    pub cpu: Option<usize>,
    /// CPU time of the thread.
    pub busy: Span,
    /// Time from its start to its end.
    pub lasted: Span,
    /// Number of hashes.
    pub hashes: u64,
}

impl CpuThreadResult {
    /// The share of the time that it worked, percent.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn percent(&self) -> f64 {
        100.0 * self.busy.nanos() as f64 / self.lasted.nanos().max(1) as f64
    }
}

impl CpuLoad {
    /// Checks that threads can be pinned to all CPUs, before any of them works for hours.
    ///
    /// # Errors
    /// The first CPU that refuses a thread.
    pub fn try_pins(&self) -> Result<(), LoadError> {
        let pin = |cpu: usize| thread::scope(|scope| scope.spawn(|| pin_to(cpu)).join());
        let mut cpus = self.cpus.iter().flatten();
        cpus.try_for_each(|&cpu| pin(cpu).unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    /// Works until the time is over or `stop` is set. Returns the results when all threads have
    /// ended.
    ///
    /// # Errors
    /// A thread cannot be started or pinned.
    pub fn run(
        &self,
        start_counter: &StartCounter<'_>,
        stop: &Stop,
    ) -> Result<Vec<CpuThreadResult>, LoadError> {
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for (started, cpu) in self.cpus.iter().copied().enumerate() {
                let work = move || self.work(cpu, start_counter, stop);
                match thread::Builder::new().spawn_scoped(scope, work) {
                    Ok(thread) => threads.push(thread),
                    Err(source) => {
                        stop.set();
                        return Err(LoadError::Threads { started, source });
                    }
                }
            }
            let ended = threads.into_iter().map(|thread| {
                let ended = thread.join();
                ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            ended.collect()
        })
    }

    /// The work of one thread.
    fn work(
        &self,
        cpu: Option<usize>,
        start_counter: &StartCounter<'_>,
        stop: &Stop,
    ) -> Result<CpuThreadResult, LoadError> {
        if let Some(cpu) = cpu {
            pin_to(cpu)?;
        }
        let (start, first) = (clock::raw(), clock::thread_cpu());
        let end = RawNanos(start.0.saturating_add(self.duration.nanos()));
        let since = |from: RawNanos| Span::from_nanos(clock::raw().0 - from.0);
        let worked = || Span::from_nanos(clock::thread_cpu() - first);
        let mut duty = DutyCycle::new(self.share);
        let (mut piece, mut hashes) = ([0_u8; HASHED_BYTES], 0_u64);
        let mut begin = start;
        let mut proof = Some(Proof::default());
        while begin < end && !stop.is_set() {
            let before = worked();
            let due = before + duty.due(Span::from_nanos(begin.0 - start.0), before);
            while worked() < due && clock::raw() < end && !stop.is_set() {
                let digest = Sha256::digest(piece);
                piece[..digest.len()].copy_from_slice(&digest);
                hashes += 1;
            }
            let next = RawNanos(begin.0 + PERIOD.nanos()).min(end);
            begin = clock::sleep_until(next, Spin::NONE);
            let reaches_share =
                |proof: &mut Proof| proof.is_held((since(start), worked()), self.share);
            if proof.as_mut().is_some_and(reaches_share) {
                proof = None;
                start_counter.mark_running();
            }
        }
        // Without this the compiler would remove the unused hashes.
        std::hint::black_box(piece);
        Ok(CpuThreadResult {
            cpu,
            busy: worked(),
            lasted: since(start),
            hashes,
        })
    }
}

pub(crate) fn pin_to(cpu: usize) -> Result<(), LoadError> {
    sched::pin_to_cpus(&[cpu]).map_err(|source| {
        let hint = usable().map_or_else(String::new, |cpus| format!("; {cpus} may be used"));
        LoadError::Cpu { cpu, source, hint }
    })
}

/// The CPUs that this process may use, in the kernel's format: `0-3`.
fn usable() -> Option<String> {
    let process_status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = process_status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// Checks from time to time whether a thread reaches its target.
#[derive(Clone, Copy, Debug, Default)]
struct Proof {
    from: Span,
    worked: Span,
}

impl Proof {
    /// Whether the target was reached since the last check or since the start; `now` is the elapsed
    /// time and the work so far. False before [`MIN_JUDGED_TIME`] has passed.
    #[expect(clippy::cast_precision_loss, reason = "a share of a tenth of a second")]
    fn is_held(&mut self, now: (Span, Span), target: f64) -> bool {
        let (lasted, worked) = (now.0 - self.from, now.1 - self.worked);
        if lasted < MIN_JUDGED_TIME {
            return false;
        }
        (self.from, self.worked) = now;
        let percent = 100.0 * worked.nanos() as f64 / lasted.nanos().max(1) as f64;
        percent >= target * 100.0 - HELD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_counts_as_loaded_after_a_tenth_of_a_second_at_its_target() {
        let at = |millis: i64, worked: i64| (Span::from_millis(millis), Span::from_millis(worked));
        let mut proof = Proof::default();
        assert!(!proof.is_held(at(50, 50), 0.8), "too early");
        assert!(!proof.is_held(at(100, 60), 0.8), "others had it");
        assert!(!proof.is_held(at(190, 150), 0.8), "too early again");
        assert!(proof.is_held(at(200, 138), 0.8), "78 % since then");
    }
}
