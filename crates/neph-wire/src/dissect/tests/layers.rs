//! Each layer, whole and cut at any byte.

use super::super::{Link, NoPacket, Transport, dissect, why_not};

/// A row of the table.
struct Row {
    name: &'static str,
    link: Link,
    vlan: Option<u16>,
    tunnel: &'static str,
    bytes: Vec<u8>,
}

fn table() -> Vec<Row> {
    let lines = include_str!("layers.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [name, link, vlan, tunnel, hex] = fields[..] else {
            panic!("{line}");
        };
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        Row {
            name,
            link: Link::numbered(link.parse().expect("a number")),
            vlan: vlan.parse().ok(),
            tunnel,
            bytes: (0..hex.len()).step_by(2).map(byte).collect(),
        }
    };
    lines.map(row).collect()
}

#[test]
fn each_encapsulation_is_removed() {
    let rows = table();
    assert!(rows.len() > 30);
    for Row {
        name,
        link,
        vlan,
        tunnel,
        bytes,
    } in rows
    {
        let length = u32::try_from(bytes.len()).expect("short");
        let observed = dissect(link, &bytes, length).unwrap_or_else(|| panic!("{name}"));
        let Transport::Tcp {
            header,
            payload_len,
        } = observed.transport
        else {
            panic!("{name}: {observed:?}");
        };
        assert_eq!((header.source, header.destination), (4_000, 80), "{name}");
        assert_eq!(
            (header.seq, header.flags, payload_len),
            (1_000, 2, 0),
            "{name}"
        );
        assert_eq!(observed.vlan, vlan, "{name}");
        let dissected = observed.tunnel.map(|tunnel| format!("{tunnel:?}"));
        let dissected = dissected.unwrap_or_else(|| "-".to_owned());
        assert_eq!(dissected, tunnel, "{name}");
    }
}

#[test]
fn a_packet_cut_within_a_layer_is_truncated() {
    for Row {
        name, link, bytes, ..
    } in table()
    {
        let length = u32::try_from(bytes.len()).expect("short");
        for captured_length in 0..bytes.len() {
            match dissect(link, &bytes[..captured_length], length) {
                None => assert_eq!(
                    why_not(link, &bytes[..captured_length], length),
                    NoPacket::Cut,
                    "{name} {captured_length}"
                ),
                Some(observed) => {
                    let is_header = matches!(observed.transport, Transport::Tcp { .. });
                    assert!(!is_header, "{name} {captured_length}: its header is cut");
                }
            }
        }
    }
}
