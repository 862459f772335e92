//! Which protocol a connection speaks, by its first bytes.

use super::{CloseReason, Counted, Protocol, framed, http};

/// The protocol that these bytes begin; `None` while they could begin more than one.
pub(super) fn recognise(input: &[u8]) -> Option<Result<Protocol, CloseReason>> {
    const HELLO: &[u8] = b"NEPH";
    let first = *input.first()?;
    if first == HELLO[0] {
        let known = input.len().min(HELLO.len());
        return match input[..known] == HELLO[..known] {
            true if known == HELLO.len() => Some(Ok(Protocol::Framed(framed::Framed::new()))),
            true => None,
            false => Some(Err(CloseReason::Refused(Counted::RefusedProtocol))),
        };
    }
    Some(if first.is_ascii_uppercase() {
        Ok(Protocol::Http(http::Http::new()))
    } else {
        Err(CloseReason::Refused(Counted::RefusedProtocol))
    })
}
