//! A policy from its file: every mistake is collected, and one that cannot be read allows nothing.

use std::ops::RangeInclusive;
use std::str::FromStr;

use neph_model::{AllowedTargets, BitRate, Budgets, Network, Span};
use neph_text::{
    BitsPerSecond, Bytes, Fault, Fields, FromNode, Nanos, Node, Problem, Problems, Source, Value,
    choice, parse_toml,
};

use super::{Kind, Policy};

/// The longest order unless the file names another length.
const DEFAULT_MAX_DURATION: Span = Span::from_secs(24 * 3600);

impl Policy {
    /// The policy in a file's text.
    ///
    /// # Errors
    /// Every mistake, with its place.
    pub fn parse(source: &Source) -> Result<Self, Vec<Problem>> {
        let problems = Problems::new(source);
        let table = parse_toml(&problems);
        let text_range = 0..source.text().len();
        let node = Node {
            span: text_range,
            value: Value::Table(table),
        };
        let policy = Fields::of(&node, &problems).map(read);
        problems.verdict(policy)
    }
}

fn read(mut fields: Fields<'_>) -> Policy {
    check_version(&mut fields);
    let kinds = read_list(&mut fields, "kinds", |node| {
        choice(node, &Kind::kind_names())
    });
    if fields.entry("kinds").is_none() {
        let remedy = "name what the agent may do, as in kinds = [\"icmp\", \"http\"]";
        fields.fault(fields.span(), "'kinds' is missing", remedy);
    }
    let max_duration = fields.optional::<Nanos>("longest");
    let policy = Policy {
        controllers: read_list(&mut fields, "controllers", String::from_node),
        kinds,
        longest: max_duration.map_or(DEFAULT_MAX_DURATION, |nanos| {
            Span::from_nanos(nanos.value.0)
        }),
        hours: read_list(&mut fields, "hours", |node| {
            parse_text(node, "write times of the day, as \"08:00-18:00\"")
        }),
        listen: read_list(&mut fields, "listen", port_range),
        files: read_list(&mut fields, "files", absolute_path),
        targets: targets(&mut fields),
        budgets: budgets(&mut fields),
    };
    fields.finish();
    policy
}

fn check_version(fields: &mut Fields<'_>) {
    if fields.entry("version").is_none() {
        return fields.fault(fields.span(), "'version' is missing", "add version = 1");
    }
    if let Some(version) = fields.optional::<u32>("version")
        && version.value != 1
    {
        let message = format!("version {} of the policy is not known", version.value);
        fields.fault(version.span, message, "write version = 1");
    }
}

fn targets(fields: &mut Fields<'_>) -> AllowedTargets {
    let Some(mut table) = fields.table("targets") else {
        if fields.entry("targets").is_none() {
            let remedy = "add [targets] with allow = [\"192.0.2.0/24\"]";
            fields.fault(fields.span(), "[targets] is missing", remedy);
        }
        return AllowedTargets::default();
    };
    let targets = AllowedTargets {
        allow: read_list(&mut table, "allow", network),
        deny: read_list(&mut table, "deny", network),
        ports: read_list(&mut table, "ports", port_range),
    };
    table.finish();
    targets
}

fn budgets(fields: &mut Fields<'_>) -> Budgets {
    let Some(mut table) = fields.table("budget") else {
        return Budgets::default();
    };
    let rate = table.optional::<BitsPerSecond>("rate");
    let budgets = Budgets {
        messages: table
            .optional::<u32>("messages_per_second")
            .map(|setting| setting.value),
        rate: rate.map(|bits_per_second| BitRate(bits_per_second.value.0)),
        day_bytes: table
            .optional::<Bytes>("bytes_per_day")
            .map(|setting| setting.value.0),
    };
    table.finish();
    budgets
}

fn read_list<T: PartialEq>(
    fields: &mut Fields<'_>,
    key: &'static str,
    parse_value: impl Fn(&Node) -> Result<T, Fault>,
) -> Vec<T> {
    let values = fields
        .one_or_list_with(key, parse_value)
        .unwrap_or_default();
    values.into_iter().map(|setting| setting.value).collect()
}

fn parse_text<T: FromStr>(node: &Node, remedy: &str) -> Result<T, Fault> {
    let text = String::from_node(node)?;
    let fault = || Fault::new(format!("'{text}' is not understood"), remedy);
    text.parse().map_err(|_| fault())
}

fn network(node: &Node) -> Result<Network, Fault> {
    let text = String::from_node(node)?;
    let remedy = "write an address or a network, as \"192.0.2.0/24\" or \"2001:db8::/32\"";
    text.parse()
        .map_err(|error: neph_model::ParseNetworkError| Fault::new(error.to_string(), remedy))
}

/// A port, or the first and the last of several.
fn port_range(node: &Node) -> Result<RangeInclusive<u16>, Fault> {
    let text = String::from_node(node)?;
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let range = match text.split_once('-') {
        Some((first, last)) => port(first).zip(port(last)),
        None => port(&text).map(|port| (port, port)),
    };
    let range = range.filter(|(first, last)| first <= last);
    let range = range.map(|(first, last)| first..=last);
    range.ok_or_else(|| {
        let message = format!("'{text}' is no port");
        Fault::new(
            message,
            "write ports from 1 to 65535, as \"8080\" or \"9000-9010\"",
        )
    })
}

fn absolute_path(node: &Node) -> Result<String, Fault> {
    let text = String::from_node(node)?;
    if text.starts_with('/') {
        Ok(text)
    } else {
        let message = format!("'{text}' is no absolute path");
        Err(Fault::new(message, "begin it with /"))
    }
}
