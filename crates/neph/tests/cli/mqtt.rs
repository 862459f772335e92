//! MQTT targets on the command line.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::pings::ping_three_times;

/// Answers CONNECT with this code, and every PINGREQ; its port.
fn broker(code: u8) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut buffer = [0; 128];
                while let Ok(1..) = stream.read(&mut buffer) {
                    let _ = match buffer[0] {
                        0x10 => stream.write_all(&[0x20, 2, 0, code]),
                        _ => stream.write_all(&[0xd0, 0]),
                    };
                }
            });
        }
    });
    port
}

#[test]
fn pings_are_measured_and_a_password_is_never_printed() {
    let target = format!("mqtt://me:secret@127.0.0.1:{}", broker(0));
    for format in ["text", "json", "csv"] {
        let ran = ping_three_times(&target, &["--format", format]);
        assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
        let pair = ran.out + &ran.err;
        assert!(!pair.contains("secret"), "{pair}");
        if format == "text" {
            assert!(pair.contains("3 messages, 3 replies, 0 lost"), "{pair}");
            assert!(pair.contains("MQTT PINGREQ and PINGRESP"), "{pair}");
        }
    }
}

#[test]
fn a_refused_mqtt_connection_is_reported_with_its_code() {
    let ran = ping_three_times(&format!("mqtt://127.0.0.1:{}", broker(4)), &[]);
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    let expected = "3 x MQTT CONNACK code 4 (bad user name or password)";
    assert!(ran.out.contains(expected), "{}", ran.out);
    assert!(ran.out.contains("3 not sent"), "{}", ran.out);
    assert!(
        ran.err.contains("the broker refused the connection"),
        "{}",
        ran.err
    );
    let ran = ping_three_times("mqtt://127.0.0.1/topic", &[]);
    assert_eq!(ran.status, 2);
    assert!(
        ran.err.contains("mqtt has no paths; drop '/topic'"),
        "{}",
        ran.err
    );
}
