//! What is to be said of packets that points show twice, and of those of a segment's points that do not
//! belong together as far as can be seen: behind a translator, or several that are alike.
//!
//! Owns the words. Does not own segments that no packet passed whole (the parent's).

use std::fmt::Display;
use std::net::SocketAddr;

use crate::{Called, Followed, Strangers};

use crate::reading::conversations::ONCE;
use neph_text::counted::counted;

/// Of each segment that some packets passed: what is to be said of the others.
pub fn hints(names: &[String], followed: &Followed) -> Vec<String> {
    let met = (0..followed.segments()).filter(|segment| followed.is_met(*segment));
    met.filter_map(|segment| hint(names, segment, &followed.strangers(segment)))
        .collect()
}

/// What points show again: how many packets, and what becomes of them.
pub fn shown_again(names: &[String], followed: &Followed) -> Vec<(u64, String)> {
    let points = names.iter().enumerate();
    let told = points.map(|(at, name)| {
        let why = format!(
            "of {name} stand there again (a mirror of both directions, or several interfaces): the first \
             of each counts"
        );
        (followed.point(at).again, why)
    });
    told.collect()
}

/// Behind what is said of a segment that no packet passed: the rules, where they can be seen.
pub fn renamed(names: &[String], segment: usize, followed: &Followed) -> String {
    let strangers = followed.strangers(segment);
    strangers.name.map_or_else(String::new, |pair| {
        format!(
            "; {} there with other {}, as by {}",
            is_or_are(strangers.renamed),
            what_is_other(pair),
            rules_for(names, segment, &strangers, pair)
        )
    })
}

/// Where both points show packets, each several times.
pub fn alike(names: &[String], segment: usize, followed: &Followed) -> Option<String> {
    let (name, other) = (&names[segment], &names[segment + 1]);
    let alike = followed.alike_in(segment);
    (alike > 0).then(|| {
        format!(
            "of {name} {} in {other}, but in one of them several times, and which is which cannot be told; \
             capture {ONCE}",
            is_or_are(alike)
        )
    })
}

fn is_or_are(packets: u64) -> String {
    let verb = if packets == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(packets, "packet"))
}

fn hint(names: &[String], segment: usize, strangers: &Strangers) -> Option<String> {
    let (name, other) = (&names[segment], &names[segment + 1]);
    let Strangers { here, there, .. } = *strangers;
    if let Some(pair) = strangers.name {
        return Some(format!(
            "of {name} {} in {other} with other {}, and not told: with a translator between them \
             give its rule ({})",
            is_or_are(strangers.renamed),
            what_is_other(pair),
            rules_for(names, segment, strangers, pair)
        ));
    }
    let is_most = here.min(there) > strangers.met && here.max(there) / 2 <= here.min(there);
    is_most.then(|| {
        format!(
            "{} of {name} are of hosts of which {other} shows nothing, and {} of {other} of hosts of which \
             {name} shows nothing: with a translator between them give its rule (--nat \
             '{name}:OUTER=INNER', if {name} sees OUTER what the others call INNER)",
            counted(here, "packet"),
            counted(there, "packet")
        )
    })
}

fn what_is_other((here, _): (Called, Called)) -> &'static str {
    match here {
        (_, Some(_)) => "addresses or ports",
        (_, None) => "addresses",
    }
}

fn word((address, port): Called) -> String {
    port.map_or_else(
        || address.to_string(),
        |port| SocketAddr::new(address, port).to_string(),
    )
}

/// Whether fewer points are behind a segment than before it: a rule holds for one point, and all on one
/// side of the translator need it.
pub const fn is_shorter_behind<T>(names: &[T], segment: usize) -> bool {
    (segment + 1) * 2 > names.len()
}

/// The points on one side of a segment.
pub fn side<T>(names: &[T], segment: usize, is_behind: bool) -> &[T] {
    let (before, behind) = names.split_at(segment + 1);
    if is_behind { behind } else { before }
}

/// A rule for each of these points.
pub fn rules<T: Display>(side: &[T], outer: &str, inner: &str) -> String {
    let rules: Vec<String> = side
        .iter()
        .map(|point| format!("--nat '{point}:{outer}={inner}'"))
        .collect();
    rules.join(" ")
}

/// Rules for the shorter side, unless others have there the name that the rule would change.
fn rules_for(
    names: &[String],
    segment: usize,
    strangers: &Strangers,
    pair: (Called, Called),
) -> String {
    let is_behind = match strangers.is_shared {
        [true, false] => true,
        [false, true] => false,
        _ => is_shorter_behind(names, segment),
    };
    let (here, there) = (word(pair.0), word(pair.1));
    let (outer, inner) = if is_behind {
        (there, here)
    } else {
        (here, there)
    };
    rules(side(names, segment, is_behind), &outer, &inner)
}
