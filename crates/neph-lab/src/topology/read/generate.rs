//! `[[generate]]`: writes out common shapes of topologies.
//!
//! Owns the shapes. They produce ordinary tables for the ordinary readers. So a generated link can have every
//! feature, and a fault has the place of its origin. [`matrix`] has the measured round trips.

mod matrix;
mod tables;

use std::ops::Range;

use neph_text::{Fault, Fields, FromNode, Node, Problems, Spanned, Table, Value, choice};

use crate::topology::quantity;
use matrix::Matrix;
use tables::{GeneratedTables, link_table, node_table};

/// More than a lab can run, and its square can still be read.
const MAX_SITES: usize = 64;
/// Of the clients, and of the clouds, of tiers.
const MAX_SITES_PER_TIER: u32 = 32;

#[derive(Clone, Copy, Debug)]
enum Form {
    Pair,
    Star,
    Mesh,
    Tiers,
}

/// The document with all generated parts written out.
pub(super) fn expand(document: Table, problems: &Problems<'_>) -> Table {
    let mut top = Fields::new(&document, 0..0, problems);
    let tables = top.tables("generate");
    if tables.is_empty() {
        // Also if it is no list of tables, which was reported.
        return tables::without_key(document, "generate");
    }
    let mut generated = GeneratedTables::default();
    for table in tables {
        generate(table, &mut generated);
    }
    generated.append_to(tables::without_key(document, "generate"))
}

fn generate(mut table: Fields<'_>, generated: &mut GeneratedTables) {
    let forms = [
        ("pair", Form::Pair),
        ("star", Form::Star),
        ("mesh", Form::Mesh),
        ("tiers", Form::Tiers),
    ];
    let form = table.required_with("shape", |node| choice(node, &forms));
    let own_settings =
        |table: &mut Fields<'_>, key| table.entry(key).map(|entry| entry.node.clone());
    let settings = CommonSettings {
        span: form
            .as_ref()
            .map_or_else(|| table.span(), |form| form.span.clone()),
        site: own_settings(&mut table, "site"),
        link: own_settings(&mut table, "link"),
    };
    match form.map(|form| form.value) {
        None => return,
        Some(Form::Pair) => pair(&mut table, &settings, generated),
        Some(Form::Star) => star(&mut table, &settings, generated),
        Some(Form::Mesh) => mesh(&mut table, &settings, generated),
        Some(Form::Tiers) => tiers(&mut table, &settings, generated),
    }
    table.finish();
}

/// The common settings of all generated sites and links of a table, and its place.
struct CommonSettings {
    span: Range<usize>,
    site: Option<Node>,
    link: Option<Node>,
}

impl CommonSettings {
    fn add_site(&self, generated: &mut GeneratedTables, name: &str) {
        let table = node_table(name, self.site.as_ref(), &self.span);
        generated.sites.push(table);
    }

    fn add_router(&self, generated: &mut GeneratedTables, name: &str) {
        generated.routers.push(node_table(name, None, &self.span));
    }

    fn add_link(&self, generated: &mut GeneratedTables, ends: [&str; 2]) {
        let table = link_table(ends, self.link.as_ref(), &self.span);
        generated.links.push(table);
    }
}

/// The names of the sites: as given, or numbered from 1.
fn names(table: &mut Fields<'_>, min_count: usize) -> Option<Vec<String>> {
    let given_names = table.one_or_list::<String>("names");
    let count = table.optional::<u32>("sites");
    let prefix = table.optional::<String>("prefix");
    let names: Vec<String> = match (given_names, count) {
        (Some(given_names), None) => given_names.into_iter().map(|name| name.value).collect(),
        (None, Some(Spanned { value: count, span })) => {
            if usize::try_from(count).is_ok_and(|count| count > MAX_SITES) {
                let remedy = format!("write at most {MAX_SITES}");
                table.fault(span, format!("{count} sites are too many"), remedy);
                return None;
            }
            let prefix = prefix.map_or_else(|| "s".to_owned(), |prefix| prefix.value);
            (1..=count).map(|n| format!("{prefix}{n}")).collect()
        }
        _ => {
            let remedy = "write either names = [\"a\", \"b\"] or sites = 5";
            table.fault(table.span(), "which sites are wanted is not clear", remedy);
            return None;
        }
    };
    if names.len() < min_count || names.len() > MAX_SITES {
        let message = format!("{} sites do not make this shape", names.len());
        let remedy = format!("write {min_count} to {MAX_SITES}");
        table.fault(table.span(), message, remedy);
        return None;
    }
    Some(names)
}

/// Two sites and a link.
fn pair(table: &mut Fields<'_>, settings: &CommonSettings, generated: &mut GeneratedTables) {
    let Some(names) = names(table, 2) else {
        return;
    };
    let [a, b] = &names[..] else {
        let message = format!("a pair is two sites, not {}", names.len());
        table.fault(table.span(), message, "write two names, or another shape");
        return;
    };
    settings.add_site(generated, a);
    settings.add_site(generated, b);
    settings.add_link(generated, [a, b]);
}

/// Sites around a router.
fn star(table: &mut Fields<'_>, settings: &CommonSettings, generated: &mut GeneratedTables) {
    let centre = table.optional::<String>("centre");
    let centre = centre.map_or_else(|| "hub".to_owned(), |centre| centre.value);
    let Some(names) = names(table, 1) else {
        return;
    };
    settings.add_router(generated, &centre);
    for name in &names {
        settings.add_site(generated, name);
        settings.add_link(generated, [name, &centre]);
    }
}

/// A link for each pair of sites: from a matrix of round trips, or all equal.
fn mesh(table: &mut Fields<'_>, settings: &CommonSettings, generated: &mut GeneratedTables) {
    let entry = table.entry("matrix");
    let matrix_name = entry.and_then(|entry| match &entry.node.value {
        Value::Text(_) => Some(choice(&entry.node, matrix::NAMED_MATRICES)),
        _ => None,
    });
    let matrix = match (entry, matrix_name) {
        (Some(entry), Some(Err(fault))) => {
            table.problems().add(entry.node.span.clone(), fault);
            return;
        }
        (Some(entry), Some(Ok(build_matrix))) => {
            subset(table, build_matrix()).map(|matrix| (matrix, entry.node.span.clone()))
        }
        (Some(entry), None) => names(table, 2)
            .and_then(|names| read_rows(&entry.node, names, table.problems()))
            .map(|matrix| (matrix, entry.node.span.clone())),
        (None, _) => {
            if let Some(names) = names(table, 2) {
                for_each_pair(&names, |a, b| settings.add_link(generated, [a, b]));
                for name in &names {
                    settings.add_site(generated, name);
                }
                generated.is_mesh = true;
            }
            return;
        }
    };
    let Some((matrix, span)) = matrix else {
        return;
    };
    for site in &matrix.sites {
        let mut node = node_table(&site.name, settings.site.as_ref(), &settings.span);
        tables::add_labels(&mut node, &site.labels, &span);
        generated.sites.push(node);
    }
    for_each_pair(&matrix.names(), |a, b| {
        let mut link = link_table([a, b], settings.link.as_ref(), &settings.span);
        let delay = matrix.one_way(a, b);
        if let Err(span) = tables::set_delay(&mut link, delay, &span) {
            let message = "the matrix sets the length of the links";
            table.fault(span, message, "leave delay out");
        }
        generated.links.push(link);
    });
    generated.is_mesh = true;
}

fn for_each_pair(names: &[String], mut on_pair: impl FnMut(&str, &str)) {
    for (index, a) in names.iter().enumerate() {
        for b in &names[index + 1..] {
            on_pair(a, b);
        }
    }
}

/// The sites of a named matrix that `names` lists, or all.
fn subset(table: &mut Fields<'_>, mut matrix: Matrix) -> Option<Matrix> {
    let known_names = matrix.names();
    let choices: Vec<(&str, &str)> = known_names
        .iter()
        .map(|n| (n.as_str(), n.as_str()))
        .collect();
    let has_names = table.entry("names").is_some();
    let requested_names =
        table.one_or_list_with("names", |node| choice(node, &choices).map(str::to_owned));
    if has_names {
        let names: Vec<String> = requested_names?
            .into_iter()
            .map(|name| name.value)
            .collect();
        matrix.keep(&names);
    }
    if matrix.sites.len() < 2 {
        table.fault(table.span(), "a mesh has at least two sites", "name two");
        return None;
    }
    Some(matrix)
}

/// A matrix in the file: for each site the round trips to those that follow it.
fn read_rows(node: &Node, names: Vec<String>, problems: &Problems<'_>) -> Option<Matrix> {
    let rows_fault = |message: String| {
        let example = "matrix = [[\"10ms\", \"20ms\"], [\"15ms\"]] for three sites";
        let remedy = format!("write the round trips to the sites behind it: {example}");
        Fault::new(message, remedy)
    };
    let Value::List(rows) = &node.value else {
        let message = format!("this is {}", node.value.noun());
        problems.add(node.span.clone(), rows_fault(message));
        return None;
    };
    if rows.len() + 1 != names.len() {
        let message = format!("{} rows are not for {} sites", rows.len(), names.len());
        problems.add(node.span.clone(), rows_fault(message));
        return None;
    }
    let mut matrix = Matrix::new(names);
    let mut is_valid = true;
    for (from, row) in rows.iter().enumerate() {
        let cells = match &row.value {
            Value::List(cells) if cells.len() == rows.len() - from => cells,
            _ => {
                let message = format!("this row is not {} round trips", rows.len() - from);
                problems.add(row.span.clone(), rows_fault(message));
                is_valid = false;
                continue;
            }
        };
        for (step, cell) in cells.iter().enumerate() {
            match quantity::delay(cell) {
                Ok(round_trip) => matrix.set(from, from + step + 1, round_trip),
                Err(fault) => {
                    problems.add(cell.span.clone(), fault);
                    is_valid = false;
                }
            }
        }
    }
    is_valid.then_some(matrix)
}

/// The number of sites in a tier.
fn sites_per_tier(node: &Node) -> Result<u32, Fault> {
    let count = u32::from_node(node)?;
    if (1..=MAX_SITES_PER_TIER).contains(&count) {
        return Ok(count);
    }
    let remedy = format!("write 1 to {MAX_SITES_PER_TIER}");
    Err(Fault::new(
        format!("a tier cannot have {count} sites"),
        remedy,
    ))
}

/// Clients behind an access router, a core router, and the clouds behind it: the path from a user to a
/// service in the first source.
fn tiers(table: &mut Fields<'_>, settings: &CommonSettings, generated: &mut GeneratedTables) {
    let mut tier_names = |key, label: &str| {
        let count = table.optional_with(key, sites_per_tier);
        match count.map_or(1, |count| count.value) {
            1 => vec![label.to_owned()],
            count => (1..=count).map(|n| format!("{label}{n}")).collect(),
        }
    };
    let (clients, clouds) = (
        tier_names("clients", "client"),
        tier_names("clouds", "cloud"),
    );
    let mut tier_settings = |key| {
        let tier_node = table.entry(key).map(|entry| entry.node.clone());
        let link = tier_node.or_else(|| settings.link.clone());
        CommonSettings {
            span: settings.span.clone(),
            site: settings.site.clone(),
            link,
        }
    };
    let (access, core, cloud) = (
        tier_settings("access"),
        tier_settings("core"),
        tier_settings("cloud"),
    );
    settings.add_router(generated, "access");
    settings.add_router(generated, "core");
    core.add_link(generated, ["access", "core"]);
    for client in &clients {
        access.add_site(generated, client);
        access.add_link(generated, [client, "access"]);
    }
    for name in &clouds {
        cloud.add_site(generated, name);
        cloud.add_link(generated, ["core", name]);
    }
}

#[cfg(test)]
#[path = "generate/tests.rs"]
mod tests;
