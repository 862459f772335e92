//! How a small transfer is requested at a target: the protocol of one message on a connection of its
//! own, without the connection.

use std::net::SocketAddr;

use neph_model::{ProbeKind, Target};
use neph_wire::exchange::Exchange;

use crate::ProbeError;
use crate::channel::StreamEnd;
use crate::codec::{self, Arrival, Codec, Opening, PartialReply, Step};
use crate::discover::{DiscoveryOptions, discover};
use crate::kinds;
use crate::spec::{ConnectionUse, FlowSpec};

/// A target that makes small transfers: a reflector of ours, by `http://` or `tcp://`; or any server
/// by `http://`, which then sends what its path holds.
#[derive(Clone, Debug)]
pub struct SmallTransfer {
    flow: FlowSpec,
}

impl SmallTransfer {
    /// Finds out what answers at the target; a reflector is asked for `size` bytes of reply.
    ///
    /// # Errors
    /// When the site cannot be entered, or the target makes no such transfers.
    pub fn at(
        target: &Target,
        address: SocketAddr,
        size: usize,
        options: &DiscoveryOptions,
    ) -> Result<Self, ProbeError> {
        let cannot = |reason: String, closed| ProbeError::Transfer {
            target: target.to_string(),
            reason,
            closed,
        };
        if target.is_secure() || !matches!(target.kind(), ProbeKind::Http | ProbeKind::Tcp) {
            let reason = "only http:// and tcp:// make transfers".to_owned();
            return Err(cannot(reason, false));
        }
        let discovery = discover(target, address, options)?;
        if let Some(silence) = discovery.silence {
            return Err(cannot(silence, discovery.closed));
        }
        if target.kind() == ProbeKind::Tcp && !discovery.reflector {
            let reason =
                "no neph reflector answers there; name an http:// server instead".to_owned();
            return Err(cannot(reason, false));
        }
        let flow = FlowSpec {
            response_size: size,
            timeout: options.patience,
            connection_use: ConnectionUse::PerMessage,
            reflector: discovery.reflector,
            ..FlowSpec::plain(target.clone(), address)
        };
        Ok(Self { flow })
    }

    /// Another transfer.
    ///
    /// # Errors
    /// The target has no protocol to ask with.
    pub fn exchange(&self) -> Result<Box<dyn Exchange>, String> {
        let codec = kinds::stream_codec(&self.flow, codec::new_token(), 0);
        let codec = codec.ok_or("nothing can be asked for")?;
        Ok(Box::new(OneMessage(codec)))
    }
}

/// A codec that is asked once.
#[derive(Debug)]
struct OneMessage(Box<dyn Codec>);

impl Exchange for OneMessage {
    fn begin(&mut self, out: &mut Vec<u8>) {
        if self.0.open(out) == Opening::Ready {
            self.0.request(0, out);
        }
    }

    fn take(&mut self, inbox: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<bool, String> {
        loop {
            let (taken, arrival) = match self.0.step(inbox)? {
                Step::More => {
                    if out.is_empty() {
                        self.0.pay(out);
                    }
                    return Ok(false);
                }
                Step::Consumed(taken, arrival) => (taken, arrival),
            };
            inbox.drain(..taken);
            match arrival {
                Arrival::Reply(_) => return Ok(true),
                Arrival::Opened => self.0.request(0, out),
                Arrival::Nothing => {}
                Arrival::Closed(end) | Arrival::Refused(end) => return Err(end.reason),
            }
        }
    }

    fn end(&mut self) -> bool {
        matches!(self.0.end(StreamEnd::Closed), PartialReply::Whole(_))
    }
}
