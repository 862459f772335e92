//! IP in IP (RFC 2003, 4213).

use super::{Carried, Row, Tunnel, TunnelResult};
use crate::dissect::link::plain;

pub(super) const ROW: Row = Row {
    carried: Carried::Ip(&[4, 41]),
    read,
};

#[expect(clippy::unnecessary_wraps, reason = "as all rows read")]
fn read(payload: &[u8]) -> TunnelResult<'_> {
    Some(Ok((Tunnel::Ip, plain(payload))))
}
