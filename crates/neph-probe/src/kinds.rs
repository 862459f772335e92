//! The table of kinds: how each opens what it measures with.
//!
//! Owns the way from a kind to its codec. What is known of a kind before it runs is in `neph_model`.

use neph_model::ProbeKind;
use neph_wire::http::FlowToken;

use crate::ProbeError;
use crate::codec::{self, dns::DnsTcp, http::Http, mqtt::Mqtt, tcp::Framed, ws::Ws};
use crate::datagram::{Opened, dns, icmp, syn, udp};
use crate::raw_tcp;
use crate::spec::FlowSpec;

/// How a kind opens.
pub(crate) enum Opener {
    /// A codec for connection `number` of a flow.
    Stream(fn(&FlowSpec, FlowToken, u32) -> Box<dyn codec::Codec>),
    /// A socket with the codec of its datagrams.
    Datagram(fn(&FlowSpec) -> Result<Opened, ProbeError>),
}

/// The table: a row is a kind.
const fn row(kind: ProbeKind) -> Opener {
    use Opener::{Datagram, Stream};
    match kind {
        ProbeKind::Ws => Stream(|spec, flow, number| Box::new(Ws::new(spec, flow, number))),
        ProbeKind::Http => Stream(|spec, flow, _| Box::new(Http::new(spec, flow))),
        ProbeKind::Tcp => Stream(|spec, _, _| Box::new(Framed::new(spec))),
        ProbeKind::Udp => Datagram(udp::open),
        ProbeKind::Icmp => Datagram(icmp::open),
        ProbeKind::Syn => Datagram(syn::open),
        ProbeKind::Dns => Datagram(dns::open),
        ProbeKind::DnsTcp => Stream(|spec, _, _| Box::new(DnsTcp::new(spec))),
        ProbeKind::Mqtt => Stream(|spec, _, _| Box::new(Mqtt::new(spec))),
    }
}

/// How this flow opens; `None` where the kernel connects and that is all there is to measure.
pub(crate) fn opener(spec: &FlowSpec) -> Option<Opener> {
    match row(spec.target.kind()) {
        // Without permission to build segments, the kernel builds them: it connects.
        Opener::Datagram(_) if spec.target.kind().is_segment() && !raw_tcp::is_permitted() => None,
        Opener::Stream(_) if spec.is_attempt() => None,
        opener => Some(opener),
    }
}

/// The codec for a flow's connection `number`; `None` where a connection attempt is all there is
/// to measure.
pub(crate) fn stream_codec(
    spec: &FlowSpec,
    flow: FlowToken,
    number: u32,
) -> Option<Box<dyn codec::Codec>> {
    match row(spec.target.kind()) {
        Opener::Stream(open) if !spec.is_attempt() => Some(open(spec, flow, number)),
        Opener::Stream(_) | Opener::Datagram(_) => None,
    }
}
