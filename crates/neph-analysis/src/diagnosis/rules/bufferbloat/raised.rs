//! Where raised messages are a stretch: not every one of them has to be, and a single one is none.

use crate::text::to_f64;

/// Within a stretch, so many of the messages are raised; a queue that is served by turns lets some pass.
const MIN_RAISED_SHARE: f64 = 0.8;
/// It ends before so many messages in a row that met an empty queue: a single slow one later is
/// something else.
const MAX_GAP: usize = 5;

/// The longest run of raised messages with few others in between, by first and last place.
pub(crate) fn longest_stretch(raised: &[bool]) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    let (mut from, mut to, mut raised_count) = (0, 0, 0);
    for (index, _) in raised.iter().enumerate().filter(|(_, raised)| **raised) {
        let min_raised = MIN_RAISED_SHARE * to_f64(index - from + 1);
        let is_far = index - to > MAX_GAP || to_f64(raised_count + 1) < min_raised;
        if raised_count == 0 || is_far {
            (from, raised_count) = (index, 0);
        }
        (to, raised_count) = (index, raised_count + 1);
        if best.is_none_or(|(start, end)| index - from > end - start) {
            best = Some((from, index));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_bridges_single_messages_and_ends_before_several() {
        let raised =
            |text: &str| -> Vec<bool> { text.chars().map(|character| character == '#').collect() };
        assert_eq!(
            longest_stretch(&raised("..####.####.........#")),
            Some((2, 10))
        );
        assert_eq!(longest_stretch(&raised("#......########")), Some((7, 14)));
        assert_eq!(longest_stretch(&raised("......")), None);
    }
}
