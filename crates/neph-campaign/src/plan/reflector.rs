//! The flags of a `[[lab.reflector]]`: those of `neph reflect`, read into the reflector that they ask for.
//!
//! Owns the flags and what each sets, one row each. `neph reflect` has the same on its command line, with
//! their help; a test of neph holds both against each other.

use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;
use std::str::FromStr;

use neph_model::{MEDIA_PORT, ReflectorIdentity, ReflectorSpec, THROUGHPUT_PORT};
use neph_text::{Fault, did_you_mean};

use crate::option_value::{
    certificate_name, listen_address, memory_size, positive_span, rate, size, span,
};

const DEFAULT_THROUGHPUT: NonZeroU16 = NonZeroU16::new(THROUGHPUT_PORT).expect("no zero");

const DEFAULT_MEDIA: NonZeroU16 = NonZeroU16::new(MEDIA_PORT).expect("no zero");

/// What was read so far.
#[derive(Default)]
struct TypedFlags {
    spec: ReflectorSpec,
    has_tls: bool,
    tls_names: Vec<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// What a flag does with its value, if it has one.
enum Effect {
    /// It stands alone.
    Switch(fn(&mut TypedFlags)),
    /// It has a value and stands once.
    Value(fn(&mut TypedFlags, &str) -> Result<(), String>),
    /// It may have a value, behind `=`, and stands once.
    Optional(fn(&mut TypedFlags, Option<&str>) -> Result<(), String>),
    /// It has a value and may be repeated.
    Values(fn(&mut TypedFlags, &str) -> Result<(), String>),
}

/// Every flag, in the order of the command's help.
const FLAGS: &[(&str, Effect)] = &[
    (
        "--listen",
        Effect::Value(|t, text| set(&mut t.spec.address, listen_address(text))),
    ),
    ("--tls", Effect::Switch(|t| t.has_tls = true)),
    (
        "--cert",
        Effect::Value(|t, text| set(&mut t.certificate, Ok(Some(text.into())))),
    ),
    (
        "--key",
        Effect::Value(|t, text| set(&mut t.key, Ok(Some(text.into())))),
    ),
    (
        "--tls-name",
        Effect::Values(|t, text| push(&mut t.tls_names, certificate_name(text))),
    ),
    (
        "--tls-version",
        Effect::Value(|t, text| set(&mut t.spec.tls_version, parse_text(text).map(Some))),
    ),
    (
        "--stamp-key",
        Effect::Value(|t, text| set(&mut t.spec.stamp_key, parse_text(text).map(Some))),
    ),
    (
        "--answer-port",
        Effect::Values(|t, text| {
            push(
                &mut t.spec.answered_ports,
                parse_value::<NonZeroU16>(text).map(NonZeroU16::get),
            )
        }),
    ),
    (
        "--think",
        Effect::Value(|t, text| set(&mut t.spec.reply_delay, span(text))),
    ),
    (
        "--throughput",
        Effect::Optional(|t, text| {
            let port = text.map_or(Ok(DEFAULT_THROUGHPUT), parse_value::<NonZeroU16>);
            set(&mut t.spec.throughput, port.map(Some))
        }),
    ),
    (
        "--media",
        Effect::Optional(|t, text| {
            let port = text.map_or(Ok(DEFAULT_MEDIA), parse_value::<NonZeroU16>);
            set(&mut t.spec.media, port.map(Some))
        }),
    ),
    (
        "--serve",
        Effect::Value(|t, text| set(&mut t.spec.service, parse_text(text).map(Some))),
    ),
    (
        "--max-reply",
        Effect::Value(|t, text| set(&mut t.spec.caps.reply_size, size(text))),
    ),
    (
        "--max-request",
        Effect::Value(|t, text| set(&mut t.spec.caps.request_size, size(text))),
    ),
    (
        "--max-memory",
        Effect::Value(|t, text| set(&mut t.spec.caps.memory, memory_size(text))),
    ),
    (
        "--max-rate",
        Effect::Value(|t, text| set(&mut t.spec.caps.messages_per_second, parse_count(text))),
    ),
    (
        "--max-reply-rate",
        Effect::Value(|t, text| set(&mut t.spec.caps.reply_rate, rate(text))),
    ),
    (
        "--max-connections",
        Effect::Value(|t, text| set(&mut t.spec.caps.connections, parse_count(text))),
    ),
    (
        "--max-connections-per-peer",
        Effect::Value(|t, text| set(&mut t.spec.caps.connections_per_peer, parse_count(text))),
    ),
    (
        "--idle",
        Effect::Value(|t, text| set(&mut t.spec.caps.idle, positive_span(text))),
    ),
    // A reflector of a lab is a thread of neph run: it prints nothing, and sleeps as that does.
    ("--awake", Effect::Switch(|_| ())),
    (
        "--user",
        Effect::Value(|_, _| {
            Err("reflectors of a lab are threads of neph run, which needs root".to_owned())
        }),
    ),
    (
        "--format",
        Effect::Value(|_, text| match text {
            "text" | "ndjson" => Ok(()),
            _ => Err(format!("'{text}' is no format: write text or ndjson")),
        }),
    ),
    ("--quiet", Effect::Switch(|_| ())),
];

/// The reflector that flags of `neph reflect` ask for.
///
/// # Errors
/// The first mistake in them. No value of `--stamp-key` is repeated: it may be a secret.
pub fn parse_reflector_flags<'a>(
    args: impl IntoIterator<Item = &'a str>,
) -> Result<ReflectorSpec, Fault> {
    let mut typed = TypedFlags::default();
    let mut names: Vec<&str> = Vec::new();
    let mut args = args.into_iter().peekable();
    while let Some(arg) = args.next() {
        let (name, joined_value) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg, None),
        };
        let name = if name == "-q" { "--quiet" } else { name };
        let (name, effect) = find_flag(name)?;
        match effect {
            Effect::Values(_) => (),
            _ if names.contains(&name) => {
                return Err(flags_fault(&format!("{name} is given twice")));
            }
            _ => names.push(name),
        }
        let apply = match (effect, joined_value) {
            (Effect::Switch(apply), None) => {
                apply(&mut typed);
                continue;
            }
            (Effect::Optional(apply), joined_value) => {
                let result = apply(&mut typed, joined_value);
                result.map_err(|reason| flags_fault(&format!("{name}: {reason}")))?;
                continue;
            }
            (Effect::Switch(_), Some(_)) => {
                return Err(flags_fault(&format!("{name} takes no value")));
            }
            (Effect::Value(apply) | Effect::Values(apply), _) => apply,
        };
        let next_value = || args.next_if(|next| *next == "-" || !next.starts_with('-'));
        let value = joined_value.or_else(next_value);
        let value = value.ok_or_else(|| flags_fault(&format!("{name} needs a value")))?;
        apply(&mut typed, value).map_err(|reason| flags_fault(&format!("{name}: {reason}")))?;
    }
    typed.finish()
}

/// The row of a flag.
fn find_flag(name: &str) -> Result<(&'static str, &'static Effect), Fault> {
    let row = FLAGS.iter().find(|(known, _)| *known == name);
    row.map(|(name, effect)| (*name, effect)).ok_or_else(|| {
        let names: Vec<&str> = FLAGS.iter().map(|(name, _)| *name).collect();
        let message = format!("neph reflect has no flag '{name}'");
        Fault::new(message, did_you_mean(name, &names))
    })
}

impl TypedFlags {
    fn finish(mut self) -> Result<ReflectorSpec, Fault> {
        let has_files = self.certificate.is_some() || self.key.is_some();
        if !self.tls_names.is_empty() && has_files {
            return Err(flags_fault(
                "--tls-name: a certificate of --cert has its names",
            ));
        }
        if !self.tls_names.is_empty() && !self.has_tls {
            return Err(flags_fault("--tls-name needs --tls"));
        }
        self.spec.identity = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Some(ReflectorIdentity::Files { certificate, key }),
            (None, None) if self.has_tls => Some(ReflectorIdentity::SelfSigned(self.tls_names)),
            (None, None) => None,
            (Some(_), None) => return Err(flags_fault("--cert needs --key")),
            (None, Some(_)) => return Err(flags_fault("--key needs --cert")),
        };
        Ok(self.spec)
    }
}

fn flags_fault(reason: &str) -> Fault {
    Fault::new(
        format!("neph reflect does not accept these flags: {reason}"),
        "neph reflect --help shows which there are",
    )
}

fn set<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}

fn push<T>(values: &mut Vec<T>, value: Result<T, String>) -> Result<(), String> {
    values.push(value?);
    Ok(())
}

fn parse_text<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn parse_count(text: &str) -> Result<u32, String> {
    parse_value::<NonZeroU32>(text).map(NonZeroU32::get)
}

fn parse_value<T: FromStr>(text: &str) -> Result<T, String> {
    let to_message = |_| format!("'{text}' is no whole number from 1 on that fits here");
    text.parse().map_err(to_message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reflector_flags_are_parsed_into_a_spec() {
        let flags = ["--tls", "--listen=127.0.0.1:80", "--max-rate", "7", "-q"];
        let spec = parse_reflector_flags(flags).expect("flags");
        assert_eq!(
            spec.identity,
            Some(ReflectorIdentity::SelfSigned(Vec::new()))
        );
        assert_eq!(spec.address.to_string(), "127.0.0.1:80");
        assert_eq!(spec.caps.messages_per_second, 7);
        assert_eq!(parse_reflector_flags([]), Ok(ReflectorSpec::default()));
        let port = |args: &[&str]| {
            let spec = parse_reflector_flags(args.iter().copied()).expect("flags");
            spec.throughput.map(NonZeroU16::get)
        };
        assert_eq!(port(&["--throughput", "--tls"]), Some(7420));
        assert_eq!(port(&["--throughput=7421"]), Some(7421));
    }

    #[test]
    fn a_wrong_flag_is_reported_with_its_name_and_remedy() {
        for (args, message, remedy) in [
            (&["--listn", "x"][..], "'--listn'", "'--listen'"),
            (&["--think", "--tls"], "--think needs a value", "--help"),
            (&["--tls", "--tls"], "--tls is given twice", "--help"),
            (&["--tls=yes"], "--tls takes no value", "--help"),
            (&["--tls-name", "a"], "--tls-name needs --tls", "--help"),
            (&["--cert", "a.pem"], "--cert needs --key", "--help"),
            (&["--max-memory", "1MiB"], "the minimum is 4 MiB", "--help"),
            (&["--user", "me"], "needs root", "--help"),
        ] {
            let fault = parse_reflector_flags(args.iter().copied()).expect_err(message);
            assert!(fault.message.contains(message), "{fault:?}");
            assert!(fault.remedy.contains(remedy), "{fault:?}");
        }
        let fault = parse_reflector_flags(["--stamp-key", "hunter2"]).expect_err("bare");
        assert!(!format!("{fault:?}").contains("hunter2"), "{fault:?}");
    }
}
