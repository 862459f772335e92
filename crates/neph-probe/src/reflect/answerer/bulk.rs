//! A connection's bulk transfer: it waits for its turn, and is sunk without being looked at.

use neph_model::{Instant, Local, Span};

use super::protocol::Protocol;
use super::{Answerer, CloseReason, Counted};

impl Answerer {
    /// For how long bytes are to be sunk from the socket without being looked at.
    pub(crate) const fn bulk(&self) -> Option<Span> {
        match &self.protocol {
            Protocol::Framed(framed) => match framed.bulk() {
                Some((span, _)) => Some(span),
                None => None,
            },
            _ => None,
        }
    }

    /// Takes note that `bytes` of the bulk transfer have come; why it loses its turn, if it does.
    pub(crate) fn sank(&self, bytes: u64, now: Instant<Local>) -> Option<Counted> {
        match &self.protocol {
            Protocol::Framed(framed) => framed.bulk()?.1.progress(bytes, now),
            _ => None,
        }
    }

    /// Answers a bulk transfer that waits for its turn; whether it waits on. What is in the outbox
    /// afterwards is for the peer, also when the connection ends.
    pub(crate) fn wait(&mut self, now: Instant<Local>) -> Result<bool, CloseReason> {
        let Protocol::Framed(framed) = &mut self.protocol else {
            return Ok(false);
        };
        let result = framed.wait(now, &mut self.context);
        self.seal()?;
        result
    }
}
