//! The load that an experiment asks for at sites of its lab, while it runs.
//!
//! Owns which loads there are and what is said of them; each one, from its start to its end, is in
//! [`running`].

mod running;

use neph_campaign::{Load, Stressed, exact_rate};
use neph_lab::Lab;
use neph_model::Span;
use serde_json::Value;

use crate::output;
use crate::stress::HELD;
use running::Running;

/// It is ended when the experiment is over; should nobody be left to do that, by itself.
const LONGEST: &str = "24h";
/// How long loads may take until they work.
const WITHIN: Span = Span::from_secs(3);
/// Below this share of the rate that was asked, traffic is worth a word.
const CARRIED: f64 = 0.9;

/// Loads that run now; those at this machine end when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Stressing {
    running: Vec<Running>,
}

impl Stressing {
    /// Ends what runs, starts what is wanted, and waits until it works, but not for ever.
    pub(super) fn set(&mut self, lab: &Lab, wanted: &[Stressed]) -> Result<(), String> {
        let mut refused = None;
        // All of them, also after one that cannot be ended.
        while let Some(running) = self.running.pop() {
            let (site, load) = (running.asked.site.clone(), running.asked.clone());
            match running.end(lab) {
                Ok(told) => tell(&load, &told),
                Err(error) => {
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
        self.await_all(lab)
    }

    /// They have the same time, from now on.
    fn await_all(&mut self, lab: &Lab) -> Result<(), String> {
        let until = neph_probe::now() + WITHIN;
        for running in &mut self.running {
            let works = running.works_by(until, lab).map_err(|error| {
                format!("wait for the load at '{}': {error}", running.asked.site)
            })?;
            if !works {
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
fn words(load: &Load) -> Vec<String> {
    let limit = |rate| format!("--rate={}", exact_rate(rate));
    let own = match load {
        Load::Cpu(percent) => vec![
            "cpu".to_owned(),
            "--target".to_owned(),
            format!("{percent}%"),
        ],
        Load::Flow(target, rate) => {
            let most = rate.map_or_else(|| "--rate=max".to_owned(), limit);
            vec!["flow".to_owned(), target.clone(), most]
        }
        Load::Stream(target, rate) => vec!["stream".to_owned(), target.clone(), limit(*rate)],
    };
    let always = ["--announce", "-w", LONGEST, "--format", "json"].map(str::to_owned);
    let all = std::iter::once("stress".to_owned()).chain(own);
    all.chain(always).collect()
}

/// A column of what was told, of each thread, connection or stream.
fn column(told: &[u8], name: &str) -> Vec<f64> {
    let told: Option<Value> = serde_json::from_slice(told).ok();
    let told = told.as_ref().and_then(Value::as_array);
    let rows = told.map_or(&[][..], Vec::as_slice).iter();
    rows.filter_map(|row| row[name].as_f64()).collect()
}

/// What is worth a word of what a load held.
fn said(load: &Load, told: &[u8]) -> Option<String> {
    let (name, asked) = match load {
        Load::Cpu(percent) => {
            // The thread that was kept from working most counts.
            let least = column(told, "worked_percent").into_iter().reduce(f64::min);
            return match least {
                Some(worked) if (worked - percent).abs() <= HELD => None,
                Some(worked) => Some(format!("worked {worked:.1} % of the time")),
                None => Some("did not say what it held".to_owned()),
            };
        }
        Load::Flow(_, rate) => ("received_bit_s", *rate),
        Load::Stream(_, rate) => ("back_bit_s", Some(*rate)),
    };
    let carried = column(told, name)
        .into_iter()
        .reduce(|one, more| one + more);
    #[expect(clippy::cast_precision_loss, reason = "bits per second")]
    let asked = asked.map_or(0.0, |rate| rate.bits_per_second() as f64);
    match carried {
        Some(carried) if carried > 0.0 && carried >= CARRIED * asked => None,
        Some(carried) => Some(format!("carried {:.2} Mbit/s", carried / 1e6)),
        None => Some("did not say what it carried".to_owned()),
    }
}

fn tell(asked: &Stressed, told: &[u8]) {
    if let Some(said) = said(&asked.load, told) {
        output::say(&format!("neph: the load {asked} {said}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_load_that_was_not_held_is_worth_a_word() {
        let told = br#"[{"worked_percent": 79.9}, {"worked_percent": 61.5}]"#;
        let worked = said(&Load::Cpu(80.0), told);
        assert_eq!(worked.as_deref(), Some("worked 61.5 % of the time"));
        assert_eq!(said(&Load::Cpu(62.0), told), None);
        let flow = |most| Load::Flow("a:1".to_owned(), most);
        let two = br#"[{"received_bit_s": 1500000}, {"received_bit_s": 500000}]"#;
        let rate = |bits| Some(neph_model::BitRate(bits));
        assert_eq!(said(&flow(rate(2_000_000)), two), None);
        let slow = said(&flow(rate(4_000_000)), two);
        assert_eq!(slow.as_deref(), Some("carried 2.00 Mbit/s"));
        assert_eq!(said(&flow(None), two), None);
        for nothing in [&b""[..], b"[]"] {
            assert!(said(&flow(None), nothing).is_some());
            assert!(said(&Load::Cpu(1.0), nothing).is_some());
        }
    }

    #[test]
    fn neph_stress_takes_the_words_that_it_is_told() {
        use clap::Parser;

        for load in neph_campaign::parse_stress(
            "a 7.25%, a flow h:80 max, b flow h:80 1450kbit/s, b stream h:80 2Mbit/s",
        )
        .expect("loads")
        {
            let words = words(&load.load);
            let read = crate::cli::Cli::try_parse_from(
                std::iter::once("neph").chain(words.iter().map(String::as_str)),
            );
            assert!(read.is_ok(), "{words:?}");
        }
    }
}
