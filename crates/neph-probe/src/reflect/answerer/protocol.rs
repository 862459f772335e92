//! The protocol of a connection, and the operations that all protocols share.

use super::reply_context::ReplyContext;
use super::{Counted, framed, http, websocket};

/// The protocol of a connection, once it is known.
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

    /// Reports to the peer that it sends too many requests, or requests too much at the moment.
    pub(super) fn refuse(&self, counted: Counted, context: &mut ReplyContext) {
        match self {
            Self::Http(_) if counted == Counted::RefusedMemory => http::refuse(503, context),
            Self::Http(_) => http::refuse(429, context),
            Self::WebSocket(_) => websocket::refuse(counted, context),
            Self::Framed(_) | Self::Unknown => {}
        }
    }

    /// Memory of the protocol itself for a message, without the inbox.
    pub(super) const fn capacity(&self) -> usize {
        match self {
            Self::WebSocket(ws) => ws.capacity(),
            Self::Http(_) | Self::Framed(_) | Self::Unknown => 0,
        }
    }

    /// Frees the memory of a message that was read.
    pub(super) fn shrink(&mut self) {
        if let Self::WebSocket(ws) = self {
            ws.shrink();
        }
    }

    /// Received bytes of an incomplete message; `None` between messages.
    pub(super) fn progress(&self) -> Option<u64> {
        match self {
            Self::Http(http) => http.progress(),
            Self::WebSocket(ws) => Some(ws.buffered_len() as u64).filter(|length| *length > 0),
            Self::Framed(_) | Self::Unknown => None,
        }
    }
}
