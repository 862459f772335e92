//! Keeps the host's cores awake while the lab forwards packets.
//!
//! Owns the times. A lab of a measuring process keeps them awake as long as it is up, for equal conditions in
//! all experiments. A lab of a keeper does so while packets cross its links. A halted core is slow to wake,
//! or the hypervisor has assigned it to others: this would add to emulated delays and to both applications.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use neph_sys::awake::Awake;
use neph_sys::deadline::Stopwatch;
use neph_sys::ppoll::{self, Awaited};

use super::worker::Worker;
use super::{Lab, LabError};
use crate::counters::LinkCounters;
use crate::direction::Direction;
use crate::journal::HasKeeper;

/// Interval for checking the links: four wake-ups a second disturb nothing.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long the cores are kept awake after the last packet: pings arrive once a second.
const WAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Keeps the cores awake, if permitted: the links report their lateness in any case.
#[derive(Debug)]
pub(super) enum CoreWaker {
    /// As long as it exists.
    Always {
        /// `None` if it is not permitted.
        _awake: Option<Awake>,
    },
    /// While packets cross the links, which a thread checks.
    WhileForwarding(Worker<()>),
}

impl CoreWaker {
    /// Keeps them awake from now on; `keeper`: whether this process exists for the lab only.
    pub(super) fn start(lab: &Lab, keeper: HasKeeper) -> Result<Self, LabError> {
        let link_numbers = 0..lab.topology.links.len();
        let links: Option<Vec<Arc<LinkCounters>>> = link_numbers
            .map(|number| lab.counters(number).cloned())
            .collect();
        // The kernel's links have no counters here.
        let (HasKeeper::Yes, Some(links)) = (keeper, links) else {
            return Ok(Self::Always {
                _awake: Awake::keep().ok(),
            });
        };
        let awake_request = AwakeRequest::begin();
        let work = move |stop: &PipeReader| watch_links(&links, awake_request, stop);
        let worker = Worker::start("lab-wake", work).map_err(|source| LabError::Thread {
            task: "keeping the cores awake".to_owned(),
            source,
        })?;
        Ok(Self::WhileForwarding(worker))
    }

    pub(super) fn stop(self) {
        if let Self::WhileForwarding(worker) = self {
            worker.stop();
        }
    }
}

/// The request to the kernel, and since when nothing happened.
struct AwakeRequest {
    /// `None` while nothing happens, and if it is not permitted.
    awake: Option<Awake>,
    last_activity: Stopwatch,
}

impl AwakeRequest {
    fn begin() -> Self {
        Self {
            awake: Awake::keep().ok(),
            last_activity: Stopwatch::start(),
        }
    }

    fn update(&mut self, has_forwarded: bool) {
        if has_forwarded {
            self.last_activity = Stopwatch::start();
            if self.awake.is_none() {
                self.awake = Awake::keep().ok();
            }
        } else if self.last_activity.elapsed() > WAKE_TIMEOUT {
            self.awake = None;
        }
    }
}

fn watch_links(links: &[Arc<LinkCounters>], mut awake_request: AwakeRequest, stop: &PipeReader) {
    let mut before = packet_count(links);
    loop {
        let mut awaited = [Awaited::readable(stop.as_fd())];
        if ppoll::wait(&mut awaited, Some(CHECK_INTERVAL)).is_err() || awaited[0].is_gone() {
            return;
        }
        let now = packet_count(links);
        awake_request.update(now != before);
        before = now;
    }
}

/// Packets that the links received so far and delivered, or lost as configured.
fn packet_count(links: &[Arc<LinkCounters>]) -> u64 {
    let link_packet_count = |link: &Arc<LinkCounters>| -> u64 {
        let counts = Direction::BOTH.map(|direction| {
            let count = link.read(direction);
            count.delivered + count.lost + count.lost_in_burst + count.queue_full
        });
        counts.iter().sum()
    };
    links.iter().map(link_packet_count).sum()
}
