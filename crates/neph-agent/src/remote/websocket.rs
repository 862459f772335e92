//! Messages over a WebSocket over TLS, as the agent dials it.
//!
//! Owns the connection, and does not interpret the messages. Threads and blocking calls, as everywhere in an
//! agent.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use neph_model::Span;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, ClientConnection, StreamOwned};
use tungstenite::http::StatusCode;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{HandshakeError, Message, WebSocket};

use super::address::ControllerAddress;
use super::deadline_stream::DeadlineStream;
use super::frame::{LONGEST_FRAME, decode_to_agent, encode_from_agent};
use super::identity::{CONTROLLER_NAME, Identity, IdentityError, tls_without_certificate};
use super::invitation::{Enrolled, Enrolment, Invitation};
use super::{FromAgent, Link, LinkLost, ToAgent};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to send a message: meanwhile the worker does not handle its running orders.
const SEND_TIMEOUT: Duration = Duration::from_secs(4);

/// An agent could not be enrolled.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// The controller was not reached.
    #[error(transparent)]
    Link(#[from] LinkLost),
    /// It refuses.
    #[error("the controller refuses: {0}")]
    Refused(String),
    /// A bus enrols no agent.
    #[error("{0} leads to a bus; enrol at the controller's own port, wss://HOST:PORT")]
    NoPort(ControllerAddress),
    /// It knows no agent with this certificate: it was revoked, or the controller is another one.
    #[error(
        "the controller has revoked this agent; to enrol it, end it, save its policy file, remove its folder and get a new invitation"
    )]
    Revoked,
    /// Its certificate is of another authority than that of the invitation or of this agent.
    #[error(
        "the controller is another one than that of the invitation; make an invitation in the folder of this controller (neph control invite NAME --control FOLDER)"
    )]
    OtherController,
    /// Keys or files.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

type Socket = WebSocket<StreamOwned<ClientConnection, DeadlineStream>>;

/// A connection to a controller.
pub struct WebSocketLink {
    socket: Socket,
}

impl fmt::Debug for WebSocketLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebSocketLink")
    }
}

fn link_lost(operation: &str) -> impl Fn(&dyn fmt::Display) -> LinkLost {
    move |reason| LinkLost::new(format!("{operation}: {reason}"))
}

/// Why a connection is over. rustls' own text for a peer that just closes ends in the address of a web page.
fn link_lost_by(operation: &str, error: &tungstenite::Error) -> LinkLost {
    match error {
        tungstenite::Error::Io(error) if error.kind() == ErrorKind::UnexpectedEof => LinkLost::new(
            format!("{operation}: the controller has closed the connection"),
        ),
        error => LinkLost::new(format!("{operation}: {error}")),
    }
}

fn is_of_other_authority(error: &io::Error) -> bool {
    let cause = error.get_ref();
    let cause = cause.and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(
        cause,
        Some(rustls::Error::InvalidCertificate(
            CertificateError::BadSignature | CertificateError::UnknownIssuer
        ))
    )
}

fn dial(
    address: &ControllerAddress,
    path: &str,
    tls: &Arc<ClientConfig>,
) -> Result<Socket, EnrolError> {
    let connect = link_lost("connect");
    let mut last_error = LinkLost::new(format!("{address} has no address"));
    let Some(authority) = address.at_its_port() else {
        return Err(EnrolError::NoPort(address.clone()));
    };
    let addresses = authority
        .to_socket_addrs()
        .map_err(|error| connect(&error))?;
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return handshake(stream, path, tls),
            Err(error) => last_error = connect(&format!("{address}: {error}")),
        }
    }
    Err(last_error.into())
}

fn handshake(stream: TcpStream, path: &str, tls: &Arc<ClientConfig>) -> Result<Socket, EnrolError> {
    let failed = link_lost("connect");
    let stream_result = stream
        .set_nodelay(true)
        .map(|()| DeadlineStream::with_time_limit(stream, CONNECT_TIMEOUT));
    let stream = stream_result.map_err(|error| failed(&error))?;
    let name = ServerName::try_from(CONTROLLER_NAME).map_err(|error| failed(&error))?;
    let connection = ClientConnection::new(Arc::clone(tls), name);
    let connection = connection.map_err(|error| failed(&error))?;
    let stream = StreamOwned::new(connection, stream);
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(LONGEST_FRAME);
    config.max_frame_size = Some(LONGEST_FRAME);
    let url = format!("wss://{CONTROLLER_NAME}{path}");
    match tungstenite::client::client_with_config(url, stream, Some(config)) {
        Ok((socket, _)) => Ok(socket),
        Err(HandshakeError::Failure(tungstenite::Error::Http(response)))
            if response.status() == StatusCode::UNAUTHORIZED =>
        {
            Err(EnrolError::Revoked)
        }
        Err(HandshakeError::Failure(tungstenite::Error::Io(error)))
            if is_of_other_authority(&error) =>
        {
            Err(EnrolError::OtherController)
        }
        Err(error) => Err(failed(&error).into()),
    }
}

impl WebSocketLink {
    /// Connects an enrolled agent.
    ///
    /// # Errors
    /// No controller is there, or one of the two is not the one that the other expects.
    pub fn connect(address: &ControllerAddress, identity: &Identity) -> Result<Self, EnrolError> {
        let socket = dial(address, "/agent", &identity.tls()?)?;
        Ok(Self { socket })
    }
}

/// Redeems an invitation: makes a key, has it certified, and keeps both in `folder`.
///
/// # Errors
/// No controller is there, the invitation is void, or the disk refuses.
pub fn enrol(
    address: &ControllerAddress,
    invitation: &Invitation,
    folder: &Path,
) -> Result<Identity, EnrolError> {
    let key = rcgen::KeyPair::generate().map_err(|error| EnrolError::Refused(error.to_string()))?;
    let enrolment = Enrolment {
        secret: invitation.secret.clone(),
        public_key: BASE64_STANDARD.encode(key.public_key_raw()),
    };
    let tls = tls_without_certificate(&invitation.authority)?;
    let mut socket = dial(address, "/enrol", &tls)?;
    let failed = link_lost("enrol");
    let text = serde_json::to_string(&enrolment).map_err(|error| failed(&error))?;
    socket
        .send(Message::text(text))
        .map_err(|error| link_lost_by("enrol", &error))?;
    let answer = socket
        .read()
        .map_err(|error| link_lost_by("enrol", &error))?;
    let answer = answer.into_text().map_err(|error| failed(&error))?;
    match serde_json::from_str(&answer).map_err(|error| failed(&error))? {
        Enrolled::Refused(reason) => Err(EnrolError::Refused(reason)),
        Enrolled::Certificate(certificate) => {
            let authority = invitation.authority.clone();
            let identity = Identity::new(key.serialize_pem(), certificate, authority);
            identity.tls()?;
            identity.save(folder)?;
            Ok(identity)
        }
    }
}

fn is_timeout(error: &tungstenite::Error) -> bool {
    matches!(error, tungstenite::Error::Io(error)
        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted))
}

impl Link for WebSocketLink {
    fn send(&mut self, message: FromAgent) -> Result<(), LinkLost> {
        let failed = link_lost("send");
        let bytes = encode_from_agent(&message).map_err(|error| failed(&error))?;
        self.socket.get_mut().get_mut().set_time_limit(SEND_TIMEOUT);
        let result = self.socket.send(Message::binary(bytes));
        result.map_err(|error| link_lost_by("send", &error))
    }

    fn receive(&mut self, patience: Span) -> Result<Option<ToAgent>, LinkLost> {
        let failed = link_lost("receive");
        let wait = patience.to_duration().max(Duration::from_millis(1));
        self.socket.get_mut().get_mut().set_time_limit(wait);
        match self.socket.read() {
            Ok(Message::Binary(bytes)) => {
                let message = decode_to_agent(&bytes);
                let message = message.map_err(|error| LinkLost::unreadable(error.to_string()))?;
                Ok(Some(message))
            }
            Ok(Message::Close(_)) => Err(failed(&"the controller has closed the connection")),
            Ok(_) => {
                // A ping is answered by its library; the answer must not wait for the next message.
                self.socket.get_mut().get_mut().set_time_limit(SEND_TIMEOUT);
                let result = self.socket.flush();
                result.map_err(|error| failed(&error)).map(|()| None)
            }
            Err(error) if is_timeout(&error) => Ok(None),
            Err(error @ tungstenite::Error::Capacity(_)) => {
                Err(LinkLost::unreadable(error.to_string()))
            }
            Err(error) => Err(link_lost_by("receive", &error)),
        }
    }
}
