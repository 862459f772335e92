//! What is to be said of packets that points show twice, and of those of a segment's points that do not
//! belong together as far as can be seen: behind a translator, or several that are alike.
//!
//! Owns the words. Does not own segments that no packet passed whole (the parent's).

use std::net::IpAddr;

use neph_capture::{Followed, Strangers};

use crate::counted::counted;
use crate::read::conversations::ONCE;

/// Fewer packets than one in so many may be alike by chance.
const FEW: u64 = 20;

/// Of each segment that some packets passed: what is to be said of the others.
pub(super) fn hints(names: &[String], followed: &Followed) -> Vec<String> {
    let met = (0..followed.segments()).filter(|segment| followed.is_met(*segment));
    met.filter_map(|segment| hint(names, segment, &followed.strangers(segment)))
        .collect()
}

/// What points show again: how many packets, and what becomes of them.
pub(super) fn shown_again(names: &[String], followed: &Followed) -> Vec<(u64, String)> {
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
pub(super) fn renamed(names: &[String], segment: usize, followed: &Followed) -> String {
    let strangers = followed.strangers(segment);
    translated(&strangers).map_or_else(String::new, |pair| {
        format!(
            "; {} there with other addresses, as by {}",
            is_or_are(strangers.renamed),
            rules(names, segment, pair)
        )
    })
}

/// Where both points show packets, each several times.
pub(super) fn alike(names: &[String], segment: usize, followed: &Followed) -> Option<String> {
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
    if let Some(pair) = translated(strangers) {
        return Some(format!(
            "of {name} {} in {other} with other addresses, and not told: with a translator between them \
             give its rule ({})",
            is_or_are(strangers.renamed),
            rules(names, segment, pair)
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

fn translated(strangers: &Strangers) -> Option<(IpAddr, IpAddr)> {
    let fewer = strangers.here.min(strangers.there);
    strangers.name.filter(|_| strangers.renamed * FEW >= fewer)
}

/// A rule holds for one point: all on one side of the translator need it.
fn rules(names: &[String], segment: usize, (here, there): (IpAddr, IpAddr)) -> String {
    let (before, behind) = names.split_at(segment + 1);
    let (side, outer, inner) = if before.len() > behind.len() {
        (behind, there, here)
    } else {
        (before, here, there)
    };
    let rules = side.iter();
    let rules: Vec<String> = rules
        .map(|point| format!("--nat '{point}:{outer}={inner}'"))
        .collect();
    rules.join(" ")
}
