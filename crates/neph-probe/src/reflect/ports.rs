//! Source ports from which STAMP requests are not answered: servers use them, so a packet from there is
//! probably a reply.

/// Services that answer any packet, by UDP port: echo, daytime, quote of the day, character generator, time,
/// DNS, TFTP, NTP, and reflectors of TWAMP and STAMP.
pub const ANSWERING_PORTS: [u16; 9] = [7, 13, 17, 19, 37, 53, 69, 123, 862];

/// The source ports that a reflector does not answer.
#[derive(Debug)]
pub(super) struct Ports {
    own_port: u16,
    allowed: Box<[u16]>,
}

impl Ports {
    /// For a reflector that listens at port `own` and must also answer `allowed`.
    pub(super) fn new(own_port: u16, allowed: &[u16]) -> Self {
        let allowed = allowed.into();
        Self { own_port, allowed }
    }

    /// Whether a packet from `port` may be a reply. Another reflector probably uses the same port.
    pub(super) fn may_answer(&self, port: u16) -> bool {
        (port == self.own_port || ANSWERING_PORTS.contains(&port)) && !self.allowed.contains(&port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_well_known_source_ports_are_not_answered_unless_allowed() {
        let ports = Ports::new(8080, &[]);
        let refused: Vec<u16> = (0..=u16::MAX)
            .filter(|port| ports.may_answer(*port))
            .collect();
        assert_eq!(refused, [7, 13, 17, 19, 37, 53, 69, 123, 862, 8080]);
        let ports = Ports::new(862, &[862]);
        assert!(!ports.may_answer(862) && ports.may_answer(7));
    }
}
