//! MQTT 3.1.1, the asking side: CONNECT once, then PINGREQ and PINGRESP.
//!
//! A PINGRESP carries no number: it answers the oldest PINGREQ, so that a connection has one at a time.

use neph_model::{Answer, MqttRefusal};
use neph_wire::mqtt::{Connect, DISCONNECT, PINGREQ, Packet, next_packet};

use super::{Arrival, Codec, ConnectionEnd, Opening, Replied, Step};
use crate::spec::FlowSpec;
use crate::unguessable::unguessable;

/// The least keep-alive that is announced, seconds: what many clients have by default.
const KEEP_ALIVE: u16 = 60;
/// Pings that fit into the keep-alive, so that a late one does not end the connection.
const PINGS: i64 = 2;

#[derive(Debug)]
pub(crate) struct Mqtt {
    connect: Vec<u8>,
    open: bool,
}

impl Mqtt {
    pub(crate) fn new(spec: &FlowSpec) -> Self {
        // A second connection with the same name would end the first (section 3.1.4).
        let client_id = format!("neph{:016x}", unguessable());
        let credentials = spec.target.credentials();
        let mut connect = Vec::new();
        Connect {
            client_id: &client_id,
            keep_alive: keep_alive(spec),
            user: credentials.map(|credentials| credentials.user.as_slice()),
            password: credentials.and_then(|credentials| credentials.password.as_deref()),
        }
        .encode(&mut connect);
        Self {
            connect,
            open: false,
        }
    }
}

/// Seconds within which the broker will hear of us.
fn keep_alive(spec: &FlowSpec) -> u16 {
    let seconds = spec.schedule.interval.times(PINGS).nanos() / 1_000_000_000 + 1;
    u16::try_from(seconds).unwrap_or(u16::MAX).max(KEEP_ALIVE)
}

impl Codec for Mqtt {
    fn open(&mut self, out: &mut Vec<u8>) -> Opening {
        out.extend_from_slice(&self.connect);
        Opening::Wait
    }

    fn request(&mut self, _seq: u64, out: &mut Vec<u8>) {
        out.extend(PINGREQ);
    }

    fn step(&mut self, input: &mut [u8]) -> Result<Step, String> {
        let packet = next_packet(input).map_err(|error| error.to_string())?;
        let Some((taken, packet)) = packet else {
            return Ok(Step::More);
        };
        let arrival = match (packet, self.open) {
            (Packet::ConnAck(0), false) => {
                self.open = true;
                Arrival::Opened
            }
            (Packet::ConnAck(code), false) => {
                let answer = Answer::Mqtt(MqttRefusal(code));
                let reason = format!(
                    "the broker refused the connection: {}",
                    answer.description()
                );
                Arrival::Refused(ConnectionEnd::new(reason, Some(answer)))
            }
            (Packet::PingResp, true) => Arrival::Reply(Replied::plain(None, None)),
            (Packet::ConnAck(_), true) => return Err("the peer sent a second CONNACK".to_owned()),
            (Packet::PingResp, false) => {
                return Err("the peer sent PINGRESP before CONNACK".to_owned());
            }
        };
        Ok(Step::Consumed(taken, arrival))
    }

    fn encode_close_message(&mut self, out: &mut Vec<u8>) {
        if self.open {
            self.open = false;
            out.extend(DISCONNECT);
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{Span, Target};

    use super::*;

    fn spec(target: &str) -> FlowSpec {
        let target = Target::parse(target).expect("a target");
        FlowSpec::plain(target, ([192, 0, 2, 1], 1883).into())
    }

    #[test]
    fn mqtt_connects_with_the_user_of_the_target() {
        let mut out = Vec::new();
        let mut codec = Mqtt::new(&spec("mqtt://us%65r:p:w@h"));
        assert_eq!(codec.open(&mut out), Opening::Wait);
        let text = String::from_utf8_lossy(&out);
        assert!(text.ends_with("\0\x04user\0\x03p:w"), "{text:?}");
        let mut plain = Vec::new();
        Mqtt::new(&spec("mqtt://h")).open(&mut plain);
        assert_eq!(
            plain.len(),
            2 + 10 + 2 + 20,
            "no user, and a name of 20 letters"
        );
        let mut other = Vec::new();
        Mqtt::new(&spec("mqtt://h")).open(&mut other);
        assert_ne!(plain, other, "each connection has its own name");
    }

    #[test]
    fn a_refused_mqtt_connect_is_reported_with_its_code() {
        let mut codec = Mqtt::new(&spec("mqtt://h"));
        let step = codec.step(&mut [0x20, 2, 0, 5]).expect("a packet");
        let Step::Consumed(4, Arrival::Refused(end)) = step else {
            panic!("{step:?}");
        };
        assert_eq!(
            end.reason,
            "the broker refused the connection: MQTT CONNACK code 5 (not authorized)"
        );
        assert_eq!(end.answer.map(neph_model::Answer::code), Some(6005));
    }

    #[test]
    fn pings_are_answered_in_order_and_other_packets_end_the_connection() {
        let mut codec = Mqtt::new(&spec("mqtt://h"));
        assert!(codec.step(&mut [0xd0, 0]).is_err(), "before CONNACK");
        let opened = codec.step(&mut [0x20, 2, 0, 0]);
        assert_eq!(opened, Ok(Step::Consumed(4, Arrival::Opened)));
        let reply = Arrival::Reply(Replied::plain(None, None));
        assert_eq!(
            codec.step(&mut [0xd0, 0, 0xd0]),
            Ok(Step::Consumed(2, reply))
        );
        assert_eq!(codec.step(&mut [0xd0]), Ok(Step::More));
        assert!(
            codec.step(&mut [0x20, 2, 0, 0]).is_err(),
            "a second CONNACK"
        );
        assert!(codec.step(&mut [0x30, 2, 0, 0]).is_err(), "PUBLISH");
        let mut out = Vec::new();
        codec.encode_close_message(&mut out);
        codec.encode_close_message(&mut out);
        assert_eq!(out, DISCONNECT);
    }

    #[test]
    fn the_keep_alive_covers_two_intervals() {
        let mut spec = spec("mqtt://h");
        assert_eq!(keep_alive(&spec), 60);
        for (interval, seconds) in [(29, 60), (100, 201), (100_000, u16::MAX)] {
            spec.schedule.interval = Span::from_secs(interval);
            assert_eq!(keep_alive(&spec), seconds);
        }
    }
}
