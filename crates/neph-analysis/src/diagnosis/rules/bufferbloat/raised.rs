//! Where raised messages are a stretch: not every one of them has to be, and a single one is none.

use crate::text::real;

/// Within a stretch, so many of the messages are raised; a queue that is served by turns lets some pass.
const RAISED: f64 = 0.8;
/// It ends before so many messages in a row that met an empty queue: a single slow one later is
/// something else.
const GAP: usize = 5;

/// The longest run of raised messages with few others in between, by first and last place.
pub(crate) fn longest(raised: &[bool]) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    let (mut from, mut to, mut hits) = (0, 0, 0);
    for (index, _) in raised.iter().enumerate().filter(|(_, raised)| **raised) {
        let is_far = index - to > GAP || real(hits + 1) < RAISED * real(index - from + 1);
        if hits == 0 || is_far {
            (from, hits) = (index, 0);
        }
        (to, hits) = (index, hits + 1);
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
        assert_eq!(longest(&raised("..####.####.........#")), Some((2, 10)));
        assert_eq!(longest(&raised("#......########")), Some((7, 14)));
        assert_eq!(longest(&raised("......")), None);
    }
}
