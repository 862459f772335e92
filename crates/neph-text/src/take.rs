//! Converts a node to a typed value, or returns the mistake.

use crate::{
    Fault, Node, Value, did_you_mean, parse_duration, parse_percent, parse_rate, parse_size,
};

/// A type that a node can be converted to.
pub trait FromNode: Sized {
    /// The value of `node`.
    ///
    /// # Errors
    /// The node is something else, or out of range.
    fn from_node(node: &Node) -> Result<Self, Fault>;
}

/// A time in nanoseconds, written with its unit. Never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub i64);

/// A size in bytes, written with its unit or as a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A rate in bits per second, written with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitsPerSecond(pub u64);

/// A share from 0 to 100 percent, written `"5%"` or as a plain number.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

/// A port, from 1 to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port(pub u16);

/// The choice that the text of `node` names.
///
/// # Errors
/// The node is no text, or no choice has this name.
pub fn choice<T: Copy>(node: &Node, choices: &[(&str, T)]) -> Result<T, Fault> {
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let Value::Text(text) = &node.value else {
        return Err(unexpected(node, &one_of(&names)));
    };
    choices
        .iter()
        .find(|(name, _)| name == text)
        .map(|(_, value)| *value)
        .ok_or_else(|| {
            let message = format!("'{text}' is not known here");
            Fault::new(message, did_you_mean(text, &names))
        })
}

fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    format!("one of {}", quoted.join(", "))
}

/// The mistake of a node with the wrong type.
fn unexpected(node: &Node, expected: &str) -> Fault {
    let message = format!("this is {}", node.value.noun());
    Fault::new(message, format!("write {expected}"))
}

fn parse_integer(node: &Node, lowest: i128, highest: i128) -> Result<i128, Fault> {
    let expected = format!("a whole number from {lowest} to {highest}");
    match node.value {
        Value::Integer(n) if (lowest..=highest).contains(&n) => Ok(n),
        Value::Integer(n) => Err(Fault::new(
            format!("{n} is out of range"),
            format!("write {expected}"),
        )),
        _ => Err(unexpected(node, &expected)),
    }
}

macro_rules! take_integer {
    ($($integer:ty),+) => {$(
        impl FromNode for $integer {
            fn from_node(node: &Node) -> Result<Self, Fault> {
                let n = parse_integer(node, Self::MIN.into(), Self::MAX.into())?;
                Ok(Self::try_from(n).expect("its range was checked"))
            }
        }
    )+};
}
take_integer!(u16, u32, u64, i64);

impl FromNode for String {
    fn from_node(node: &Node) -> Result<Self, Fault> {
        match &node.value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(unexpected(node, "a text in quotes")),
        }
    }
}

impl FromNode for bool {
    fn from_node(node: &Node) -> Result<Self, Fault> {
        match node.value {
            Value::Switch(on) => Ok(on),
            _ => Err(unexpected(node, "true or false")),
        }
    }
}

impl FromNode for f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a fraction was allowed, so the nearest float is what is meant"
    )]
    fn from_node(node: &Node) -> Result<Self, Fault> {
        match node.value {
            Value::Integer(n) => Ok(n as Self),
            Value::Real(x) if x.is_finite() => Ok(x),
            _ => Err(unexpected(node, "a number")),
        }
    }
}

impl FromNode for Nanos {
    fn from_node(node: &Node) -> Result<Self, Fault> {
        match &node.value {
            Value::Text(text) => parse_duration(text).map(Self),
            Value::Integer(n) => Err(Fault::new(
                format!("{n} has no unit"),
                format!("write for example \"{n}ms\" or \"{n}s\""),
            )),
            _ => Err(unexpected(node, "a time such as \"25ms\"")),
        }
    }
}

impl FromNode for Bytes {
    fn from_node(node: &Node) -> Result<Self, Fault> {
        match &node.value {
            Value::Text(text) => parse_size(text).map(Self),
            Value::Integer(_) => u64::from_node(node).map(Self),
            _ => Err(unexpected(
                node,
                "a size such as \"10KiB\" or a number of bytes",
            )),
        }
    }
}

impl FromNode for BitsPerSecond {
    fn from_node(node: &Node) -> Result<Self, Fault> {
        match &node.value {
            Value::Text(text) => parse_rate(text).map(Self),
            Value::Integer(n) => Err(Fault::new(
                format!("{n} has no unit"),
                format!("write for example \"{n}bit/s\" or \"{n}Mbit/s\""),
            )),
            _ => Err(unexpected(node, "a rate such as \"3Mbit/s\"")),
        }
    }
}

impl FromNode for Percent {
    fn from_node(node: &Node) -> Result<Self, Fault> {
        let expected = "a share from 0% to 100% such as \"5%\"";
        match &node.value {
            Value::Text(text) => parse_percent(text).map(Self),
            Value::Integer(_) | Value::Real(_) => match f64::from_node(node)? {
                percent if (0.0..=100.0).contains(&percent) => Ok(Self(percent)),
                percent => Err(Fault::new(
                    format!("{percent} is out of range"),
                    format!("write {expected}"),
                )),
            },
            _ => Err(unexpected(node, expected)),
        }
    }
}

impl FromNode for Port {
    fn from_node(node: &Node) -> Result<Self, Fault> {
        let port = parse_integer(node, 1, u16::MAX.into())?;
        Ok(Self(u16::try_from(port).expect("its range was checked")))
    }
}
