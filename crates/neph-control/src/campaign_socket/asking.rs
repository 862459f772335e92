//! The campaign's end: sends a request, and carries messages as a bus.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use neph_agent::remote::{ToAgent, decode_from_agent, encode_to_agent};
use neph_model::{AgentName, Span, Wall};
use neph_sys::clock::{self, RawNanos};

use super::frames::{REVOKED_FRAME, read_block, read_frame, write_block, write_frame};
use super::{
    ANSWER_TIMEOUT, CampaignSocketError, ControllerAgents, ControllerPlace, READY, REFUSED,
    SocketRequest, WRITE_TIMEOUT, socket_path,
};
use crate::bus::drain;
use crate::hub::AgentDetails;
use crate::now::now;
use crate::operator_port::{ControllerClock, OperatorError};
use crate::{Bus, FromBus, NotConnected};

/// Maximum number of messages that wait in the campaign's process.
const MAX_PENDING: usize = 16_384;
/// Nanoseconds between two attempts to reach a lost controller.
const RETRY_INTERVAL: i64 = 500_000_000;

/// The bus in a campaign's process. When the controller ends, it reconnects to the next one at the
/// same place.
#[derive(Debug)]
pub struct CampaignSocket {
    controller_place: ControllerPlace,
    agents: BTreeSet<AgentName>,
    connection: Connection,
    /// Set while the controller is not connected.
    retry: Option<Retry>,
}

/// An attempt to reach a lost controller.
#[derive(Debug)]
enum Retry {
    /// Due at this time.
    At(RawNanos),
    /// Running on a separate thread: a host that does not answer must not block the campaign.
    Trying(JoinHandle<Result<Connection, CampaignSocketError>>),
}

/// A connection to one controller.
#[derive(Debug)]
struct Connection {
    request: AcceptedRequest,
    from: Mutex<Receiver<FromBus>>,
}

/// A controller that accepted the request.
#[derive(Debug)]
struct AcceptedRequest {
    stream: UnixStream,
    /// Its clock, if it is not this host's.
    clock: Option<ControllerClock>,
}

impl CampaignSocket {
    /// Connects to the controller at `place`, to measure from these agents.
    ///
    /// # Errors
    /// No controller runs there, or one of the agents measures for another campaign.
    pub fn connect(
        controller_place: ControllerPlace,
        agents: BTreeSet<AgentName>,
    ) -> Result<Self, CampaignSocketError> {
        Ok(Self {
            connection: Connection::new(&controller_place, &agents)?,
            controller_place,
            agents,
            retry: None,
        })
    }

    /// Tries from time to time to reach the next controller. Returns the reason once a controller
    /// rejects this operator.
    fn reconnect(&mut self) -> Option<String> {
        let due = RawNanos(clock::raw().0 + RETRY_INTERVAL);
        self.retry = match self.retry.take() {
            None => {
                tracing::warn!(
                    "the controller is gone; agents measure on, and it is looked for until it is back"
                );
                Some(Retry::At(due))
            }
            Some(Retry::At(due)) if clock::raw() < due => Some(Retry::At(due)),
            Some(Retry::At(_)) => {
                let (controller_place, agents) =
                    (self.controller_place.clone(), self.agents.clone());
                let trying =
                    std::thread::spawn(move || Connection::new(&controller_place, &agents));
                Some(Retry::Trying(trying))
            }
            Some(Retry::Trying(trying)) if !trying.is_finished() => Some(Retry::Trying(trying)),
            Some(Retry::Trying(trying)) => match trying.join() {
                Ok(Ok(connection)) => {
                    tracing::info!("the controller is back");
                    self.connection = connection;
                    None
                }
                Ok(Err(CampaignSocketError::OperatorPort(OperatorError::Refused(reason)))) => {
                    return Some(reason);
                }
                Ok(Err(_)) => Some(Retry::At(due)),
                Err(panic) => std::panic::resume_unwind(panic),
            },
        };
        None
    }
}

fn no_controller(folder: &Path) -> impl Fn(io::Error) -> CampaignSocketError + use<> {
    let path = folder.to_owned();
    move |source| CampaignSocketError::NoController {
        path: path.clone(),
        source,
    }
}

impl ControllerPlace {
    /// Opens a byte stream to the controller.
    fn stream(&self) -> Result<AcceptedRequest, CampaignSocketError> {
        match self {
            Self::Folder(folder) => Ok(AcceptedRequest {
                stream: UnixStream::connect(socket_path(folder)).map_err(no_controller(folder))?,
                clock: None,
            }),
            Self::Port(port) => {
                let (stream, clock) = port.connect()?;
                let clock = Some(clock);
                Ok(AcceptedRequest { stream, clock })
            }
        }
    }

    fn silent(&self) -> CampaignSocketError {
        CampaignSocketError::NoAnswer(match self {
            Self::Folder(folder) => format!("in {}", folder.display()),
            Self::Port(port) => format!("at {}", port.address()),
        })
    }
}

/// Sends a request; the stream then has the answer's data.
fn ask(
    controller_place: &ControllerPlace,
    request: &SocketRequest,
) -> Result<AcceptedRequest, CampaignSocketError> {
    let silent = |_| controller_place.silent();
    let mut connection = controller_place.stream()?;
    let stream = &mut connection.stream;
    stream
        .set_read_timeout(Some(ANSWER_TIMEOUT))
        .map_err(silent)?;
    stream
        .set_write_timeout(Some(WRITE_TIMEOUT))
        .map_err(silent)?;
    let text = serde_json::to_vec(request).map_err(io::Error::from);
    let written = text.and_then(|text| write_block(stream, &text));
    written.map_err(silent)?;
    let mut first = [0];
    match stream.read(&mut first) {
        Ok(1) if first == [READY] => {}
        Ok(1) if first == [REFUSED] => {
            let reason = read_block(stream).map_err(silent)?;
            let reason = String::from_utf8_lossy(&reason).into_owned();
            return Err(CampaignSocketError::Refused(reason));
        }
        _ => return Err(controller_place.silent()),
    }
    stream.set_read_timeout(None).map_err(silent)?;
    Ok(connection)
}

/// Details of an agent from the controller at `place`.
///
/// # Errors
/// No controller runs there, or it does not answer.
pub fn agent_details(
    controller_place: &ControllerPlace,
    agent: &AgentName,
) -> Result<AgentDetails, CampaignSocketError> {
    let mut request = ask(controller_place, &SocketRequest::Details(agent.clone()))?;
    let text = read_block(&mut request.stream).map_err(|_| controller_place.silent())?;
    serde_json::from_slice(&text).map_err(|_| controller_place.silent())
}

/// The agents of the controller at `place`.
///
/// # Errors
/// No controller runs there, or it does not answer.
pub fn agents_at(
    controller_place: &ControllerPlace,
) -> Result<ControllerAgents, CampaignSocketError> {
    let mut request = ask(controller_place, &SocketRequest::Agents)?;
    let text = read_block(&mut request.stream).map_err(|_| controller_place.silent())?;
    serde_json::from_slice(&text).map_err(|_| controller_place.silent())
}

impl Connection {
    fn new(
        controller_place: &ControllerPlace,
        agents: &BTreeSet<AgentName>,
    ) -> Result<Self, CampaignSocketError> {
        let request = ask(controller_place, &SocketRequest::Campaign(agents.clone()))?;
        let reading = request
            .stream
            .try_clone()
            .map_err(|_| controller_place.silent())?;
        let (sender, from) = sync_channel(MAX_PENDING);
        std::thread::spawn(move || read_all(reading, &sender));
        Ok(Self {
            request,
            from: Mutex::new(from),
        })
    }
}

/// Passes messages of the controller on until it disconnects.
fn read_all(mut reading: UnixStream, sender: &SyncSender<FromBus>) {
    while let Ok((agent, bytes)) = read_frame(&mut reading) {
        let event = match decode_from_agent(&bytes) {
            _ if bytes.is_empty() => FromBus::Gone(agent),
            _ if bytes == REVOKED_FRAME => FromBus::Revoked(agent),
            Ok(message) => FromBus::Message(agent, message),
            Err(error) => return tracing::warn!("from the controller: {error}"),
        };
        // Must not block: the campaign may be writing, and the controller too. A message without
        // room is lost and requested again later.
        if let Err(TrySendError::Disconnected(_)) = sender.try_send(event) {
            return;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.request.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Bus for CampaignSocket {
    fn send(&mut self, to: &AgentName, message: ToAgent) -> Result<(), NotConnected> {
        let bytes = encode_to_agent(&message).map_err(|_| NotConnected(to.clone()))?;
        let stream = &mut self.connection.request.stream;
        write_frame(stream, to, &bytes).map_err(|_| NotConnected(to.clone()))
    }

    fn receive(&mut self, patience: Span) -> Vec<FromBus> {
        match drain(&self.connection.from, patience) {
            Ok(messages) => messages,
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => {
                let refused = self.reconnect();
                clock::nap(patience.to_duration());
                refused.into_iter().map(FromBus::Refused).collect()
            }
        }
    }

    fn now(&self) -> Wall {
        match &self.connection.request.clock {
            Some(clock) => clock.now(),
            None => now(),
        }
    }
}
