//! Writes the capture of simulated connections: `traffic FLOWS REQUESTS FILE.pcap [bad]`.

#[path = "../tests/traffic/mod.rs"]
mod traffic;

use std::fs::File;
use std::io::{self, BufWriter, Write};

use traffic::{TrafficSpec, pcap_header, pcap_packet, traffic};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [flows, requests, path, options @ ..] = &arguments[..] else {
        return Err(io::Error::other("traffic FLOWS REQUESTS FILE.pcap [bad]"));
    };
    let number = |text: &String| text.parse::<u32>().map_err(io::Error::other);
    let spec = TrafficSpec {
        flows: number(flows)?,
        requests: number(requests)?.into(),
        // All at the same time, so that they meet in the table.
        spacing_nanos: 100_000,
        seed: 1,
        is_clean: options.is_empty(),
    };
    let mut file = BufWriter::new(File::create(path)?);
    pcap_header(&mut file)?;
    let mut written = Ok(());
    let mut packets = 0_u64;
    traffic(spec, |captured| {
        packets += 1;
        if written.is_ok() {
            written = pcap_packet(&captured, &mut file);
        }
    });
    written?;
    writeln!(io::stdout(), "{packets} packets")?;
    file.flush()
}
