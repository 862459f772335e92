//! Which path each flow was on when, and what a detector told held against it: the rules of
//! `benches/change_score.py`. Memory grows with path changes, not with messages.

use neph_model::Span;

const TOLERANCE: i64 = 500_000;
const MIN_MESSAGES: u32 = 4;
const SECOND: i64 = 1_000_000_000;

/// A time on a path.
#[derive(Clone, Copy, Debug)]
struct Stay {
    path: u8,
    from: i64,
    packets: u32,
    answered: u32,
}

/// What the gates did.
#[derive(Debug)]
pub(crate) struct Truth {
    stays: Vec<Vec<Stay>>,
    levels: Vec<i64>,
}

/// A change that was reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelDetection {
    pub(crate) at: i64,
    pub(crate) certain: i64,
    pub(crate) before: Span,
    pub(crate) after: Span,
}

/// How exactly a change has to be reported; and when queues stood, by time: a change in one may be
/// dated when it was over.
#[derive(Clone, Debug)]
pub(crate) struct Margins {
    /// How long before or after its date a change may have been.
    pub(crate) time: i64,
    pub(crate) level: i64,
    pub(crate) queues: Vec<(i64, i64)>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    pub(crate) reported: usize,
    pub(crate) due: usize,
    pub(crate) found: usize,
    /// Right, but for a date that is more than a second off.
    pub(crate) misdated: usize,
    /// Slot and change.
    pub(crate) wrong: Vec<(usize, LevelDetection)>,
    /// Slot and moment.
    pub(crate) missed: Vec<(usize, i64)>,
    pub(crate) delays: Vec<i64>,
}

impl Truth {
    pub(crate) fn new(flows: u32, levels: Vec<i64>) -> Self {
        Self {
            stays: vec![Vec::new(); flows as usize],
            levels,
        }
    }

    /// A message took a path there.
    pub(crate) fn took(&mut self, slot: u32, sent: i64, path: u8) {
        let stays = &mut self.stays[slot as usize];
        if stays.last().is_none_or(|last| last.path != path) {
            stays.push(Stay {
                path,
                from: sent,
                packets: 0,
                answered: 0,
            });
        }
        if let Some(last) = stays.last_mut() {
            last.packets += 1;
        }
    }

    /// A message ended: it belongs to the stay in which it was sent.
    pub(crate) fn answered(&mut self, slot: u32, sent: i64, answered: bool) {
        let stays = self.stays[slot as usize].iter_mut().rev();
        if let Some(stay) = stays.into_iter().find(|stay| stay.from <= sent) {
            stay.answered += u32::from(answered);
        }
    }

    /// Round trips of the paths, in the topology's order, with each one's share of the packets.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub(crate) fn shares(&self) -> Vec<(i64, f64)> {
        let mut packets = vec![0_u64; self.levels.len()];
        for stay in self.stays.iter().flatten() {
            packets[usize::from(stay.path)] += u64::from(stay.packets);
        }
        let total: u64 = packets.iter().sum();
        let levels = self.levels.iter().copied();
        let shares = packets.iter().map(|share| *share as f64 / total as f64);
        levels.zip(shares).collect()
    }

    fn level(&self, stay: &Stay) -> i64 {
        self.levels[usize::from(stay.path)]
    }

    /// Adds what was reported about a flow, in the order of time.
    pub(crate) fn score(
        &self,
        slot: usize,
        detections: &[LevelDetection],
        margins: &Margins,
        score: &mut Score,
    ) {
        let stays = &self.stays[slot];
        let mut matched: Vec<Option<LevelDetection>> = vec![None; stays.len()];
        let mut last = 0;
        for change in detections {
            score.reported += 1;
            let reach = margins.reach(change.at);
            let latest = change.at + margins.time;
            let near =
                |stay: &Stay, base: Span| (self.level(stay) - base.nanos()).abs() <= margins.level;
            let fits = (last.max(1)..stays.len()).filter(|index| {
                matched[*index].is_none()
                    && (reach..=latest).contains(&stays[*index].from)
                    && near(&stays[*index], change.after)
                    && stays[last..*index]
                        .iter()
                        .any(|stay| near(stay, change.before))
            });
            let nearest = fits.min_by_key(|index| (stays[*index].from - change.at).abs());
            match nearest {
                Some(index) => {
                    (matched[index], last) = (Some(*change), index);
                    let off = (stays[index].from - change.at).abs();
                    score.misdated += usize::from(off > SECOND);
                }
                None => score.wrong.push((slot, *change)),
            }
        }
        for due in self.due(stays) {
            score.due += 1;
            let hit = due
                .iter()
                .find_map(|index| Some((*index, matched[*index]?)));
            match hit {
                Some((index, change)) => {
                    score.found += 1;
                    score.delays.push(change.certain - stays[index].from);
                }
                None => score.missed.push((slot, stays[due[0]].from)),
            }
        }
    }

    /// Changes that have to be reported: of each the stays that it led to.
    fn due(&self, stays: &[Stay]) -> Vec<Vec<usize>> {
        let mut due: Vec<Vec<usize>> = Vec::new();
        for (index, stay) in stays.iter().enumerate() {
            if stay.answered < MIN_MESSAGES {
                continue;
            }
            let level = self.level(stay);
            let same = |group: &Vec<usize>| {
                let last = group.last().map(|last| self.level(&stays[*last]));
                last.is_some_and(|last| (last - level).abs() <= TOLERANCE)
            };
            match due.last_mut().filter(|group| same(group)) {
                Some(group) => group.push(index),
                None => due.push(vec![index]),
            }
        }
        due.drain(..1.min(due.len()));
        due
    }
}

impl Margins {
    fn reach(&self, at: i64) -> i64 {
        let mut reach = at - self.time;
        for (begin, end) in self.queues.iter().rev() {
            if *begin <= at && *end >= reach {
                reach = reach.min(begin - self.time);
            }
        }
        reach
    }
}

impl Score {
    /// A quantile of the delays, in milliseconds.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a rank"
    )]
    pub(crate) fn delay(&self, part: f64) -> i64 {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        let rank = (part * delays.len() as f64) as usize;
        let ranked = delays.get(rank.min(delays.len().saturating_sub(1)));
        ranked.map_or(0, |delay| delay / 1_000_000)
    }

    /// Of the changes that had to be reported, the share that was.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub(crate) fn recall(&self) -> f64 {
        self.found as f64 / (self.due as f64).max(1.0)
    }
}
