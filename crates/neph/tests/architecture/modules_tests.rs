//! Holds `modules` to made-up crates.

use crate::cycles::cycles;
use crate::modules::Modules;

/// "user uses used: names" of a crate, a line each.
fn uses(files: &[(&str, &str)]) -> Vec<String> {
    let uses = Modules::read(files.iter().copied()).uses();
    let lines = uses.iter().flat_map(|(user, used)| {
        used.iter().map(move |(used, names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("{user} uses {used}: {}", names.join(", "))
        })
    });
    lines.collect()
}

#[test]
fn a_name_is_the_file_that_defines_it() {
    let lines = uses(&[
        ("lib.rs", "mod link; mod packet; mod queue;"),
        ("link/mod.rs", "mod rate; pub struct Link;"),
        ("link/rate.rs", "pub struct Rate;"),
        ("packet.rs", "use crate::link::{Link, rate::{self, Rate}};"),
        (
            "queue.rs",
            "use super::packet; use std::fmt; use ::link::X;",
        ),
    ]);
    assert_eq!(
        lines,
        [
            "packet uses link: Link",
            "packet uses link::rate: Rate, rate",
            "queue uses packet: packet",
        ]
    );
}

#[test]
fn re_exports_lead_to_the_file_that_defines_the_name() {
    let lines = uses(&[
        ("lib.rs", "pub use link::Rate as Speed; mod user;"),
        ("link.rs", "mod rate; mod kind; pub use rate::Rate;"),
        ("link/rate.rs", "pub struct Rate; pub struct Burst;"),
        (
            "link/kind.rs",
            "use super::Rate; use self::Kind::*; enum Kind { A }",
        ),
        ("all.rs", "pub use crate::link::rate::*; pub struct Own;"),
        ("user.rs", "use crate::Speed; use crate::all::{Burst, Own};"),
    ]);
    assert_eq!(
        lines,
        [
            "all uses link::rate: rate",
            "link::kind uses link::rate: Rate",
            "user uses all: Own",
            "user uses link::rate: Burst, Speed",
        ]
    );
}

#[test]
fn a_private_use_of_the_parent_is_followed() {
    let lines = uses(&[
        ("lib.rs", "mod rate; mod link; use rate::Rate;"),
        ("rate.rs", "pub struct Rate;"),
        ("link.rs", "use crate::Rate;"),
    ]);
    assert_eq!(lines, ["link uses rate: Rate"]);
}

#[test]
fn a_re_export_of_another_crate_stays_with_its_module() {
    let lines = uses(&[
        ("lib.rs", "mod rate; mod link;"),
        ("rate.rs", "pub use tracing; pub use log::Level;"),
        ("link.rs", "use crate::rate::{Level, tracing};"),
    ]);
    assert_eq!(lines, ["link uses rate: Level, tracing"]);
}

#[test]
fn uses_count_inside_of_functions_and_inline_modules() {
    let lines = uses(&[
        ("lib.rs", ""),
        ("rate.rs", "pub struct Rate;"),
        ("link.rs", "fn f() { if true { use super::rate::Rate; } }"),
        ("queue.rs", "mod inner { use super::super::rate::Rate; }"),
    ]);
    assert_eq!(lines, ["link uses rate: Rate", "queue uses rate: Rate"]);
}

#[test]
fn tests_do_not_count() {
    let lines = uses(&[
        ("lib.rs", "#[cfg(test)] mod sim; mod link; mod rate;"),
        ("sim.rs", "use crate::rate::Rate;"),
        ("sim/peer.rs", "use crate::rate::Rate;"),
        ("rate.rs", "pub struct Rate;"),
        (
            "link.rs",
            "#[cfg(test)] use crate::rate::Rate;
             #[cfg(test)] mod tests { use crate::rate::Rate; }
             impl Link { #[cfg(test)] fn f() { use crate::rate::Rate; } }",
        ),
        ("link/tests.rs", "use crate::rate::Rate;"),
        ("link/queue_tests.rs", "use crate::rate::Rate;"),
        ("link/tests/peer.rs", "use crate::rate::Rate;"),
    ]);
    assert!(lines.is_empty(), "{lines:#?}");
}

#[test]
fn a_cycle_contains_all_modules_that_use_each_other() {
    let files = [
        ("lib.rs", "pub use a::A; pub use a::inner::I;"),
        (
            "a.rs",
            "mod inner; use inner::I; use crate::b; pub struct A;",
        ),
        ("a/inner.rs", "use super::A; pub struct I;"),
        ("b.rs", "use crate::c;"),
        ("c.rs", "use crate::A; use crate::d;"),
        ("d.rs", "use crate::I;"),
    ];
    let cycles = cycles(&Modules::read(files).uses());
    let cycle = ["a", "b", "c"].map(str::to_owned);
    assert_eq!(cycles, [cycle.into()].into());
}
