//! The controller process: its port for agents and its socket for campaigns.
//!
//! Owns the threads. Carries out nothing itself.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use neph_model::Stop;
use neph_sys::pulse::Pulse;
use neph_text::{DiskError, FolderLock, write_durable};

use crate::campaign_socket::{self, CampaignService, socket_path};
use crate::hub::Hub;
use crate::loop_control::LoopControl;
use crate::monitor::Monitor;
use crate::nats::{Bridge, NatsError};
use crate::registry::{Registry, RegistryError};
use crate::server::{Server, ServerError, check_address};

/// Why a controller could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// Another controller uses the folder.
    #[error(
        "a controller runs in {0} already; end it first, or name another folder with --control"
    )]
    AlreadyRunning(String),
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
    /// Serves campaigns.
    thread: Option<JoinHandle<()>>,
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
        // A controller that cannot start leaves no folder behind.
        if !folder.exists() {
            check_address(address)?;
        }
        let registry = Arc::new(Registry::open(folder)?);
        let lock = FolderLock::take(folder)?;
        let lock =
            lock.ok_or_else(|| ControllerError::AlreadyRunning(folder.display().to_string()))?;
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
        let address_path = address_path(folder);
        let written = write_durable(&address_path, server.address().to_string().as_bytes());
        written.map_err(DiskError::of("write", &address_path))?;
        let socket = socket_path(folder);
        let listener = campaign_listener(&socket)?;
        let stop = Stop::new();
        let campaigns_pulse = Pulse::new("campaigns");
        let pulses = vec![server.pulse().clone(), campaigns_pulse.clone()];
        let service = CampaignService::for_host(hub, registry);
        let thread_stop = stop.clone();
        let campaigns = move || {
            let loop_control = LoopControl {
                stop: &thread_stop,
                pulse: &campaigns_pulse,
            };
            campaign_socket::serve(&listener, &service, loop_control);
        };
        let thread = Builder::new().name("campaigns".to_owned()).spawn(campaigns);
        let thread = thread.map_err(ServerError::Thread)?;
        Ok(Self {
            server,
            _bridge: bridge,
            stop,
            thread: Some(thread),
            pulses,
            monitor,
            socket,
            _lock: lock,
        })
    }

    /// Pulses of its port and its campaign socket. Each loop turns at least once a second, unless a
    /// disk or a campaign's process blocks: that may take 10 s.
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
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.socket);
    }
}

/// Listens for campaigns. The lock of the folder ensures that no other controller uses the socket.
fn campaign_listener(socket: &Path) -> Result<UnixListener, DiskError> {
    let _ = fs::remove_file(socket);
    let listener = UnixListener::bind(socket).map_err(DiskError::of("listen at", socket))?;
    let result = listener.set_nonblocking(true);
    result.map_err(DiskError::of("listen at", socket))?;
    Ok(listener)
}

fn address_path(folder: &Path) -> PathBuf {
    folder.join("address")
}

/// The address for agents that the last controller of `folder` had. `None` if none was started.
pub fn last_address(folder: &Path) -> Option<SocketAddr> {
    let text = fs::read_to_string(address_path(folder)).ok()?;
    text.parse().ok()
}

/// Whether a controller runs in `folder`.
///
/// # Errors
/// A disk operation failed.
pub fn is_running(folder: &Path) -> Result<bool, ControllerError> {
    Ok(FolderLock::take(folder)?.is_none())
}
