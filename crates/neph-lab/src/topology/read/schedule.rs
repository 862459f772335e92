//! Reads `[[link.schedule]]` tables: scheduled changes.

use neph_model::Span;
use neph_text::{Fault, Fields, FromNode, Nanos, Node, Spanned, choice, did_you_mean};

use super::features::{read_shape, read_wire};
use super::path::{PathSpec, check_no_link_settings, weight};
use super::trace::Traces;
use crate::direction::Direction;
use crate::gate::{Change, ChangeAction, PartialShape, PartialWire, Recurrence};

/// The latest time of a change.
const MAX_CHANGE_TIME: Span = Span::from_secs(30 * 24 * 3600);
/// A shorter period would keep an engine busy.
const MIN_PERIOD: Span = Span::from_millis(10);
/// Maximum number of entries, limited by the truth record.
const MAX_ENTRIES: usize = 1_000;

/// All changes of a link, in the order of the file.
pub(super) fn changes(link: &mut Fields<'_>, paths: &[PathSpec], traces: &Traces) -> Vec<Change> {
    let tables = link.tables("schedule");
    if tables.len() > MAX_ENTRIES {
        let message = format!("this link's schedule has more than {MAX_ENTRIES} entries");
        link.fault(link.span(), message, "use 'every' for what comes again");
    }
    let tables = tables.into_iter();
    let changes = tables.filter_map(|table| read_change(table, paths, traces));
    changes.collect()
}

fn read_change(mut table: Fields<'_>, paths: &[PathSpec], traces: &Traces) -> Option<Change> {
    let recurrence_spec = RecurrenceSpec::read(&mut table);
    let direction = direction(&mut table);
    let action = read_action(&mut table, paths, traces);
    let effect = match action.as_ref()? {
        ChangeAction::Reshuffle => Effect::Permanent("a reshuffle"),
        _ => Effect::Temporary,
    };
    recurrence_spec.check(&table, effect);
    let Recurrence { at, until, every } = recurrence_spec.recurrence();
    table.finish();
    Some(Change {
        direction,
        at,
        until,
        every,
        action: action?,
    })
}

/// The direction of a table, if it sets one.
pub(super) fn direction(table: &mut Fields<'_>) -> Option<Direction> {
    let directions = [("a_to_b", Direction::AToB), ("b_to_a", Direction::BToA)];
    let direction = table.optional_with("direction", |node| choice(node, &directions));
    direction.map(|direction| direction.value)
}

/// Whether the effect of an entry ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// It is active from its start to its end.
    Temporary,
    /// It happens at a moment; contains its name.
    Permanent(&'static str),
}

/// The times of an entry as in the file.
#[derive(Debug)]
pub(super) struct RecurrenceSpec {
    at: Option<Spanned<Span>>,
    until: Option<Spanned<Span>>,
    every: Option<Spanned<Span>>,
}

impl RecurrenceSpec {
    pub(super) fn read(table: &mut Fields<'_>) -> Self {
        Self {
            at: table.optional_with("at", moment),
            until: table.optional_with("until", moment),
            every: table.optional_with("every", period),
        }
    }

    pub(super) fn recurrence(&self) -> Recurrence {
        let span = |placed: &Option<Spanned<Span>>| placed.as_ref().map(|placed| placed.value);
        Recurrence {
            at: span(&self.at).unwrap_or_default(),
            until: span(&self.until),
            every: span(&self.every),
        }
    }

    /// Checks that the times are consistent.
    pub(super) fn check(&self, table: &Fields<'_>, effect: Effect) {
        let at = self.recurrence().at;
        match (&self.until, &self.every, effect) {
            (Some(until), _, Effect::Permanent(action)) => {
                let message = format!("{action} happens at a moment and lasts for ever");
                table.fault(until.span.clone(), message, "drop 'until'");
            }
            (Some(until), _, _) if until.value <= at => {
                let message = "this ends before it begins";
                table.fault(until.span.clone(), message, "write a time after 'at'");
            }
            (Some(until), Some(every), _) if until.value - at >= every.value => {
                let message = "this begins again before it ends";
                let remedy = "write an 'every' that is longer than from 'at' to 'until'";
                table.fault(every.span.clone(), message, remedy);
            }
            (None, Some(every), Effect::Temporary) => {
                let message = "this never ends, so it cannot begin again";
                table.fault(every.span.clone(), message, "add 'until'");
            }
            _ => {}
        }
    }
}

/// The effect of the change.
fn read_action(
    table: &mut Fields<'_>,
    paths: &[PathSpec],
    traces: &Traces,
) -> Option<ChangeAction> {
    let reshuffle = table.optional::<bool>("reshuffle");
    if let Some(path_name) = table.optional::<String>("path") {
        let weight = table.optional_with("weight", weight);
        let partial_wire = read_wire(table, traces);
        check_no_link_settings(table);
        let Some(index) = paths.iter().position(|path| path.name == path_name.value) else {
            let known_paths: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
            let message = format!("this link has no path '{}'", path_name.value);
            table.fault(
                path_name.span,
                message,
                did_you_mean(&path_name.value, &known_paths),
            );
            return None;
        };
        if weight.is_none() && partial_wire == PartialWire::default() {
            add_no_change_fault(table);
        }
        if let Some(Spanned { value: true, span }) = reshuffle {
            let message = "a reshuffle moves flows between all paths";
            table.fault(
                span,
                message,
                "write it in an entry of its own, without 'path'",
            );
        }
        let weight = weight.map(|weight| weight.value);
        return Some(ChangeAction::OverridePath(index, weight, partial_wire));
    }
    let partial_shape = read_shape(table, traces);
    let is_unchanged = partial_shape == PartialShape::default();
    match reshuffle {
        Some(Spanned { value: true, span }) => {
            if paths.len() < 2 {
                let message = "this link has one path only, so nothing moves";
                table.fault(span, message, "add [[link.path]] twice or drop this");
            } else if !is_unchanged {
                let message = "a reshuffle changes nothing else";
                table.fault(
                    span,
                    message,
                    "give the rest a [[link.schedule]] of its own",
                );
            }
            Some(ChangeAction::Reshuffle)
        }
        _ if is_unchanged => {
            add_no_change_fault(table);
            None
        }
        _ => Some(ChangeAction::Override(partial_shape)),
    }
}

fn add_no_change_fault(table: &Fields<'_>) {
    let remedy = "give an action, such as delay = \"80ms\" or reshuffle = true";
    table.fault(table.span(), "this entry changes nothing", remedy);
}

/// A time after the cue, at most 30 days.
pub(super) fn moment(node: &Node) -> Result<Span, Fault> {
    let span = Span::from_nanos(Nanos::from_node(node)?.0);
    if span <= MAX_CHANGE_TIME {
        return Ok(span);
    }
    let remedy = "write a time after the cue such as \"15s\", at most 30d";
    Err(Fault::new("this is too late", remedy))
}

/// A period, 10 ms to 30 days.
pub(super) fn period(node: &Node) -> Result<Span, Fault> {
    let span = moment(node)?;
    if span >= MIN_PERIOD {
        return Ok(span);
    }
    let remedy = "write a time such as \"10s\", at least 10ms";
    Err(Fault::new("this comes again too fast", remedy))
}
