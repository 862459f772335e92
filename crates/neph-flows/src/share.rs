//! A share with its interval.

use neph_stats::proportion;

use crate::pair::Share;

/// `hits` of `n`; `None` of none, or of fewer than hits.
pub(crate) fn share(hits: u64, n: u64) -> Option<Share> {
    let count = |number: u64| usize::try_from(number).ok();
    let proportion = proportion(count(hits)?, count(n)?).ok()?;
    Some(Share {
        hits,
        n,
        share: proportion.share(),
        low: proportion.interval().low,
        high: proportion.interval().high,
    })
}
