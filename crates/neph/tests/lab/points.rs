//! Captures at two points: recorded by `neph hops` itself, written as files for it, what it reports of
//! their packets, and their Ethernet frames and timestamps as another reader sees them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use neph_lab::Identity;
use neph_sys::process;
use serde_json::Value;

use crate::setup::{neph, run_successfully};

const SECOND: i64 = 1_000_000_000;
const ETHERNET: usize = 14;

/// A frame with IPv4 in it.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// When it was captured, nanoseconds since 1970.
    pub(crate) at: i64,
    /// What was kept of it, from the IP header on.
    pub(crate) ip: Vec<u8>,
}

impl Frame {
    pub(crate) fn protocol(&self) -> u8 {
        self.ip[9]
    }

    /// Protocol, addresses and the four bytes behind the IP header: the ports, where there are any.
    pub(crate) fn flow(&self) -> (u8, Vec<u8>) {
        (self.ip[9], self.ip[12..24].to_vec())
    }

    /// As a link's record names it.
    pub(crate) fn identity(&self) -> Identity {
        let ethernet = [&[0; ETHERNET - 2][..], &[8, 0]];
        Identity::from_frame(&[&ethernet.concat(), &self.ip[..]].concat())
    }

    /// The last octet of whom it comes from.
    pub(crate) fn sender(&self) -> u8 {
        self.ip[15]
    }

    /// Where the bytes of TCP that it carries begin and end; `None` of what carries none.
    pub(crate) fn tcp_byte_range(&self) -> Option<(u32, u32)> {
        let total = u32::from(u16::from_be_bytes([self.ip[2], self.ip[3]]));
        let begin = u32::from_be_bytes(self.ip[24..28].try_into().expect("four bytes"));
        let length = total - 20 - u32::from(self.ip[32] >> 4) * 4;
        (self.protocol() == 6 && length > 0).then(|| (begin, begin.wrapping_add(length)))
    }
}

/// Frames of a pcap of nanoseconds, in its order.
pub(crate) fn frames(capture: &[u8]) -> Vec<Frame> {
    let field = |at: usize| {
        let bytes = capture[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes)
    };
    let (mut frames, mut at) = (Vec::new(), 24);
    while at + 16 <= capture.len() {
        let stamp = i64::from(field(at)) * SECOND + i64::from(field(at + 4));
        let captured_length = usize::try_from(field(at + 8)).expect("a length");
        let frame = &capture[at + 16..at + 16 + captured_length];
        if frame[12..14] == [8, 0] {
            let ip = frame[ETHERNET..].to_vec();
            frames.push(Frame { at: stamp, ip });
        }
        at += 16 + captured_length;
    }
    frames
}

/// Captures as files, in a folder that goes away with this.
#[derive(Debug)]
pub(crate) struct CaptureFiles<const N: usize> {
    folder: PathBuf,
    pub(crate) paths: [String; N],
}

impl<const N: usize> CaptureFiles<N> {
    /// Each under its name; `test` tells the folder from others.
    pub(crate) fn of(test: &str, captures: [(&str, &[u8]); N]) -> Self {
        let folder = std::env::temp_dir().join(format!("neph-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let paths = captures.map(|(name, bytes)| {
            let path = folder.join(format!("{name}.pcap"));
            fs::write(&path, bytes).expect("a file");
            path.display().to_string()
        });
        Self { folder, paths }
    }
}

impl<const N: usize> Drop for CaptureFiles<N> {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.folder);
        if !std::thread::panicking() {
            removed.expect("the folder is ours");
        }
    }
}

/// What `neph hops` reports of each packet that passed two points.
pub(crate) fn reported_packets(files: [&str; 2], options: &[&str]) -> Vec<Value> {
    let base_arguments = [
        "hops",
        files[0],
        files[1],
        "--format",
        "ndjson",
        "--packets",
    ];
    let arguments: Vec<&str> = base_arguments.iter().chain(options).copied().collect();
    let output = run_successfully(neph(Path::new("/nowhere"), &arguments));
    let text = String::from_utf8(output.stdout).expect("text");
    let lines = text.lines();
    let lines = lines.map(|line| -> Value { serde_json::from_str(line).expect("JSON") });
    lines.filter(|line| line["kind"] == "packet").collect()
}

/// Records both interfaces (`eth0@NAMESPACE`) while this passes; gives the captures.
pub(crate) fn record_captures(interfaces: &[String; 2], traffic: impl FnOnce()) -> [Vec<u8>; 2] {
    let folder = std::env::temp_dir().join(format!(
        "neph-points-{}-{}",
        std::process::id(),
        interfaces[0].replace('@', "-")
    ));
    let save = folder.display().to_string();
    let [near_end, far_end] = interfaces;
    let points = [
        format!("near=iface:{near_end}"),
        format!("far=iface:{far_end}"),
    ];
    let mut command = neph(
        Path::new("/nowhere"),
        &["hops", &points[0], &points[1], "--save", &save],
    );
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("neph runs");
    let mut printed = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    printed.read_line(&mut line).expect("text");
    assert!(line.contains("recording near"), "{line}");
    traffic();
    let pid = child.id().to_string();
    let sent = process::command("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill runs").success());
    let messages: Vec<String> = printed.lines().map_while(Result::ok).collect();
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130), "{messages:?}");
    for point in ["near", "far"] {
        let has_path =
            |line: &String| line.contains(&format!("{point}: ")) && line.ends_with(" 0 lost");
        assert!(messages.iter().any(has_path), "{messages:?}");
    }
    let captures = ["near", "far"].map(|point| {
        let file = folder.join(format!("{point}.pcap"));
        fs::read(file).expect("a capture")
    });
    fs::remove_dir_all(&folder).expect("the folder is ours");
    captures
}
