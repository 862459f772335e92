//! The clocks of this machine, and sleeping until a moment of one of them.
//!
//! The only module that reads clocks and sleeps, as clippy.toml enforces. Durations use
//! `CLOCK_MONOTONIC_RAW`, which no daemon slews, kernel timestamps `CLOCK_REALTIME`; [`pair`] reads both.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

use std::time::Duration;

/// A reading of `CLOCK_MONOTONIC_RAW` in nanoseconds since an unspecified start (boot).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RawNanos(pub i64);

/// A reading of `CLOCK_REALTIME` in nanoseconds since 1970: what kernel timestamps are given in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallNanos(pub i64);

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// On the monotonic clock.
    pub raw: RawNanos,
    /// On the wall clock.
    pub wall: WallNanos,
    /// How far the two may be from one moment, nanoseconds: half of what reading them took.
    pub doubt: i64,
}

impl Pair {
    /// The monotonic moment of a wall-clock timestamp taken near this pair.
    pub const fn to_raw(self, stamp: WallNanos) -> RawNanos {
        RawNanos(
            self.raw
                .0
                .saturating_add(stamp.0.saturating_sub(self.wall.0)),
        )
    }
    /// Wall minus monotonic, nanoseconds.
    pub const fn offset(self) -> i64 {
        self.wall.0.saturating_sub(self.raw.0)
    }
}

/// Now, on `CLOCK_MONOTONIC_RAW`. About 25 ns where the clock source is the TSC.
#[inline]
pub fn raw() -> RawNanos {
    RawNanos(read(libc::CLOCK_MONOTONIC_RAW))
}

/// Now, on `CLOCK_REALTIME`.
#[inline]
pub fn wall() -> WallNanos {
    WallNanos(read(libc::CLOCK_REALTIME))
}

/// How far atomic time (TAI) is ahead of the wall clock, nanoseconds: whole seconds, 0 if the kernel
/// has no value.
pub fn leap() -> i64 {
    const SECOND: i64 = 1_000_000_000;
    // Between the two readings the thread may be held up.
    let ahead = read(libc::CLOCK_TAI) - read(libc::CLOCK_REALTIME);
    (ahead + SECOND / 2).div_euclid(SECOND) * SECOND
}

/// How long the calling thread has been running on a processor, nanoseconds.
pub fn thread_cpu() -> i64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// How long all threads of this process have been running on processors, nanoseconds.
pub fn process_cpu() -> i64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Now, on both clocks, to within half of the three readings' width: of up to three tries the
/// narrowest, so that an interruption in between does not count.
pub fn pair() -> Pair {
    /// Three uninterrupted readings take less than this here (measured: 60 to 90 ns).
    const NARROW: i64 = 200;
    let (mut width, mut best) = read_pair();
    for _ in 0..2 {
        if width < NARROW {
            break;
        }
        let (next_pair, pair) = read_pair();
        if next_pair < width {
            (width, best) = (next_pair, pair);
        }
    }
    best
}

fn read_pair() -> (i64, Pair) {
    let before = raw().0;
    let wall = wall();
    let width = raw().0 - before;
    (
        width,
        Pair {
            raw: RawNanos(before + width / 2),
            wall,
            doubt: (width + 1) / 2,
        },
    )
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where a clock is read"
)]
fn read(clock: libc::clockid_t) -> i64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: clock_gettime writes one timespec, which lives on this stack frame.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// How the last part of a sleep is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin(pub Duration);

impl Spin {
    /// Sleeps to the end: uses no CPU, and is late by the wake-up (12 us at the median here).
    pub const NONE: Self = Self(Duration::ZERO);
    /// Reads the clock for the last 60 us (0.1 to 0.5 us late at the median here).
    pub const SHORT: Self = Self(Duration::from_micros(60));
}

/// Sleeps until `until`, the last part of it spinning; returns the first reading at or after it.
///
/// The kernel cannot sleep on the raw clock. The other monotonic clock drifts against it while that is
/// slewed (up to 0.05 %). Long sleeps therefore stop early by 0.1 % and read the clock again.
pub fn sleep_until(until: RawNanos, spin: Spin) -> RawNanos {
    let spin = i64::try_from(spin.0.as_nanos()).unwrap_or(i64::MAX);
    loop {
        let now = raw();
        let left = until.0 - now.0;
        if left <= 0 {
            return now;
        }
        let idle = left - spin - left / 1000;
        if idle > 0 {
            sleep(idle);
        } else if left > spin {
            sleep(left - spin);
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Sleeps once for about this time: for callers that read the clock afterwards. Late by the
/// wake-up, or early by the drift between the clocks.
pub fn nap(length: Duration) {
    sleep(i64::try_from(length.as_nanos()).unwrap_or(i64::MAX));
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where a thread sleeps"
)]
fn sleep(nanos: i64) {
    let span = libc::timespec {
        tv_sec: libc::time_t::try_from(nanos / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::try_from(nanos % 1_000_000_000).unwrap_or(0),
    };
    // SAFETY: clock_nanosleep reads one timespec from this stack frame; an early end by a signal
    // is no fault, because every caller looks at the clock again.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            0,
            &raw const span,
            std::ptr::null_mut(),
        );
    }
}

/// What the kernel believes of its wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncStatus {
    /// A daemon (NTP, PTP) keeps it synchronised.
    pub synchronised: bool,
    /// The kernel's estimate of its error, microseconds.
    pub estimated_error_us: i64,
    /// The bound on its error, microseconds.
    pub max_error_us: i64,
    /// How much faster (or slower, negative) than its counter the clock is made to run, parts per
    /// million. ntpd keeps within 500; chrony slews by up to 83,333.
    pub rate_ppm: i64,
}

/// Asks `adjtimex` without changing anything; `None` where a sandbox forbids it.
pub fn sync_status() -> Option<SyncStatus> {
    // SAFETY: an all-zero timex has modes = 0, which asks and changes nothing.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: adjtimex reads and writes one struct timex, alive for the call.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    (state >= 0).then_some(SyncStatus {
        synchronised: timex.status & libc::STA_UNSYNC == 0,
        estimated_error_us: timex.esterror,
        max_error_us: timex.maxerror,
        // A tick is 10,000 us by default; the frequency has 16 bits of fraction.
        rate_ppm: (timex.tick - 10_000) * 100 + timex.freq / 65_536,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_never_ends_early_and_spins_to_its_deadline() {
        for millis in [0, 1, 5] {
            let until = RawNanos(raw().0 + millis * 1_000_000);
            assert!(sleep_until(until, Spin::SHORT) >= until);
        }
    }

    #[test]
    fn a_clock_pair_converts_its_wall_time_to_its_raw_time() {
        let pair = pair();
        assert_eq!(pair.to_raw(pair.wall), pair.raw);
        assert!(pair.doubt >= 0);
        let later = WallNanos(pair.wall.0 + 7);
        assert_eq!(pair.to_raw(later).0, pair.raw.0 + 7);
    }
}
