//! Requests that await their answers.
//!
//! Owns the assignment of answers to requests, the reuse of a number for another request, and the limit.
//! Beyond the limit one in so many requests is followed, selected by a hash of number and content. It also
//! counts for those that are not followed.

use neph_model::{Span, Wall};

use crate::sampling::is_sampled;

/// Requests of a pair that are followed at a time.
const MAX_PENDING_REQUESTS: usize = 1_024;
/// No answer comes after this time.
const ANSWER_TIMEOUT: Span = Span::from_secs(60);
/// The strongest thinning: one request in `2^20` is followed.
const MAX_THINNING: u8 = 20;

/// A request or an answer: its number, and a digest of the fields that are equal in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageId {
    pub(super) id: u32,
    /// 0 where it is not known.
    pub(super) content: u32,
}

#[derive(Debug, Clone, Copy)]
struct PendingRequest {
    id: MessageId,
    at: Wall,
    /// It is unknown which of several requests was answered.
    is_duplicate: bool,
    /// It counts for `2^thinned` requests.
    thinned: u8,
}

/// Classification of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// A new request.
    New,
    /// A repetition, or a duplicate in the capture.
    Repeated,
}

/// What an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerMatch {
    /// A request: its time, unless the answer may belong to either of two, and the number of requests it
    /// counts for.
    Request(Option<Wall>, u64),
    /// A request that is not followed.
    NotFollowed,
    /// No request in this capture.
    NoRequest,
}

/// The waiting requests of one pair.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    pending: Vec<PendingRequest>,
    /// One in `2^thinning` is followed.
    thinning: u8,
    /// Requests that are not followed.
    untracked: u64,
}

impl PendingRequests {
    /// Adds a request. It is a repetition if an equal one waits and is not older than `retry_time`.
    pub(super) fn add_request(&mut self, at: Wall, id: MessageId, retry_time: Span) -> RequestKind {
        if let Some(repeated) = self.pending.iter_mut().find(|request| request.id == id) {
            if elapsed(repeated.at, at) < retry_time {
                repeated.is_duplicate = true;
                return RequestKind::Repeated;
            }
            (repeated.at, repeated.is_duplicate) = (at, false);
            return RequestKind::New;
        }
        if self.thinning > 0 && self.pending.len() < MAX_PENDING_REQUESTS / 4 {
            self.thinning -= 1;
        }
        if !is_followed(id, self.thinning) {
            self.untracked += 1;
            return RequestKind::New;
        }
        self.pending.push(PendingRequest {
            id,
            at,
            is_duplicate: false,
            thinned: self.thinning,
        });
        if self.pending.len() > MAX_PENDING_REQUESTS {
            self.make_room(at);
        }
        RequestKind::New
    }

    /// Whether a request with this number and content awaits its answer.
    pub(super) fn awaits(&self, id: MessageId) -> bool {
        self.pending.iter().any(|request| request.id == id)
    }

    /// Adds an answer. If no request has its content, it belongs to the only one with its number.
    pub(super) fn match_answer(&mut self, id: MessageId) -> AnswerMatch {
        let exact_index = self.pending.iter().position(|request| request.id == id);
        let mut same_number =
            (0..self.pending.len()).filter(|index| self.pending[*index].id.id == id.id);
        let matched = exact_index.or_else(|| same_number.next());
        let Some(index) = matched else {
            return if is_followed(id, self.thinning) {
                AnswerMatch::NoRequest
            } else {
                AnswerMatch::NotFollowed
            };
        };
        let is_certain = exact_index.is_some() || same_number.next().is_none();
        let request = self.pending.remove(index);
        let at = (is_certain && !request.is_duplicate).then_some(request.at);
        AnswerMatch::Request(at, 1 << request.thinned)
    }

    /// Number of requests that were not followed since the last call.
    pub(super) fn take_untracked(&mut self) -> u64 {
        std::mem::take(&mut self.untracked)
    }

    /// Forgets requests that will not be answered, then follows half as many.
    #[cold]
    fn make_room(&mut self, now: Wall) {
        self.pending
            .retain(|request| elapsed(request.at, now) < ANSWER_TIMEOUT);
        while self.pending.len() > MAX_PENDING_REQUESTS / 2 && self.thinning < MAX_THINNING {
            self.thinning += 1;
            let (before, thinning) = (self.pending.len(), self.thinning);
            self.pending
                .retain(|request| is_followed(request.id, thinning));
            for request in &mut self.pending {
                request.thinned = request.thinned.max(thinning);
            }
            self.untracked += (before - self.pending.len()) as u64;
        }
        // Even if the numbers are equal.
        let max = self.pending.len().min(MAX_PENDING_REQUESTS);
        self.untracked += (self.pending.len() - max) as u64;
        self.pending.truncate(max);
    }
}

fn elapsed(earlier: Wall, at: Wall) -> Span {
    Span::from_nanos(at.unix_nanos().saturating_sub(earlier.unix_nanos()))
}

fn is_followed(id: MessageId, thinning: u8) -> bool {
    is_sampled((id.id, id.content), thinning)
}
