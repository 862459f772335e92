//! A media measurement as text: a line each second, and a table of streams at the end.

use neph_load::media::{MediaMeasured, MediaSecond, StreamMeasured, StreamSecond};
use neph_model::{BitRate, Span};
use neph_text::counted::counted;

use crate::cell::{Cell, OrDash};
use crate::rows;

use super::stream::StreamRow;

/// The headings of the lines of [`second_line`], named after the jitter of the first second.
pub fn heading(second: &MediaSecond) -> String {
    let jitter = jitter_name(second.has_network_jitter());
    format!(
        "  second          rate     min stream     max stream     lost  reordered     late  {jitter:>14}"
    )
}

const fn jitter_name(is_of_network: bool) -> &'static str {
    if is_of_network {
        "network jitter"
    } else {
        "jitter"
    }
}

/// A second of all streams as a line.
pub fn second_line(second: &MediaSecond) -> String {
    let number = second.index + 1;
    let (rate, min, max) = (
        second.rate().cell(),
        second.rate_min().cell(),
        second.rate_max().cell(),
    );
    let (lost, reordered) = (
        second.sum(StreamSecond::lost),
        second.sum(|stream| stream.reordered),
    );
    let (late, jitter) = (second.sum(|stream| stream.late), second.jitter().cell());
    format!(
        "{number:>8}{rate:>14}{min:>15}{max:>15}  {lost:>7}  {reordered:>9}  {late:>7}  {jitter:>14}"
    )
}

/// The measurement as a whole.
pub fn summary(measured: &MediaMeasured) -> String {
    let streams = (1..).zip(&measured.streams);
    let rows: Vec<StreamRow> = streams
        .map(|(number, stream)| StreamRow::new(number, stream))
        .collect();
    let mut text = format!("\n{}\n{}", rows::text(&rows), all_streams_text(measured));
    for row in &rows {
        let number = row.stream;
        if let Some(fault) = &row.fault {
            text.push_str(&format!("Stream {number} broke off: {fault}\n"));
        }
        if row.socket_drops > 0 {
            let drops = counted(row.socket_drops, "packet");
            text.push_str(&format!(
                "Note: this host dropped {drops} of stream {number} at its socket.\n"
            ));
        }
    }
    text
}

/// A sentence or two about all streams.
fn all_streams_text(measured: &MediaMeasured) -> String {
    let figures = measured.streams.iter().map(|stream| &stream.statistics);
    let sum =
        |count_of: fn(&StreamMeasured) -> u64| measured.streams.iter().map(count_of).sum::<u64>();
    let rates = figures.clone().filter_map(|stream| stream.rate_mean);
    let (count, total) = (
        rates.clone().count(),
        rates.map(BitRate::bits_per_second).sum::<u64>(),
    );
    let mean = (count > 0).then(|| BitRate(total / count.max(1) as u64));
    let (lost, expected) = (
        sum(|stream| stream.statistics.lost),
        sum(|stream| stream.statistics.expected()),
    );
    let (frames, in_time) = (
        sum(|stream| stream.statistics.frames.total()),
        sum(|stream| stream.statistics.frames.in_time),
    );
    let stalled: Span = figures
        .clone()
        .fold(Span::ZERO, |total, stream| total + stream.stalls.total);
    let stalls = counted(sum(|stream| stream.statistics.stalls.count), "stall");
    let is_of_network = figures
        .clone()
        .all(|stream| stream.network_jitter.is_some());
    let jitter_name = jitter_name(is_of_network);
    let jitters = figures.filter_map(|stream| stream.network_jitter.or(stream.jitter));
    let jitter = jitters.map(|jitter| jitter.mean).max();
    let streams = counted(measured.streams.len() as u64, "stream");
    let buffer = measured.media_request.buffer;
    format!(
        "{streams}: mean {} each; {lost} of {expected} packets lost; mean {jitter_name} up to {}\n\
         {in_time} of {frames} frames complete in time with a buffer of {buffer}; {stalls}, {stalled} together\n",
        mean.cell(),
        jitter.or_dash(|jitter| jitter.to_string()),
    )
}
