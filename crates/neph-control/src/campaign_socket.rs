//! The bus as another process on the same host reaches it: a Unix socket in the controller's folder.
//!
//! Owns both ends. A process first asks for something ([`SocketRequest`]): for agents to measure from, as a campaign,
//! or for what is known of one. A campaign runs in a process of its own (`neph run`), so that it can be stopped, resumed
//! and looked at as any other; agents stay connected to the controller between campaigns. A message is its
//! length (four bytes, little-endian), the length of the agent's name (one byte), the name, and the bytes of
//! the message; without these the agent is gone.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use neph_agent::remote::{
    LONGEST_FRAME, ToAgent, decode_from_agent, decode_to_agent, encode_from_agent, encode_to_agent,
};
use neph_model::{AgentName, Span};
use neph_sys::clock::{self, RawNanos};
use serde::{Deserialize, Serialize};

use crate::bus::drain;
use crate::hub::{AgentDetails, Hub, HubBus};
use crate::turning::Turning;
use crate::{Bus, FromBus, NotConnected};

/// How often a socket that is idle is looked at.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long the other process may take nothing: it is stopped, or gone.
const STUCK: Duration = Duration::from_secs(10);
/// Messages that wait in the campaign's process.
const WAITING: usize = 16_384;
/// How long a process waits for the other's first words.
const ANSWER: Duration = Duration::from_secs(5);
/// A message, the name of its agent, and their lengths.
const LONGEST: usize = LONGEST_FRAME + 64;

/// The socket in a controller's folder.
pub(crate) fn socket_path(folder: &Path) -> PathBuf {
    folder.join("control.sock")
}

/// The controller was not reached.
#[derive(Debug, thiserror::Error)]
pub enum CampaignSocketError {
    /// No controller listens there.
    #[error("no controller runs in {path}: {source}; start one with neph control serve", path = .path.display())]
    None {
        /// Its folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It does not do what was asked for.
    #[error("{0}")]
    Refused(String),
    /// It is of another version, or broken.
    #[error("the controller in {0} does not answer; is it of this version of neph?")]
    Silent(PathBuf),
}

/// What a process asks the controller over its socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum SocketRequest {
    /// To measure from these agents.
    Campaign(BTreeSet<AgentName>),
    /// What is known of an agent.
    Details(AgentName),
}

fn write_frame(stream: &mut impl Write, agent: &AgentName, bytes: &[u8]) -> io::Result<()> {
    let name = agent.as_str().as_bytes();
    let (Ok(length), Ok(name_length)) = (
        u32::try_from(1 + name.len() + bytes.len()),
        u8::try_from(name.len()),
    ) else {
        return Err(io::Error::from(ErrorKind::InvalidInput));
    };
    let mut frame = Vec::with_capacity(5 + name.len() + bytes.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.push(name_length);
    frame.extend_from_slice(name);
    frame.extend_from_slice(bytes);
    stream.write_all(&frame)
}

/// The next frame: its agent, and the bytes of the message.
fn read_frame(stream: &mut impl Read) -> io::Result<(AgentName, Vec<u8>)> {
    let bad = || io::Error::from(ErrorKind::InvalidData);
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if !(1..=LONGEST).contains(&length) {
        return Err(bad());
    }
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame)?;
    let (name_length, rest) = frame.split_first().ok_or_else(bad)?;
    let (name, bytes) = rest
        .split_at_checked(usize::from(*name_length))
        .ok_or_else(bad)?;
    let name = std::str::from_utf8(name)
        .ok()
        .and_then(|name| name.parse().ok());
    Ok((name.ok_or_else(bad)?, bytes.to_vec()))
}

/// Serves campaigns, each on a thread of its own, until it is asked to stop.
pub(crate) fn serve(listener: &UnixListener, hub: &Arc<Hub>, turning: Turning<'_>) {
    std::thread::scope(|scope| {
        while turning.goes_on() {
            let Ok((stream, _)) = listener.accept() else {
                clock::nap(PATIENCE);
                continue;
            };
            let answer = move || {
                if let Err(error) = answer(stream, hub, turning) {
                    tracing::debug!("a campaign's connection: {error}");
                }
            };
            let builder = std::thread::Builder::new().name("campaign".to_owned());
            if let Err(error) = builder.spawn_scoped(scope, answer) {
                tracing::warn!("a campaign cannot be served: {error}");
            }
        }
    });
}

/// Does what a process asks for.
fn answer(mut stream: UnixStream, hub: &Arc<Hub>, turning: Turning<'_>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(STUCK))?;
    stream.set_read_timeout(Some(ANSWER))?;
    let request: SocketRequest = serde_json::from_slice(&read_block(&mut stream)?)?;
    stream.set_read_timeout(None)?;
    match request {
        SocketRequest::Details(agent) => {
            let text = serde_json::to_vec(&hub.details(&agent))?;
            stream.write_all(&[READY])?;
            write_block(&mut stream, &text)
        }
        SocketRequest::Campaign(agents) => match hub.attach(&agents) {
            Ok(bus) => {
                stream.write_all(&[READY])?;
                campaign(stream, bus, turning)
            }
            Err(busy) => {
                stream.write_all(&[REFUSED])?;
                let why = format!(
                    "agent {busy} measures for another campaign; wait until that has ended"
                );
                write_block(&mut stream, why.as_bytes())
            }
        },
    }
}

fn write_block(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length =
        u32::try_from(bytes.len()).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
    stream.write_all(&length.to_le_bytes())?;
    stream.write_all(bytes)
}

fn read_block(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(io::Error::from(ErrorKind::InvalidData));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Carries messages between a campaign and its agents.
fn campaign(mut stream: UnixStream, mut bus: HubBus, turning: Turning<'_>) -> io::Result<()> {
    let mut reading = stream.try_clone()?;
    let (sender, to_agents) = sync_channel(WAITING);
    let reader = std::thread::spawn(move || {
        while let Ok((agent, bytes)) = read_frame(&mut reading) {
            let Ok(message) = decode_to_agent(&bytes) else {
                return;
            };
            if sender.send((agent, message)).is_err() {
                return;
            }
        }
    });
    let done = loop {
        if !turning.goes_on() || reader.is_finished() {
            break Ok(());
        }
        for (agent, message) in to_agents.try_iter() {
            // It is asked for a second time.
            let _ = bus.send(&agent, message);
        }
        let received = bus.receive(Span::from_millis(5));
        if let Err(error) = received
            .into_iter()
            .try_for_each(|one| pass_on(&mut stream, one))
        {
            break Err(error);
        }
    };
    let _ = stream.shutdown(std::net::Shutdown::Both);
    // The thread must not wait for room in a queue that is read no more.
    drop(to_agents);
    let _ = reader.join();
    done
}

fn pass_on(stream: &mut UnixStream, one: FromBus) -> io::Result<()> {
    match one {
        FromBus::Gone(agent) => write_frame(stream, &agent, &[]),
        FromBus::Message(agent, message) => match encode_from_agent(&message) {
            Ok(bytes) => write_frame(stream, &agent, &bytes),
            Err(error) => Err(io::Error::other(error)),
        },
    }
}

/// The first byte of an answer: what was asked for follows, or why it is not done.
const READY: u8 = b'r';
const REFUSED: u8 = b'n';

/// The bus, from a campaign's process. When the controller ends, it is connected to the next one in the same
/// folder.
#[derive(Debug)]
pub struct CampaignSocket {
    folder: PathBuf,
    agents: BTreeSet<AgentName>,
    connection: Connection,
    /// When the next try to connect is due, once the controller is gone.
    retry_at: Option<RawNanos>,
}

/// A connection to one controller.
#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    from: Mutex<Receiver<FromBus>>,
}

/// Time between two tries to reach a controller that is gone.
const RETRY: i64 = 500_000_000;

impl CampaignSocket {
    /// Connects to the controller that runs in `folder`, to measure from these agents.
    ///
    /// # Errors
    /// None runs there, or one of the agents measures for another campaign.
    pub fn connect(
        folder: &Path,
        agents: BTreeSet<AgentName>,
    ) -> Result<Self, CampaignSocketError> {
        Ok(Self {
            folder: folder.to_owned(),
            connection: Connection::new(folder, &agents)?,
            agents,
            retry_at: None,
        })
    }

    /// The controller is gone: tries to reach the next one, from time to time.
    fn reconnect(&mut self) {
        let now = clock::raw();
        match self.retry_at {
            None => {
                tracing::warn!(
                    "the controller is gone; agents measure on, and it is looked for until it is back"
                );
            }
            Some(due) if now < due => return,
            Some(_) => {
                if let Ok(connection) = Connection::new(&self.folder, &self.agents) {
                    tracing::warn!("the controller is back");
                    self.connection = connection;
                    self.retry_at = None;
                    return;
                }
            }
        }
        self.retry_at = Some(RawNanos(now.0 + RETRY));
    }
}

impl CampaignSocketError {
    fn none(folder: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = folder.to_owned();
        move |source| Self::None {
            path: path.clone(),
            source,
        }
    }
}

/// Asks the controller that runs in `folder`; what it sends comes next.
fn ask(folder: &Path, request: &SocketRequest) -> Result<UnixStream, CampaignSocketError> {
    let none = CampaignSocketError::none(folder);
    let mut stream = UnixStream::connect(socket_path(folder)).map_err(&none)?;
    stream.set_read_timeout(Some(ANSWER)).map_err(&none)?;
    stream.set_write_timeout(Some(STUCK)).map_err(&none)?;
    let text = serde_json::to_vec(request).map_err(io::Error::from);
    let text = text.map_err(&none)?;
    write_block(&mut stream, &text).map_err(&none)?;
    let mut first = [0];
    match stream.read(&mut first) {
        Ok(1) if first == [READY] => {}
        Ok(1) if first == [REFUSED] => {
            let why = read_block(&mut stream).map_err(&none)?;
            let why = String::from_utf8_lossy(&why).into_owned();
            return Err(CampaignSocketError::Refused(why));
        }
        _ => return Err(CampaignSocketError::Silent(folder.to_owned())),
    }
    stream.set_read_timeout(None).map_err(&none)?;
    Ok(stream)
}

/// What the controller that runs in `folder` knows of an agent.
///
/// # Errors
/// None runs there, or it does not answer.
pub fn agent_details(
    folder: &Path,
    agent: &AgentName,
) -> Result<AgentDetails, CampaignSocketError> {
    let silent = || CampaignSocketError::Silent(folder.to_owned());
    let mut stream = ask(folder, &SocketRequest::Details(agent.clone()))?;
    let text = read_block(&mut stream).map_err(|_| silent())?;
    serde_json::from_slice(&text).map_err(|_| silent())
}

impl Connection {
    fn new(folder: &Path, agents: &BTreeSet<AgentName>) -> Result<Self, CampaignSocketError> {
        let none = CampaignSocketError::none(folder);
        let stream = ask(folder, &SocketRequest::Campaign(agents.clone()))?;
        let reading = stream.try_clone().map_err(none)?;
        let (sender, from) = sync_channel(WAITING);
        std::thread::spawn(move || read_all(reading, &sender));
        Ok(Self {
            stream,
            from: Mutex::new(from),
        })
    }
}

/// Hands on what the controller sends, until it is gone.
fn read_all(mut reading: UnixStream, sender: &SyncSender<FromBus>) {
    while let Ok((agent, bytes)) = read_frame(&mut reading) {
        let one = match decode_from_agent(&bytes) {
            _ if bytes.is_empty() => FromBus::Gone(agent),
            Ok(message) => FromBus::Message(agent, message),
            Err(error) => return tracing::warn!("from the controller: {error}"),
        };
        // It must not wait: the campaign may be writing, and the controller with it. What has no room is
        // asked for once more.
        if let Err(TrySendError::Disconnected(_)) = sender.try_send(one) {
            return;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Bus for CampaignSocket {
    fn send(&mut self, to: &AgentName, message: ToAgent) -> Result<(), NotConnected> {
        let bytes = encode_to_agent(&message).map_err(|_| NotConnected(to.clone()))?;
        let stream = &mut self.connection.stream;
        write_frame(stream, to, &bytes).map_err(|_| NotConnected(to.clone()))
    }

    fn receive(&mut self, patience: Span) -> Vec<FromBus> {
        match drain(&self.connection.from, patience) {
            Ok(all) => all,
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => {
                self.reconnect();
                clock::nap(patience.to_duration());
                Vec::new()
            }
        }
    }
}
