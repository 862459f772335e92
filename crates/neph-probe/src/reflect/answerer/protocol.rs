//! What a connection speaks, and what all that can be spoken have in common.

use super::line::Line;
use super::{Counted, framed, http, websocket};

/// What a connection is for, once it is known.
#[derive(Debug)]
pub(super) enum Protocol {
    /// Too few bytes yet.
    Unknown,
    Http(http::Http),
    WebSocket(websocket::WebSocket),
    Framed(framed::Framed),
}

impl Protocol {
    pub(super) const fn is_open(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::Http(http) => http.is_open(),
            Self::WebSocket(_) => true,
            Self::Framed(framed) => framed.is_open(),
        }
    }

    /// Tells the peer that it asks too often, or too much at the moment.
    pub(super) fn refuse(&self, counted: Counted, line: &mut Line) {
        match self {
            Self::Http(_) if counted == Counted::RefusedMemory => http::refuse(503, line),
            Self::Http(_) => http::refuse(429, line),
            Self::WebSocket(_) => websocket::refuse(counted, line),
            Self::Framed(_) | Self::Unknown => {}
        }
    }

    /// Memory that the protocol itself takes for a message, beside the inbox.
    pub(super) const fn capacity(&self) -> usize {
        match self {
            Self::WebSocket(ws) => ws.capacity(),
            Self::Http(_) | Self::Framed(_) | Self::Unknown => 0,
        }
    }

    /// Gives back the memory of a message that was read.
    pub(super) fn tidy(&mut self) {
        if let Self::WebSocket(ws) = self {
            ws.tidy();
        }
    }

    /// How many bytes it has taken of a message that is not whole yet; `None` between messages.
    pub(super) fn seen(&self) -> Option<u64> {
        match self {
            Self::Http(http) => http.seen(),
            Self::WebSocket(ws) => Some(ws.kept() as u64).filter(|kept| *kept > 0),
            Self::Framed(_) | Self::Unknown => None,
        }
    }
}
