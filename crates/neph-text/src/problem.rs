//! A mistake in a text: where, what, and what to write instead; and the place where a reader
//! collects them all.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use crate::{Outside, Place, Source, did_you_mean};

/// Beyond this many, further mistakes are only counted: nobody reads them, and a hostile file
/// could hold millions.
const MOST: usize = 100;

/// A mistake, before the text it stands in is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong: one clause without a full stop.
    pub what: String,
    /// What to write instead.
    pub remedy: String,
}

impl Fault {
    /// What is wrong, and what to do about it.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

/// A mistake at a place of a named text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The text's name.
    pub file: String,
    /// Where in the text.
    pub place: Place,
    /// What is wrong: one clause without a full stop.
    pub what: String,
    /// What to write instead.
    pub remedy: String,
}

/// `plan.toml:12:7: 'intervall' is not known here; did you mean 'interval'?`
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            place,
            what,
            remedy,
        } = self;
        write!(f, "{file}:{place}: {what}; {remedy}")
    }
}

impl std::error::Error for Problem {}

/// A mistake quotes the file, and the file may hold a megabyte in one word, or bytes that a
/// terminal obeys.
fn fit_to_show(text: &str) -> String {
    Outside::text(text).into()
}

/// Collects the mistakes found in one text.
#[derive(Debug)]
pub struct Problems<'s> {
    source: &'s Source,
    found: RefCell<Vec<Problem>>,
    /// Hashes of all that was noted, so that a mistake counts once.
    noted: RefCell<HashSet<u64>>,
    more: Cell<usize>,
}

impl<'s> Problems<'s> {
    /// None found so far in `source`.
    pub fn new(source: &'s Source) -> Self {
        Self {
            source,
            found: RefCell::default(),
            noted: RefCell::default(),
            more: Cell::new(0),
        }
    }
    /// The text they are found in.
    pub const fn source(&self) -> &'s Source {
        self.source
    }
    /// Notes a mistake; once, however many readers of one value find the same.
    pub fn add(&self, span: Range<usize>, fault: Fault) {
        let Fault { what, remedy } = fault;
        let mut hasher = DefaultHasher::new();
        (span.start, span.end, &what, &remedy).hash(&mut hasher);
        if !self.noted.borrow_mut().insert(hasher.finish()) {
            return;
        }
        if self.is_full() {
            self.count();
            return;
        }
        let problem = Problem {
            file: fit_to_show(self.source.name()),
            place: self.source.place(span),
            what: fit_to_show(&what),
            remedy: fit_to_show(&remedy),
        };
        self.found.borrow_mut().push(problem);
    }
    /// Whether further mistakes are only counted, so that their sentences need not be made.
    pub fn is_full(&self) -> bool {
        self.found.borrow().len() >= MOST
    }
    /// Notes that a name is not among those that are known, with the nearest one: looked for only as long
    /// as mistakes are shown.
    pub fn unknown<'k>(
        &self,
        given: &str,
        span: Range<usize>,
        what: impl Into<String>,
        known: impl FnOnce() -> Vec<&'k str>,
    ) {
        if self.is_full() {
            self.count();
            return;
        }
        self.add(span, Fault::new(what, did_you_mean(given, &known())));
    }
    /// Counts a mistake without a sentence.
    pub fn count(&self) {
        self.more.set(self.more.get() + 1);
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }
    /// `value` if there is no mistake.
    ///
    /// # Errors
    /// All mistakes, by place; at most 100 and one that tells how many more there are.
    pub fn verdict<T>(self, value: Option<T>) -> Result<T, Vec<Problem>> {
        let more = self.more.get();
        let mut found = self.found.into_inner();
        found.sort_by_key(|problem| problem.place.span.start);
        match value {
            Some(value) if found.is_empty() => return Ok(value),
            _ => {}
        }
        let count = match (found.is_empty(), more) {
            (false, 0) => return Err(found),
            (false, more) => format!("{more} more mistakes"),
            (true, _) => "it cannot be read".to_owned(),
        };
        let end = self.source.text().len();
        found.push(Problem {
            file: fit_to_show(self.source.name()),
            place: self.source.place(end..end),
            what: count,
            remedy: "correct the first ones and check again".to_owned(),
        });
        Err(found)
    }
}
