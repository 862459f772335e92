//! From a `[[link]]` table to a [`Link`]: what is said for both directions, then for each.

use std::collections::BTreeSet;
use std::ops::Range;

use neph_model::{ByteSize, Span};

use super::{NAME_REMEDY, is_name};
use crate::gate::{Jitter, Shape, Share};
use crate::links::LINKS;
use crate::place::{PlacedError, did_you_mean};
use crate::topology::quantity::{self, Wrong};
use crate::topology::table::{Mistakes, Reader};
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
pub(super) fn links(reader: &Reader<'_, '_>, ends: Ends<'_>, mistakes: &mut Mistakes) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut names = BTreeSet::new();
    for (number, table) in reader.tables("link", mistakes).into_iter().enumerate() {
        let span = table.span();
        let Some(link) = link(table, (number, ends), mistakes) else {
            continue;
        };
        if !names.insert(link.name.clone()) {
            let what = format!("two links are called '{}'", link.name);
            mistakes.push(PlacedError::new(
                span,
                what,
                "give one of them another 'name'",
            ));
        }
        links.push(link);
    }
    links
}

fn link(
    table: Reader<'_, '_>,
    (number, ends): (usize, Ends<'_>),
    mistakes: &mut Mistakes,
) -> Option<Link> {
    let a = end(&table, "a", ends, mistakes);
    let b = end(&table, "b", ends, mistakes);
    let given = table.text("name", mistakes);
    if let Some((text, span)) = &given
        && !(is_name(text) && text.len() <= 15 && *text != "lo")
    {
        let what = format!("'{text}' cannot be a link's name");
        let remedy = format!("{NAME_REMEDY}, at most 15: it names the interface at both sites");
        mistakes.push(PlacedError::new(span.clone(), what, remedy));
    }
    let kind = kind(&table, mistakes);
    let both = features(&table, mistakes);
    let a_to_b = direction(&table, ("a_to_b", &both), mistakes);
    let b_to_a = direction(&table, ("b_to_a", &both), mistakes);
    let span = table.span();
    table.finish(mistakes);
    let (a, b) = (a?, b?);
    let sites = ends.sites;
    if a == b {
        let what = format!("this link joins '{}' with itself", sites[a].name);
        mistakes.push(PlacedError::new(span, what, "name two different sites"));
        return None;
    }
    let name = given.map_or_else(
        || made_up_name(&sites[a], &sites[b], number),
        |(n, _)| n.into(),
    );
    Some(Link {
        name,
        a,
        b,
        kind,
        a_to_b,
        b_to_a,
    })
}

fn kind(table: &Reader<'_, '_>, mistakes: &mut Mistakes) -> Option<&'static str> {
    let (text, span) = table.text("kind", mistakes)?;
    let known: Vec<&str> = LINKS.iter().map(|kind| kind.name()).collect();
    let found = LINKS
        .iter()
        .map(|kind| kind.name())
        .find(|name| *name == text);
    if found.is_none() {
        let what = format!("there is no kind of link '{text}'");
        mistakes.push(PlacedError::new(span, what, did_you_mean(text, &known)));
    }
    found
}

fn made_up_name(a: &Site, b: &Site, number: usize) -> String {
    let name = format!("{}-{}", a.name, b.name);
    if name.len() <= 15 {
        name
    } else {
        format!("link{}", number + 1)
    }
}

fn end(
    table: &Reader<'_, '_>,
    key: &'static str,
    Ends { sites, complete }: Ends<'_>,
    mistakes: &mut Mistakes,
) -> Option<usize> {
    let (text, span) = table.needed_text(key, mistakes)?;
    let found = sites.iter().position(|site| site.name == text);
    if found.is_none() && complete {
        let known: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
        let what = format!("there is no site '{text}'");
        mistakes.push(PlacedError::new(span, what, did_you_mean(text, &known)));
    }
    found
}

/// What is said about one direction, or about both; absent where nothing is said.
#[derive(Clone, Default)]
struct Features {
    delay: Option<Span>,
    jitter: Option<Jitter>,
    loss: Option<Share>,
    rate: Option<neph_model::BitRate>,
    queue: Option<(ByteSize, Range<usize>)>,
}

fn features(table: &Reader<'_, '_>, mistakes: &mut Mistakes) -> Features {
    let queue_span = table.get("queue").map_or(0..0, toml::Spanned::span);
    Features {
        delay: feature(table, ("delay", quantity::delay), mistakes),
        jitter: feature(table, ("jitter", quantity::jitter), mistakes),
        loss: feature(table, ("loss", quantity::share), mistakes),
        rate: feature(table, ("rate", quantity::rate), mistakes),
        queue: feature(table, ("queue", quantity::queue), mistakes).map(|q| (q, queue_span)),
    }
}

/// What a quantity's text means.
type Meaning<T> = fn(&str) -> Result<T, Wrong>;

fn feature<T>(
    table: &Reader<'_, '_>,
    (key, read): (&'static str, Meaning<T>),
    mistakes: &mut Mistakes,
) -> Option<T> {
    let (text, span) = table.text(key, mistakes)?;
    read(text)
        .map_err(|(what, remedy)| mistakes.push(PlacedError::new(span, what, remedy)))
        .ok()
}

fn direction(
    table: &Reader<'_, '_>,
    (key, both): (&'static str, &Features),
    mistakes: &mut Mistakes,
) -> Shape {
    let mut own = Features::default();
    if let Some(inner) = table.get(key).and_then(|value| Reader::of(value, mistakes)) {
        own = features(&inner, mistakes);
        inner.finish(mistakes);
    }
    let rate = own.rate.or(both.rate);
    if let (None, Some((_, span))) = (rate, &own.queue) {
        let what = "a queue without a rate never fills";
        mistakes.push(PlacedError::new(
            span.clone(),
            what,
            "add rate = \"...\" or drop it",
        ));
    }
    let queue = own
        .queue
        .or_else(|| both.queue.clone())
        .map_or(DEFAULT_QUEUE, |(size, _)| size);
    Shape {
        delay: own.delay.or(both.delay).unwrap_or_default(),
        jitter: own.jitter.or(both.jitter).unwrap_or_default(),
        loss: own.loss.or(both.loss).unwrap_or_default(),
        rate,
        queue,
    }
}
