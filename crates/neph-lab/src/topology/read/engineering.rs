//! From a `[link.engineering]` table to the change that it is: a controller that sets the weights.

use neph_model::Span;
use neph_text::{Fault, Fields, FromNode, Node, choice};

use super::schedule;
use crate::gate::{Change, ChangeAction, Shape, Share, TrafficEngineering};
use crate::topology::quantity;

/// Beyond this a path would have no room at all.
const MAX_SWING: Share = Share::from_billionths(950_000_000);
const MAX_PREFERENCE: u32 = 16;

/// What a season's name stands for: the source found that operators tune how aggressive they are by
/// the load of their users.
#[derive(Clone, Copy, Debug)]
struct Season {
    every: Span,
    swing: Share,
    period: Span,
}

const LOW_SEASON: Season = Season {
    every: Span::from_secs(30),
    swing: Share::from_billionths(300_000_000),
    period: Span::from_secs(120),
};

const HIGH_SEASON: Season = Season {
    every: Span::from_secs(10),
    swing: Share::from_billionths(700_000_000),
    period: Span::from_secs(20),
};

/// The controller of a link, if it has one.
pub(super) fn read_engineering(link: &mut Fields<'_>, shapes: &[Shape; 2]) -> Option<Change> {
    let mut table = link.table("engineering")?;
    let season = table.optional_with("season", |node| {
        choice(node, &[("low", LOW_SEASON), ("high", HIGH_SEASON)])
    });
    let season = season.map_or(LOW_SEASON, |season| season.value);
    let every = table.optional_with("every", schedule::period);
    let period = table.optional_with("period", schedule::period);
    let demand = table.optional_with("demand", demand);
    let swing = table.optional_with("swing", swing);
    let preference = table.optional_with("preference", preference);
    let direction = schedule::direction(&mut table);
    let unreserved_paths = shapes[0].paths.iter().filter(|path| path.only.is_none());
    if unreserved_paths.count() < 2 {
        let message = "this link has no two paths for all, so nothing can be moved";
        table.fault(
            table.span(),
            message,
            "add [[link.path]] twice or drop this",
        );
    }
    table.finish();
    let every = every.map_or(season.every, |every| every.value);
    Some(Change {
        direction,
        // Until the first round the weights are as they are written.
        at: every,
        until: None,
        every: Some(every),
        action: ChangeAction::Rebalance(TrafficEngineering {
            demand: demand.map_or(Share::ALL, |demand| demand.value),
            swing: swing.map_or(season.swing, |swing| swing.value),
            preference: preference.map_or(4, |preference| preference.value),
            period: period.map_or(season.period, |period| period.value),
        }),
    })
}

fn demand(node: &Node) -> Result<Share, Fault> {
    let share = quantity::share(node)?;
    if share > Share::NONE {
        return Ok(share);
    }
    let remedy = "write a share of all paths' weights such as \"80%\"";
    Err(Fault::new(
        "without demand there is nothing to move",
        remedy,
    ))
}

fn swing(node: &Node) -> Result<Share, Fault> {
    let share = quantity::share(node)?;
    if share <= MAX_SWING {
        return Ok(share);
    }
    let message = "other demand cannot take all of a path";
    Err(Fault::new(message, "write a share of at most \"95%\""))
}

fn preference(node: &Node) -> Result<u32, Fault> {
    let preference = u32::from_node(node)?;
    if preference <= MAX_PREFERENCE {
        return Ok(preference);
    }
    let message = format!("{preference} is out of range");
    let remedy = format!("write a whole number from 0 to {MAX_PREFERENCE}");
    Err(Fault::new(message, remedy))
}

#[cfg(test)]
mod tests {
    use neph_text::{Problem, Source};

    use super::*;
    use crate::gate::Splitting;
    use crate::topology::{Link, Topology};

    const PATHS: &str = "[[link.path]]\ndelay = \"8ms\"\n[[link.path]]\ndelay = \"16ms\"\n";

    fn parse_link(extra_toml: &str) -> Result<Link, Vec<Problem>> {
        let text = format!(
            "version = 1\nsite = [{{name = \"a\"}}, {{name = \"b\"}}]\n\
             [[link]]\na = \"a\"\nb = \"b\"\n{extra_toml}"
        );
        let topology = Topology::parse(&Source::new("lab.toml", text))?;
        Ok(topology.links[0].clone())
    }

    #[test]
    fn a_season_sets_the_defaults_of_traffic_engineering() {
        let high = "splitting = \"rendezvous\"\n".to_owned()
            + PATHS
            + "[link.engineering]\nseason = \"high\"\nperiod = \"1min\"\n"
            + "[[link.schedule]]\nat = \"5s\"\nreshuffle = true\n";
        let link = parse_link(&high).expect("fine");
        assert_eq!(link.b_to_a.splitting, Splitting::Rendezvous);
        let [reshuffle, controller] = &link.schedule[..] else {
            panic!("{:?}", link.schedule)
        };
        assert_eq!(reshuffle.action, ChangeAction::Reshuffle);
        assert_eq!(
            (controller.at, controller.every),
            (HIGH_SEASON.every, Some(HIGH_SEASON.every))
        );
        let requested = TrafficEngineering {
            demand: Share::ALL,
            swing: HIGH_SEASON.swing,
            preference: 4,
            period: Span::from_secs(60),
        };
        assert_eq!(controller.action, ChangeAction::Rebalance(requested));
    }

    #[test]
    fn invalid_traffic_engineering_is_refused_with_a_remedy() {
        for (rest, part) in [
            ("season = \"mid\"", "low"),
            ("swing = \"96%\"", "at most \"95%\""),
            ("demand = \"0%\"", "such as \"80%\""),
            ("preference = 17", "from 0 to 16"),
            ("every = \"1ms\"", "at least 10ms"),
            ("until = \"1s\"", ""),
        ] {
            let mistakes =
                parse_link(&format!("{PATHS}[link.engineering]\n{rest}\n")).expect_err(rest);
            assert!(mistakes[0].remedy.contains(part), "{rest}: {mistakes:?}");
        }
        for extra in [
            "[link.engineering]\nseason = \"low\"\n",
            "splitting = \"modulo\"\n",
        ] {
            let mistakes = parse_link(extra).expect_err(extra);
            assert!(
                mistakes[0].remedy.contains("twice"),
                "{extra}: {mistakes:?}"
            );
        }
    }
}
