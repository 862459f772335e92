//! Measures what a fleet costs and disturbs: `fleet reflect ADDRESS:PORT` answers until its input
//! ends, `fleet ask ADDRESS:PORT SLOTS INTERVAL_US SECONDS` asks and tells how it went, as
//! `name value` lines.
//!
//! Run each half in a namespace of its own, joined by a veth pair: benches/fleet.sh does.

#![expect(
    clippy::print_stdout,
    reason = "a program of its own, not part of neph"
)]

use std::env;
use std::error::Error;
use std::fs;
use std::io::Read;

use neph_model::{
    Fleet, FleetEndpoint, Permit, ProbeKind, ReadBy, ReflectorCaps, ReflectorSpec, Span, Stop,
};
use neph_probe::{FleetReport, FleetRun, FleetSpec, FleetTally, Priority, Reflector};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["reflect", address] => reflect(address),
        ["ask", address, slots, micros, seconds] => {
            let spec = spec(address, slots.parse()?, micros.parse()?, seconds.parse()?)?;
            ask(spec)
        }
        _ => Err("fleet reflect ADDRESS:PORT | fleet ask ADDRESS:PORT SLOTS INTERVAL_US SECONDS")?,
    }
}

fn reflect(address: &str) -> Result<(), Box<dyn Error>> {
    let caps = ReflectorCaps {
        messages_per_second: 1_000_000,
        ..ReflectorCaps::default()
    };
    let reflector = Reflector::start(&ReflectorSpec {
        caps,
        ..ReflectorSpec::at(address.parse()?)
    })?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    for (name, count) in reflector.stop() {
        if count > 0 {
            println!("{name} {count}");
        }
    }
    cost()
}

fn spec(address: &str, slots: u32, micros: i64, seconds: i64) -> Result<FleetSpec, Box<dyn Error>> {
    let interval = Span::from_micros(micros);
    let count = Span::from_secs(seconds).nanos() / interval.nanos();
    Ok(FleetSpec {
        fleet: Fleet {
            probe: ProbeKind::Udp,
            slots,
            endpoints: vec![FleetEndpoint {
                name: "peer".to_owned(),
                address: address.parse()?,
            }],
            interval,
            lifetime: None,
            criteria: None,
        },
        count: Some(u64::try_from(count)?),
        request_size: 0,
        response_size: 0,
        timeout: Span::from_secs(2),
        first_port: None,
        rate_cap: 1_000_000,
        permit: Permit::ANYTHING,
        key: None,
        priority: Priority::Auto,
        site: None,
        sharing: None,
    })
}

/// What is kept of each message.
#[derive(Default)]
struct CollectedTimes {
    round_trips: Vec<i64>,
    networks: Vec<i64>,
    late: Vec<i64>,
}

fn ask(spec: FleetSpec) -> Result<(), Box<dyn Error>> {
    let run = FleetRun::start(spec, Stop::new())?;
    let mut times = CollectedTimes::default();
    let mut tally = FleetTally::default();
    for report in run.reports() {
        match report {
            FleetReport::Opened { sharing, .. } => println!("how {sharing:?}"),
            FleetReport::Messages(messages) => {
                for message in messages {
                    times.late.push(message.late.nanos());
                    let Some(reply) = message.reply() else {
                        continue;
                    };
                    if reply.read_by == ReadBy::Kernel {
                        times.round_trips.push(reply.round_trip.nanos());
                        times.networks.push(reply.network().nanos());
                    }
                }
            }
            FleetReport::Ended(end) => tally = end,
            FleetReport::Anchor(_) | FleetReport::ClockStepped(_) => {}
            FleetReport::NotSent(why) => println!("not_sent {why}"),
        }
    }
    run.join()?;
    println!(
        "sent {}\nreplies {}\nlost {}\nfailed {}\nlate_replies {}\ncopies {}\ndropped_here {}\n\
         unstamped {}",
        tally.sent,
        tally.replies,
        tally.lost,
        tally.failed,
        tally.late,
        tally.copies,
        tally.dropped_here,
        tally.unstamped
    );
    quantiles("round_trip_us", &mut times.round_trips);
    quantiles("network_us", &mut times.networks);
    quantiles("sent_late_us", &mut times.late);
    cost()
}

fn quantiles(name: &str, nanos: &mut [i64]) {
    nanos.sort_unstable();
    let at = |permille: usize| {
        let index = nanos.len().saturating_sub(1) * permille / 1000;
        nanos.get(index).map_or(0, |nanos| nanos / 100)
    };
    let percentiles = [500, 900, 990, 999].map(|permille| {
        let tenths = at(permille);
        format!("{}.{}", tenths / 10, (tenths % 10).abs())
    });
    println!("{name} {}", percentiles.join(" "));
}

/// CPU time and the most memory that this process had.
fn cost() -> Result<(), Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    // Fields 14 and 15, in hundredths of a second.
    for (name, at) in [("cpu_user_s", 11), ("cpu_system_s", 12)] {
        let ticks: u32 = fields.get(at).ok_or("no such field")?.parse()?;
        println!("{name} {}.{:02}", ticks / 100, ticks % 100);
    }
    for line in fs::read_to_string("/proc/self/status")?.lines() {
        if let Some(max_rss) = line.strip_prefix("VmHWM:") {
            println!("max_rss {}", max_rss.trim());
        }
    }
    Ok(())
}
