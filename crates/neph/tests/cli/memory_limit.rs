//! A reflector whose memory runs out: connections end, the process does not.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use neph_sys::deadline::poll;
use neph_sys::process;

use crate::neph::{TIMEOUT, send_signal, start_and_read_line};

const UPGRADE: &[u8] =
    b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
/// A frame of a client that announces a megabyte and has all of it but the last byte.
const SIZE: usize = 1 << 20;

fn send_incomplete_frame(address: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    let short = Some(Duration::from_millis(500));
    stream.set_read_timeout(short).expect("a limit");
    stream.set_write_timeout(short).expect("a limit");
    let mut frame = vec![0x82, 0xff];
    frame.extend_from_slice(&(SIZE as u64).to_be_bytes());
    frame.resize(frame.len() + 4 + SIZE - 1, 0);
    let requested = stream.write_all(UPGRADE);
    let agreed = requested.and_then(|()| stream.read(&mut [0; 1024]));
    // What is refused ends somewhere in here.
    agreed.and_then(|_| stream.write_all(&frame)).ok()?;
    Some(stream)
}

/// Address space for a few connections; pages of the program itself are part of it.
#[test]
fn a_reflector_whose_memory_runs_out_ends_connections_and_goes_on() {
    for kilobytes in ["250000", "400000"] {
        let mut limited = process::command("sh");
        let script = format!(
            "ulimit -v {kilobytes}; exec '{}' reflect --listen 127.0.0.1:0",
            env!("CARGO_BIN_EXE_neph")
        );
        limited.args(["-c", &script]).stdout(Stdio::null());
        let (mut reflector, mut printed, line) = start_and_read_line(&mut limited);
        let mut fields = line.split_whitespace();
        let address = fields
            .find(|word| word.starts_with("127.0.0.1:"))
            .expect("it prints where it listens");
        let streams: Vec<TcpStream> = (0..300)
            .filter_map(|_| send_incomplete_frame(address))
            .collect();
        assert!(reflector.try_wait().expect("it is ours").is_none());
        drop(streams);
        let served = || {
            let mut stream = TcpStream::connect(address).ok()?;
            stream.write_all(UPGRADE).ok()?;
            let count = stream.read(&mut [0; 1024]).ok()?;
            (count > 0).then_some(())
        };
        let pace = Duration::from_millis(50);
        let second = poll(pace, TIMEOUT, || served().is_some());
        assert!(second, "nobody is served when memory is free again");
        send_signal("INT", reflector.id());
        assert!(reflector.wait().expect("it ends").success());
        let mut reply = String::new();
        printed.read_to_string(&mut reply).expect("text");
        let refused = ["refused_memory", "refused_connections"];
        assert!(
            refused.iter().any(|counter| reply.contains(counter)),
            "{reply}"
        );
    }
}
