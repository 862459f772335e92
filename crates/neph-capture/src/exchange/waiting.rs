//! Questions that await their answers.
//!
//! Owns the assignment of answers to questions, the reuse of a number for another question, and the limit.
//! Beyond the limit one in so many questions is followed, selected by a hash of number and content. It also
//! counts for those that are not followed.

use neph_model::{Span, Wall};

use crate::chosen::is_chosen;

/// Questions of a pair that are followed at a time.
const MAX_QUESTIONS: usize = 1_024;
/// No answer comes after this time.
const LOST: Span = Span::from_secs(60);
/// The strongest thinning: one question in `2^20` is followed.
const THINNEST: u8 = 20;

/// A question or an answer: its number, and a digest of the fields that are equal in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageId {
    pub(super) id: u32,
    /// 0 where it is not known.
    pub(super) content: u32,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    of: MessageId,
    at: Wall,
    /// It is unknown which of several questions was answered.
    is_duplicate: bool,
    /// It counts for `2^thinned` questions.
    thinned: u8,
}

/// Classification of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionKind {
    /// A new question.
    Another,
    /// A repetition, or a duplicate in the capture.
    Before,
}

/// What an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerMatch {
    /// A question: its time, unless the answer may belong to either of two, and the number of questions it
    /// counts for.
    Question(Option<Wall>, u64),
    /// A question that is not followed.
    NotFollowed,
    /// No question in this capture.
    Nothing,
}

/// The waiting questions of one pair.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: Vec<Open>,
    /// One in `2^thinning` is followed.
    thinning: u8,
    /// Questions that are not followed.
    left_out: u64,
}

impl Questions {
    /// Adds a question. It is a repetition if an equal one waits and is not older than `repeats`.
    pub(super) fn ask(&mut self, at: Wall, of: MessageId, repeats: Span) -> QuestionKind {
        if let Some(known) = self.open.iter_mut().find(|open| open.of == of) {
            if since(known.at, at) < repeats {
                known.is_duplicate = true;
                return QuestionKind::Before;
            }
            (known.at, known.is_duplicate) = (at, false);
            return QuestionKind::Another;
        }
        if self.thinning > 0 && self.open.len() < MAX_QUESTIONS / 4 {
            self.thinning -= 1;
        }
        if !follows(of, self.thinning) {
            self.left_out += 1;
            return QuestionKind::Another;
        }
        self.open.push(Open {
            of,
            at,
            is_duplicate: false,
            thinned: self.thinning,
        });
        if self.open.len() > MAX_QUESTIONS {
            self.make_room(at);
        }
        QuestionKind::Another
    }

    /// Whether a question with this number and content awaits its answer.
    pub(super) fn awaits(&self, of: MessageId) -> bool {
        self.open.iter().any(|open| open.of == of)
    }

    /// Adds an answer. If no question has its content, it belongs to the only one with its number.
    pub(super) fn answer(&mut self, of: MessageId) -> AnswerMatch {
        let exact = self.open.iter().position(|open| open.of == of);
        let mut numbered = (0..self.open.len()).filter(|index| self.open[*index].of.id == of.id);
        let position = exact.or_else(|| numbered.next());
        let Some(index) = position else {
            return if follows(of, self.thinning) {
                AnswerMatch::Nothing
            } else {
                AnswerMatch::NotFollowed
            };
        };
        let is_certain = exact.is_some() || numbered.next().is_none();
        let open = self.open.remove(index);
        let at = (is_certain && !open.is_duplicate).then_some(open.at);
        AnswerMatch::Question(at, 1 << open.thinned)
    }

    /// Number of questions that were not followed since the last call.
    pub(super) fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    /// Forgets questions that will not be answered, then follows half as many.
    #[cold]
    fn make_room(&mut self, now: Wall) {
        self.open.retain(|open| since(open.at, now) < LOST);
        while self.open.len() > MAX_QUESTIONS / 2 && self.thinning < THINNEST {
            self.thinning += 1;
            let (before, thinning) = (self.open.len(), self.thinning);
            self.open.retain(|open| follows(open.of, thinning));
            for open in &mut self.open {
                open.thinned = open.thinned.max(thinning);
            }
            self.left_out += (before - self.open.len()) as u64;
        }
        // Even if the numbers are equal.
        let max = self.open.len().min(MAX_QUESTIONS);
        self.left_out += (self.open.len() - max) as u64;
        self.open.truncate(max);
    }
}

fn since(earlier: Wall, at: Wall) -> Span {
    Span::from_nanos(at.unix_nanos().saturating_sub(earlier.unix_nanos()))
}

fn follows(of: MessageId, thinning: u8) -> bool {
    is_chosen((of.id, of.content), thinning)
}
