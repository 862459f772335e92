//! The load that an experiment asks for at sites of its lab, while it runs.
//!
//! Owns which loads there are and what they are told to do; each one, from its start to its end, is in
//! [`running`], and whether it did so in [`held`].

mod held;
mod running;

use neph_lab::Lab;
use neph_model::{BitRate, LoadSpec, SiteLoad, Span, Warning};

use crate::output;
use running::Running;

/// It is ended when the experiment is over; should nobody be left to do that, by itself.
const LONGEST: &str = "24h";
/// How long loads may take until they work.
const WITHIN: Span = Span::from_secs(3);

/// Loads that run now; those at this machine end when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Stressing {
    running: Vec<Running>,
}

impl Stressing {
    /// Ends what runs, starts what is wanted, and waits until it works, but not for ever. What of that
    /// which ran was not held.
    pub(super) fn set(&mut self, lab: &Lab, wanted: &[SiteLoad]) -> Result<Vec<Warning>, String> {
        let (mut refused, mut missed) = (None, Vec::new());
        // All of them, also after one that cannot be ended.
        while let Some(running) = self.running.pop() {
            let (asked, is_late) = (running.asked.clone(), running.is_late);
            match running.end(lab) {
                Ok(told) => {
                    let late = is_late.then(|| held::late(&asked));
                    missed.extend(held::judge(&asked, &told).or(late));
                }
                Err(error) => {
                    let site = asked.site;
                    refused.get_or_insert_with(|| format!("end the load at '{site}': {error}"));
                }
            }
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        for (number, asked) in wanted.iter().enumerate() {
            let started = Running::start(asked, lab, (number, &words(&asked.load)));
            let started =
                started.map_err(|error| format!("load site '{}': {error}", asked.site))?;
            self.running.push(started);
        }
        self.await_all(lab)?;
        Ok(missed)
    }

    /// They have the same time, from now on.
    fn await_all(&mut self, lab: &Lab) -> Result<(), String> {
        let until = neph_probe::now() + WITHIN;
        for running in &mut self.running {
            let works = running.works_by(until, lab).map_err(|error| {
                format!("wait for the load at '{}': {error}", running.asked.site)
            })?;
            if !works {
                running.is_late = true;
                output::say(&format!(
                    "neph: the load {} does not work as asked after {WITHIN}; what is measured now is \
                     measured beside what it does",
                    running.asked
                ));
            }
        }
        Ok(())
    }
}

/// What `neph stress` is told.
fn words(load: &LoadSpec) -> Vec<String> {
    let limit = |rate: BitRate| format!("--rate={}", rate.exact());
    let own = match load {
        LoadSpec::Cpu(share) => vec!["cpu".to_owned(), "--target".to_owned(), share.to_string()],
        LoadSpec::Flow { to, rate } => {
            let most = rate.map_or_else(|| "--rate=max".to_owned(), limit);
            vec!["flow".to_owned(), to.clone(), most]
        }
        LoadSpec::Stream { to, rate } => vec!["stream".to_owned(), to.clone(), limit(*rate)],
    };
    let always = ["--announce", "-w", LONGEST, "--format", "json"].map(str::to_owned);
    let all = std::iter::once("stress".to_owned()).chain(own);
    all.chain(always).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neph_stress_takes_the_words_that_it_is_told() {
        use clap::Parser;

        for load in neph_campaign::parse_stress(
            "a 7.25%, a flow h:80 max, b flow h:80 1450kbit/s, b stream h:80 2Mbit/s",
        )
        .expect("loads")
        .loads()
        {
            let words = words(&load.load);
            let read = crate::cli::Cli::try_parse_from(
                std::iter::once("neph").chain(words.iter().map(String::as_str)),
            );
            assert!(read.is_ok(), "{words:?}");
        }
    }
}
