//! Reads the settings of one direction of a link, or of both.

use std::path::Path;

use neph_text::{Fields, Spanned, Value, choice};

use super::trace::Traces;
use crate::gate::{CoDel, Discipline, GilbertElliott, Loss, PartialShape, PartialWire, Share};
use crate::topology::quantity;

/// The tables with settings of one direction only.
pub(super) const DIRECTIONS: [&str; 2] = ["a_to_b", "b_to_a"];

/// All settings of a direction of a link.
pub(super) fn read_shape(table: &mut Fields<'_>, traces: &Traces) -> PartialShape {
    let mut partial_shape = PartialShape {
        wire: read_wire(table, traces),
        ..PartialShape::default()
    };
    partial_shape.rate = value(table.optional_with("rate", quantity::rate));
    partial_shape.queue = value(table.optional_with("queue", quantity::queue));
    partial_shape.discipline = read_discipline(table);
    partial_shape.mtu = value(table.optional_with("mtu", quantity::mtu));
    partial_shape
}

/// All settings of the wire behind the transmitter.
pub(super) fn read_wire(table: &mut Fields<'_>, traces: &Traces) -> PartialWire {
    // The path of a trace file is relative to the topology.
    let topology = Path::new(table.problems().source().name());
    let folder = topology
        .parent()
        .unwrap_or_else(|| Path::new(""))
        .to_owned();
    let trace = |text: &str| traces.read(&folder, text);
    let jitter = table.optional_with("jitter", |node| quantity::jitter(node, &trace));
    PartialWire {
        delay: value(table.optional_with("delay", quantity::delay)),
        jitter: value(jitter),
        loss: read_loss(table),
        corrupt: value(table.optional_with("corrupt", quantity::share)),
        duplicate: value(table.optional_with("duplicate", quantity::share)),
        reorder: value(table.optional_with("reorder", quantity::share)),
    }
}

/// A name, or a table with a name and CoDel's times.
fn read_discipline(table: &mut Fields<'_>) -> Option<Discipline> {
    let codel = Discipline::CoDel(CoDel::default());
    let names = [("drop-tail", Discipline::DropTail), ("codel", codel)];
    let entry = table.entry("discipline")?;
    if !matches!(entry.node.value, Value::Table(_)) {
        return value(table.optional_with("discipline", |node| choice(node, &names)));
    }
    let mut inner = Fields::of(&entry.node, table.problems())?;
    let name = inner.required_with("name", |node| choice(node, &names[1..]));
    let target = inner.optional_with("target", quantity::codel_time);
    let interval = inner.optional_with("interval", quantity::codel_time);
    let defaults = CoDel::default();
    let parameters = CoDel {
        target: target
            .as_ref()
            .map_or(defaults.target, |target| target.value),
        interval: value(interval).unwrap_or(defaults.interval),
    };
    if let Some(target) = target.filter(|target| target.value >= parameters.interval) {
        let message = "the target is not below the interval";
        inner.fault(
            target.span,
            message,
            "write for example \"5ms\" of \"100ms\"",
        );
    }
    inner.finish();
    name.map(|_| Discipline::CoDel(parameters))
}

/// A share, or a table that describes bursts.
fn read_loss(table: &mut Fields<'_>) -> Option<Loss> {
    let entry = table.entry("loss")?;
    if !matches!(entry.node.value, Value::Table(_)) {
        let share = table.optional_with("loss", quantity::share)?;
        return Some(Loss::Random(share.value));
    }
    let mut model = Fields::of(&entry.node, table.problems())?;
    let models = [("gilbert-elliott", ())];
    let model_name = model.required_with("model", |node| choice(node, &models));
    let to_bad = model.required_with("p", quantity::share);
    let to_good = model.required_with("r", quantity::share);
    let loss_good = model.optional_with("good", quantity::share);
    let loss_bad = model.optional_with("bad", quantity::share);
    model.finish();
    model_name?;
    Some(Loss::GilbertElliott(GilbertElliott {
        to_bad: to_bad?.value,
        to_good: to_good?.value,
        loss_good: value(loss_good).unwrap_or(Share::NONE),
        loss_bad: value(loss_bad).unwrap_or(Share::ALL),
    }))
}

fn value<T>(spanned: Option<Spanned<T>>) -> Option<T> {
    spanned.map(|spanned| spanned.value)
}
