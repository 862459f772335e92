//! Exit status of a command: 0 done, 1 no result, 2 usage, 3 an alarm was raised, 130 interrupted.

use std::fmt;
use std::io::ErrorKind;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind as Clap};
use miette::{MietteDiagnostic, Report, Severity};
use neph_analysis::LoadError;
use neph_capture::reading::ReadError;
use neph_listen::ListenError;
use neph_load::TransferError;
use neph_probe::ProbeError;
use neph_store::StoreError;
use neph_store::find::FindError;
use neph_sys::place::PlaceError;
use neph_text::{Problem, Source};

use crate::output;
use neph_documents::excerpt::Excerpt;

/// The outcome of a command that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything asked for was done.
    Done,
    /// It ran, and nothing was measured, or a check failed.
    Nothing,
    /// An alarm was raised; the results were shown in any case.
    Alarmed,
    /// Ctrl-C ended the command; results so far were kept and shown.
    Interrupted,
    /// A program that neph ran for the user ended with this status.
    Status(u8),
}

/// Why a command could not be carried out.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong usage: one sentence with the remedy.
    Usage(String),
    /// A given file has mistakes, each with its position.
    Text(Source, Vec<Problem>),
    /// This host or the peer refused.
    Refused(String),
    /// Ctrl-C ended the command before it had a result.
    Interrupted(String),
    /// The reader of the output has closed it.
    OutputClosed,
}

impl Failure {
    /// A failure that the user can correct.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }
    /// A failure of this host or of a peer.
    pub(crate) fn refused(error: impl fmt::Display) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    /// Commands themselves only write to standard output; other I/O is in libraries.
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Refused(format!("write the output: {error}")),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::refused(error)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::refused(error)
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Store(error) => Self::refused(error),
            other => Self::usage(other),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::InvalidInput(sentence) => Self::Usage(sentence),
            ReadError::Failed(sentence) => Self::Refused(sentence),
        }
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        match error {
            ListenError::InvalidRequest(sentence) => Self::Usage(sentence),
            ListenError::Refused(sentence) => Self::Refused(sentence),
            ListenError::Interrupted(sentence) => Self::Interrupted(sentence),
            ListenError::OutputClosed => Self::OutputClosed,
        }
    }
}

impl From<ProbeError> for Failure {
    /// A wrong option value is a usage error: a file without a certificate, a namespace that does
    /// not exist.
    fn from(error: ProbeError) -> Self {
        let is_usage = match &error {
            ProbeError::Tls(_) | ProbeError::Secret(_) => true,
            ProbeError::Site(fault) => is_name_error(fault),
            _ => false,
        };
        if is_usage {
            Self::usage(error)
        } else {
            Self::refused(error)
        }
    }
}

impl From<TransferError> for Failure {
    /// Classified like errors of probes.
    fn from(error: TransferError) -> Self {
        match &error {
            TransferError::Site(fault) if is_name_error(fault) => Self::usage(error),
            _ => Self::refused(error),
        }
    }
}

fn is_name_error(error: &PlaceError) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput)
}

/// The exit status of a command line that clap refused or answered itself (`--help`).
pub(crate) fn usage_status(error: &clap::Error) -> ExitCode {
    if let Some(sentence) = replacement_message(error) {
        output::say(&format!("neph: {sentence}"));
        return ExitCode::from(2);
    }
    if error.use_stderr() {
        output::report_clap(&error.render());
        return ExitCode::from(2);
    }
    // If the pipe is closed, help text is of no use.
    let _ = error.print();
    ExitCode::SUCCESS
}

/// Options whose value is not printed: it may be a secret, or neph's sentence contains it.
const OPTIONS_WITH_OWN_MESSAGE: [&str; 2] = ["--stamp-key", "--pin"];

/// A replacement for clap's message about numbers that cannot be read: clap shows the parser's
/// wording, and for a negative number it suggests to write it as a target.
fn replacement_message(error: &clap::Error) -> Option<String> {
    let context_text = |kind| match error.get(kind) {
        Some(ContextValue::String(context_text)) => Some(context_text.as_str()),
        _ => None,
    };
    if error.kind() == Clap::MissingRequiredArgument {
        return missing_option_message(error, &command_line());
    }
    let argument = context_text(ContextKind::InvalidArg)?;
    let negative_number = || {
        let number = argument.strip_prefix('-')?;
        number
            .starts_with(|character: char| character.is_ascii_digit())
            .then_some(())
    };
    if error.kind() == Clap::UnknownArgument {
        if argument == "--site" {
            return Some(
                "this command has no --site; start it there: neph lab run SITE -- neph ... (--lab NAME \
                 where several labs are up)"
                    .to_owned(),
            );
        }
        if argument == "--controller"
            && context_text(ContextKind::SuggestedArg) == Some("--control")
        {
            return Some(
                "this command uses agents from their controller's host only: run it there, with --control \
                 FOLDER"
                    .to_owned(),
            );
        }
        negative_number()?;
        let option_text =
            option_before(argument).map_or_else(String::new, |option| format!(" for {option}"));
        return Some(format!(
            "'{argument}' is no value{option_text}: numbers and times are not below zero"
        ));
    }
    let source = std::error::Error::source(error)?.to_string();
    if let Some(option) = OPTIONS_WITH_OWN_MESSAGE
        .iter()
        .find(|name| argument.starts_with(**name))
    {
        return Some(format!("{option}: {source}"));
    }
    let value = context_text(ContextKind::InvalidValue)?;
    let remedy = match source.as_str() {
        "invalid digit found in string" => "give a whole number".to_owned(),
        "number would be zero for non-zero type" => "give a whole number, at least 1".to_owned(),
        other => range_message(other)?,
    };
    Some(format!("'{value}' for {argument}: {remedy}"))
}

/// Options that require another option.
const REQUIRED_OPTIONS: [(&str, &str); 4] = [
    ("--every", "--record"),
    ("--transfer-size", "--transfers"),
    ("--cert", "--key"),
    ("--key", "--cert"),
];

/// The option that requires the missing one; `None` if the command itself does.
fn missing_option_message(error: &clap::Error, command_line: &[String]) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let [missing] = &missing[..] else { return None };
    let is_typed = |option: &str| {
        let mut names = command_line.iter().map(|name| name.split('=').next());
        names.any(|name| name == Some(option))
    };
    let is_match = |(option, required): &&(&str, &str)| {
        missing.split(' ').next() == Some(*required) && is_typed(option)
    };
    let (option, _) = REQUIRED_OPTIONS.iter().find(is_match)?;
    Some(format!(
        "{option} has no effect without {missing}: give both, or neither"
    ))
}

/// The command line of neph.
fn command_line() -> Vec<String> {
    let arguments = std::env::args_os();
    arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect()
}

/// The option of this argument on the command line.
fn option_before(argument: &str) -> Option<String> {
    let command_line = command_line();
    let mut pairs = command_line.windows(2);
    let argument_pair = pairs.find(|pair| pair[1] == argument || pair[1].starts_with(argument))?;
    argument_pair[0]
        .starts_with('-')
        .then(|| argument_pair[0].clone())
}

/// A replacement for clap's message about a number out of range, `0 is not in 1..=50000`.
fn range_message(clap: &str) -> Option<String> {
    let (_, range) = clap.split_once(" is not in ")?;
    let (min, max) = range.split_once("..")?;
    match max.strip_prefix('=') {
        Some(max) => Some(format!("write a number from {min} to {max}")),
        None if max.is_empty() => Some(format!("write a number, at least {min}")),
        None => None,
    }
}

/// Reports why a command failed, and gives its exit status.
pub(crate) fn status(result: Result<Outcome, Failure>) -> ExitCode {
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Nothing) => ExitCode::from(1),
        Ok(Outcome::Alarmed) => ExitCode::from(3),
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Ok(Outcome::Status(status)) => ExitCode::from(status),
        Err(failure) => {
            report_failure(&failure);
            ExitCode::from(match failure {
                Failure::Usage(_) | Failure::Text(..) => 2,
                Failure::Refused(_) => 1,
                Failure::Interrupted(_) => 130,
                Failure::OutputClosed => 0,
            })
        }
    }
}

/// Reports why a command, or a part of it, failed.
pub(crate) fn report_failure(failure: &Failure) {
    match failure {
        Failure::Usage(sentence) | Failure::Refused(sentence) | Failure::Interrupted(sentence) => {
            output::say(&format!("neph: {sentence}"));
        }
        Failure::Text(source, problems) => {
            for problem in problems {
                show_problem(source, problem);
            }
        }
        Failure::OutputClosed => {}
    }
}

/// Shows a mistake with its line of the file.
fn show_problem(source: &Source, problem: &Problem) {
    let excerpt = Excerpt::of(source, problem);
    let diagnostic = MietteDiagnostic::new(format!(
        "{}:{}: {}",
        problem.file, problem.position, problem.message
    ))
    .with_severity(Severity::Error)
    .with_help(problem.remedy.clone())
    .with_label(excerpt.label());
    // What is from outside was escaped: in the excerpt and in the problem.
    output::report_coloured(&format!(
        "{:?}",
        Report::new(diagnostic).with_source_code(excerpt)
    ));
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn an_unsupported_site_option_prints_the_lab_command() {
        let args = ["neph", "reflect", "--site", "server"];
        let error = Cli::try_parse_from(args).expect_err("it has no such option");
        let message = replacement_message(&error).expect("reported");
        assert!(message.contains("neph lab run SITE -- neph"), "{message}");
    }

    #[test]
    fn the_option_that_requires_a_missing_option_is_named() {
        let message_of = |args: &[&str]| {
            let error = Cli::try_parse_from(args).expect_err("one is missing");
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            missing_option_message(&error, &args)
        };
        let every = message_of(&["neph", "lab", "up", "f.toml", "--every", "4"]).expect("reported");
        assert!(
            every.starts_with("--every has no effect without --record"),
            "{every}"
        );
        let size = message_of(&["neph", "flows", "h", "--transfer-size=9"]).expect("reported");
        assert!(
            size.starts_with("--transfer-size has no effect without --transfers"),
            "{size}"
        );
        assert_eq!(message_of(&["neph", "flows"]), None);
    }
}
