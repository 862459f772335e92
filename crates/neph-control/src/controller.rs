//! The controller as a process: its port for agents, its socket for campaigns, and who is connected.
//!
//! Owns the threads. Carries out nothing itself.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use neph_model::Stop;
use neph_sys::clock;
use neph_text::{Existing, write_whole};

use crate::campaign_socket::{self, socket_path};
use crate::hub::{Hub, Presence};
use crate::registry::{Registry, RegistryError};
use crate::server::{Server, ServerError};

/// How often it is written down who is connected.
const WRITTEN: Duration = Duration::from_secs(1);

/// A controller could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// Another one has the folder.
    #[error("a controller runs in {0} already")]
    Runs(String),
    /// The disk refuses.
    #[error("cannot {operation} {path}: {source}")]
    Disk {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// Its folder.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Its port.
    #[error(transparent)]
    Server(#[from] ServerError),
}

fn disk(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ControllerError {
    let path = path.display().to_string();
    move |source| ControllerError::Disk {
        operation,
        path,
        source,
    }
}

/// A controller that runs as long as this.
#[derive(Debug)]
pub struct Controller {
    server: Server,
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
    socket: PathBuf,
    _lock: File,
}

impl Controller {
    /// Starts the controller of `folder`, which listens for agents at `address`; port 0 is a free one.
    ///
    /// # Errors
    /// One runs there already, the address is taken, or the disk refuses.
    pub fn start(folder: &Path, address: SocketAddr) -> Result<Self, ControllerError> {
        let registry = Arc::new(Registry::open(folder)?);
        let lock = lock(folder)?;
        let hub = Arc::new(Hub::default());
        let server = Server::start(address, registry, Arc::clone(&hub))?;
        let socket = socket_path(folder);
        // The lock says that nobody else has it.
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).map_err(disk("listen at", &socket))?;
        let set = listener.set_nonblocking(true);
        set.map_err(disk("listen at", &socket))?;
        let stop = Stop::new();
        let mut threads = Vec::new();
        let (for_campaigns, ended) = (Arc::clone(&hub), stop.clone());
        let campaigns = move || campaign_socket::serve(&listener, &for_campaigns, &ended);
        let (path, ended) = (presence_path(folder), stop.clone());
        let presence = move || write_presence(&hub, &path, &ended);
        for (name, work) in [
            ("campaigns", Box::new(campaigns) as Box<dyn FnOnce() + Send>),
            ("presence", Box::new(presence)),
        ] {
            let thread = Builder::new().name(name.to_owned()).spawn(work);
            threads.push(thread.map_err(ServerError::Thread)?);
        }
        Ok(Self {
            server,
            stop,
            threads,
            socket,
            _lock: lock,
        })
    }

    /// Where it listens for agents.
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

fn lock(folder: &Path) -> Result<File, ControllerError> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let file = options.open(&path).map_err(disk("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ControllerError::Runs(folder.display().to_string())),
        Err(TryLockError::Error(error)) => Err(disk("lock", &path)(error)),
    }
}

fn presence_path(folder: &Path) -> PathBuf {
    folder.join("connected.json")
}

fn write_presence(hub: &Hub, path: &Path, stop: &Stop) {
    let mut before = None;
    while !stop.is_set() {
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

/// Who is connected to the controller in `folder`; `None` if none runs there.
///
/// # Errors
/// The disk refuses.
pub fn connected(folder: &Path) -> Result<Option<Vec<Presence>>, ControllerError> {
    match lock(folder) {
        Err(ControllerError::Runs(_)) => {}
        Ok(_) => return Ok(None),
        Err(error) => return Err(error),
    }
    let path = presence_path(folder);
    match fs::read(&path) {
        Ok(bytes) => {
            let read = serde_json::from_slice(&bytes).map_err(io::Error::from);
            read.map(Some).map_err(disk("read", &path))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(Vec::new())),
        Err(error) => Err(disk("read", &path)(error)),
    }
}
