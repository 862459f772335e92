//! The order in which captures are read, and messages where their times do not follow each other.
//!
//! Flows that span several captures are correct only if these are read in the order of time.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::file::{File, Times};
use super::{Reader, source};

/// The captures in the order of their first packets. A capture without packets or times keeps its place. All
/// keep theirs if one is a pipe, which can be read only once.
pub fn by_time(files: &[PathBuf], reader: Reader<'_>) -> Vec<PathBuf> {
    let mut ordered = files.to_vec();
    if files.len() < 2 || !files.iter().all(|path| source::is_file(path)) {
        return ordered;
    }
    let firsts = files.iter().map(|path| first(path, reader)).enumerate();
    let timed: Vec<(usize, i64)> = firsts
        .filter_map(|(index, at)| Some((index, at?)))
        .collect();
    let mut by_time = timed.clone();
    by_time.sort_by_key(|(_, at)| *at);
    for ((index, _), (from, _)) in timed.iter().zip(&by_time) {
        ordered[*index].clone_from(&files[*from]);
    }
    if let Some(((_, _), (from, _))) = timed.iter().zip(&by_time).find(|(a, b)| a != b) {
        (reader.say)(&format!(
            "captures are read in the order of their first packets, {} sooner than it was given",
            files[*from].display()
        ));
    }
    ordered
}

/// Time of the first packet, if the file has one.
fn first(path: &Path, reader: Reader<'_>) -> Option<i64> {
    let source = source::open(path, reader).ok()?;
    let mut first = None;
    source.read(reader, |record| {
        first = record.at;
        ControlFlow::Break(())
    });
    first
}

/// Reports concatenated captures, whose common packets count twice: nothing else in the output shows that.
pub fn backwards(file: &File) -> Option<String> {
    let back = file.times.and_then(Times::jump)?;
    let name = &file.name;
    Some(format!(
        "the times of {name} jump back by {back}: it was merged from several captures (packets in two of them count twice), or its clock was set. Give the captures one by one"
    ))
}

/// Reports a clock that was set forward within a capture: nothing else in the output shows it.
pub fn silent(file: &File) -> Option<String> {
    let silence = file.times.and_then(Times::silence)?;
    let name = &file.name;
    Some(format!(
        "{name} has no packet for {silence}: its clock was set forward, or nothing passed; a \
         connection that goes on behind that counts as a new flow"
    ))
}

/// Reports a capture that overlaps one that was read before, or is older.
pub fn unordered(before: &[File], file: &File) -> Option<String> {
    let times = file.times?;
    let earlier = before
        .iter()
        .filter_map(|other| Some((other, other.times?)));
    let (other, until) = earlier
        .filter(|(_, other)| times.first < other.last)
        .max_by(|(_, a), (_, b)| nearer(times, *a, *b))?;
    let (name, other) = (&file.name, &other.name);
    Some(if times.overlaps(until) {
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
fn nearer(times: Times, a: Times, b: Times) -> Ordering {
    let key = |other: Times| (times.overlaps(other), other.last);
    key(a).cmp(&key(b))
}
