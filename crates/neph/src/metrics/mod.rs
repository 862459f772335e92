//! Metrics of a running command: `--prometheus` and `--otlp`.
//!
//! Owns the options, and the metrics of each command ([`agent`], [`control`], [`run`], [`ping`],
//! [`flows`], [`hops`]). neph-export serves and pushes them.

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
use neph_export::{BoundPort, Metric, MetricSource, Push, Pushing, Resource, Url, Value};

use crate::exit::Failure;
use crate::output;
use crate::resolving::addresses;
use crate::version::{COMMIT, VERSION};

/// Destinations of metrics.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct MetricsArgs {
    /// Serve Prometheus metrics over HTTP at ADDRESS:PORT; with PORT only, the address is 127.0.0.1
    #[arg(long, value_name = "ADDRESS", value_parser = neph_export::address)]
    prometheus: Option<SocketAddr>,
    /// Push metrics to the OpenTelemetry receiver at this URL (OTLP/HTTP with JSON, usually port 4318)
    /// every 15 s and at the end
    #[arg(long, value_name = "URL", value_parser = neph_export::otlp_url)]
    otlp: Option<Url>,
}

/// Exporters with bound ports that do not run yet.
#[derive(Debug)]
pub(crate) struct BoundExporters {
    service: &'static str,
    port: Option<BoundPort>,
    otlp: Option<Url>,
}

/// Running exporters.
#[derive(Debug)]
pub(crate) struct RunningExporters(Option<Pushing>);

impl MetricsArgs {
    /// Whether metrics are requested.
    pub(crate) const fn is_requested(&self) -> bool {
        self.prometheus.is_some() || self.otlp.is_some()
    }

    /// Binds the port before privileges are dropped and threads start. `service` is the command,
    /// such as `neph agent`.
    ///
    /// # Errors
    /// Exit 1: the address is in use, or not of this host.
    pub(crate) fn bind(&self, service: &'static str) -> Result<BoundExporters, Failure> {
        let bind = |address| {
            BoundPort::bind(address).map_err(|error| {
                Failure::refused(format!(
                    "listen at {address} for Prometheus: {error}; --prometheus takes another address"
                ))
            })
        };
        Ok(BoundExporters {
            service,
            port: self.prometheus.map(bind).transpose()?,
            otlp: self.otlp.clone(),
        })
    }
}

impl BoundExporters {
    /// Starts the exporters.
    ///
    /// # Errors
    /// Exit 1: a thread cannot be started.
    pub(crate) fn begin(
        self,
        source: impl MetricSource + 'static,
    ) -> Result<RunningExporters, Failure> {
        let source: Arc<dyn MetricSource> = Arc::new(WithBuildInfo(source));
        let to_failure = |error| Failure::refused(format!("start a thread for metrics: {error}"));
        let service = self.service;
        if let Some(port) = self.port {
            let address = port.address();
            port.serve(Arc::clone(&source)).map_err(to_failure)?;
            output::say(&format!("{service}: metrics at http://{address}/metrics"));
        }
        let push_result = self.otlp.map(|url| {
            let resource = Resource {
                service,
                version: VERSION,
            };
            let push = Push {
                url,
                resource,
                notify: output::say,
                resolve: addresses,
            };
            Pushing::begin(push, source).map_err(to_failure)
        });
        Ok(RunningExporters(push_result.transpose()?))
    }
}

impl RunningExporters {
    /// Pushes a last time, for at most 5 s.
    pub(crate) fn finish(self) {
        if let Some(pushing) = self.0 {
            pushing.finish();
        }
    }
}

/// The metrics of a command, and the version of neph.
struct WithBuildInfo<E>(E);

impl<E: MetricSource> MetricSource for WithBuildInfo<E> {
    fn snapshot(&self) -> Vec<Metric> {
        let build = Metric::of(&definitions::BUILD, &[VERSION, COMMIT], Value::Count(1));
        let mut metrics = vec![build];
        metrics.extend(self.0.snapshot());
        metrics
    }
}
