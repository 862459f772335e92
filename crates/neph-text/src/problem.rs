//! A mistake in a text (where, what, and the remedy), and the collection of all mistakes of a text.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use crate::{Position, PrintableText, Source, did_you_mean};

/// Further mistakes are only counted: a reader needs no more, and a hostile file could have millions.
const MAXIMUM: usize = 100;

/// A mistake without the name of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong: one clause without a full stop.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

impl Fault {
    /// What is wrong, and the remedy.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}

/// A mistake at a position in a named text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The name of the text.
    pub file: String,
    /// The position in the text.
    pub position: Position,
    /// What is wrong: one clause without a full stop.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

/// `plan.toml:12:7: 'intervall' is not known here; did you mean 'interval'?`
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            position,
            message,
            remedy,
        } = self;
        write!(f, "{file}:{position}: {message}; {remedy}")
    }
}

impl std::error::Error for Problem {}

/// Makes quoted text safe: the file may have a word of a megabyte, or terminal control characters.
fn fit_to_show(text: &str) -> String {
    PrintableText::text(text).into()
}

/// Collects the mistakes found in one text.
#[derive(Debug)]
pub struct Problems<'s> {
    source: &'s Source,
    found: RefCell<Vec<Problem>>,
    /// Hashes of all mistakes, so that each counts once.
    seen: RefCell<HashSet<u64>>,
    unlisted: Cell<usize>,
}

impl<'s> Problems<'s> {
    /// No mistakes in `source` so far.
    pub fn new(source: &'s Source) -> Self {
        Self {
            source,
            found: RefCell::default(),
            seen: RefCell::default(),
            unlisted: Cell::new(0),
        }
    }
    /// The text of the mistakes.
    pub const fn source(&self) -> &'s Source {
        self.source
    }
    /// Adds a mistake; once, even if several readers of a value find it.
    pub fn add(&self, span: Range<usize>, fault: Fault) {
        let Fault { message, remedy } = fault;
        let mut hasher = DefaultHasher::new();
        (span.start, span.end, &message, &remedy).hash(&mut hasher);
        if !self.seen.borrow_mut().insert(hasher.finish()) {
            return;
        }
        if self.is_full() {
            self.count();
            return;
        }
        let problem = Problem {
            file: fit_to_show(self.source.name()),
            position: self.source.position(span),
            message: fit_to_show(&message),
            remedy: fit_to_show(&remedy),
        };
        self.found.borrow_mut().push(problem);
    }
    /// Whether further mistakes are only counted, without a message.
    pub fn is_full(&self) -> bool {
        self.found.borrow().len() >= MAXIMUM
    }
    /// Adds the mistake that a name is unknown, with the nearest known name. That name is computed
    /// only while mistakes are stored.
    pub fn unknown<'k>(
        &self,
        given: &str,
        span: Range<usize>,
        message: impl Into<String>,
        known: impl FnOnce() -> Vec<&'k str>,
    ) {
        if self.is_full() {
            self.count();
            return;
        }
        self.add(span, Fault::new(message, did_you_mean(given, &known())));
    }
    /// Counts a mistake without a message.
    pub fn count(&self) {
        self.unlisted.set(self.unlisted.get() + 1);
    }
    /// Whether there is no mistake.
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }
    /// `value` if there is no mistake.
    ///
    /// # Errors
    /// All mistakes, by position: at most 100, and one with the number of further ones.
    pub fn verdict<T>(self, value: Option<T>) -> Result<T, Vec<Problem>> {
        let unlisted = self.unlisted.get();
        let mut problems = self.found.into_inner();
        problems.sort_by_key(|problem| problem.position.span.start);
        match value {
            Some(value) if problems.is_empty() => return Ok(value),
            _ => {}
        }
        let count = match (problems.is_empty(), unlisted) {
            (false, 0) => return Err(problems),
            (false, unlisted) => format!("{unlisted} more mistakes"),
            (true, _) => "it cannot be read".to_owned(),
        };
        let end = self.source.text().len();
        problems.push(Problem {
            file: fit_to_show(self.source.name()),
            position: self.source.position(end..end),
            message: count,
            remedy: "correct the first ones and check again".to_owned(),
        });
        Err(problems)
    }
}
