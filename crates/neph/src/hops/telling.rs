//! What is written: tables for people, lines for programs.

use std::io::{self, Write};
use std::net::SocketAddr;

use neph_capture::{Flowing, Followed, Way};
use neph_model::{OneWay, Span};
use neph_stats::ClockFit;
use neph_wire::ip;
use serde_json::{Value, json};

use super::ends::{NoWay, Unknown};
use super::news::Alarms;
use super::{Args, Format};
use crate::exit::Failure;
use crate::output;
use crate::sheet::{self, Cell, Column, Sheet};
use neph_capture::clocks::drift::Drift;
use neph_capture::clocks::words;
use neph_capture::path::offsets::Offsets;
use neph_capture::path::passages::{End, PROTOCOLS, Passages, Row, protocol, segment_names};
use neph_capture::path::shares::{self, Delays, RoundTrips};
use neph_capture::path::strangers;
use neph_capture::reading::enough::too_short;
use neph_text::counted::counted;
use neph_text::decimals::fixed;

const COLUMNS: [Column; 14] = [
    Column::left("SEGMENT", "segment"),
    Column::left("WAY", "way"),
    Column::left("PROTOCOL", "protocol"),
    Column::right("N", "n"),
    Column::right("MEAN", "mean_ns"),
    Column::right("± BOUND", "bound_ns"),
    Column::right("MIN", "min_ns"),
    Column::right("P50", "p50_ns"),
    Column::right("P99", "p99_ns"),
    Column::right("MAX", "max_ns"),
    Column::right("LOST", "lost"),
    Column::right("REORDERED", "reordered"),
    Column::right("COPIES", "copies"),
    Column::right("SHARE OF RTT", "share_of_round_trip"),
];

const PARTS: [Column; 5] = [
    Column::left("ROUND TRIPS", "protocol"),
    Column::left("PART", "part"),
    Column::right("N", "n"),
    Column::right("MEAN", "mean_ns"),
    Column::right("SHARE", "share"),
];

/// Writes everything. Whether there was any delay.
pub(super) fn tell(args: &Args, passages: &Passages, alarms: &Alarms) -> Result<bool, Failure> {
    let mut out = output::data();
    let delays = shares::delays(passages);
    let trips = shares::round_trips(passages);
    let (segments, parts) = (table(passages, &delays, &trips), parts(passages, &trips));
    match args.format {
        Format::Csv => segments.write(sheet::Format::Csv, &mut out)?,
        Format::Text => {
            writeln!(out, "{}\n", passages.names.join(" - "))?;
            segments.write(sheet::Format::Text, &mut out)?;
            if !trips.is_empty() {
                writeln!(out)?;
                parts.write(sheet::Format::Text, &mut out)?;
            }
            writeln!(out)?;
            sentences(passages, &mut out)?;
        }
        Format::Json => {
            let rest = json!({
                "segments": segments.json(),
                "round_trips": parts.json(),
                "alarms": alarms.json(),
                "summary": summary(passages),
            });
            let packets = args.packets.then_some(passages);
            document(packets, &rest, &mut out)?;
        }
        Format::Ndjson => {
            if args.packets {
                for row in passages.rows() {
                    writeln!(out, "{}", packet(passages, &row))?;
                }
            }
            for (kind, sheet) in [("segment", &segments), ("round_trip", &parts)] {
                for line in sheet.json().as_array().into_iter().flatten() {
                    let mut line = line.clone();
                    line["kind"] = kind.into();
                    writeln!(out, "{line}")?;
                }
            }
            for alarm in alarms.news() {
                writeln!(out, "{alarm}")?;
            }
            writeln!(out, "{}", summary(passages))?;
        }
    }
    out.flush()?;
    Ok(delays.iter().any(|of| of.n > 0))
}

/// One document: packets, if they are wanted, are written as they are made, a line each.
fn document(packets: Option<&Passages>, rest: &Value, out: &mut impl Write) -> io::Result<()> {
    let rest = format!("{rest:#}");
    let Some(passages) = packets else {
        return writeln!(out, "{rest}");
    };
    write!(out, "{{\n  \"packets\": [")?;
    for (number, row) in passages.rows().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(out, "{comma}\n    {}", packet(passages, &row))?;
    }
    // What follows is an object too: its members are those of this one.
    writeln!(out, "\n  ],{}", rest.trim_start_matches('{'))
}

fn table(passages: &Passages, delays: &[Delays], trips: &[RoundTrips]) -> Sheet {
    let names = segment_names(&passages.names);
    let mut sheet = Sheet::new(&COLUMNS);
    for of in delays {
        let way = if of.is_back { Way::Back } else { Way::There };
        let share = trips
            .iter()
            .find(|trips| trips.protocol == of.protocol)
            .and_then(|trips| share(trips.part(of.segment, of.is_back)?, trips.total));
        let mean = of.mean();
        let bound = mean.map(|_| of.bound);
        sheet.rows.push(vec![
            Cell::text(names[of.segment].clone()),
            Cell::text(way_word(way)),
            Cell::text(PROTOCOLS[of.protocol]),
            Cell::count(of.n),
            time(mean),
            Cell::new(
                bound.map_or_else(|| "-".to_owned(), words::up),
                bound.map_or(Value::Null, Value::from),
            ),
            time(mean.map(|_| of.least)),
            time(of.p50),
            time(of.p99),
            time(mean.map(|_| of.most)),
            Cell::count(of.lost),
            Cell::count(of.reordered),
            Cell::count(of.copies),
            share.map_or_else(Cell::absent, percent),
        ]);
    }
    sheet
}

/// The share of a part of the round trips of its protocol.
#[expect(clippy::cast_precision_loss, reason = "a share is shown")]
fn share(part: i128, total: i128) -> Option<f64> {
    (total > 0).then(|| part as f64 / total as f64)
}

fn percent(share: f64) -> Cell {
    Cell::new(format!("{} %", fixed(share * 100.0, 1)), share)
}

fn parts(passages: &Passages, trips: &[RoundTrips]) -> Sheet {
    let mut sheet = Sheet::new(&PARTS);
    let segments = segment_names(&passages.names);
    let beyond = format!(
        "beyond {}",
        passages.names.last().map_or("", String::as_str)
    );
    let names = || segments.iter().chain([&beyond]);
    for of in trips {
        let whole = [("all".to_owned(), of.total)];
        let parts = names().cloned().zip(of.parts.iter().copied());
        for (name, total) in whole.into_iter().chain(parts) {
            let mean = i64::try_from(total / i128::from(of.n)).ok();
            sheet.rows.push(vec![
                Cell::text(PROTOCOLS[of.protocol]),
                Cell::text(name),
                Cell::count(of.n),
                time(mean),
                share(total, of.total).map_or_else(Cell::absent, percent),
            ]);
        }
    }
    sheet
}

fn time(nanos: Option<i64>) -> Cell {
    nanos.map_or_else(Cell::absent, |nanos| {
        Cell::new(Span::from_nanos(nanos).to_string(), nanos)
    })
}

pub(super) const fn way_word(way: Way) -> &'static str {
    match way {
        Way::There => "there",
        Way::Back => "back",
    }
}

/// A line of marks: when the packet passed which point, and how long it was in between.
fn packet(passages: &Passages, row: &Row) -> Value {
    let passage = &row.passage;
    let points = 0..passages.names.len();
    let delay = |delay: &Option<OneWay>| match delay {
        None => Value::Null,
        Some(of) => json!({ "ns": of.delay.nanos(), "bound_ns": of.bound.nanos() }),
    };
    let stamp = |point| Some(passages.followed.stamp(point, passage.mark(point)?));
    let reordered: Vec<usize> = (0..row.delays.len())
        .filter(|segment| passage.is_overtaken(*segment))
        .collect();
    let spread: Vec<Option<i64>> = points
        .clone()
        .map(|point| passages.followed.spread(passage, point))
        .collect();
    json!({
        "kind": "packet",
        "since_ns": row.since.map(Span::nanos),
        "way": way_word(row.way),
        "protocol": PROTOCOLS[protocol(passage.flow.protocol)],
        "source": place(&passage.flow, passage.flow.source),
        "destination": place(&passage.flow, passage.flow.destination),
        "marks_unix_ns": points.map(stamp).collect::<Vec<_>>(),
        "segments": row.delays.iter().map(delay).collect::<Vec<_>>(),
        "round_trip_ns": row.round_trip.map(Span::nanos),
        "lost_in": match row.end { End::Lost(segment) => Some(segment), _ => None },
        "reordered_in": reordered,
        "spread_ns": spread.iter().any(Option::is_some).then_some(spread),
    })
}

/// An address of a flow, with a port where its protocol has them. A fragment does not say them: both
/// are 0 then.
fn place(flow: &Flowing, address: SocketAddr) -> String {
    let has_ports = matches!(flow.protocol, ip::TCP | ip::UDP);
    let is_said = (flow.source.port(), flow.destination.port()) != (0, 0);
    if has_ports && is_said {
        return address.to_string();
    }
    address.ip().to_string()
}

fn summary(passages: &Passages) -> Value {
    let followed = &passages.followed;
    let points: Vec<Value> = (0..passages.names.len())
        .map(|at| {
            let point = followed.point(at);
            json!({
                "name": passages.names[at],
                "packets": point.packets,
                "cut_short": point.cut,
                "shown_again": point.again,
                "resolution_ns": point.resolution,
            })
        })
        .collect();
    let clocks = passages.clocks.iter().enumerate();
    let clocks: Vec<Value> = clocks
        .map(|(segment, offsets)| clock(followed, segment, offsets))
        .collect();
    let segments = segment_names(&passages.names).into_iter().enumerate();
    let unmet = segments.filter_map(|(at, name)| (!followed.is_met(at)).then_some(name));
    json!({
        "kind": "summary",
        "points": points,
        "clocks": clocks,
        "packets": followed.passages().count(),
        "alike": followed.alike(),
        "joined": followed.joined(),
        "end_unknown": Unknown::of(passages).json(),
        "one_way": NoWay::of(passages).many(),
        "unmet": unmet.collect::<Vec<_>>(),
        "order": passages.order.as_ref().map(|order| {
            order.iter().map(|point| passages.names[*point].as_str()).collect::<Vec<_>>()
        }),
        "doubts": passages.doubts,
    })
}

/// How long after the first packet of the segment's first point, by its clock.
fn since(followed: &Followed, segment: usize, fit: &ClockFit) -> Span {
    let began = followed.extent(segment);
    let since = began.map_or(0, |(began, _)| fit.at.saturating_sub(began.unix_nanos()));
    Span::from_nanos(since.max(0))
}

fn clock(followed: &Followed, segment: usize, offsets: &Offsets) -> Value {
    match (offsets, offsets.best()) {
        (Offsets::Same, _) => json!({ "is": "same" }),
        (Offsets::Fitted(fitted), Some(fit)) => {
            let drift = fitted.drift(&fit);
            json!({
                "is": "fitted",
                "since_ns": since(followed, segment, &fit).nanos(),
                "offset_ns": fit.offset,
                "bound_ns": fit.bound,
                "rate_ppm": drift.map(|drift| words::ppm(drift.rate)),
                "rate_bound_ppm": drift.map(|drift| words::ppm(drift.bound)),
                "steps": fitted.steps.len(),
            })
        }
        _ => json!({ "is": "unknown" }),
    }
}

fn sentences(passages: &Passages, out: &mut impl Write) -> Result<(), Failure> {
    let followed = &passages.followed;
    for doubt in &passages.doubts {
        writeln!(out, "In doubt: {doubt}.")?;
    }
    let pairs = passages.names.windows(2).zip(&passages.clocks);
    for (segment, (pair, offsets)) in pairs.enumerate() {
        let (a, b) = (&pair[0], &pair[1]);
        match (offsets, offsets.best()) {
            _ if !followed.is_met(segment) => {
                writeln!(
                    out,
                    "No packet of {a} is in {b}: nothing is told of {a} - {b}."
                )?;
            }
            (Offsets::Same, _) => writeln!(out, "Clocks of {a} and {b}: one.")?,
            (Offsets::Fitted(fitted), Some(fit)) => {
                let offset = words::offset(fit.offset, fit.bound);
                let drift = Drift::in_words(fitted.drift(&fit));
                let after = since(followed, segment, &fit);
                writeln!(
                    out,
                    "Clock of {b} minus that of {a}: {offset} after {after}, drift {drift}."
                )?;
                if !fitted.steps.is_empty() {
                    let steps = counted(fitted.steps.len() as u64, "time");
                    writeln!(
                        out,
                        "One of them was set {steps}; packets around are left out."
                    )?;
                }
            }
            _ => writeln!(
                out,
                "Clocks of {a} and {b}: not known, since packets of both directions are needed; no delay is told."
            )?,
        }
    }
    let cut = (0..passages.names.len()).map(|at| followed.point(at).cut);
    let known = [
        (
            followed.joined(),
            "cut or joined on the way (segmentation offload, IP fragments): each counts once, its delay is that of its last byte",
        ),
        (followed.alike(), "left out because others are like them"),
    ];
    let known = known.map(|(count, why)| (count, why.to_owned()));
    let known = known.into_iter().chain([(cut.sum(), too_short())]);
    let again = strangers::shown_again(&passages.names, followed);
    let unknown = [Unknown::of(passages).words(), NoWay::of(passages).words()];
    let unknown = unknown.into_iter().flatten();
    for (count, why) in unknown.chain(known).chain(again) {
        if count > 0 {
            writeln!(out, "{} {why}.", counted(count, "packet"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_told_where_a_protocol_has_them_whatever_they_are() {
        let told = |protocol, source: u16, destination: u16| {
            let flow = Flowing {
                protocol,
                source: ([10, 0, 0, 1], source).into(),
                destination: ([10, 0, 0, 2], destination).into(),
            };
            [flow.source, flow.destination].map(|address| place(&flow, address))
        };
        assert_eq!(told(ip::TCP, 0, 80), ["10.0.0.1:0", "10.0.0.2:80"]);
        assert_eq!(told(ip::UDP, 9, 0), ["10.0.0.1:9", "10.0.0.2:0"]);
        assert_eq!(told(ip::ICMP, 0, 0), ["10.0.0.1", "10.0.0.2"]);
        // Of a fragment.
        assert_eq!(told(ip::UDP, 0, 0), ["10.0.0.1", "10.0.0.2"]);
    }
}
