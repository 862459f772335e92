//! `--host`, `--port` and `--proto`, for every command that captures packets.

use std::net::IpAddr;

use clap::{Args as ClapArgs, ValueEnum};
use neph_listen::PacketFilter;
use neph_model::CaptureProtocol;

use crate::value;

/// The protocol of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Proto {
    Tcp,
    Udp,
    Icmp,
}

/// The packets to capture; all if no option is given.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct PacketArgs {
    /// Capture only packets from or to this IP address; repeatable
    #[arg(long, value_name = "ADDRESS", value_parser = value::address)]
    host: Vec<IpAddr>,
    /// Capture only packets from or to this TCP or UDP port; repeatable
    #[arg(long, value_name = "PORT", value_parser = value::port)]
    port: Vec<u16>,
    /// Capture only packets of this protocol; repeatable
    #[arg(long, value_enum)]
    proto: Vec<Proto>,
}

impl PacketArgs {
    /// The packet filter of these options.
    pub(crate) fn packet_filter(&self) -> PacketFilter {
        let protocol = |proto: &Proto| match proto {
            Proto::Tcp => CaptureProtocol::Tcp,
            Proto::Udp => CaptureProtocol::Udp,
            Proto::Icmp => CaptureProtocol::Icmp,
        };
        PacketFilter {
            hosts: self.host.clone(),
            ports: self.port.clone(),
            protocols: self.proto.iter().map(protocol).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        filter: PacketArgs,
    }

    fn packet_filter(line: &str) -> PacketFilter {
        CommandLine::try_parse_from(line.split_whitespace())
            .expect("good options")
            .filter
            .packet_filter()
    }

    #[test]
    fn a_wrong_host_or_port_is_reported_with_a_remedy() {
        for (option, invalid, remedy) in [
            ("--host", "foo", "write the address (getent hosts foo)"),
            (
                "--host",
                "10.0.0.0/8",
                "the address of one host: 10.0.0.0 without /8",
            ),
            ("--host", "fe80::1%eth0", "write fe80::1 without %eth0"),
            ("--port", "0", "from 1 to 65535"),
            ("--port", "70000", "from 1 to 65535"),
        ] {
            let message = match CommandLine::try_parse_from(["neph", option, invalid]) {
                Ok(_) => panic!("{invalid} is taken"),
                Err(error) => error.to_string(),
            };
            assert!(message.contains(remedy), "{message}");
        }
    }

    #[test]
    fn a_packet_filter_is_converted_to_options_and_an_expression() {
        let expected = "--host 10.0.0.7 --host fd00::7 --port 443 --proto tcp --proto icmp";
        let full_filter = packet_filter(&format!("neph {expected}"));
        assert_eq!(full_filter.options().join(" "), expected);
        assert_eq!(
            full_filter.expression(),
            "(host 10.0.0.7 or host fd00::7) and (port 443) and (tcp or icmp or icmp6)"
        );
        assert_eq!(
            packet_filter("neph --port 53").expression(),
            "(port 53)",
            "one word alone"
        );
        // An IPv4-mapped IPv6 address means IPv4 packets.
        let mapped = packet_filter("neph --host ::ffff:10.9.0.1").options();
        assert_eq!(mapped, ["--host 10.9.0.1"]);
        let empty_filter = packet_filter("neph");
        assert_eq!(
            (
                empty_filter.options().len(),
                empty_filter.expression().as_str()
            ),
            (0, "")
        );
    }
}
