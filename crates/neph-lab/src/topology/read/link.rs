//! From a `[[link]]` table to a [`Link`]: what is said for both directions, then for each.

use std::collections::BTreeSet;

use neph_model::{BitRate, ByteSize, Span};
use neph_text::{Fault, Fields, Node, Placed, Take, choice, did_you_mean};

use super::{NAME_REMEDY, is_name};
use crate::gate::{Jitter, Shape, Share};
use crate::links::LINKS;
use crate::topology::quantity;
use crate::topology::{Link, Site};

/// A queue where a rate is given without one: what a home access router commonly holds.
const DEFAULT_QUEUE: ByteSize = ByteSize(256 * 1024);

/// What links may join.
#[derive(Clone, Copy)]
pub(super) struct Ends<'s> {
    /// The sites that could be read.
    pub(super) sites: &'s [Site],
    /// Whether these are all. If not, a name that is missing may be one of the others.
    pub(super) complete: bool,
}

/// All links of a topology.
pub(super) fn links(fields: &mut Fields<'_>, ends: Ends<'_>) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut names = BTreeSet::new();
    for (number, table) in fields.tables("link").into_iter().enumerate() {
        let span = table.span();
        let Some(link) = link(table, number, ends) else {
            continue;
        };
        if !names.insert(link.name.clone()) {
            let what = format!("two links are called '{}'", link.name);
            fields.fault(span, what, "give one of them another 'name'");
        }
        links.push(link);
    }
    links
}

fn link(mut table: Fields<'_>, number: usize, ends: Ends<'_>) -> Option<Link> {
    let a = end(&mut table, "a", ends);
    let b = end(&mut table, "b", ends);
    let given = table.optional_with("name", link_name);
    let kinds: Vec<(&str, &'static str)> = LINKS.iter().map(|k| (k.name(), k.name())).collect();
    let kind = table.optional_with("kind", |node| choice(node, &kinds));
    let both = features(&mut table);
    let a_to_b = direction(&mut table, "a_to_b", &both);
    let b_to_a = direction(&mut table, "b_to_a", &both);
    let (span, problems) = (table.span(), table.problems());
    table.finish();
    let (a, b) = (a?, b?);
    let sites = ends.sites;
    if a == b {
        let what = format!("this link joins '{}' with itself", sites[a].name);
        problems.add(span, Fault::new(what, "name two different sites"));
        return None;
    }
    let name = given.map_or_else(
        || made_up_name(&sites[a], &sites[b], number),
        |name| name.value,
    );
    Some(Link {
        name,
        a,
        b,
        kind: kind.map(|kind| kind.value),
        a_to_b,
        b_to_a,
    })
}

fn link_name(node: &Node) -> Result<String, Fault> {
    let text = String::take(node)?;
    if is_name(&text) && text.len() <= 15 && text != "lo" {
        return Ok(text);
    }
    let what = format!("'{text}' cannot be a link's name");
    let remedy = format!("{NAME_REMEDY}, at most 15: it names the interface at both sites");
    Err(Fault::new(what, remedy))
}

fn made_up_name(a: &Site, b: &Site, number: usize) -> String {
    let name = format!("{}-{}", a.name, b.name);
    if name.len() <= 15 {
        name
    } else {
        format!("link{}", number + 1)
    }
}

/// The index of the site that `key` names.
fn end(table: &mut Fields<'_>, key: &'static str, ends: Ends<'_>) -> Option<usize> {
    let Ends { sites, complete } = ends;
    let named = table.required::<String>(key)?;
    let found = sites.iter().position(|site| site.name == named.value);
    if found.is_none() && complete {
        let known: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
        let what = format!("there is no site '{}'", named.value);
        table.fault(named.span, what, did_you_mean(&named.value, &known));
    }
    found
}

/// What is said about one direction, or about both; absent where nothing is said.
#[derive(Clone, Default)]
struct Features {
    delay: Option<Placed<Span>>,
    jitter: Option<Placed<Jitter>>,
    loss: Option<Placed<Share>>,
    rate: Option<Placed<BitRate>>,
    queue: Option<Placed<ByteSize>>,
}

fn features(table: &mut Fields<'_>) -> Features {
    Features {
        delay: table.optional_with("delay", quantity::delay),
        jitter: table.optional_with("jitter", quantity::jitter),
        loss: table.optional_with("loss", quantity::share),
        rate: table.optional_with("rate", quantity::rate),
        queue: table.optional_with("queue", quantity::queue),
    }
}

fn direction(table: &mut Fields<'_>, key: &'static str, both: &Features) -> Shape {
    let mut own = Features::default();
    if let Some(mut inner) = table.table(key) {
        own = features(&mut inner);
        inner.finish();
    }
    let rate = value(own.rate, both.rate.as_ref());
    if let (None, Some(queue)) = (rate, &own.queue) {
        let what = "a queue without a rate never fills";
        table.fault(queue.span.clone(), what, "add rate = \"...\" or drop it");
    }
    Shape {
        delay: value(own.delay, both.delay.as_ref()).unwrap_or_default(),
        jitter: value(own.jitter, both.jitter.as_ref()).unwrap_or_default(),
        loss: value(own.loss, both.loss.as_ref()).unwrap_or_default(),
        rate,
        queue: value(own.queue, both.queue.as_ref()).unwrap_or(DEFAULT_QUEUE),
    }
}

/// What the direction says, else what is said for both.
fn value<T: Copy>(own: Option<Placed<T>>, both: Option<&Placed<T>>) -> Option<T> {
    own.map(|own| own.value)
        .or_else(|| both.map(|both| both.value))
}
