//! Messages about duplicates in the captures of points, and about packets of a segment's points that could
//! not be matched: after a NAT, or several equal ones.
//!
//! Owns the words. Does not own segments that no packet passed (clocks).

use std::fmt::Display;
use std::net::SocketAddr;

use crate::{Followed, TranslatedAddress, UnmatchedPackets};

use crate::reading::conversations::CAPTURE_ONCE_REMEDY;
use neph_text::counted::counted;

/// For each segment that some packets passed, messages about the others.
pub fn messages(names: &[String], followed: &Followed) -> Vec<String> {
    let crossed_segments =
        (0..followed.segments()).filter(|segment| followed.has_common_packets(*segment));
    crossed_segments
        .filter_map(|segment| unmatched_message(names, segment, &followed.unmatched(segment)))
        .collect()
}

/// Duplicates in the captures: how many packets, and how they are handled.
pub fn capture_duplicates(names: &[String], followed: &Followed) -> Vec<(u64, String)> {
    let points = names.iter().enumerate();
    let duplicates = points.map(|(at, name)| {
        let reason = format!(
            "of {name} stand there again (a mirror of both directions, or several interfaces): the first \
             of each counts"
        );
        (followed.point(at).capture_duplicates, reason)
    });
    duplicates.collect()
}

/// NAT rules that follow from the packets, appended to the message about a segment that no packet passed.
pub fn translation_rules(names: &[String], segment: usize, followed: &Followed) -> String {
    let unmatched = followed.unmatched(segment);
    unmatched
        .most_frequent_translation
        .map_or_else(String::new, |pair| {
            format!(
                "; {} there with other {}, as by {}",
                count_with_verb(unmatched.translated),
                changed_fields(pair),
                rules_for(names, segment, &unmatched, pair)
            )
        })
}

/// The message where both points show the same packets, but several times.
pub fn identical(names: &[String], segment: usize, followed: &Followed) -> Option<String> {
    let (name, other) = (&names[segment], &names[segment + 1]);
    let identical = followed.ambiguous_in(segment);
    (identical > 0).then(|| {
        format!(
            "of {name} {} in {other}, but several times in one of them, so they cannot be matched; capture {CAPTURE_ONCE_REMEDY}",
            count_with_verb(identical)
        )
    })
}

fn count_with_verb(packets: u64) -> String {
    let verb = if packets == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(packets, "packet"))
}

fn unmatched_message(
    names: &[String],
    segment: usize,
    unmatched: &UnmatchedPackets,
) -> Option<String> {
    let (name, other) = (&names[segment], &names[segment + 1]);
    let UnmatchedPackets { first, second, .. } = *unmatched;
    if let Some(pair) = unmatched.most_frequent_translation {
        return Some(format!(
            "of {name} {} in {other} with other {}, and are excluded: with NAT between them give its rule ({})",
            count_with_verb(unmatched.translated),
            changed_fields(pair),
            rules_for(names, segment, unmatched, pair)
        ));
    }
    let are_mostly_unmatched =
        first.min(second) > unmatched.matched && first.max(second) / 2 <= first.min(second);
    are_mostly_unmatched.then(|| {
        format!(
            "the hosts of {} of {name} are not in {other}, and the hosts of {} of {other} are not in {name}. With NAT between them give its rule (--nat \
             '{name}:OUTER=INNER', if {name} sees OUTER what the others call INNER)",
            counted(first, "packet"),
            counted(second, "packet")
        )
    })
}

fn changed_fields((first_address, _): (TranslatedAddress, TranslatedAddress)) -> &'static str {
    match first_address {
        (_, Some(_)) => "addresses or ports",
        (_, None) => "addresses",
    }
}

fn address_text((address, port): TranslatedAddress) -> String {
    port.map_or_else(
        || address.to_string(),
        |port| SocketAddr::new(address, port).to_string(),
    )
}

/// Whether fewer points are after a segment than before it. A rule is for one point, and all points on one
/// side of the NAT need it.
pub const fn is_side_behind_shorter<T>(names: &[T], segment: usize) -> bool {
    (segment + 1) * 2 > names.len()
}

/// The points on one side of a segment.
pub fn points_on_side<T>(names: &[T], segment: usize, is_behind: bool) -> &[T] {
    let (before, behind) = names.split_at(segment + 1);
    if is_behind { behind } else { before }
}

/// A rule for each of these points.
pub fn nat_rules<T: Display>(side: &[T], outer: &str, inner: &str) -> String {
    let rules: Vec<String> = side
        .iter()
        .map(|point| format!("--nat '{point}:{outer}={inner}'"))
        .collect();
    rules.join(" ")
}

/// Rules for the shorter side, unless other hosts there have the name that the rule would change.
fn rules_for(
    names: &[String],
    segment: usize,
    unmatched: &UnmatchedPackets,
    pair: (TranslatedAddress, TranslatedAddress),
) -> String {
    let is_behind = match unmatched.is_address_shared {
        [true, false] => true,
        [false, true] => false,
        _ => is_side_behind_shorter(names, segment),
    };
    let (first_address, second_address) = (address_text(pair.0), address_text(pair.1));
    let (outer, inner) = if is_behind {
        (second_address, first_address)
    } else {
        (first_address, second_address)
    };
    nat_rules(points_on_side(names, segment, is_behind), &outer, &inner)
}
