//! Where a controller is reached.

use std::fmt;
use std::str::FromStr;

/// `wss://HOST:PORT`, the controller's own port, or `nats://HOST:PORT`, a bus; several need commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerAddress {
    /// Host name or address, IPv6 in brackets, with a port.
    Port(String),
    /// The same of each server.
    Nats(String),
}

/// A text that is no address of a controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no address of a controller: write wss://HOST:PORT, or nats://HOST:PORT")]
pub struct NoController(String);

impl ControllerAddress {
    /// Host and port, if it is the controller's own.
    pub fn at_its_port(&self) -> Option<&str> {
        match self {
            Self::Port(authority) => Some(authority),
            Self::Nats(_) => None,
        }
    }
}

fn is_authority(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    is_port && !host.is_empty() && !host.contains(['/', '@', ' '])
}

impl FromStr for ControllerAddress {
    type Err = NoController;

    fn from_str(text: &str) -> Result<Self, NoController> {
        let invalid = || NoController(text.to_owned());
        let (scheme, authority) = text.split_once("://").ok_or_else(invalid)?;
        let authority = authority.strip_suffix('/').unwrap_or(authority).to_owned();
        match scheme {
            "wss" if is_authority(&authority) && !authority.contains(',') => {
                Ok(Self::Port(authority))
            }
            "nats" if authority.split(',').all(is_authority) => Ok(Self::Nats(authority)),
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for ControllerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(authority) => write!(f, "wss://{authority}"),
            Self::Nats(servers) => write!(f, "nats://{servers}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_controller_has_a_scheme_a_host_and_a_port() {
        for valid_text in [
            "wss://c.example:7443",
            "wss://[::1]:1",
            "wss://10.0.0.1:65535/",
            "nats://n.example:4222",
            "nats://a:4222,b:4222,[::1]:4222",
        ] {
            let address = valid_text.parse::<ControllerAddress>();
            let address = address.unwrap_or_else(|error| panic!("{valid_text}: {error}"));
            assert_eq!(address.to_string(), valid_text.trim_end_matches('/'));
        }
        for invalid_text in [
            "c.example:7443",
            "ws://c:1",
            "wss://c",
            "wss://c:0",
            "wss://:1",
            "wss://c:1/x",
            "wss://a:1,b:1",
            "nats://a:1,",
            "nats://u@a:1",
        ] {
            assert!(
                invalid_text.parse::<ControllerAddress>().is_err(),
                "{invalid_text}"
            );
        }
    }
}
