//! What the settings file adds to the results.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use neph_model::ByteSize;

use super::file_name::FileName;

/// The URL path of the Latency Tester's server.
const URL_PATH: &str = "/echo";

/// An endpoint of the settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedEndpoint {
    /// Its description, which is the endpoint's name.
    pub name: String,
    /// Its destination: host, and port if the file has one.
    pub destination: String,
    /// Whether it was measured over TLS.
    pub is_secure: bool,
}

/// The part of a settings file that describes the measurements. The caller parses the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedSettings {
    /// The endpoints.
    pub endpoints: Vec<ImportedEndpoint>,
    /// Bytes of a request, if all have the same size.
    pub request_size: Option<ByteSize>,
    /// Bytes of a reply.
    pub response_size: Option<ByteSize>,
    /// The client's port, if it was fixed.
    pub source_port: Option<NonZeroU16>,
}

impl ImportedEndpoint {
    /// `wss://metro:443/echo`.
    pub(super) fn target(&self) -> String {
        let scheme = if self.is_secure { "wss" } else { "ws" };
        format!("{scheme}://{}{URL_PATH}", self.destination)
    }

    fn port(&self) -> u16 {
        if self.is_secure { 443 } else { 80 }
    }
}

impl ImportedSettings {
    /// The endpoint of a file. File names have its destination (later versions of the Latency
    /// Tester write `_` for `:`) or its description.
    pub(super) fn endpoint_of(&self, file: &FileName) -> Option<&ImportedEndpoint> {
        let file_endpoint = file.endpoint.as_str();
        self.endpoints.iter().find(|endpoint| {
            let destination = &endpoint.destination;
            *destination == file_endpoint
                || endpoint.name == file_endpoint
                || destination.replace(':', "_") == file_endpoint
                || destination.replace([':', '/'], "_") == file_endpoint
        })
    }
}

/// The address of a file's server, if the file has one.
pub(super) fn address(file: &FileName, endpoint: Option<&ImportedEndpoint>) -> Option<SocketAddr> {
    if let Some(endpoint) = endpoint {
        let host = endpoint.destination.split('/').next().unwrap_or_default();
        let ip = || host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        let with_port = host.parse().ok();
        return with_port.or_else(|| Some(SocketAddr::new(ip()?, endpoint.port())));
    }
    let file_endpoint = &file.endpoint;
    let with_colon = || {
        let (host, port) = file_endpoint.rsplit_once('_')?;
        format!("{host}:{port}").parse().ok()
    };
    file_endpoint.parse().ok().or_else(with_colon)
}
