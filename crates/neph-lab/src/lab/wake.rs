//! Keeping the machine's cores awake while the lab carries packets.
//!
//! Owns when: from the lab's start on, and as long as packets cross the links. A core that has halted takes
//! its time to wake, or the hypervisor has given it to somebody else: an emulated delay would have
//! that on top, and so would the programs at both ends. A lab that carries nothing lets them sleep.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use neph_sys::awake::Awake;
use neph_sys::ppoll::{self, Awaited};

use super::{Lab, LabError};
use crate::counters::{Direction, LinkCounters};

/// How often the links are looked at: what wakes a core four times a second disturbs nobody.
const LOOK: Duration = Duration::from_millis(250);
/// How long after the last packet the cores are kept awake: pings go once a second, and a campaign
/// takes a moment from one experiment to the next.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keeps the cores awake, by a thread that looks at the links.
#[derive(Debug)]
pub(super) struct Waker {
    /// Closing it ends the thread.
    stop: PipeWriter,
    thread: JoinHandle<()>,
}

impl Waker {
    /// Begins to look at the links of `lab`; what follows finds the cores awake.
    pub(super) fn start(lab: &Lab) -> Result<Self, LabError> {
        let failed = |source| LabError::Thread {
            what: "keeping the cores awake".to_owned(),
            source,
        };
        let (stopped, stop) = io::pipe().map_err(failed)?;
        let all = 0..lab.topology.links.len();
        let links = all.filter_map(|number| lab.counters(number).cloned());
        let links: Vec<Arc<LinkCounters>> = links.collect();
        let wakefulness = Wakefulness::begin();
        let thread = thread::Builder::new()
            .name("lab-wake".to_owned())
            .spawn(move || look(&links, wakefulness, &stopped))
            .map_err(failed)?;
        Ok(Self { stop, thread })
    }

    pub(super) fn stop(self) {
        drop(self.stop);
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

/// The request to the kernel, and since when nothing happened.
struct Wakefulness {
    /// None while nothing happens, and where it is not permitted: the links tell how late they
    /// were in any case.
    awake: Option<Awake>,
    last: Instant,
}

impl Wakefulness {
    fn begin() -> Self {
        Self {
            awake: Awake::keep().ok(),
            last: Instant::now(),
        }
    }

    fn look(&mut self, has_carried: bool) {
        if has_carried {
            self.last = Instant::now();
            if self.awake.is_none() {
                self.awake = Awake::keep().ok();
            }
        } else if self.last.elapsed() > PATIENCE {
            self.awake = None;
        }
    }
}

fn look(links: &[Arc<LinkCounters>], mut wakefulness: Wakefulness, stop: &PipeReader) {
    let mut before = carried(links);
    loop {
        let mut awaited = [Awaited::readable(stop.as_fd())];
        if ppoll::wait(&mut awaited, Some(LOOK)).is_err() || awaited[0].is_gone() {
            return;
        }
        let now = carried(links);
        wakefulness.look(now != before);
        before = now;
    }
}

/// Packets that crossed the links so far.
fn carried(links: &[Arc<LinkCounters>]) -> u64 {
    let of = |link: &Arc<LinkCounters>| -> u64 {
        let both = Direction::BOTH.map(|direction| link.read(direction).delivered);
        both.iter().sum()
    };
    links.iter().map(of).sum()
}
