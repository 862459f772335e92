//! The stage a plan plays on: its lab, with the reflectors it asks for, up for as long as needed.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Parser;
use neph_campaign::plan::LabReflector;
use neph_campaign::{Ground, LinkCount, LocalCarrier, Plan};
use neph_lab::{Cue, Direction, Lab, LinkCounters, Site, Topology, UpOptions};
use neph_probe::{Place, Reflector, Stop};

use crate::exit::Failure;
use crate::lab::{self, dead};
use crate::{output, reflect};

/// Labs of campaigns are called by this and the number of their process.
const PURPOSE: &str = "run";

/// A lab and its reflectors; both end when this is dropped, reflectors first.
#[derive(Debug, Default)]
pub(super) struct Stage {
    reflectors: Vec<Reflector>,
    /// Where they listen.
    reflecting: Vec<SocketAddr>,
    lab: Option<Lab>,
}

impl Stage {
    /// Brings up what the plan asks for; nothing if it asks for no lab.
    /// When `stop` is set meanwhile it is taken down again.
    pub(super) fn set(
        plan: &Plan,
        topology: Option<&Topology>,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let (Some(topology), Some(wanted)) = (topology, &plan.lab) else {
            return Ok(Self::default());
        };
        dead::clear(PURPOSE);
        let options = UpOptions {
            stop: stop.flag(),
            ..UpOptions::named(dead::own_name(PURPOSE))
        };
        let lab = Lab::up(topology, &options).map_err(lab::failure)?;
        let mut stage = Self {
            reflectors: Vec::new(),
            reflecting: Vec::new(),
            lab: Some(lab),
        };
        for wanted in &wanted.reflectors {
            let reflector = stage.reflector(wanted)?;
            let own = reflector.address();
            if own.ip().is_unspecified() {
                let sites = topology.sites.iter();
                let site = sites.filter(|site| site.name == wanted.site.value);
                let addresses = site.flat_map(Site::addresses);
                let reflecting = addresses.map(|ip| SocketAddr::new(ip, own.port()));
                stage.reflecting.extend(reflecting);
            } else {
                stage.reflecting.push(own);
            }
            stage.reflectors.push(reflector);
        }
        Ok(stage)
    }

    fn reflector(&self, wanted: &LabReflector) -> Result<Reflector, Failure> {
        let site = &wanted.site.value;
        let flags = reflect_flags(wanted)
            .map_err(|why| Failure::Usage(format!("reflector at site '{site}': {why}")))?;
        let mut spec = flags.spec();
        let place = self.lab.as_ref().map(|lab| lab.place(site));
        spec.site = place.transpose().map_err(Failure::usage)?;
        Reflector::start(&spec).map_err(Failure::refused)
    }

    /// Whoever carries experiments out on this stage.
    pub(super) fn carrier(&self) -> LocalCarrier {
        let Some(lab) = &self.lab else {
            return LocalCarrier::new();
        };
        let sites = &lab.topology().sites;
        let places = sites.iter().filter_map(|site| {
            let place = lab.place(&site.name).ok()?;
            Some((site.name.clone(), place))
        });
        let links = 0..lab.topology().links.len();
        LocalCarrier::in_lab(Box::new(LabGround {
            places: places.collect(),
            links: links
                .filter_map(|link| lab.counters(link).cloned())
                .collect(),
            reflecting: self.reflecting.clone(),
            cue: lab.cue_giver(),
        }))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.reflectors.clear();
        if let Some(lab) = self.lab.take()
            && let Err(error) = lab.down()
        {
            output::say(&format!("neph: {error}; neph lab down --all tries again"));
        }
    }
}

#[derive(Debug, Parser)]
struct ReflectFlags {
    #[command(flatten)]
    args: reflect::Args,
}

/// What a reflector's flags mean, or the first line of what `neph reflect` would say of them.
pub(super) fn reflect_flags(wanted: &LabReflector) -> Result<reflect::Args, String> {
    let flags = wanted.flags.iter().map(|flag| flag.value.as_str());
    let all = std::iter::once("neph reflect").chain(flags);
    let parsed = ReflectFlags::try_parse_from(all).map_err(|error| {
        let told = error.to_string();
        let first = told.lines().next().unwrap_or_default();
        first.trim_start_matches("error: ").to_owned()
    })?;
    Ok(parsed.args)
}

/// What the carrier needs to know of the lab.
#[derive(Debug)]
struct LabGround {
    places: Vec<(String, Place)>,
    links: Vec<Arc<LinkCounters>>,
    reflecting: Vec<SocketAddr>,
    cue: Arc<Cue>,
}

impl Ground for LabGround {
    fn place(&self, site: &str) -> Option<Place> {
        let found = self.places.iter().find(|(name, _)| name == site);
        found.map(|(_, place)| place.clone())
    }

    fn reflects(&self, address: SocketAddr) -> bool {
        self.reflecting.contains(&address)
    }

    fn cue(&self) {
        self.cue.give();
    }

    fn links(&self) -> Vec<LinkCount> {
        let directions = self.links.iter().flat_map(|link| {
            Direction::BOTH.map(|way| {
                let count = link.read(way);
                LinkCount {
                    late: count.late,
                    worst: link.take_worst(way),
                    carried: count.delivered,
                    broken: count.broken(),
                }
            })
        });
        directions.collect()
    }
}
