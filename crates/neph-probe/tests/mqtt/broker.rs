//! Against mosquitto.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};

use neph_model::{Answer, Span, Stage};
use neph_probe::{ConnectionUse, Trust};
use neph_sys::process;
use tempfile::TempDir;

use super::measure;
use crate::loopback::short_flow;
use crate::support::{eventually, has, skip};

/// A mosquitto with a plain and a TLS listener; ended when dropped.
struct Mosquitto {
    child: Child,
    plain: SocketAddr,
    tls: SocketAddr,
    folder: TempDir,
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.86.88.1:0").expect("loopback has a free port");
    listener.local_addr().expect("bound")
}

/// A certificate of its own for `localhost` and 127.86.88.1.
fn write_certificate(folder: &Path) {
    let names = vec!["localhost".to_owned(), "127.86.88.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    fs::write(folder.join("cert.pem"), made.cert.pem()).expect("a folder of ours");
    fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("a folder of ours");
}

impl Mosquitto {
    /// `None`, with a word, where it is not installed. `users`: lines of its configuration.
    fn start(test: &str, users: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        if !has("mosquitto", "-h") && !Path::new("/usr/sbin/mosquitto").exists() {
            skip(test, "mosquitto is not installed (apt: mosquitto)");
            return None;
        }
        write_certificate(folder.path());
        let at = |name: &str| folder.path().join(name).display().to_string();
        let (plain, tls) = (free_address(), free_address());
        let user = if crate::support::is_root() {
            "user root\n"
        } else {
            ""
        };
        let settings = format!(
            "{user}per_listener_settings false\npersistence false\n{}\n\
             listener {} {}\nlistener {} {}\ncertfile {}\nkeyfile {}\n",
            users.replace("FOLDER", &folder.path().display().to_string()),
            plain.port(),
            plain.ip(),
            tls.port(),
            tls.ip(),
            at("cert.pem"),
            at("key.pem"),
        );
        fs::write(at("mosquitto.conf"), settings).expect("a folder of ours");
        // user "me", password "secret:1", as mosquitto_passwd writes it.
        if users.contains("FOLDER") {
            let made = process::command("mosquitto_passwd")
                .args(["-b", "-c", &at("passwords"), "me", "secret:1"])
                .status();
            assert!(made.expect("it comes with mosquitto").success());
        }
        let child = process::command("mosquitto")
            .args(["-c", &at("mosquitto.conf")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let server = Self {
            child: child.expect("it is installed"),
            plain,
            tls,
            folder,
        };
        eventually("mosquitto listens", || {
            [plain, tls]
                .iter()
                .all(|address| TcpStream::connect(address).is_ok())
        });
        Some(server)
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_broker_answers_every_ping_over_tcp_and_tls_with_kernel_stamps() {
    let Some(server) = Mosquitto::start("mqtt: a broker answers", "allow_anonymous true") else {
        return;
    };
    for target in [
        format!("mqtt://{}", server.plain),
        format!("mqtts://{}", server.tls),
    ] {
        for connection_use in [ConnectionUse::Lasting, ConnectionUse::PerMessage] {
            let mut spec = short_flow(&target, 20);
            spec.connection_use = connection_use;
            spec.trust = Trust::CaFile(server.folder.path().join("cert.pem"));
            let (messages, tally, event_texts) = measure(spec);
            assert_eq!(
                (tally.replies, tally.lost),
                (20, 0),
                "{target}: {event_texts:?}"
            );
            for message in &messages {
                let ledger = message.ledger().expect("replied to");
                let sum: Span = ledger.entries().iter().map(neph_model::Entry::time).sum();
                assert_eq!(sum, ledger.response_time(), "{target}");
                assert!(
                    message.marks.nic_tx.is_some(),
                    "{target} {:?}",
                    message.marks
                );
                if connection_use == ConnectionUse::PerMessage {
                    let handshake = ledger.stage(Stage::Handshake);
                    assert!(handshake.is_some(), "CONNECT and CONNACK: {target}");
                }
            }
        }
    }
}

#[test]
fn a_broker_with_users_takes_those_of_the_target_and_refuses_others() {
    let users = "allow_anonymous false\npassword_file FOLDER/passwords";
    let Some(server) = Mosquitto::start("mqtt: a broker with users", users) else {
        return;
    };
    let ping = |user: &str| measure(short_flow(&format!("mqtt://{user}{}", server.plain), 5));
    let (_, tally, event_texts) = ping("me:secret%3A1@");
    assert_eq!(tally.replies, 5, "{event_texts:?}");
    for user in ["", "me:wrong@", "me@"] {
        let (messages, tally, event_texts) = ping(user);
        assert_eq!((tally.replies, tally.failed), (0, 5), "{event_texts:?}");
        let refused = Answer::from_name("mqtt-connack-5");
        assert!(
            messages.iter().all(|message| message.answer == refused),
            "{event_texts:?}"
        );
        assert!(
            !event_texts.iter().any(|text| text.contains("wrong")),
            "{event_texts:?}"
        );
    }
}
