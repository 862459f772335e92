//! Against dnsmasq.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};

use neph_model::Span;
use neph_probe::ConnectionUse;
use neph_sys::process;

use super::count_of;
use crate::loopback::{measure, short_flow};
use crate::support::{eventually, has, skip};

/// A dnsmasq that answers from its own records; ended when dropped.
struct Dnsmasq {
    child: Child,
    address: SocketAddr,
}

impl Dnsmasq {
    /// `None`, with a word, where it is not installed.
    fn start(test: &str) -> Option<Self> {
        if !has("dnsmasq", "--version") {
            skip(test, "dnsmasq is not installed (apt: dnsmasq-base)");
            return None;
        }
        let listener = TcpListener::bind("127.86.53.2:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("bound");
        drop(listener);
        let long = ["x"; 4].map(|letter| letter.repeat(200)).join(",");
        let child = process::command("dnsmasq")
            .args([
                "--keep-in-foreground",
                "--conf-file=/dev/null",
                "--pid-file",
            ])
            .args([
                "--no-resolv",
                "--no-hosts",
                "--bind-interfaces",
                "--log-facility=-",
            ])
            .arg(format!("--listen-address={}", address.ip()))
            .arg(format!("--port={}", address.port()))
            .args(["--address=/example.org/192.0.2.7", "--local=/nx.test/"])
            .args([
                "--mx-host=example.org,mail.example.org",
                "--ptr-record=7.2.0.192.in-addr.arpa,a.test",
            ])
            .args([
                "--srv-host=_sip._udp.example.org,sip.example.org,5060",
                "--cname=c.test,example.org",
            ])
            .arg(format!("--txt-record=long.test,{long}"))
            .stderr(Stdio::null())
            .spawn();
        let server = Self {
            child: child.expect("it is installed"),
            address,
        };
        eventually("dnsmasq listens", || TcpStream::connect(address).is_ok());
        Some(server)
    }

    fn target(&self, scheme: &str, question: &str) -> String {
        format!("{scheme}://{}/{question}", self.address)
    }
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_resolver_replies_to_every_query_over_udp_and_tcp_with_kernel_stamps() {
    let Some(server) = Dnsmasq::start("dns: a resolver replies") else {
        return;
    };
    for scheme in ["dns", "dns-tcp"] {
        for (question, name) in [
            ("example.org", "dns-noerror"),
            ("example.org?type=MX", "dns-noerror"),
            ("_sip._udp.example.org?type=SRV", "dns-noerror"),
            ("7.2.0.192.in-addr.arpa?type=PTR", "dns-noerror"),
            ("c.test?type=CNAME", "dns-noerror"),
            ("nx.test", "dns-nxdomain"),
            ("elsewhere.test?type=AAAA", "dns-refused"),
        ] {
            let target = server.target(scheme, question);
            let (messages, tally) = measure(short_flow(&target, 10));
            assert_eq!((tally.replies, tally.lost), (10, 0), "{target}");
            assert_eq!(
                count_of(&messages, name),
                10,
                "{target}: {:?}",
                messages[0].answer
            );
            // On a busy host two responses are read at once, and the first has no receive stamp.
            let received = messages.iter().filter(|m| m.marks.nic_rx.is_some());
            assert!(received.count() >= 5, "{target}");
            for message in &messages {
                let ledger = message.ledger().expect("replied to");
                let sum: Span = ledger.entries().iter().map(neph_model::Entry::time).sum();
                assert_eq!(sum, ledger.response_time(), "{target}");
                let marks = &message.marks;
                assert!(marks.nic_tx.is_some(), "{target} {marks:?}");
                assert_eq!(
                    marks.acked.is_some(),
                    scheme == "dns-tcp",
                    "{target} {marks:?}"
                );
            }
        }
    }
}

#[test]
fn an_oversized_dns_response_is_truncated_over_udp_only() {
    let Some(server) = Dnsmasq::start("dns: a response that does not fit") else {
        return;
    };
    for (scheme, name) in [("dns", "dns-noerror-tc"), ("dns-tcp", "dns-noerror")] {
        let target = server.target(scheme, "long.test?type=TXT");
        let (messages, tally) = measure(short_flow(&target, 5));
        assert_eq!(tally.replies, 5, "{target}");
        assert_eq!(
            count_of(&messages, name),
            5,
            "{target}: {:?}",
            messages[0].answer
        );
    }
}

#[test]
fn a_connection_per_query_has_its_connect_in_the_ledger() {
    let Some(server) = Dnsmasq::start("dns: a connection per query") else {
        return;
    };
    let mut spec = short_flow(&server.target("dns-tcp", "example.org"), 10);
    spec.connection_use = ConnectionUse::PerMessage;
    let (messages, tally) = measure(spec);
    assert_eq!(tally.replies, 10);
    for message in &messages {
        let ledger = message.ledger().expect("replied to");
        assert!(ledger.stage(neph_model::Stage::Connect).is_some());
        assert_eq!(ledger.stage(neph_model::Stage::Handshake), None);
    }
}
