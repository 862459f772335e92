//! The dip test as text: whether flows form groups.

use neph_flows::Bimodality;
use neph_model::Span;

use neph_text::counted::counted;

/// Whether the flows form one group. Differences below the tolerance count as one group.
pub(super) fn text(test: &Bimodality, tolerance: Span) -> String {
    let verdict = if test.spread <= tolerance {
        format!(
            "all flows lie within {}, so they are one group by the tolerance of {}",
            test.spread,
            tolerance.exact()
        )
    } else if test.p < 0.05 {
        format!("the flows fall into groups, within {}", test.spread)
    } else {
        format!("one group within {} cannot be ruled out", test.spread)
    };
    format!(
        "dip test:      {verdict} (dip {:.4}, p {}, {})\n",
        test.dip,
        if test.p < 0.001 {
            "< 0.001".to_owned()
        } else {
            format!("{:.3}", test.p)
        },
        counted(test.n, "flow")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_nearer_to_each_other_than_the_tolerance_are_no_groups() {
        let text_of = |spread| {
            let test = Bimodality {
                dip: 0.175,
                p: 0.0,
                n: 20,
                spread: Span::from_micros(spread),
            };
            text(&test, Span::from_micros(500))
        };
        assert!(text_of(20).contains("all flows lie within 20.0 us, so they are one group"));
        assert!(text_of(20).contains("(dip 0.1750, p < 0.001, 20 flows)"));
        assert!(text_of(4_000).contains("the flows fall into groups, within 4.00 ms"));
    }
}
