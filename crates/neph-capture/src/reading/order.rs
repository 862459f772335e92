//! The order in which captures are read, and messages where their times do not follow each other.
//!
//! Flows that span several captures are correct only if these are read in the order of time.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::file::{File, PacketTimes};
use super::{Reader, source};

/// The captures in the order of their first packets. A capture without packets or times keeps its place. All
/// keep theirs if one is a pipe, which can be read only once.
pub fn sort_by_time(files: &[PathBuf], reader: Reader<'_>) -> Vec<PathBuf> {
    let mut ordered = files.to_vec();
    if files.len() < 2 || !files.iter().all(|path| source::is_file(path)) {
        return ordered;
    }
    let first_times = files
        .iter()
        .map(|path| first_time(path, reader))
        .enumerate();
    let with_times: Vec<(usize, i64)> = first_times
        .filter_map(|(index, time)| Some((index, time?)))
        .collect();
    let mut sorted = with_times.clone();
    sorted.sort_by_key(|(_, time)| *time);
    for ((index, _), (source_index, _)) in with_times.iter().zip(&sorted) {
        ordered[*index].clone_from(&files[*source_index]);
    }
    if let Some(((_, _), (early_index, _))) = with_times
        .iter()
        .zip(&sorted)
        .find(|(original, sorted_entry)| original != sorted_entry)
    {
        (reader.print_message)(&format!(
            "captures are read in the order of their first packets, {} sooner than it was given",
            files[*early_index].display()
        ));
    }
    ordered
}

/// Time of the first packet, if the file has one.
fn first_time(path: &Path, reader: Reader<'_>) -> Option<i64> {
    let source = source::open(path, reader).ok()?;
    let mut first = None;
    source.read(reader, |record| {
        first = record.at;
        ControlFlow::Break(())
    });
    first
}

/// Reports concatenated captures, whose common packets count twice: nothing else in the output shows that.
pub fn step_back_message(file: &File) -> Option<String> {
    let step = file.times.and_then(PacketTimes::large_step_back)?;
    let name = &file.name;
    Some(format!(
        "the times of {name} jump back by {step}: it was merged from several captures (packets in two of them count twice), or its clock was set. Give the captures one by one"
    ))
}

/// Reports a clock that was set forward within a capture: nothing else in the output shows it.
pub fn gap_message(file: &File) -> Option<String> {
    let gap = file.times.and_then(PacketTimes::long_gap)?;
    let name = &file.name;
    Some(format!(
        "{name} has no packet for {gap}: its clock was set forward, or nothing passed; a \
         connection that goes on behind that counts as a new flow"
    ))
}

/// Reports a capture that overlaps one that was read before, or is older.
pub fn overlap_message(earlier_files: &[File], file: &File) -> Option<String> {
    let times = file.times?;
    let earlier = earlier_files
        .iter()
        .filter_map(|other| Some((other, other.times?)));
    let (other, other_times) = earlier
        .filter(|(_, other)| times.first < other.last)
        .max_by(|(_, a), (_, b)| compare_relevance(times, *a, *b))?;
    let (name, other) = (&file.name, &other.name);
    Some(if times.overlaps(other_times) {
        format!(
            "{name} begins before {other} ends: packets in both count twice. Read captures of different times only, captures of several points with neph hops, and the two directions of a TAP as one: {other}+{name}"
        )
    } else {
        format!(
            "{name} is older than {other}, which was read before it: connections that continue from one to the other are wrong; give {name} first"
        )
    })
}

/// An overlapping capture ranks above others, and a later one above earlier ones.
fn compare_relevance(times: PacketTimes, a: PacketTimes, b: PacketTimes) -> Ordering {
    let key = |other: PacketTimes| (times.overlaps(other), other.last);
    key(a).cmp(&key(b))
}
