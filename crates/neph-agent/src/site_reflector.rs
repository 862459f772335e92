//! The reflector of a site, and its additional services (throughput tests, media streams, HTTP of known
//! speed) where they are requested.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::thread::{Builder, JoinHandle};

use neph_load::media::{self, MediaError, Trace, TraceError};
use neph_load::service::{ServiceError, ServiceServer};
use neph_load::throughput::{self, ThroughputError};
use neph_model::{BitRate, Permit, ReflectorSpec, Span, Stop, ThroughputMeasure};
use neph_probe::{Placement, ProbeError, Reflector, at_site};

/// The longest throughput test, and the longest stream, that is granted.
const MAX_TEST_DURATION: Span = Span::from_secs(600);
/// Media streams at the same time, and their mean bit rates together.
const MAX_STREAMS: u16 = 64;
const MAX_STREAMS_RATE: BitRate = BitRate(100_000_000);
/// The service times are the same after each start.
const SERVICE_SEED: u64 = 1;

/// A reflector with its additional services; all end when this is dropped.
#[derive(Debug)]
pub(crate) struct Reflecting {
    reflector: Reflector,
    _companion: Vec<RunningService>,
}

/// Why nothing answers.
#[derive(Debug, thiserror::Error)]
pub enum ReflectorError {
    /// The reflector.
    #[error(transparent)]
    Reflector(#[from] ProbeError),
    /// The throughput tests.
    #[error(transparent)]
    Throughput(#[from] ThroughputError),
    /// The media streams.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The service of known speed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// Their frames.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A thread.
    #[error("begin a thread: {0}")]
    Thread(std::io::Error),
}

impl Reflecting {
    /// Listens at `site`, or on this host as it is. Throughput tests send no more than `permit` allows.
    ///
    /// # Errors
    /// A port cannot be had, or the site cannot be entered.
    pub(crate) fn start(
        spec: &ReflectorSpec,
        site: Option<&Placement>,
        permit: &Permit,
    ) -> Result<Self, ReflectorError> {
        let services = BoundService::alongside(spec, site, permit)?;
        let reflector = match site {
            Some(site) => Reflector::start_in(spec, site)?,
            None => Reflector::start(spec)?,
        };
        let running_services: Result<Vec<RunningService>, ReflectorError> =
            services.into_iter().map(BoundService::serve).collect();
        Ok(Self {
            reflector,
            _companion: running_services?,
        })
    }

    /// Where it answers probes.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.reflector.address()
    }
}

/// An additional service of a reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Throughput tests and requests and replies in turn, over TCP and UDP.
    Throughput,
    /// Media streams over RTP after RTSP.
    Media,
    /// HTTP with known service times.
    KnownSpeed,
}

/// A port that is taken for a service.
#[derive(Debug)]
pub struct BoundService {
    server: Server,
    site: Option<Placement>,
}

#[derive(Debug)]
enum Server {
    Throughput(Box<throughput::Server>),
    Media(media::Server),
    KnownSpeed(ServiceServer),
}

impl BoundService {
    /// Takes the ports of all additional services of a reflector.
    ///
    /// # Errors
    /// One cannot be had, or the site cannot be entered.
    pub fn alongside(
        spec: &ReflectorSpec,
        site: Option<&Placement>,
        permit: &Permit,
    ) -> Result<Vec<Self>, ReflectorError> {
        let address_with = |port: NonZeroU16| SocketAddr::new(spec.address.ip(), port.get());
        let mut servers = Vec::new();
        if let Some(port) = spec.throughput {
            let spec = throughput_server_spec(address_with(port), permit);
            let server = at_site(site, || throughput::Server::bind(&spec))??;
            servers.push(Server::Throughput(Box::new(server)));
        }
        if let Some(port) = spec.media {
            let spec = media_server_spec(address_with(port))?;
            let server = at_site(site, || media::Server::bind(&spec))??;
            servers.push(Server::Media(server));
        }
        if let Some(model) = &spec.service {
            let address = address_with(model.port);
            let server = at_site(site, || ServiceServer::bind(address, model, SERVICE_SEED))??;
            servers.push(Server::KnownSpeed(server));
        }
        let bound = servers.into_iter().map(|server| Self {
            server,
            site: site.cloned(),
        });
        Ok(bound.collect())
    }

    /// Serves on a thread of its own.
    ///
    /// # Errors
    /// The thread cannot be begun.
    pub fn serve(self) -> Result<RunningService, ReflectorError> {
        let Self { server, site } = self;
        let (service, address) = match &server {
            Server::Throughput(server) => (Service::Throughput, server.address()),
            Server::Media(server) => (Service::Media, server.address()),
            Server::KnownSpeed(server) => (Service::KnownSpeed, server.address()),
        };
        let stop = Stop::new();
        let thread_stop = stop.clone();
        let work = move || {
            // Sockets of streams are opened where the server listens.
            let served = at_site(site.as_ref(), || match &server {
                Server::Throughput(server) => {
                    let ran = server.run(&thread_stop, &|_| {});
                    ran.map_err(|error| error.to_string())
                }
                Server::Media(server) => {
                    let ran = server.run(&thread_stop, &|_| {});
                    ran.map_err(|error| error.to_string())
                }
                Server::KnownSpeed(server) => {
                    let ran = server.run(&thread_stop);
                    ran.map_err(|error| error.to_string())
                }
            });
            if let Ok(Err(error)) = served {
                tracing::warn!("nothing is served at {address} any more: {error}");
            }
        };
        let thread = Builder::new().name("serving".to_owned()).spawn(work);
        Ok(RunningService {
            service,
            address,
            stop,
            thread: Some(thread.map_err(ReflectorError::Thread)?),
        })
    }
}

fn throughput_server_spec(listen: SocketAddr, permit: &Permit) -> throughput::ServerSpec {
    throughput::ServerSpec {
        listen,
        caps: throughput::ServerCaps {
            duration: MAX_TEST_DURATION,
            streams: ThroughputMeasure::MAX_STREAMS,
            rate: None,
        },
        read_pause: Span::ZERO,
        permit: permit.clone(),
        busy_poll: false,
    }
}

fn media_server_spec(listen: SocketAddr) -> Result<media::ServerSpec, TraceError> {
    Ok(media::ServerSpec {
        listen,
        caps: media::ServerCaps {
            streams: MAX_STREAMS,
            rate: Some(MAX_STREAMS_RATE),
            duration: MAX_TEST_DURATION,
        },
        trace: Trace::animation()?,
    })
}

/// A service, until this is dropped.
#[derive(Debug)]
pub struct RunningService {
    service: Service,
    address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl RunningService {
    /// Which.
    pub const fn service(&self) -> Service {
        self.service
    }

    /// Where.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for RunningService {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
