//! Which server answers the main flow: what must be known before it runs, and what a third-party server
//! cannot provide. A reflector is measured differently from a third-party server. The same scenario
//! against both would be two measurements under one name.

use neph_model::{ByteSize, Identification, OrderFailed, ProbeKind, Warning};
use neph_probe::{Discovery, FlowSpec};

use crate::failure::failed;

/// Whether the flow can run as what was found. `requires_reflector`: it must be a reflector.
pub(crate) fn check_reflector(
    discovery: &Discovery,
    main: &FlowSpec,
    requires_reflector: bool,
) -> Result<(), OrderFailed> {
    let reason = match &discovery.silence {
        Some(reason)
            if requires_reflector || must_answer(main.target.kind(), discovery.accepted) =>
        {
            reason.as_str()
        }
        None if requires_reflector
            && main.target.kind().is_identified()
            && !discovery.reflector =>
        {
            "a third-party server answers where a reflector of this campaign should be"
        }
        _ => return Ok(()),
    };
    let server = if requires_reflector {
        "reflector"
    } else {
        "server"
    };
    let (target, ip) = (&main.target, main.address.ip());
    let has_name = target.host() != ip.to_string();
    let address_text = if has_name {
        format!(" ({ip})")
    } else {
        String::new()
    };
    Err(failed(
        format!("identify the {server} at {target}{address_text}"),
        reason,
    ))
}

/// Whether silence means that the server is unknown. A service on TCP may accept a connection and not
/// answer a question that it does not understand. STAMP reflectors of other vendors do not listen on
/// TCP.
const fn must_answer(kind: ProbeKind, accepted: bool) -> bool {
    match kind.properties().identification {
        Identification::Required => true,
        Identification::Optional => kind.uses_connection() && !accepted,
        Identification::None => false,
    }
}

/// The warning that the main flow earns if its sizes are not the scenario's.
pub(crate) fn sizes_warning(main: &FlowSpec) -> Option<Warning> {
    let size = |bytes: usize| ByteSize(bytes as u64);
    let (request, response) = (size(main.request_size), size(main.response_size));
    let kind = main.target.kind();
    let applied = main.reflector
        || !kind.has_reply_size()
        || kind
            .properties()
            .longest_echo
            .is_some_and(|max| request <= max && response == request);
    (!applied).then_some(Warning::SizesNotApplied { request, response })
}

#[cfg(test)]
mod tests;
