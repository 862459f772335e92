//! The result as text: the tables, then remarks.

use std::iter::once;

use neph_capture::clocks::drift::Drift;
use neph_capture::clocks::value_format;
use neph_capture::path::offsets::Offsets;
use neph_capture::path::passages::Passages;
use neph_capture::path::unmatched;
use neph_capture::reading::snaplen::truncated_message;
use neph_text::counted::counted;

use super::document::time_since_start;
use super::ends::{UnknownDirection, UnknownLoss};
use super::{RoundTripRow, SegmentRow};
use crate::rows;

/// The text form of a result.
pub fn text(passages: &Passages, segments: &[SegmentRow], parts: &[RoundTripRow]) -> String {
    let mut text = format!("{}\n\n", passages.names.join(" - "));
    text.push_str(&rows::text(segments));
    if !parts.is_empty() {
        text.push('\n');
        text.push_str(&rows::text(parts));
    }
    text.push('\n');
    let warnings = passages.warnings.iter();
    let sentences = warnings
        .map(|warning| format!("In doubt: {warning}."))
        .chain(clock_sentences(passages))
        .chain(count_sentences(passages));
    for sentence in sentences {
        text.push_str(&(sentence + "\n"));
    }
    text
}

/// For each segment, a sentence about its clocks.
fn clock_sentences(passages: &Passages) -> Vec<String> {
    let followed = &passages.followed;
    let mut sentences = Vec::new();
    let pairs = passages.names.windows(2).zip(&passages.clocks);
    for (segment, (pair, offsets)) in pairs.enumerate() {
        let (point, next_point) = (&pair[0], &pair[1]);
        match (offsets, offsets.best()) {
            _ if !followed.has_common_packets(segment) => sentences.push(format!(
                "No packet of {point} is in {next_point}: {point} - {next_point} has no result."
            )),
            (Offsets::Same, _) => sentences.push(format!("{point} and {next_point} have the same clock.")),
            (Offsets::Fitted(fitted), Some(fit)) => {
                let offset = value_format::offset(fit.offset, fit.bound);
                let drift = Drift::to_text(fitted.drift(&fit));
                let elapsed = time_since_start(followed, segment, &fit);
                sentences.push(format!(
                    "Clock of {next_point} minus that of {point}: {offset} ({elapsed} after the start), drift {drift}."
                ));
                if !fitted.steps.is_empty() {
                    let steps = counted(fitted.steps.len() as u64, "time");
                    sentences.push(format!(
                        "One of the clocks was set {steps}; packets near those moments are excluded."
                    ));
                }
            }
            _ => sentences.push(format!(
                "Clocks of {point} and {next_point}: offset unknown (packets of both directions are needed), so there are no delays."
            )),
        }
    }
    sentences
}

/// The numbers of packets with an unknown property, and the reasons.
fn count_sentences(passages: &Passages) -> impl Iterator<Item = String> {
    let followed = &passages.followed;
    let truncated = (0..passages.names.len()).map(|point| followed.point(point).truncated);
    let joined_text = "split or merged on the path (segmentation offload, IP fragments): each counts once, with the delay of its last byte";
    let known_counts = [
        (followed.split_or_merged(), joined_text.to_owned()),
        (
            followed.identical(),
            "excluded because other packets are identical".to_owned(),
        ),
    ];
    let capture_duplicates = unmatched::capture_duplicates(&passages.names, followed);
    let unknown_counts = [
        UnknownLoss::of(passages).sentences(),
        UnknownDirection::of(passages).sentences(),
    ];
    let counts = unknown_counts.into_iter().flatten().chain(known_counts);
    let counts = counts
        .chain(once((truncated.sum(), truncated_message())))
        .chain(capture_duplicates);
    let nonzero_counts: Vec<(u64, String)> = counts.filter(|(count, _)| *count > 0).collect();
    let sentences = nonzero_counts.into_iter();
    sentences.map(|(count, reason)| format!("{} {reason}.", counted(count, "packet")))
}
