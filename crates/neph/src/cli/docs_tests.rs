//! The commands that the pages show are commands of this program.

#[path = "../../tests/shared/tree.rs"]
mod tree;

use std::fs;

use clap::Parser;
use clap::error::ErrorKind;

use super::Cli;

/// The command lines of a page's code blocks that begin with `neph`, up to what the shell adds: a pipe, a
/// redirection, a comment.
fn commands(page: &str) -> Vec<(usize, Vec<String>)> {
    let mut in_code = false;
    let mut commands = Vec::new();
    for (number, line) in (1..).zip(page.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        // The text of an option in a help page is indented further, and can begin with the program's name.
        let is_option_text = line.len() - line.trim_start().len() > 8;
        let line = line.trim();
        let line = line.strip_prefix("$ ").unwrap_or(line);
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        if in_code && !is_option_text && line.starts_with("neph ") && !line.ends_with('\\') {
            let args = split_args(line);
            // Messages of the program (`neph hops: ...`) and usage lines are no commands.
            if !args[1].ends_with(':')
                && !["[OPTIONS]", "<COMMAND>", "..."]
                    .iter()
                    .any(|part| line.contains(part))
            {
                commands.push((number, args));
            }
        }
    }
    commands
}

fn split_args(line: &str) -> Vec<String> {
    let terminators = ["|", "#", "&&", "&", ";", ">", "2>", "2>&1", "<"];
    let mut args = Vec::new();
    let mut quote = None;
    let mut word = String::new();
    for character in line.chars().chain([' ']) {
        match (quote, character) {
            (Some(opening), _) if character == opening => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, ' ') => {
                if terminators.contains(&word.as_str()) || word.starts_with('>') {
                    return args;
                }
                let is_last = word.ends_with(';');
                let end = word.trim_end_matches(';').len();
                word.truncate(end);
                if !word.is_empty() {
                    args.push(std::mem::take(&mut word));
                }
                if is_last {
                    return args;
                }
            }
            _ => word.push(character),
        }
    }
    args
}

/// Whether a refusal is about the words themselves, and not about what a placeholder stands for.
fn is_syntax_error(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand | ErrorKind::ArgumentConflict
    )
}

#[test]
fn the_commands_in_the_pages_exist_with_their_options() {
    let root = tree::root();
    let mut pages = tree::files(&root.join("docs"));
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.push(root.join("README.md"));
    let (mut errors, mut command_count) = (Vec::new(), 0);
    for path in &pages {
        let text = fs::read_to_string(path).expect("UTF-8");
        for (line, args) in commands(&text) {
            command_count += 1;
            if let Err(error) = Cli::try_parse_from(&args)
                && is_syntax_error(error.kind())
            {
                let message = error.to_string();
                let message = message.lines().next().unwrap_or_default().to_owned();
                errors.push(format!(
                    "{}:{line}: {}: {message}",
                    path.display(),
                    args.join(" ")
                ));
            }
        }
    }
    assert!(
        command_count > 100,
        "only {command_count} commands were found"
    );
    assert!(
        errors.is_empty(),
        "these are no commands:\n{}",
        errors.join("\n")
    );
}
