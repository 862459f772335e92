//! `neph media` beside `GStreamer`: our client with its RTSP server, its client with our server.

#![expect(clippy::print_stdout, reason = "a skipped test is reported")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use neph_sys::process;

use crate::media::{MediaServer, document, number};
use crate::neph::{TestFolder, neph};

/// A test video of 25 frames in a second in H.264, at the port that it prints.
const SERVER: &str = r#"
import gi
gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer
Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service("0")
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(
    "( videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=25/1"
    " ! x264enc tune=zerolatency bitrate=500 key-int-max=25 ! rtph264pay name=pay0 pt=96 )"
)
server.get_mount_points().add_factory("/test", factory)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
"#;

#[test]
fn a_server_of_gstreamer_is_measured() {
    let folder = TestFolder::empty();
    fs::write(folder.path("server.py"), SERVER).expect("written");
    let mut server = process::command("/usr/bin/python3");
    server
        .arg(folder.path("server.py"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let Ok(mut server) = server.spawn() else {
        return skip("a_server_of_gstreamer_is_measured", "/usr/bin/python3");
    };
    let mut port = String::new();
    let mut out = BufReader::new(server.stdout.take().expect("piped"));
    out.read_line(&mut port).expect("it can be read");
    if port.is_empty() {
        server.wait().expect("it ended");
        let needs = "gir1.2-gst-rtsp-server-1.0, gstreamer1.0-plugins-ugly and python3-gi";
        return skip("a_server_of_gstreamer_is_measured", needs);
    }
    let url = format!("rtsp://127.0.0.1:{}/test", port.trim());
    let ran = neph(["media", &url, "-n", "2", "-w", "5s", "--format", "json"]);
    server.kill().expect("it can be ended");
    server.wait().expect("it ended");
    let shown = document(&ran);
    for entry in shown["streams"].as_array().expect("a list") {
        assert_eq!(entry["encoding"], "H264");
        assert_eq!(
            (&entry["lost"], &entry["unrelated_datagrams"]),
            (&0.into(), &0.into()),
            "{entry}"
        );
        // 25 in a second, but for those that the buffer of 200 ms holds at the end.
        assert!(
            (115.0..=125.0).contains(&number(&entry["frames"])),
            "{entry}"
        );
        assert!(
            number(&entry["frames_incomplete"]) + number(&entry["frames_missing"]) < 3.0,
            "{entry}"
        );
        let rate = number(&entry["rate_mean_bit_s"]);
        assert!(
            (300e3..900e3).contains(&rate),
            "500 kbit/s were asked of the encoder: {rate}"
        );
        assert!(
            entry["network_jitter_mean_ns"].is_null(),
            "it sends no offsets"
        );
        assert!(entry["jitter_mean_ns"].is_number());
    }
}

#[test]
fn a_client_of_gstreamer_receives_our_streams() {
    let server = MediaServer::start(&[]);
    let location = format!("location=rtsp://{}/video", server.address);
    let mut client = process::command("gst-launch-1.0");
    client.args([
        "-v",
        "rtspsrc",
        &location,
        "protocols=udp",
        "latency=200",
        "!",
    ]);
    client.args(["fakesink", "num-buffers=150", "silent=false", "sync=false"]);
    let Ok(ran) = client.output() else {
        return skip(
            "a_client_of_gstreamer_receives_our_streams",
            "gstreamer1.0-tools",
        );
    };
    let text = String::from_utf8_lossy(&ran.stdout);
    if text.contains("no element \"rtspsrc\"")
        || String::from_utf8_lossy(&ran.stderr).contains("rtspsrc")
    {
        return skip(
            "a_client_of_gstreamer_receives_our_streams",
            "gstreamer1.0-plugins-good",
        );
    }
    assert!(ran.status.success(), "{text}");
    assert!(text.contains("encoding-name=(string)X-NEPH-FRAMES"));
    assert_eq!(text.matches("last-message = chain").count(), 150);
}

fn skip(test: &str, needs: &str) {
    println!("SKIP {test}: needs {needs}");
}
