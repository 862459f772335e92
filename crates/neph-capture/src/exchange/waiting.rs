//! Questions that await their answers.
//!
//! Owns which answer is whose, when a number is used again for another question, and how many are followed:
//! of more than that one in so many, chosen evenly by a hash of number and content, each of which stands for
//! those that are not.

use neph_model::{Span, Wall};

use crate::chosen::is_chosen;

/// Questions of a pair that are followed at a time.
const MOST: usize = 1_024;
/// Nobody answers after this.
const LOST: Span = Span::from_secs(60);
/// How often a question may be thinned: one in so many, as a power of two.
const THINNEST: u8 = 20;

/// A question or an answer: its number, and a digest of what is the same in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) id: u32,
    /// 0 where it is not known.
    pub(super) content: u32,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    of: Numbered,
    at: Wall,
    /// Which of several was answered cannot be told.
    is_twice: bool,
    /// It stands for `2^thinned`.
    thinned: u8,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It is another.
    Another,
    /// It was asked before: by its sender, who had no answer, or it stands in the capture again.
    Before,
}

/// What an answer answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A question: when that was asked, unless it cannot be told of which of two this is the answer, and how
    /// many questions it stands for.
    Question(Option<Wall>, u64),
    /// A question that is not followed.
    NotFollowed,
    /// Nothing that was asked here.
    Nothing,
}

/// Those of one pair.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: Vec<Open>,
    /// One in `2^thinning` is followed.
    thinning: u8,
    /// How many are not.
    left_out: u64,
}

impl Questions {
    /// A question. One with the number and content of another that waits is the same within `again`.
    pub(super) fn ask(&mut self, at: Wall, of: Numbered, again: Span) -> Asked {
        if let Some(known) = self.open.iter_mut().find(|open| open.of == of) {
            if since(known.at, at) < again {
                known.is_twice = true;
                return Asked::Before;
            }
            (known.at, known.is_twice) = (at, false);
            return Asked::Another;
        }
        if self.thinning > 0 && self.open.len() < MOST / 4 {
            self.thinning -= 1;
        }
        if !follows(of, self.thinning) {
            self.left_out += 1;
            return Asked::Another;
        }
        self.open.push(Open {
            of,
            at,
            is_twice: false,
            thinned: self.thinning,
        });
        if self.open.len() > MOST {
            self.make_room(at);
        }
        Asked::Another
    }

    /// Whether a question of this number and content awaits its answer.
    pub(super) fn awaits(&self, of: Numbered) -> bool {
        self.open.iter().any(|open| open.of == of)
    }

    /// An answer. Where none has its content it is that of the only one with its number.
    pub(super) fn answer(&mut self, of: Numbered) -> Found {
        let exact = self.open.iter().position(|open| open.of == of);
        let mut numbered = (0..self.open.len()).filter(|place| self.open[*place].of.id == of.id);
        let place = exact.or_else(|| numbered.next());
        let Some(place) = place else {
            return if follows(of, self.thinning) {
                Found::Nothing
            } else {
                Found::NotFollowed
            };
        };
        let is_certain = exact.is_some() || numbered.next().is_none();
        let open = self.open.remove(place);
        let at = (is_certain && !open.is_twice).then_some(open.at);
        Found::Question(at, 1 << open.thinned)
    }

    /// How many questions were not followed since this was asked last.
    pub(super) fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    /// Forgets what nobody answers any more, then follows half as many.
    #[cold]
    fn make_room(&mut self, now: Wall) {
        self.open.retain(|open| since(open.at, now) < LOST);
        while self.open.len() > MOST / 2 && self.thinning < THINNEST {
            self.thinning += 1;
            let (before, thinning) = (self.open.len(), self.thinning);
            self.open.retain(|open| follows(open.of, thinning));
            for open in &mut self.open {
                open.thinned = open.thinned.max(thinning);
            }
            self.left_out += (before - self.open.len()) as u64;
        }
        // However alike their numbers are.
        let most = self.open.len().min(MOST);
        self.left_out += (self.open.len() - most) as u64;
        self.open.truncate(most);
    }
}

fn since(earlier: Wall, at: Wall) -> Span {
    Span::from_nanos(at.unix_nanos().saturating_sub(earlier.unix_nanos()))
}

fn follows(of: Numbered, thinning: u8) -> bool {
    is_chosen((of.id, of.content), thinning)
}
