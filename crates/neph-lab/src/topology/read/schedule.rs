//! From `[[link.schedule]]` tables to changes in time.

use neph_model::Span;
use neph_text::{Fault, Fields, Nanos, Node, Placed, Take, choice, did_you_mean};

use super::features::{features, wire};
use super::path::{SaidPath, shared, weight};
use super::trace::Traces;
use crate::counters::Direction;
use crate::gate::{Change, Partial, PartialWire, What};

/// The latest that anything may be asked for.
const LONGEST: Span = Span::from_secs(30 * 24 * 3600);
/// Faster than this an engine would do little else.
const SHORTEST: Span = Span::from_millis(10);
/// The most entries: as many as a record of the truth can tell apart.
const MOST: usize = 1_000;

/// All changes of a link, in the order of the file.
pub(super) fn changes(link: &mut Fields<'_>, paths: &[SaidPath], traces: &Traces) -> Vec<Change> {
    let tables = link.tables("schedule");
    if tables.len() > MOST {
        let what = format!("this link's schedule has more than {MOST} entries");
        link.fault(link.span(), what, "use 'every' for what comes again");
    }
    let tables = tables.into_iter();
    let changes = tables.filter_map(|table| change(table, paths, traces));
    changes.collect()
}

fn change(mut table: Fields<'_>, paths: &[SaidPath], traces: &Traces) -> Option<Change> {
    let at = table.optional_with("at", moment);
    let until = table.optional_with("until", moment);
    let every = table.optional_with("every", period);
    let directions = [("a_to_b", Direction::AToB), ("b_to_a", Direction::BToA)];
    let direction = table.optional_with("direction", |node| choice(node, &directions));
    let what = what(&mut table, paths, traces);
    let span = |placed: &Option<Placed<Span>>| placed.as_ref().map(|placed| placed.value);
    let change = Change {
        direction: direction.map(|direction| direction.value),
        at: span(&at).unwrap_or_default(),
        until: span(&until),
        every: span(&every),
        what: what?,
    };
    timely(&table, &change, &[until, every]);
    table.finish();
    Some(change)
}

/// Whether the times of a change go together.
fn timely(table: &Fields<'_>, change: &Change, [until, every]: &[Option<Placed<Span>>; 2]) {
    let reshuffles = change.what == What::Reshuffle;
    match (until, every) {
        (Some(until), _) if reshuffles => {
            let what = "a reshuffle happens at a moment and lasts for ever";
            table.fault(until.span.clone(), what, "drop 'until'");
        }
        (Some(until), _) if until.value <= change.at => {
            let what = "this ends before it begins";
            table.fault(until.span.clone(), what, "write a time after 'at'");
        }
        (Some(until), Some(every)) if until.value - change.at >= every.value => {
            let what = "this begins again before it ends";
            let remedy = "write an 'every' that is longer than from 'at' to 'until'";
            table.fault(every.span.clone(), what, remedy);
        }
        (None, Some(every)) if !reshuffles => {
            let what = "this never ends, so it cannot begin again";
            table.fault(every.span.clone(), what, "add 'until'");
        }
        _ => {}
    }
}

/// What the change does.
fn what(table: &mut Fields<'_>, paths: &[SaidPath], traces: &Traces) -> Option<What> {
    let reshuffle = table.optional::<bool>("reshuffle");
    if let Some(named) = table.optional::<String>("path") {
        let weight = table.optional_with("weight", weight);
        let said = wire(table, traces);
        shared(table);
        let Some(index) = paths.iter().position(|path| path.name == named.value) else {
            let known: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
            let what = format!("this link has no path '{}'", named.value);
            table.fault(named.span, what, did_you_mean(&named.value, &known));
            return None;
        };
        if weight.is_none() && said == PartialWire::default() {
            nothing(table);
        }
        if let Some(Placed { value: true, span }) = reshuffle {
            let what = "a reshuffle moves flows between all paths";
            table.fault(
                span,
                what,
                "write it in an entry of its own, without 'path'",
            );
        }
        let weight = weight.map(|weight| weight.value);
        return Some(What::OverridePath(index, weight, said));
    }
    let said = features(table, traces);
    let plain = said == Partial::default();
    match reshuffle {
        Some(Placed { value: true, span }) => {
            if paths.len() < 2 {
                let what = "this link has one path only, so nothing moves";
                table.fault(span, what, "add [[link.path]] twice or drop this");
            } else if !plain {
                let what = "a reshuffle changes nothing else";
                table.fault(span, what, "give the rest a [[link.schedule]] of its own");
            }
            Some(What::Reshuffle)
        }
        _ if plain => {
            nothing(table);
            None
        }
        _ => Some(What::Override(said)),
    }
}

fn nothing(table: &Fields<'_>) {
    let remedy = "say what it does, such as delay = \"80ms\" or reshuffle = true";
    table.fault(table.span(), "this entry changes nothing", remedy);
}

/// A time after the cue, at most 30 days.
pub(super) fn moment(node: &Node) -> Result<Span, Fault> {
    let span = Span::from_nanos(Nanos::take(node)?.0);
    if span <= LONGEST {
        return Ok(span);
    }
    let remedy = "write a time after the cue such as \"15s\", at most 30d";
    Err(Fault::new("this is too late", remedy))
}

fn period(node: &Node) -> Result<Span, Fault> {
    let span = moment(node)?;
    if span >= SHORTEST {
        return Ok(span);
    }
    let remedy = "write a time such as \"10s\", at least 10ms";
    Err(Fault::new("this comes again too fast", remedy))
}
