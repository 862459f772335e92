//! Metrics of a running command: `--prometheus` and `--otlp`.
//!
//! Owns the options, and what each command exports ([`agent`], [`control`], [`run`], [`ping`], [`flows`],
//! [`hops`]). How it leaves is neph-export's.

pub(crate) mod agent;
mod circuit;
pub(crate) mod control;
mod definitions;
pub(crate) mod flows;
pub(crate) mod hops;
pub(crate) mod ping;
pub(crate) mod run;

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args as ClapArgs;
use neph_export::{BoundPort, Exported, Metric, Push, Pushing, Resource, Url, Value};

use crate::exit::Failure;
use crate::output;
use crate::resolving::addresses;
use crate::version::{COMMIT, VERSION};

/// Where metrics go.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct MetricsArgs {
    /// Serve metrics to Prometheus at this address: ADDRESS:PORT, or a port of the loopback interface
    #[arg(long, value_name = "ADDRESS", value_parser = neph_export::address)]
    prometheus: Option<SocketAddr>,
    /// Push metrics every 15 s, and at the end, to this receiver of OTLP (HTTP with JSON), which listens
    /// at port 4318 as a rule
    #[arg(long, value_name = "URL", value_parser = neph_export::otlp_url)]
    otlp: Option<Url>,
}

/// Exporters that have what needs privileges, and do not run yet.
#[derive(Debug)]
pub(crate) struct Ready {
    service: &'static str,
    port: Option<BoundPort>,
    otlp: Option<Url>,
}

/// Exporters that run.
#[derive(Debug)]
pub(crate) struct Exporting(Option<Pushing>);

impl MetricsArgs {
    /// Whether metrics are requested.
    pub(crate) const fn is_asked_for(&self) -> bool {
        self.prometheus.is_some() || self.otlp.is_some()
    }

    /// Binds the port, before privileges are given up and threads are started. `service` is the command, as
    /// `neph agent`.
    ///
    /// # Errors
    /// Exit 1: the address is taken, or none of this host.
    pub(crate) fn bind(&self, service: &'static str) -> Result<Ready, Failure> {
        let bind = |address| {
            BoundPort::bind(address).map_err(|error| {
                Failure::refused(format!(
                    "listen at {address} for Prometheus: {error}; --prometheus takes another address"
                ))
            })
        };
        Ok(Ready {
            service,
            port: self.prometheus.map(bind).transpose()?,
            otlp: self.otlp.clone(),
        })
    }
}

impl Ready {
    /// Exports from now on.
    ///
    /// # Errors
    /// Exit 1: a thread cannot be made.
    pub(crate) fn begin(self, exported: impl Exported + 'static) -> Result<Exporting, Failure> {
        let exported: Arc<dyn Exported> = Arc::new(WithBuild(exported));
        let failure = |error| Failure::refused(format!("start a thread for metrics: {error}"));
        let service = self.service;
        if let Some(port) = self.port {
            let address = port.address();
            port.serve(Arc::clone(&exported)).map_err(failure)?;
            output::say(&format!("{service}: metrics at http://{address}/metrics"));
        }
        let pushing = self.otlp.map(|url| {
            let resource = Resource {
                service,
                version: VERSION,
            };
            let push = Push {
                url,
                resource,
                say: output::say,
                find: addresses,
            };
            Pushing::begin(push, exported).map_err(failure)
        });
        Ok(Exporting(pushing.transpose()?))
    }
}

impl Exporting {
    /// Pushes a last time, and waits for that 5 s at most.
    pub(crate) fn finish(self) {
        if let Some(pushing) = self.0 {
            pushing.finish();
        }
    }
}

/// What a command exports, and its version.
struct WithBuild<E>(E);

impl<E: Exported> Exported for WithBuild<E> {
    fn snapshot(&self) -> Vec<Metric> {
        let build = Metric::of(&definitions::BUILD, &[VERSION, COMMIT], Value::Count(1));
        let mut all = vec![build];
        all.extend(self.0.snapshot());
        all
    }
}
