//! The load that an experiment asks for at sites of its lab, while it runs.
//!
//! Owns starting and ending `neph stress`: in a guest through its console, elsewhere as a process in
//! the site's share of the machine.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use neph_campaign::Stressed;
use neph_lab::{Lab, LabError};
use neph_sys::place::PlaceError;
use neph_sys::process::{self, Birth, Request};
use serde_json::Value;

use crate::output;

/// It is ended when the experiment is over; should nobody be left to do that, by itself.
const LONGEST: &str = "24h";
/// Where a load in a guest writes what it held.
const TOLD: &str = "/tmp/stress.json";
/// How far from what was asked a load is worth a word, percent of the time.
const HELD: f64 = 3.0;

/// Loads that run now; those at this machine end when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Stressing {
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    asked: Stressed,
    what: What,
}

#[derive(Debug)]
enum What {
    /// A process of a guest, by its number there.
    Guest(u32),
    Here(Child),
}

/// What kept a load from being made.
#[derive(Debug, thiserror::Error)]
enum StressError {
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("start neph stress: {0}")]
    NotStarted(#[from] std::io::Error),
    #[error("it does not say which process it is")]
    Unknown,
}

impl Stressing {
    /// Ends what runs, and starts what is wanted.
    pub(super) fn set(&mut self, lab: &Lab, wanted: &[Stressed]) -> Result<(), String> {
        for running in self.running.drain(..) {
            let asked = running.asked.clone();
            match end(running, lab) {
                Ok(worked) => tell(&asked, worked),
                Err(error) => return Err(format!("end the load at '{}': {error}", asked.site)),
            }
        }
        for asked in wanted {
            let what = start(asked, lab);
            let what = what.map_err(|error| format!("load site '{}': {error}", asked.site))?;
            let asked = asked.clone();
            self.running.push(Running { asked, what });
        }
        Ok(())
    }
}

impl Drop for Stressing {
    fn drop(&mut self) {
        for running in &mut self.running {
            if let What::Here(child) = &mut running.what {
                // It may have ended by itself.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn start(asked: &Stressed, lab: &Lab) -> Result<What, StressError> {
    let target = format!("{}%", asked.percent);
    let words = ["stress", "cpu", "--target", &target, "-w", LONGEST];
    if let Some(mut console) = Lab::console(lab.name(), &asked.site)? {
        let line = format!(
            "rm -f {TOLD}; neph {} --format json >{TOLD} 2>/dev/null & echo $!",
            words.join(" ")
        );
        let mut told = Vec::new();
        console.run(&line, &mut told).map_err(LabError::from)?;
        let number = String::from_utf8_lossy(&told).trim().parse();
        return Ok(What::Guest(number.map_err(|_| StressError::Unknown)?));
    }
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(words)
        .args(["--format", "json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let place = lab.place(&asked.site)?;
    place.arrange(Birth::default().leads_session(), &mut command)?;
    Ok(What::Here(command.spawn()?))
}

/// Ends a load; the least share of the time that one of its threads worked, percent.
fn end(running: Running, lab: &Lab) -> Result<Option<f64>, StressError> {
    let mut told = Vec::new();
    match running.what {
        What::Guest(number) => {
            if let Some(mut console) = Lab::console(lab.name(), &running.asked.site)? {
                let line = format!(
                    "kill {number}; for try in $(seq 300); do [ -s {TOLD} ] && break; \
                     usleep 10000; done; cat {TOLD}"
                );
                console.run(&line, &mut told).map_err(LabError::from)?;
            }
        }
        What::Here(mut child) => {
            process::ask(child.id(), Request::End)?;
            if let Some(mut out) = child.stdout.take() {
                out.read_to_end(&mut told)?;
            }
            child.wait()?;
        }
    }
    Ok(least(&told))
}

fn least(told: &[u8]) -> Option<f64> {
    let told: Value = serde_json::from_slice(told).ok()?;
    let threads = told.as_array()?.iter();
    let worked = threads.filter_map(|thread| thread["worked_percent"].as_f64());
    worked.reduce(f64::min)
}

fn tell(asked: &Stressed, worked: Option<f64>) {
    let said = match worked {
        Some(worked) if (worked - asked.percent).abs() <= HELD => return,
        Some(worked) => format!("worked {worked:.1} % of the time"),
        None => "did not say what it held".to_owned(),
    };
    output::say(&format!("neph: the load {asked} {said}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_was_kept_from_working_most_counts() {
        let told = br#"[{"worked_percent": 79.9}, {"worked_percent": 61.5}]"#;
        assert_eq!(least(told), Some(61.5));
        assert_eq!((least(b""), least(b"[]")), (None, None));
    }
}
