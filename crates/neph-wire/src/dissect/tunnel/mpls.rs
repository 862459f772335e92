//! MPLS in UDP (RFC 7510).

use super::{Carried, Row, Through, Tunnel, within};
use crate::bytes::Reader;
use crate::dissect::link::labels;

pub(super) const ROW: Row = Row {
    carried: Carried::Udp(&[6635]),
    read,
};

fn read(payload: &[u8]) -> Through<'_> {
    within(Tunnel::Mpls, labels::below(Reader::new(payload)))
}
