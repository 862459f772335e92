//! The controller process: its port for agents, its socket for campaigns, and the list of connected
//! agents.
//!
//! Owns the threads. Carries out nothing itself.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use neph_agent::remote::read_json;
use neph_model::Stop;
use neph_sys::clock;
use neph_sys::pulse::Pulse;
use neph_text::{DiskError, Existing, FolderLock, write_whole};

use crate::campaign_socket::{self, CampaignService, socket_path};
use crate::hub::{Hub, Presence};
use crate::monitor::Monitor;
use crate::nats::{Bridge, NatsError};
use crate::registry::{Registry, RegistryError};
use crate::server::{Server, ServerError};
use crate::turning::Turning;

/// Interval at which the list of connected agents is written.
const WRITTEN: Duration = Duration::from_secs(1);

/// Why a controller could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// Another controller uses the folder.
    #[error("a controller runs in {0} already")]
    Runs(String),
    /// A disk operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// An error of its registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// An error of its port.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// An error of NATS.
    #[error(transparent)]
    Nats(#[from] NatsError),
}

/// A running controller; it stops when this is dropped.
#[derive(Debug)]
pub struct Controller {
    server: Server,
    /// For agents that connect over NATS.
    _bridge: Option<Bridge>,
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
    pulses: Vec<Pulse>,
    monitor: Monitor,
    socket: PathBuf,
    _lock: FolderLock,
}

impl Controller {
    /// Starts the controller of `folder`, which listens for agents at `address` (port 0: a free
    /// one). With `nats` (`HOST:PORT`, separated by commas) agents can also use NATS.
    ///
    /// # Errors
    /// A controller already runs in the folder, the address is in use, NATS is not reachable, or a
    /// disk operation failed.
    pub fn start(
        folder: &Path,
        address: SocketAddr,
        nats: Option<&str>,
    ) -> Result<Self, ControllerError> {
        let registry = Arc::new(Registry::open(folder)?);
        let lock = FolderLock::take(folder)?;
        let lock = lock.ok_or_else(|| ControllerError::Runs(folder.display().to_string()))?;
        let hub = Arc::new(Hub::default());
        let bridge = nats.map(|servers| {
            let tls = registry
                .authority()
                .client_tls()
                .map_err(RegistryError::from)?;
            let (registry, hub) = (Arc::clone(&registry), Arc::clone(&hub));
            Bridge::start(servers, tls, registry, hub).map_err(ControllerError::from)
        });
        let bridge = bridge.transpose()?;
        let monitor = Monitor::new(Arc::clone(&hub), Arc::clone(&registry));
        let server = Server::start(address, Arc::clone(&registry), Arc::clone(&hub))?;
        let socket = socket_path(folder);
        let listener = campaign_listener(&socket)?;
        let stop = Stop::new();
        let mut threads = Vec::new();
        let (campaigns_turn, presence_turns) = (Pulse::new("campaigns"), Pulse::new("presence"));
        let pulses = vec![
            server.pulse().clone(),
            campaigns_turn.clone(),
            presence_turns.clone(),
        ];
        let service = CampaignService::for_host(Arc::clone(&hub), registry);
        let ended = stop.clone();
        let campaigns = move || {
            let turning = Turning {
                stop: &ended,
                pulse: &campaigns_turn,
            };
            campaign_socket::serve(&listener, &service, turning);
        };
        let (path, ended) = (presence_path(folder), stop.clone());
        let presence = move || {
            let turning = Turning {
                stop: &ended,
                pulse: &presence_turns,
            };
            write_presence(&hub, &path, turning);
        };
        for (name, work) in [
            ("campaigns", Box::new(campaigns) as Box<dyn FnOnce() + Send>),
            ("presence", Box::new(presence)),
        ] {
            let thread = Builder::new().name(name.to_owned()).spawn(work);
            threads.push(thread.map_err(ServerError::Thread)?);
        }
        Ok(Self {
            server,
            _bridge: bridge,
            stop,
            threads,
            pulses,
            monitor,
            socket,
            _lock: lock,
        })
    }

    /// Pulses of its port, its campaign socket and the writer of the list of connected agents. Each
    /// loop turns at least once a second, unless a disk or a campaign's process blocks: that may
    /// take 10 s.
    pub fn pulses(&self) -> &[Pulse] {
        &self.pulses
    }

    /// Source of its metrics.
    pub const fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// Its address for agents.
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.stop.set();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.socket);
    }
}

/// Listens for campaigns. The lock of the folder ensures that no other controller uses the socket.
fn campaign_listener(socket: &Path) -> Result<UnixListener, DiskError> {
    let _ = fs::remove_file(socket);
    let listener = UnixListener::bind(socket).map_err(DiskError::of("listen at", socket))?;
    let set = listener.set_nonblocking(true);
    set.map_err(DiskError::of("listen at", socket))?;
    Ok(listener)
}

fn presence_path(folder: &Path) -> PathBuf {
    folder.join("connected.json")
}

fn write_presence(hub: &Hub, path: &Path, turning: Turning<'_>) {
    let mut before = None;
    while turning.goes_on() {
        let now = hub.presence();
        if before.as_ref() != Some(&now) {
            let text = serde_json::to_vec(&now).map_err(io::Error::from);
            if let Err(error) = text.and_then(|text| write_whole(path, &text, Existing::Replace)) {
                tracing::warn!("cannot write {}: {error}", path.display());
            }
            before = Some(now);
        }
        clock::nap(WRITTEN);
    }
    let _ = fs::remove_file(path);
}

/// The connected agents of the controller in `folder`; `None` if none runs there.
///
/// # Errors
/// A disk operation failed.
pub fn connected(folder: &Path) -> Result<Option<Vec<Presence>>, ControllerError> {
    if FolderLock::take(folder)?.is_some() {
        return Ok(None);
    }
    Ok(Some(read_json(&presence_path(folder))?.unwrap_or_default()))
}
