//! What answers at a site: the reflector, and throughput tests beside it where they are asked for.

use std::net::SocketAddr;
use std::thread::{Builder, JoinHandle};

use neph_load::throughput::{Server, ServerCaps, ServerSpec, ThroughputError};
use neph_model::{Permit, ReflectorSpec, Span, Stop, ThroughputMeasure};
use neph_probe::{Place, ProbeError, Reflector, at_site};

/// The longest throughput test that is granted.
const LONGEST: Span = Span::from_secs(600);

/// A reflector with what it serves beside; both end when this is dropped.
#[derive(Debug)]
pub(crate) struct Reflecting {
    reflector: Reflector,
    _throughput: Option<ThroughputServing>,
}

/// Why nothing answers.
#[derive(Debug, thiserror::Error)]
pub enum ReflectingError {
    /// The reflector.
    #[error(transparent)]
    Reflector(#[from] ProbeError),
    /// The throughput tests.
    #[error(transparent)]
    Throughput(#[from] ThroughputError),
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
        site: Option<&Place>,
        permit: &Permit,
    ) -> Result<Self, ReflectingError> {
        let throughput = ThroughputBound::beside(spec, site, permit)?;
        let reflector = match site {
            Some(site) => Reflector::start_in(spec, site)?,
            None => Reflector::start(spec)?,
        };
        Ok(Self {
            reflector,
            _throughput: throughput.map(ThroughputBound::serve).transpose()?,
        })
    }

    /// Where it answers probes.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.reflector.address()
    }
}

/// The port of throughput tests, taken.
#[derive(Debug)]
pub struct ThroughputBound {
    server: Server,
    site: Option<Place>,
}

impl ThroughputBound {
    /// Takes the port that a reflector is to serve throughput tests at, if it is to.
    ///
    /// # Errors
    /// It cannot be had, or the site cannot be entered.
    pub fn beside(
        spec: &ReflectorSpec,
        site: Option<&Place>,
        permit: &Permit,
    ) -> Result<Option<Self>, ReflectingError> {
        let Some(port) = spec.throughput else {
            return Ok(None);
        };
        let spec = ServerSpec {
            listen: SocketAddr::new(spec.address.ip(), port.get()),
            caps: ServerCaps {
                duration: LONGEST,
                streams: ThroughputMeasure::MOST_STREAMS,
                rate: None,
            },
            read_pause: Span::ZERO,
            busy_poll: false,
            permit: permit.clone(),
        };
        let server = at_site(site, || Server::bind(&spec))??;
        let site = site.cloned();
        Ok(Some(Self { server, site }))
    }

    /// Serves on a thread of its own, one test after the other.
    ///
    /// # Errors
    /// The thread cannot be begun.
    pub fn serve(self) -> Result<ThroughputServing, ReflectingError> {
        let Self { server, site } = self;
        let (address, stop) = (server.address(), Stop::new());
        let ended = stop.clone();
        let work = move || {
            // Sockets of streams are opened where the server listens.
            let served = at_site(site.as_ref(), || server.run(&ended, &|_| {}));
            if let Ok(Err(error)) = served {
                tracing::warn!("throughput tests at {address} ended: {error}");
            }
        };
        let thread = Builder::new().name("throughput".to_owned()).spawn(work);
        Ok(ThroughputServing {
            address,
            stop,
            thread: Some(thread.map_err(ReflectingError::Thread)?),
        })
    }
}

/// Throughput tests that are served until this is dropped.
#[derive(Debug)]
pub struct ThroughputServing {
    address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl ThroughputServing {
    /// Where.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ThroughputServing {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
