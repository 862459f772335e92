//! A lab with the requested reflectors, which exists as long as it is used for measurements.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use neph_lab::{Direction, Lab, Site, Topology, UpOptions, own_lab_name, remove_left_over_labs};
use neph_model::{Permit, ReflectorSpec, SiteLoad, Stop, Warning};
use neph_probe::Placement;

use super::LabSetupError;
use super::stressing::Stressing;
use crate::site_reflector::Reflecting;
use crate::{LabAccess, LinkCounters, LoadResults};

/// Labs of campaigns are called by this and the number of their process.
const PURPOSE: &str = "run";

/// A reflector at a site.
#[derive(Clone, Debug)]
pub struct SiteReflector {
    /// The site.
    pub site: String,
    /// How it answers.
    pub spec: ReflectorSpec,
}

/// What a lab is to be, over its seasons.
#[derive(Clone, Debug)]
pub struct LabPlan {
    /// What reflects in each topology.
    pub reflectors: Vec<SiteReflector>,
    /// Its topologies.
    pub topologies: Vec<Topology>,
    /// Which of them each season has; the first, where a season has none of its own.
    pub season_topologies: BTreeMap<String, usize>,
}

/// A lab and its reflectors; both end when this is dropped, reflectors first.
#[derive(Debug)]
struct Stage {
    reflectors: Vec<Reflecting>,
    /// Where they listen.
    reflecting: Vec<SocketAddr>,
    lab: Option<Lab>,
}

impl Stage {
    /// Brings up a topology with what reflects in it. When `stop` is set meanwhile it is taken down
    /// again.
    fn set(
        topology: &Topology,
        reflectors: &[SiteReflector],
        stop: &Stop,
    ) -> Result<Self, LabSetupError> {
        for error in remove_left_over_labs(PURPOSE) {
            tracing::warn!("{error}");
        }
        let options = UpOptions {
            stop: stop.flag(),
            ..UpOptions::with_name(own_lab_name(PURPOSE))
        };
        let lab = Lab::up(topology, &options)?;
        for stand_in in lab.fallback_guests() {
            tracing::warn!("{stand_in}");
        }
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
        for requested in reflectors {
            let reflector = stage.reflector(requested)?;
            let address = reflector.address();
            if address.ip().is_unspecified() {
                let sites = topology.sites.iter();
                let site = sites.filter(|site| site.name == requested.site);
                let addresses = site.flat_map(Site::addresses);
                let reflecting = addresses.map(|ip| SocketAddr::new(ip, address.port()));
                stage.reflecting.extend(reflecting);
            } else {
                stage.reflecting.push(address);
            }
            stage.reflectors.push(reflector);
        }
        Ok(stage)
    }

    fn reflector(&self, requested: &SiteReflector) -> Result<Reflecting, LabSetupError> {
        let SiteReflector { site, spec } = requested;
        let placement = self.lab.as_ref().map(|lab| lab.placement(site));
        let placement = placement.transpose().map_err(LabSetupError::Site)?;
        Ok(Reflecting::start(
            spec,
            placement.as_ref(),
            &Permit::ANYTHING,
        )?)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.reflectors.clear();
        if let Some(lab) = self.lab.take()
            && let Err(error) = lab.down()
        {
            tracing::warn!("{error}; neph lab down --all tries again");
        }
    }
}

/// A lab, in one of its topologies at a time.
#[derive(Debug)]
pub struct SeasonalLab {
    plan: LabPlan,
    stop: Stop,
    /// What its sites are loaded with.
    stressing: Stressing,
    /// The topology that is up.
    up: Option<(usize, Stage)>,
}

impl SeasonalLab {
    /// The lab as it is in this season, which is up when this returns and ends with it. When `stop` is
    /// set meanwhile it is taken down again.
    ///
    /// # Errors
    /// It could not be brought up.
    pub fn up(plan: LabPlan, season: Option<&str>, stop: &Stop) -> Result<Self, LabSetupError> {
        let mut seasonal_lab = Self {
            plan,
            stop: stop.clone(),
            up: None,
            stressing: Stressing::default(),
        };
        seasonal_lab.set(seasonal_lab.topology(season))?;
        Ok(seasonal_lab)
    }

    /// Which of its topologies a season has; the first, without one.
    fn topology(&self, season: Option<&str>) -> usize {
        let topology = season.and_then(|season| self.plan.season_topologies.get(season));
        topology.copied().unwrap_or(0)
    }

    /// Takes down what is up, and brings this one up.
    fn set(&mut self, topology: usize) -> Result<(), LabSetupError> {
        self.stressing = Stressing::default();
        self.up = None;
        let topologies = &self.plan.topologies;
        let stage = Stage::set(&topologies[topology], &self.plan.reflectors, &self.stop)?;
        self.up = Some((topology, stage));
        Ok(())
    }

    fn lab(&self) -> Option<&Lab> {
        self.up.as_ref()?.1.lab.as_ref()
    }
}

impl LabAccess for SeasonalLab {
    fn enter(&mut self, season: Option<&str>) -> Result<(), String> {
        let topology = self.topology(season);
        if self.up.as_ref().is_some_and(|(up, _)| *up == topology) {
            return Ok(());
        }
        self.set(topology).map_err(|error| error.to_string())
    }

    fn placement(&self, site: &str) -> Option<Placement> {
        self.lab()?.placement(site).ok()
    }

    fn reflects(&self, address: SocketAddr) -> bool {
        let up = self.up.as_ref();
        up.is_some_and(|(_, stage)| stage.reflecting.contains(&address))
    }

    fn stress(&mut self, requested: &[SiteLoad]) -> Result<LoadResults, String> {
        let lab = self.up.as_ref().and_then(|(_, stage)| stage.lab.as_ref());
        lab.map_or_else(
            || Ok(LoadResults::default()),
            |lab| self.stressing.set(lab, requested),
        )
    }

    fn cue(&self) {
        if let Some(lab) = self.lab() {
            lab.shared_cue().give();
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let fallback_guests = self.lab().map_or(&[][..], Lab::fallback_guests);
        let stood_in = fallback_guests
            .first()
            .map(|first| Warning::NamespaceFallback {
                guests: fallback_guests
                    .iter()
                    .flat_map(|fallback_guests| fallback_guests.sites.clone())
                    .collect(),
                reason: first.reason.clone(),
            });
        stood_in.into_iter().collect()
    }

    fn links(&self) -> Vec<LinkCounters> {
        let Some(lab) = self.lab() else {
            return Vec::new();
        };
        let links = (0..lab.topology().links.len()).filter_map(|link| lab.counters(link));
        let directions = links.flat_map(|link| {
            Direction::BOTH.map(|direction| {
                let count = link.read(direction);
                LinkCounters {
                    late_packets: count.late,
                    max_lateness: link.take_worst_lateness(direction),
                    delivered_packets: count.delivered,
                    unexpected_losses: count.unexpected_losses(),
                }
            })
        });
        directions.collect()
    }
}
