//! Questions that await their answers.
//!
//! Owns the assignment of answers to questions, the reuse of a number for another question, and the limit.
//! Beyond the limit one in so many questions is followed, selected by a hash of number and content. It also
//! counts for those that are not followed.

use neph_model::{Span, Wall};

use crate::sampling::is_sampled;

/// Questions of a pair that are followed at a time.
const MAX_QUESTIONS: usize = 1_024;
/// No answer comes after this time.
const ANSWER_TIMEOUT: Span = Span::from_secs(60);
/// The strongest thinning: one question in `2^20` is followed.
const MAX_THINNING: u8 = 20;

/// A question or an answer: its number, and a digest of the fields that are equal in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageId {
    pub(super) id: u32,
    /// 0 where it is not known.
    pub(super) content: u32,
}

#[derive(Debug, Clone, Copy)]
struct PendingQuestion {
    id: MessageId,
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
    New,
    /// A repetition, or a duplicate in the capture.
    Repeated,
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
    NoQuestion,
}

/// The waiting questions of one pair.
#[derive(Debug, Default)]
pub(super) struct Questions {
    pending: Vec<PendingQuestion>,
    /// One in `2^thinning` is followed.
    thinning: u8,
    /// Questions that are not followed.
    untracked: u64,
}

impl Questions {
    /// Adds a question. It is a repetition if an equal one waits and is not older than `retry_time`.
    pub(super) fn add_question(
        &mut self,
        at: Wall,
        id: MessageId,
        retry_time: Span,
    ) -> QuestionKind {
        if let Some(repeated) = self.pending.iter_mut().find(|question| question.id == id) {
            if since(repeated.at, at) < retry_time {
                repeated.is_duplicate = true;
                return QuestionKind::Repeated;
            }
            (repeated.at, repeated.is_duplicate) = (at, false);
            return QuestionKind::New;
        }
        if self.thinning > 0 && self.pending.len() < MAX_QUESTIONS / 4 {
            self.thinning -= 1;
        }
        if !is_followed(id, self.thinning) {
            self.untracked += 1;
            return QuestionKind::New;
        }
        self.pending.push(PendingQuestion {
            id,
            at,
            is_duplicate: false,
            thinned: self.thinning,
        });
        if self.pending.len() > MAX_QUESTIONS {
            self.make_room(at);
        }
        QuestionKind::New
    }

    /// Whether a question with this number and content awaits its answer.
    pub(super) fn awaits(&self, id: MessageId) -> bool {
        self.pending.iter().any(|question| question.id == id)
    }

    /// Adds an answer. If no question has its content, it belongs to the only one with its number.
    pub(super) fn match_answer(&mut self, id: MessageId) -> AnswerMatch {
        let exact_index = self.pending.iter().position(|question| question.id == id);
        let mut same_number =
            (0..self.pending.len()).filter(|index| self.pending[*index].id.id == id.id);
        let matched = exact_index.or_else(|| same_number.next());
        let Some(index) = matched else {
            return if is_followed(id, self.thinning) {
                AnswerMatch::NoQuestion
            } else {
                AnswerMatch::NotFollowed
            };
        };
        let is_certain = exact_index.is_some() || same_number.next().is_none();
        let question = self.pending.remove(index);
        let at = (is_certain && !question.is_duplicate).then_some(question.at);
        AnswerMatch::Question(at, 1 << question.thinned)
    }

    /// Number of questions that were not followed since the last call.
    pub(super) fn take_untracked(&mut self) -> u64 {
        std::mem::take(&mut self.untracked)
    }

    /// Forgets questions that will not be answered, then follows half as many.
    #[cold]
    fn make_room(&mut self, now: Wall) {
        self.pending
            .retain(|question| since(question.at, now) < ANSWER_TIMEOUT);
        while self.pending.len() > MAX_QUESTIONS / 2 && self.thinning < MAX_THINNING {
            self.thinning += 1;
            let (before, thinning) = (self.pending.len(), self.thinning);
            self.pending
                .retain(|question| is_followed(question.id, thinning));
            for question in &mut self.pending {
                question.thinned = question.thinned.max(thinning);
            }
            self.untracked += (before - self.pending.len()) as u64;
        }
        // Even if the numbers are equal.
        let max = self.pending.len().min(MAX_QUESTIONS);
        self.untracked += (self.pending.len() - max) as u64;
        self.pending.truncate(max);
    }
}

fn since(earlier: Wall, at: Wall) -> Span {
    Span::from_nanos(at.unix_nanos().saturating_sub(earlier.unix_nanos()))
}

fn is_followed(id: MessageId, thinning: u8) -> bool {
    is_sampled((id.id, id.content), thinning)
}
