//! MQTT 3.1.1: connection setup and ping.
//!
//! Owns CONNECT, CONNACK, PINGREQ, PINGRESP and DISCONNECT. Refuses other packets: a client without
//! subscriptions receives none.

use thiserror::Error;

use crate::bytes::Reader;

/// A complete PINGREQ packet.
pub const PINGREQ: [u8; 2] = [0xc0, 0];
/// A complete DISCONNECT packet.
pub const DISCONNECT: [u8; 2] = [0xe0, 0];

/// Protocol name and level of 3.1.1.
const PROTOCOL: &[u8] = b"\0\x04MQTT\x04";
const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PINGRESP: u8 = 0xd0;
const CLEAN_SESSION: u8 = 0x02;
const HAS_PASSWORD: u8 = 0x40;
const HAS_USER: u8 = 0x80;
/// Maximum length of a string: its length field has 16 bits.
const MAX_STRING_LEN: usize = 0xffff;

/// The first packet of a client.
#[derive(Debug, Clone, Copy)]
pub struct Connect<'a> {
    /// The client identifier: 1 to 23 letters and digits, which every server accepts (section
    /// 3.1.3.1).
    pub client_id: &'a str,
    /// Keep alive in seconds: the server closes a connection without a packet for 1.5 times as
    /// long; 0 for never.
    pub keep_alive: u16,
    /// The user name, cut to 65,535 bytes.
    pub user: Option<&'a [u8]>,
    /// The password, which needs a user name, cut to 65,535 bytes.
    pub password: Option<&'a [u8]>,
}

impl Connect<'_> {
    /// Appends CONNECT with a clean session and without a will.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let password = self.password.filter(|_| self.user.is_some());
        let strings = [Some(self.client_id.as_bytes()), self.user, password];
        let strings = || strings.iter().flatten().map(|string| capped(string));
        let len = PROTOCOL.len() + 3 + strings().map(|string| 2 + string.len()).sum::<usize>();
        out.push(CONNECT);
        encode_length(len, out);
        out.extend_from_slice(PROTOCOL);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let user = flag(self.user.is_some(), HAS_USER);
        out.push(CLEAN_SESSION | user | flag(password.is_some(), HAS_PASSWORD));
        out.extend(self.keep_alive.to_be_bytes());
        for string in strings() {
            // The string is capped: its length fits two bytes.
            let [.., high, low] = string.len().to_be_bytes();
            out.extend([high, low]);
            out.extend_from_slice(string);
        }
    }
}

fn capped(string: &[u8]) -> &[u8] {
    string.get(..MAX_STRING_LEN).unwrap_or(string)
}

/// Appends a length: seven bits per byte, the low ones first (section 2.2.3).
fn encode_length(mut len: usize, out: &mut Vec<u8>) {
    loop {
        let [.., low] = (len & 0x7f).to_be_bytes();
        len >>= 7;
        if len == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// A packet of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet {
    /// The answer to CONNECT: 0 accepts, any other code refuses.
    ConnAck(u8),
    /// The answer to PINGREQ.
    PingResp,
}

/// Why a server's bytes are no packet of this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MqttError {
    /// A packet of another type or with other flags.
    #[error(
        "the peer sent a packet that begins with {0:#04x}, which is neither CONNACK nor PINGRESP"
    )]
    Unexpected(u8),
    /// A length or flags that are not valid for the packet.
    #[error("the peer sent a malformed MQTT packet")]
    Malformed,
}

/// The first packet of a stream and the bytes that it used; `None` while it is incomplete.
///
/// # Errors
/// It is another packet, or malformed.
pub fn next_packet(stream: &[u8]) -> Result<Option<(usize, Packet)>, MqttError> {
    let mut reader = Reader::new(stream);
    let Some(first) = reader.u8() else {
        return Ok(None);
    };
    let expected = match first {
        CONNACK => 2,
        PINGRESP => 0,
        other => return Err(MqttError::Unexpected(other)),
    };
    match reader.u8() {
        None => return Ok(None),
        Some(len) if len != expected => return Err(MqttError::Malformed),
        Some(_) => {}
    }
    if first == PINGRESP {
        return Ok(Some((2, Packet::PingResp)));
    }
    let Some([flags, code]) = reader.array() else {
        return Ok(None);
    };
    // After a clean session, the flag "session present" is 0 (section 3.2.2.2).
    if flags != 0 {
        return Err(MqttError::Malformed);
    }
    Ok(Some((4, Packet::ConnAck(code))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_connect_has_the_fields_of_the_specification_in_order() {
        let mut connect = Connect {
            client_id: "neph1",
            keep_alive: 10,
            user: None,
            password: Some(b"ignored without a user"),
        };
        let mut out = Vec::new();
        connect.encode(&mut out);
        assert_eq!(out, b"\x10\x11\0\x04MQTT\x04\x02\0\x0a\0\x05neph1");
        connect.user = Some(b"me");
        connect.password = Some(b"pass");
        out.clear();
        connect.encode(&mut out);
        assert_eq!(
            out,
            b"\x10\x1b\0\x04MQTT\x04\xc2\0\x0a\0\x05neph1\0\x02me\0\x04pass"
        );
        let long = vec![b'x'; 70_000];
        connect.password = Some(&long);
        out.clear();
        connect.encode(&mut out);
        assert_eq!(out[..4], [0x10, 0x96, 0x80, 0x04], "three bytes of length");
        assert_eq!(out.len(), 4 + 0x1b - 4 + MAX_STRING_LEN);
    }

    /// The examples of section 2.2.3, table 2.4.
    #[test]
    fn lengths_are_encoded_as_the_specification_shows() {
        for (len, encoded) in [
            (0, &[0x00][..]),
            (127, &[0x7f]),
            (128, &[0x80, 0x01]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x80, 0x80, 0x01]),
            (2_097_151, &[0xff, 0xff, 0x7f]),
            (268_435_455, &[0xff, 0xff, 0xff, 0x7f]),
        ] {
            let mut out = Vec::new();
            encode_length(len, &mut out);
            assert_eq!(out, encoded, "{len}");
        }
    }

    #[test]
    fn only_connack_and_pingresp_are_accepted() {
        let read = next_packet;
        assert_eq!(read(b"\x20\x02\0\0"), Ok(Some((4, Packet::ConnAck(0)))));
        assert_eq!(read(b"\x20\x02\0\x05x"), Ok(Some((4, Packet::ConnAck(5)))));
        assert_eq!(read(b"\xd0\0\xd0\0"), Ok(Some((2, Packet::PingResp))));
        for wrong in [
            &b"\x20\x03"[..],
            b"\x20\x02\x01\0",
            b"\xd0\x01",
            b"\xd0\x80",
        ] {
            assert_eq!(read(wrong), Err(MqttError::Malformed), "{wrong:?}");
        }
        for other in [0x21, 0x30, 0xd1, 0xe0, 0, b'H'] {
            assert_eq!(read(&[other]), Err(MqttError::Unexpected(other)));
        }
    }

    proptest! {
        #[test]
        fn packets_are_parsed_however_the_bytes_are_split(codes in proptest::collection::vec(any::<u8>(), 1..9)) {
            let mut stream = Vec::new();
            let mut expected = Vec::new();
            for code in codes {
                stream.extend([CONNACK, 2, 0, code, PINGRESP, 0]);
                expected.extend([Packet::ConnAck(code), Packet::PingResp]);
            }
            let (mut inbox, mut read) = (Vec::new(), Vec::new());
            for byte in stream {
                inbox.push(byte);
                while let Some((taken, packet)) = next_packet(&inbox).expect("well-formed") {
                    inbox.drain(..taken);
                    read.push(packet);
                }
            }
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn arbitrary_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..9)) {
            if let Ok(Some((taken, _))) = next_packet(&bytes) {
                prop_assert!(taken <= bytes.len());
            }
        }
    }
}
