//! In which order captures are read, and what is said where their times do not follow each other.
//!
//! Flows that span several captures are told right where these come in the order of time.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::file::{File, Times};
use super::{Reader, source};

/// The captures in the order of their first packets. What has none, or none with a time, keeps its
/// place; all do where one is a pipe, which can be read once only.
pub fn by_time(files: &[PathBuf], reader: Reader<'_>) -> Vec<PathBuf> {
    let mut ordered = files.to_vec();
    if files.len() < 2 || !files.iter().all(|path| source::is_file(path)) {
        return ordered;
    }
    let firsts = files.iter().map(|path| first(path, reader)).enumerate();
    let timed: Vec<(usize, i64)> = firsts
        .filter_map(|(place, at)| Some((place, at?)))
        .collect();
    let mut by_time = timed.clone();
    by_time.sort_by_key(|(_, at)| *at);
    for ((place, _), (from, _)) in timed.iter().zip(&by_time) {
        ordered[*place].clone_from(&files[*from]);
    }
    if let Some(((_, _), (from, _))) = timed.iter().zip(&by_time).find(|(a, b)| a != b) {
        (reader.say)(&format!(
            "captures are read in the order of their first packets, {} sooner than it was given",
            files[*from].display()
        ));
    }
    ordered
}

/// When the first packet passed, as far as the file says.
fn first(path: &Path, reader: Reader<'_>) -> Option<i64> {
    let source = source::open(path, reader).ok()?;
    let mut first = None;
    source.read(reader, |record| {
        first = record.at;
        ControlFlow::Break(())
    });
    first
}

/// What several captures that were joined as they came hold twice, nobody else would tell.
pub fn backwards(file: &File) -> Option<String> {
    let back = file.times.and_then(Times::jump)?;
    let name = &file.name;
    Some(format!(
        "the times of {name} jump back by {back}: it was joined of several captures, and what is in \
         two of them counts twice, or its clock was set; give captures one by one"
    ))
}

/// Reports a clock that was set forward within a capture; nothing else in the output shows it.
pub fn silent(file: &File) -> Option<String> {
    let silence = file.times.and_then(Times::silence)?;
    let name = &file.name;
    Some(format!(
        "{name} has no packet for {silence}: its clock was set forward, or nothing passed; a \
         connection that goes on behind that counts as a new flow"
    ))
}

/// Says that a capture overlaps one that was read before it, or is older.
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
            "{name} begins before {other} ends: what is in both counts twice; read captures of one \
             time alone, those of several points of a path with neph hops, and the two directions of a TAP as \
             one: {other}+{name}"
        )
    } else {
        format!(
            "{name} is older than {other}, which was read before it: what began in one and went on \
             in the other is told wrongly; give {name} first"
        )
    })
}

/// What overlaps says more than what does not, of these the latest.
fn nearer(times: Times, a: Times, b: Times) -> Ordering {
    let key = |other: Times| (times.overlaps(other), other.last);
    key(a).cmp(&key(b))
}
