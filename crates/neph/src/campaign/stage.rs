//! The stage a plan plays on: its lab, with the reflectors it asks for, up for as long as needed.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use neph_agent::{Ground, LinkCount, LocalExecutor};
use neph_campaign::Plan;
use neph_campaign::plan::LabReflector;
use neph_lab::{Direction, Lab, Site, Topology, UpOptions};
use neph_model::{SiteLoad, Stop, Warning};
use neph_probe::{Place, Reflector};

use super::Scene;
use super::stressing::Stressing;
use crate::exit::Failure;
use crate::lab::{self, dead};
use crate::output;

/// Labs of campaigns are called by this and the number of their process.
const PURPOSE: &str = "run";

/// Whether what a plan's lab needs is permitted: asked before anything is written.
pub(super) fn check_rights(plan: &Plan) -> Result<(), Failure> {
    match plan.lab {
        None => Ok(()),
        Some(_) => Lab::is_permitted().map_err(lab::failure),
    }
}

/// Whoever carries a plan's experiments out: in its lab, which is up as it is in this season when this
/// returns and ends with it, or on this host.
pub(super) fn executor(
    plan: &Plan,
    scenes: &[Scene],
    season: Option<&str>,
    stop: &Stop,
) -> Result<LocalExecutor, Failure> {
    let Some(wanted) = &plan.lab else {
        return Ok(LocalExecutor::new());
    };
    let seasons = plan.seasons.iter().map(|season| season.name.as_str());
    let scene_of = seasons.filter_map(|season| {
        let file = &plan.topology_of(Some(season))?.value;
        let scene = scenes.iter().position(|scene| scene.file == *file)?;
        Some((season.to_owned(), scene))
    });
    let mut ground = LabGround {
        reflectors: wanted.reflectors.clone(),
        scenes: scenes.iter().map(|scene| scene.topology.clone()).collect(),
        scene_of: scene_of.collect(),
        stop: stop.clone(),
        up: None,
        stressing: Stressing::default(),
    };
    ground.set(ground.scene(season))?;
    Ok(LocalExecutor::in_lab(Box::new(ground)))
}

/// A lab and its reflectors; both end when this is dropped, reflectors first.
#[derive(Debug)]
struct Stage {
    reflectors: Vec<Reflector>,
    /// Where they listen.
    reflecting: Vec<SocketAddr>,
    lab: Option<Lab>,
}

impl Stage {
    /// Brings up a topology with what reflects in it. When `stop` is set meanwhile it is taken down
    /// again.
    fn set(topology: &Topology, wanted: &[LabReflector], stop: &Stop) -> Result<Self, Failure> {
        dead::clear(PURPOSE);
        let options = UpOptions {
            stop: stop.flag(),
            ..UpOptions::named(dead::own_name(PURPOSE))
        };
        let lab = Lab::up(topology, &options).map_err(lab::failure)?;
        lab::tell_stand_ins(&lab);
        let guests = topology.guests();
        let guests = guests.iter().flat_map(|guest| {
            let addresses = topology.sites[guest.site].addresses();
            addresses.map(|ip| SocketAddr::new(ip, guest.port))
        });
        let mut stage = Self {
            reflectors: Vec::new(),
            reflecting: guests.collect(),
            lab: Some(lab),
        };
        for wanted in wanted {
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
        let spec = &wanted.spec.value;
        let started = match &self.lab {
            Some(lab) => Reflector::start_in(spec, &lab.place(site).map_err(Failure::usage)?),
            None => Reflector::start(spec),
        };
        started.map_err(Failure::refused)
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

/// A plan's lab, in one of its topologies at a time.
#[derive(Debug)]
struct LabGround {
    reflectors: Vec<LabReflector>,
    scenes: Vec<Topology>,
    /// Which of them each season has.
    scene_of: BTreeMap<String, usize>,
    stop: Stop,
    /// What its sites are loaded with.
    stressing: Stressing,
    /// The one that is up.
    up: Option<(usize, Stage)>,
}

impl LabGround {
    /// Which of its topologies a season has; the first, without one.
    fn scene(&self, season: Option<&str>) -> usize {
        let scene = season.and_then(|season| self.scene_of.get(season));
        scene.copied().unwrap_or(0)
    }

    /// Takes down what is up, and brings this one up.
    fn set(&mut self, scene: usize) -> Result<(), Failure> {
        self.stressing = Stressing::default();
        self.up = None;
        let stage = Stage::set(&self.scenes[scene], &self.reflectors, &self.stop)?;
        self.up = Some((scene, stage));
        Ok(())
    }

    fn lab(&self) -> Option<&Lab> {
        self.up.as_ref()?.1.lab.as_ref()
    }
}

impl Ground for LabGround {
    fn enter(&mut self, season: Option<&str>) -> Result<(), String> {
        let scene = self.scene(season);
        if self.up.as_ref().is_some_and(|(up, _)| *up == scene) {
            return Ok(());
        }
        self.set(scene).map_err(|failure| match failure {
            Failure::Usage(why) | Failure::Refused(why) | Failure::Interrupted(why) => why,
            Failure::Text(source, _) => format!("{} has mistakes", source.name()),
            Failure::OutputClosed => "nobody reads the output".to_owned(),
        })
    }

    fn place(&self, site: &str) -> Option<Place> {
        self.lab()?.place(site).ok()
    }

    fn reflects(&self, address: SocketAddr) -> bool {
        let up = self.up.as_ref();
        up.is_some_and(|(_, stage)| stage.reflecting.contains(&address))
    }

    fn stress(&mut self, wanted: &[SiteLoad]) -> Result<Vec<Warning>, String> {
        let lab = self.up.as_ref().and_then(|(_, stage)| stage.lab.as_ref());
        lab.map_or(Ok(Vec::new()), |lab| self.stressing.set(lab, wanted))
    }

    fn cue(&self) {
        if let Some(lab) = self.lab() {
            lab.cue_giver().give();
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let stand_ins = self.lab().map_or(&[][..], Lab::stand_ins);
        let stood_in = stand_ins.first().map(|first| Warning::GuestsStoodIn {
            guests: stand_ins.iter().flat_map(|one| one.sites.clone()).collect(),
            why: first.why.clone(),
        });
        stood_in.into_iter().collect()
    }

    fn links(&self) -> Vec<LinkCount> {
        let Some(lab) = self.lab() else {
            return Vec::new();
        };
        let links = (0..lab.topology().links.len()).filter_map(|link| lab.counters(link));
        let directions = links.flat_map(|link| {
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
