//! How busy the processors of guests are at both ends of generated traffic.
//!
//! Owns the readings: a shell in the guest writes its uptime and the first line of its /proc/stat each
//! second; all are fetched at the end. Namespaces have the host's processors, which are recorded anyway.

use std::net::IpAddr;

use neph_lab::{Console, Lab, LabError};
use neph_model::{CpuUse, Instant, LoadEnd, LoadSpec, Local, SeriesName, SiteLoad, Span};

use super::running::StressError;
use crate::LoadSample;
use crate::provenance::CpuTimes;

/// A guest whose processors are read.
#[derive(Debug)]
pub(super) struct GuestCpu {
    site: String,
    /// The shell's number there.
    process: u32,
    /// Which ends of which loads it is.
    ends: Vec<(u16, LoadEnd)>,
}

/// The file in the guest.
const FILE: &str = "/tmp/stress.cpu";

impl GuestCpu {
    /// Begins to read the guests at the ends of these loads. Unreadable guests are reported, and left out.
    pub(super) fn begin(lab: &Lab, loads: &[SiteLoad]) -> Vec<Self> {
        let mut guest_cpus: Vec<Self> = Vec::new();
        for (site, end) in ends(lab, loads) {
            if let Some(existing) = guest_cpus
                .iter_mut()
                .find(|guest_cpu| guest_cpu.site == site)
            {
                existing.ends.push(end);
                continue;
            }
            let console = Lab::console(lab.name(), &site).map_err(StressError::from);
            match console.and_then(|console| console.map(start).transpose()) {
                Ok(None) => {}
                Ok(Some(process)) => guest_cpus.push(Self {
                    site,
                    process,
                    ends: vec![end],
                }),
                Err(error) => tracing::warn!("the CPU of guest '{site}' is not recorded: {error}"),
            }
        }
        guest_cpus
    }

    /// Ends it; what was read.
    pub(super) fn end(self, lab: &Lab) -> Vec<LoadSample> {
        let line = format!(
            "kill {}; cat /proc/uptime {FILE}; rm -f {FILE}",
            self.process
        );
        let (ended, mut output) = (neph_probe::now(), Vec::new());
        let ran = Lab::console(lab.name(), &self.site).and_then(|console| {
            let ran = console.map(|mut console| console.run(&line, &mut output));
            ran.transpose().map_err(LabError::from)
        });
        if let Err(error) = ran {
            tracing::warn!("the CPU of guest '{}' is not recorded: {error}", self.site);
        }
        let text = String::from_utf8_lossy(&output);
        let shares = shares(&text, ended);
        let of_each = self.ends.iter().flat_map(|(load, end)| {
            let series = SeriesName::LoadCpu(*load, *end);
            shares
                .iter()
                .map(move |share| LoadSample { series, ..*share })
        });
        of_each.collect()
    }
}

/// The sites at the ends of loads that are traffic.
fn ends(lab: &Lab, loads: &[SiteLoad]) -> Vec<(String, (u16, LoadEnd))> {
    let mut ends = Vec::new();
    for (load, requested) in (1..).zip(loads) {
        let (LoadSpec::Flow { to, .. } | LoadSpec::Stream { to, .. }) = &requested.load else {
            continue;
        };
        ends.push((requested.site.clone(), (load, LoadEnd::Sent)));
        let host = to.rsplit_once(':').map_or(to.as_str(), |(host, _)| host);
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let mut sites = lab.topology().sites.iter();
        let receiver = address.ok().and_then(|address| {
            sites.find(|site| site.addresses().any(|site_address| site_address == address))
        });
        ends.extend(receiver.map(|site| (site.name.clone(), (load, LoadEnd::Received))));
    }
    ends
}

fn start(mut console: Console) -> Result<u32, StressError> {
    let line = format!(
        "(while :; do read up idle </proc/uptime; read stat </proc/stat; echo \"$up $stat\"; sleep 1; done) \
         >{FILE} 2>/dev/null & echo $!"
    );
    let mut output = Vec::new();
    console.run(&line, &mut output).map_err(LabError::from)?;
    let process = String::from_utf8_lossy(&output).trim().parse();
    process.map_err(|_| StressError::NoProcessId)
}

/// Shares of the time between readings, where the first line is the uptime at the end.
fn shares(text: &str, ended: Instant<Local>) -> Vec<LoadSample> {
    let mut lines = text.lines();
    let Some(end_uptime) = lines.next().and_then(uptime) else {
        return Vec::new();
    };
    let readings = lines.filter_map(|line| {
        let (_, stat) = line.split_once(' ')?;
        Some((ended - (end_uptime - uptime(line)?), CpuTimes::parse(stat)?))
    });
    let readings: Vec<(Instant<Local>, CpuTimes)> = readings.collect();
    let pairs = readings.windows(2).filter_map(|pair| {
        let [(from, before), (until, after)] = pair else {
            return None;
        };
        let shares = before.shares_until(*after);
        let (_, value) = shares
            .into_iter()
            .find(|(cpu_use, _)| *cpu_use == CpuUse::Busy)?;
        Some(LoadSample {
            series: SeriesName::Cpu(CpuUse::Busy),
            from: *from,
            until: *until,
            value,
        })
    });
    pairs.collect()
}

/// The first number of a line, seconds with two decimals.
fn uptime(line: &str) -> Option<Span> {
    let (integer, part) = line.split(' ').next()?.split_once('.')?;
    // A guest is not believed that it is up for more than a century.
    let (seconds, part): (u32, u8) = (integer.parse().ok()?, part.parse().ok()?);
    Some(Span::from_millis(
        i64::from(seconds) * 1_000 + i64::from(part) * 10,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_shares_are_differences_of_readings_and_dated_backwards_from_the_end() {
        let text = "62.50 120.00\n60.00 cpu  10 0 10 80 0 0 0 0\n61.01 cpu  60 0 10 131 0 0 0 0\n\
                    62.02 cpu  60 0 10 23";
        let at = Instant::from_nanos;
        let load_seconds = shares(text, at(100_000_000_000));
        let ends: Vec<_> = load_seconds
            .iter()
            .map(|load_second| (load_second.from, load_second.until))
            .collect();
        assert_eq!(ends[0], (at(97_500_000_000), at(98_510_000_000)));
        assert!(
            (load_seconds[0].value - 5_000.0 / 101.0).abs() < 1e-9,
            "{load_seconds:?}"
        );
        assert_eq!(shares("", at(0)), []);
        assert_eq!(shares("cat: cannot open", at(0)), []);
        assert_eq!(uptime("99999999999999999999.00 1"), None);
        assert_eq!(uptime("1.9223372036854775807"), None);
    }
}
