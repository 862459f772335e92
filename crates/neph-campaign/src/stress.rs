//! The load that a scenario asks for at sites of the lab: `"none"`, `"vm1 80%, vm2 25%"`, or traffic
//! from them, `"vm2 flow 10.0.0.1:8080 max"`.
//!
//! Owns the words. Whoever has the lab makes the load.

use std::fmt;

use neph_model::{BitRate, Scenario};
use neph_text::{Fault, Node, Placed, Problems, Take, Value, is_hidden, parse_percent, parse_rate};

/// What a site does while something is measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Percent, from 1 to 100, of each core that it may use.
    Cpu(f64),
    /// TCP to a reflector, `host:port`: at this rate, or as fast as it goes.
    Flow(String, Option<BitRate>),
    /// UDP to a reflector, `host:port`, in frames as a video has them.
    Stream(String, BitRate),
}

/// A load and where it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Stressed {
    /// The site, or the guest.
    pub site: String,
    /// What it does.
    pub load: Load,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(percent) => write!(f, "{percent}%"),
            Self::Flow(target, None) => write!(f, "flow {target} {MOST}"),
            Self::Flow(target, Some(rate)) => write!(f, "flow {target} {}", exact(*rate)),
            Self::Stream(target, rate) => write!(f, "stream {target} {}", exact(*rate)),
        }
    }
}

impl fmt::Display for Stressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.site, self.load)
    }
}

/// A rate that is read as the same rate.
pub fn exact(rate: BitRate) -> String {
    let bits = rate.bits_per_second();
    let units = [
        (1_000_000_000, "Gbit/s"),
        (1_000_000, "Mbit/s"),
        (1_000, "kbit/s"),
    ];
    let unit = units.iter().find(|(unit, _)| bits.is_multiple_of(*unit));
    unit.map_or_else(
        || format!("{bits}bit/s"),
        |(unit, name)| format!("{}{name}", bits / unit),
    )
}

/// What a plan writes where no load is meant, and for a rate where there is no limit.
const NONE: &str = Scenario::UNSTRESSED;
const MOST: &str = "max";

/// The loads that `text` asks for.
///
/// # Errors
/// It is not written so, or asks twice for the same of a site.
pub fn parse(text: &str) -> Result<Vec<Stressed>, Fault> {
    let text = Scenario::unnamed_load(text);
    if text.trim() == NONE {
        return Ok(Vec::new());
    }
    let mut all: Vec<Stressed> = Vec::new();
    for part in text.split(',') {
        let one = one(part).ok_or_else(|| {
            let what = format!("\"{text}\" is no load");
            Fault::new(
                what,
                "write \"none\", sites and shares such as \"vm1 80%, vm2 25%\", or traffic such as \
                 \"vm2 flow 10.0.0.1:8080 max\" or \"vm2 stream 10.0.0.1:8080 1450kbit/s\"",
            )
        })?;
        if all.iter().any(|other| is_same(other, &one)) {
            let what = format!("site '{}' is named twice for the same load", one.site);
            return Err(Fault::new(what, "write one share or rate for it"));
        }
        all.push(one);
    }
    Ok(all)
}

fn is_same(one: &Stressed, other: &Stressed) -> bool {
    let loads = match (&one.load, &other.load) {
        (Load::Cpu(_), Load::Cpu(_)) => true,
        (Load::Flow(one, _), Load::Flow(other, _))
        | (Load::Stream(one, _), Load::Stream(other, _)) => one == other,
        _ => false,
    };
    loads && one.site == other.site
}

fn one(part: &str) -> Option<Stressed> {
    let (site, rest) = part.trim().split_once(char::is_whitespace)?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let load = match words.as_slice() {
        ["flow", target, MOST] => Load::Flow(reflector(target)?, None),
        ["flow", target, rate] => Load::Flow(reflector(target)?, Some(some_rate(rate)?)),
        ["stream", target, rate] => Load::Stream(reflector(target)?, some_rate(rate)?),
        _ => {
            let percent = parse_percent(rest.trim()).ok()?;
            Load::Cpu((1.0..=100.0).contains(&percent).then_some(percent)?)
        }
    };
    let site = site.to_owned();
    Some(Stressed { site, load })
}

/// `host:port`
fn reflector(text: &str) -> Option<String> {
    let (host, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    (!host.is_empty() && port > 0).then(|| text.to_owned())
}

fn some_rate(text: &str) -> Option<BitRate> {
    let rate = parse_rate(text).ok()?;
    (rate >= 1_000).then_some(BitRate(rate))
}

/// The parameter's value as a scenario keeps it: a load, or `{ name = "busy", load = "vm1 80%" }`.
pub(crate) fn read(node: &Node) -> Result<String, Fault> {
    let Value::Table(table) = &node.value else {
        let text = String::take(node)?;
        if Scenario::named_load(&text).is_some() {
            let what = format!("\"{text}\" is no load");
            return Err(Fault::new(what, NAMED));
        }
        return kept(&text);
    };
    let (mut name, mut load) = (None, None);
    for entry in &table.entries {
        match entry.key.as_str() {
            "name" => name = Some(String::take(&entry.node)?),
            "load" => load = Some(String::take(&entry.node)?),
            other => return Err(Fault::new(format!("a load has no key '{other}'"), NAMED)),
        }
    }
    let both = name.zip(load);
    let (name, load) =
        both.ok_or_else(|| Fault::new("a load lacks its name or its load", NAMED))?;
    let name = name.trim();
    if !is_name(name) {
        let what = format!("\"{name}\" is no name of a load");
        let remedy = "write 1 to 60 characters without = and line breaks, and not \"none\"";
        return Err(Fault::new(what, remedy));
    }
    Ok(Scenario::name_load(name, &kept(&load)?))
}

const NAMED: &str = "write \"vm1 80%\", or { name = \"busy\", load = \"vm1 80%\" } to name it";
/// The longest name, in characters.
const LONGEST_NAME: usize = 60;

fn is_name(name: &str) -> bool {
    let is_plain = |one: char| !is_hidden(one) && one != '=';
    (1..=LONGEST_NAME).contains(&name.chars().count()) && name != NONE && name.chars().all(is_plain)
}

fn kept(text: &str) -> Result<String, Fault> {
    let all = parse(text)?;
    if all.is_empty() {
        return Ok(NONE.to_owned());
    }
    let words: Vec<String> = all.iter().map(Stressed::to_string).collect();
    Ok(words.join(", "))
}

/// A name stands for one load only, and a load has one name: else two labels would be one, or one load two
/// scenarios.
pub(crate) fn check_names(asked: &[Placed<String>], problems: &Problems<'_>) {
    let parts = |kept: &str| {
        let name = Scenario::named_load(kept).map(str::to_owned);
        (name, Scenario::unnamed_load(kept).to_owned())
    };
    for (index, one) in asked.iter().enumerate() {
        let (name, load) = parts(&one.value);
        let mut before = asked[..index].iter().map(|other| parts(&other.value));
        let clash = before.find(|(known, other)| {
            let is_name_of_two = name.is_some() && name == *known && load != *other;
            is_name_of_two || (load == *other && name != *known)
        });
        if let Some((known, other)) = clash {
            let of = |name: Option<String>| {
                name.map_or_else(|| "no name".to_owned(), |name| format!("'{name}'"))
            };
            let what = if load == other {
                format!(
                    "the load \"{load}\" is called {} and {}",
                    of(known),
                    of(name)
                )
            } else {
                format!("{} names \"{other}\" and \"{load}\"", of(name))
            };
            let remedy = "give each load one name, and each name one load";
            problems.add(one.span.clone(), Fault::new(what, remedy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read_as_they_are_kept_and_nothing_else_is() {
        let two = parse("vm1  80%,vm2 2.5 %").expect("two");
        let words: Vec<String> = two.iter().map(Stressed::to_string).collect();
        assert_eq!(words, ["vm1 80%", "vm2 2.5%"]);
        assert_eq!(parse(&words.join(", ")), Ok(two));
        assert_eq!(parse("none"), Ok(Vec::new()));
        for wrong in [
            "",
            "vm1 flow 10.0.0.1 max",
            "vm1 flow :80 max",
            "vm1 stream 10.0.0.1:80 max",
            "vm1 flow 10.0.0.1:80 0bit/s",
            "vm1 flow 10.0.0.1:80 max, vm1 flow 10.0.0.1:80 1Mbit/s",
            "vm1",
            "80%",
            "vm1 0%",
            "vm1 101%",
            "vm1 1%,",
            "a 1%, a 2%",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_load_with_a_name_is_the_same_load() {
        let kept = Scenario::name_load("busy", "vm1 80%");
        assert_eq!(parse(&kept), parse("vm1 80%"));
        for name in ["busy", "first hop, shared", "ünder load"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "none", "a = b", "a\nb", &"x".repeat(61)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn traffic_is_read_as_it_is_kept() {
        let text = "vm1 flow 10.0.0.1:80 max, vm1 flow h:81 1450kbit/s, vm1 98%, \
                    vm2 stream [::1]:80 2Mbit/s";
        let all = parse(text).expect("four");
        let kept: Vec<String> = all.iter().map(Stressed::to_string).collect();
        assert_eq!(kept.join(", "), text);
        assert_eq!(
            all[1].load,
            Load::Flow("h:81".to_owned(), Some(BitRate(1_450_000)))
        );
    }
}
