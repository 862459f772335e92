//! Who answers the main flow: what must be known before it runs, and what a stranger cannot give.
//!
//! A reflector is measured differently from a stranger: the same scenario, answered by the one and
//! then by the other, would be two measurements under one name.

use neph_model::{ByteSize, OrderFailed, ProbeKind, Warning};
use neph_probe::{Discovery, FlowSpec, LONGEST_WS_PING};

use crate::failure::failed;

/// Whether the flow can run as what was found. `expected`: it must be a reflector.
pub(crate) fn judge(found: &Discovery, main: &FlowSpec, expected: bool) -> Result<(), OrderFailed> {
    let why = match &found.silence {
        Some(why) if expected || must_answer(main.target.kind(), found.accepted) => why.as_str(),
        None if expected && is_asked(main.target.kind()) && !found.reflector => {
            "a reflector of this campaign belongs there, and somebody else answers"
        }
        _ => return Ok(()),
    };
    let (target, ip) = (&main.target, main.address.ip());
    let named = target.host() != ip.to_string();
    let at = if named {
        format!(" ({ip})")
    } else {
        String::new()
    };
    Err(failed(format!("asking {target}{at} who it is"), why))
}

/// Whether anybody is asked at all: echo and a handshake that is never completed carry no question.
const fn is_asked(kind: ProbeKind) -> bool {
    !kind.facts().is_answered_by_kernel
}

/// Whether silence means that it is not known who is there. A service on TCP may take a connection
/// and say nothing to a question that it does not understand; STAMP reflectors of others do not
/// listen on TCP, and ICMP is not asked at all.
const fn must_answer(kind: ProbeKind, accepted: bool) -> bool {
    match kind {
        ProbeKind::Ws | ProbeKind::Http => true,
        ProbeKind::Tcp => !accepted,
        ProbeKind::Udp | ProbeKind::Icmp | ProbeKind::Syn => false,
    }
}

/// The warning that the main flow earns if its sizes are not the scenario's.
pub(crate) fn sizes_not_applied(main: &FlowSpec) -> Option<Warning> {
    let (request, response) = (main.request_size, main.response_size);
    let applied = match main.target.kind() {
        _ if main.reflector => true,
        ProbeKind::Ws => request <= LONGEST_WS_PING && response == request,
        ProbeKind::Http | ProbeKind::Tcp => false,
        // A SYN has no payload that could have a size.
        ProbeKind::Udp | ProbeKind::Icmp | ProbeKind::Syn => true,
    };
    let size = |bytes: usize| ByteSize(bytes as u64);
    (!applied).then_some(Warning::SizesNotApplied {
        request: size(request),
        response: size(response),
    })
}

#[cfg(test)]
mod tests;
