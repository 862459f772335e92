//! The current status of a lab, for other processes.
//!
//! Owns the socket /run/neph/LAB/status and its protocol. Without a request nothing is written, so that
//! measurements are not disturbed.

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use neph_sys::ppoll::{self, Awaited};
use serde::{Deserialize, Serialize};

use super::rerouting::{RerouteHandle, RerouteStatus, Rerouting};
use super::service::{RunningService, ServiceHandle};
use super::traffic::{RunningTraffic, TrafficHandle};
use super::worker::Worker;
use super::{Lab, LabError, check_name};
use crate::counters::LinkCounters;
use crate::direction::Direction;
use crate::journal;
use crate::topology::{Link, Topology};

/// The socket's name in the lab's folder; no service's file has it, because logs end in .log.
const SOCKET_NAME: &str = "status";
/// Timeout of an answer: the other side is a thread that does nothing else.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The status of a lab at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabStatus {
    /// Its services, in the order in which they were started.
    pub services: Vec<ServiceStatus>,
    /// Its traffic, in the order of the topology.
    pub traffic: Vec<TrafficStatus>,
    /// Scheduled changes at routers, in the order of the topology.
    #[serde(default)]
    pub reroutes: Vec<RerouteStatus>,
    /// Both directions of each link, in the order of the topology.
    pub links: Vec<DirectionStatus>,
}

/// The status of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Its name.
    pub name: String,
    /// Its site.
    pub site: String,
    /// `up`, `ready` or `ended`.
    pub state: String,
    /// The exit status; `None` while it runs, and after a signal.
    pub exit_status: Option<i32>,
}

/// The status of a transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficStatus {
    /// Its name.
    pub name: String,
    /// Whether the traffic is on now.
    pub on: bool,
    /// Bytes that arrived since the lab came up.
    pub received: u64,
}

/// The counters of one direction of a link since the lab came up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// The link.
    pub link: String,
    /// The site that sends.
    pub from: String,
    /// The site that receives.
    pub to: String,
    /// Counters of the engine; `None` for a link of kind netem.
    pub counts: Option<DirectionCounts>,
}

/// Counters of an engine in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionCounts {
    /// Packets that departed at the other end.
    pub delivered: u64,
    /// Packets lost at random, as configured.
    pub lost: u64,
    /// Packets that found the queue full, as configured.
    pub queue_full: u64,
    /// Packets that were lost without being configured to be.
    pub broken: u64,
    /// Packets that departed late.
    pub late: u64,
    /// The largest lateness in nanoseconds.
    pub worst_lateness_ns: i64,
    /// Whether the engine has a real-time priority.
    pub real_time: bool,
    /// Whether its receive rings are locked in memory.
    pub locked: bool,
}

/// The sources of a status.
struct StatusSources {
    services: Vec<ServiceHandle>,
    traffic: Vec<TrafficHandle>,
    reroutes: Vec<RerouteHandle>,
    links: Vec<([String; 3], Option<Arc<LinkCounters>>)>,
}

/// The thread that answers.
#[derive(Debug)]
pub(super) struct StatusServer(Worker<()>);

impl StatusServer {
    /// Starts to answer about `lab`.
    pub(super) fn start(lab: &Lab) -> Result<Self, LabError> {
        let failed = |source| LabError::Status {
            lab: lab.name.clone(),
            source,
        };
        let listener = UnixListener::bind(socket_path(&lab.name)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let sources = StatusSources::from_lab(lab);
        let work = move |stop: &PipeReader| serve(&listener, &sources, stop);
        Ok(Self(Worker::start("lab-status", work).map_err(failed)?))
    }

    pub(super) fn stop(self) {
        self.0.stop();
    }
}

fn serve(listener: &UnixListener, sources: &StatusSources, stop: &PipeReader) {
    loop {
        let mut awaited = [listener.as_fd(), stop.as_fd()].map(Awaited::readable);
        if ppoll::wait(&mut awaited, None).is_err() || awaited[1].is_gone() {
            return;
        }
        let Ok((stream, _)) = listener.accept() else {
            // The client has disconnected, or this process has no free descriptor: the listener would stay
            // readable.
            let _ = ppoll::wait_through(&mut awaited[1..], Some(ACCEPT_RETRY_DELAY));
            continue;
        };
        // A client that disconnects, or does not read, gets nothing.
        let _ = send_status(stream, &sources.status());
    }
}

/// Everything in one write: fewer system calls disturb measurements less.
fn send_status(mut stream: UnixStream, status: &LabStatus) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(&serde_json::to_vec(status)?)
}

impl StatusSources {
    fn from_lab(lab: &Lab) -> Self {
        let links = lab.topology.links.iter().enumerate();
        Self {
            services: lab.services.iter().map(RunningService::handle).collect(),
            traffic: lab.traffic.iter().map(RunningTraffic::handle).collect(),
            reroutes: lab.rerouting.iter().flat_map(Rerouting::handles).collect(),
            links: links
                .map(|(number, link)| {
                    (
                        link_names(&lab.topology, link),
                        lab.counters(number).cloned(),
                    )
                })
                .collect(),
        }
    }

    fn status(&self) -> LabStatus {
        let services = self.services.iter().map(|service| {
            let (state, exit_status) = service.status();
            ServiceStatus {
                name: service.name.clone(),
                site: service.site.clone(),
                state: state.to_owned(),
                exit_status,
            }
        });
        let traffic = self.traffic.iter().map(|traffic| TrafficStatus {
            name: traffic.name.clone(),
            on: traffic.is_on(),
            received: traffic.received(),
        });
        let links = self.links.iter().flat_map(|([link, a, b], counters)| {
            Direction::BOTH.map(|direction| {
                let (from, to) = match direction {
                    Direction::AToB => (a, b),
                    Direction::BToA => (b, a),
                };
                DirectionStatus {
                    link: link.clone(),
                    from: from.clone(),
                    to: to.clone(),
                    counts: counters
                        .as_ref()
                        .map(|counters| direction_counts(counters, direction)),
                }
            })
        });
        LabStatus {
            services: services.collect(),
            traffic: traffic.collect(),
            reroutes: self.reroutes.iter().map(RerouteHandle::status).collect(),
            links: links.collect(),
        }
    }
}

fn link_names(topology: &Topology, link: &Link) -> [String; 3] {
    let [a, b] = [link.a, link.b].map(|site| topology.sites[site].name.clone());
    [link.name.clone(), a, b]
}

fn direction_counts(counters: &LinkCounters, direction: Direction) -> DirectionCounts {
    let (count, scheduling) = (counters.read(direction), counters.scheduling());
    DirectionCounts {
        delivered: count.delivered,
        lost: count.lost,
        queue_full: count.queue_full,
        broken: count.unexpected_losses(),
        late: count.late,
        worst_lateness_ns: count.worst_lateness.nanos(),
        real_time: scheduling.real_time,
        locked: scheduling.locked,
    }
}

/// Asks the process of the lab called `lab`.
pub(super) fn request_status(lab: &str) -> Result<LabStatus, LabError> {
    check_name(lab)?;
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => LabError::NotUp {
            lab: lab.to_owned(),
        },
        _ => LabError::Status {
            lab: lab.to_owned(),
            source,
        },
    };
    let mut stream = UnixStream::connect(socket_path(lab)).map_err(failed)?;
    stream
        .set_read_timeout(Some(ANSWER_TIMEOUT))
        .map_err(failed)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(failed)?;
    serde_json::from_str(&text).map_err(|error| failed(error.into()))
}

fn socket_path(lab: &str) -> PathBuf {
    journal::folder(lab).join(SOCKET_NAME)
}
