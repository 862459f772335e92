//! Test agent in this process that measures with sockets, its bus, and a target.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;

use neph_agent::LocalExecutor;
use neph_agent::policy::{DEFAULT_POLICY, Policy};
use neph_agent::remote::{
    AdmissionControl, AgentClockOffset, FromAgent, Link, LinkLost, Moment, Signer, ToAgent, Worker,
    serve,
};
use neph_campaign::expand::scenarios;
use neph_campaign::plan::parse;
use neph_model::executor::contract;
use neph_model::{AgentName, ExperimentOrder, ReflectorSpec, Span, Stop, Wall};
use neph_probe::Reflector;
use neph_sys::clock;
use neph_text::Source;

use crate::authority::Authority;
use crate::{AgentsExecutor, Bus, FromBus, NotConnected, Sites};

/// An experiment of one message to `url`.
pub(in crate::executor) fn order(url: &str) -> ExperimentOrder {
    let plan = format!(
        "version = 1\nname = \"p\"\ninterval = \"1ms\"\nmessages = 1\n\
         [[endpoint]]\nname = \"e\"\nurl = \"{url}\"\n"
    );
    let plan = parse(&Source::new("p.toml", plan)).expect("a good plan");
    contract::order_of(scenarios(&plan).remove(0), Span::from_millis(10))
}

/// A reflector for all claims.
pub(super) fn lasting() -> SocketAddr {
    static OURS: OnceLock<Reflector> = OnceLock::new();
    let start = || {
        let here = ([127, 0, 0, 1], 0).into();
        Reflector::start(&ReflectorSpec::at(here)).expect("a reflector")
    };
    OURS.get_or_init(start).address()
}

/// The agent's end.
#[derive(Debug)]
struct Wire {
    from: Sender<FromAgent>,
    to: Receiver<ToAgent>,
}

impl Link for Wire {
    fn send(&mut self, message: FromAgent) -> Result<(), LinkLost> {
        self.from
            .send(message)
            .map_err(|error| LinkLost::new(error.to_string()))
    }

    fn receive(&mut self, patience: Span) -> Result<Option<ToAgent>, LinkLost> {
        Ok(self.to.recv_timeout(patience.to_duration()).ok())
    }
}

/// An agent that runs until this is dropped.
#[derive(Debug)]
pub(super) struct OneAgent {
    bus: ToOne,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

/// The controller's end.
#[derive(Clone, Debug)]
pub(super) struct ToOne {
    name: AgentName,
    to: Sender<ToAgent>,
    from: Arc<Mutex<Receiver<FromAgent>>>,
}

fn name() -> AgentName {
    "here".parse().expect("a name")
}

/// The authority of all tests without a controller.
pub(super) fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        Authority::open(folder.path()).expect("writable")
    })
}

pub(super) fn signer() -> Signer {
    authority().signer().expect("a key")
}

/// A guard that allows everything to this host.
pub(super) fn guard(folder: &Path, agent: &AgentName, authority: &str) -> AdmissionControl {
    let policy = DEFAULT_POLICY
        .replace(
            "\"throughput\"]",
            "\"throughput\", \"cpu\", \"traffic\", \"reflector\"]",
        )
        .replace("\"127.0.0.0/8\", \"::1/128\", ", "");
    let policy = Policy::parse(&Source::new("agent.toml", policy)).expect("a good policy");
    let now = Wall::from_unix_nanos(clock::wall().0);
    let guard = AdmissionControl::open(folder, agent.clone(), authority, policy, now);
    let mut guard = guard.expect("a certificate");
    let exact = AgentClockOffset {
        offset: Span::ZERO,
        bound: Span::from_millis(1),
    };
    guard.set_clock_offset(exact, Moment::now());
    guard
}

impl OneAgent {
    pub(super) fn start() -> Self {
        Self::with_name(&name())
    }

    pub(super) fn with_name(name: &AgentName) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ((from, incoming), (to, outgoing)) = (channel(), channel());
        let stop = Stop::new();
        let (ended, path, agent) = (stop.clone(), folder.path().to_owned(), name.clone());
        let thread = std::thread::spawn(move || {
            let mut wire = Wire { from, to: outgoing };
            let guard = guard(&path, &agent, authority().certificate());
            let executor = LocalExecutor::new().with_permit(guard.permit().clone());
            let mut worker = Worker::new(&path, executor, "1", guard).expect("writable");
            serve(&mut worker, &mut wire, &ended).expect("it is there until it ends");
        });
        Self {
            bus: ToOne {
                name: name.clone(),
                to,
                from: Arc::new(Mutex::new(incoming)),
            },
            stop,
            thread: Some(thread),
            _folder: folder,
        }
    }

    /// An executor of several agents, each at the site with its name.
    pub(super) fn executor_of(agents: &[Self], inbox: &Path) -> AgentsExecutor<ToAll> {
        let of = |agent: &Self| (agent.bus.name.to_string(), agent.bus.name.clone());
        let sites = Sites {
            agents: agents.iter().map(of).collect(),
            default: None,
            reflectors: BTreeMap::new(),
        };
        let bus = ToAll(agents.iter().map(|agent| agent.bus.clone()).collect());
        AgentsExecutor::new(inbox, sites, bus, signer()).expect("writable")
    }

    /// An executor that sends orders to this agent.
    pub(super) fn executor(&self, inbox: &Path) -> AgentsExecutor<ToOne> {
        let sites = Sites {
            default: Some(name()),
            ..Sites::default()
        };
        AgentsExecutor::new(inbox, sites, self.bus.clone(), signer()).expect("writable")
    }
}

impl Drop for OneAgent {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ended well");
        }
    }
}

impl ToOne {
    fn from(&self) -> MutexGuard<'_, Receiver<FromAgent>> {
        self.from.lock().expect("whole")
    }
}

impl Bus for ToOne {
    fn send(&mut self, to: &AgentName, message: ToAgent) -> Result<(), NotConnected> {
        self.to.send(message).map_err(|_| NotConnected(to.clone()))
    }

    fn receive(&mut self, patience: Span) -> Vec<FromBus> {
        let received: Vec<FromAgent> = {
            let from = self.from();
            let first = from.recv_timeout(patience.to_duration());
            first.into_iter().chain(from.try_iter()).collect()
        };
        for message in &received {
            if let FromAgent::Beat(beat) = message {
                let (sent, received) = (beat.sent, beat.sent);
                let _ = self.to.send(ToAgent::Beat { sent, received });
            }
        }
        let messages = received.into_iter();
        messages
            .map(|message| FromBus::Message(self.name.clone(), message))
            .collect()
    }
}

/// The controller's end of several agents.
#[derive(Clone, Debug)]
pub(super) struct ToAll(Vec<ToOne>);

impl Bus for ToAll {
    fn send(&mut self, to: &AgentName, message: ToAgent) -> Result<(), NotConnected> {
        let mut agents = self.0.iter_mut();
        let agent = agents.find(|to_one| to_one.name == *to);
        agent
            .ok_or_else(|| NotConnected(to.clone()))?
            .send(to, message)
    }

    fn receive(&mut self, patience: Span) -> Vec<FromBus> {
        let connections = self.0.iter_mut();
        connections
            .flat_map(|to_one| to_one.receive(patience))
            .collect()
    }
}
