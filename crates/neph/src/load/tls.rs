//! The options of TLS, for https targets.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_load::workload::TlsTarget;
use neph_model::{Fingerprint, Target};
use neph_probe::{Trust, tls_client_config};

use crate::exit::Failure;

/// Whose certificates are accepted.
#[derive(Debug, ClapArgs)]
pub(super) struct TlsOptions {
    /// https: accept any TLS certificate, without verification
    #[arg(long)]
    insecure: bool,
    /// https: trust the CA certificates in this file (PEM), as well as the public CAs
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca_file: Option<PathBuf>,
    /// https: accept only TLS certificates with these SHA-256 fingerprints (comma-separated, repeatable)
    #[arg(long, value_name = "SHA256", value_delimiter = ',', conflicts_with_all = ["insecure", "ca_file"])]
    pin: Vec<Fingerprint>,
}

impl TlsOptions {
    /// TLS for a target that asks for it.
    pub(super) fn tls(&self, target: &Target) -> Result<Option<TlsTarget>, Failure> {
        let is_used = self.insecure || self.ca_file.is_some() || !self.pin.is_empty();
        if !target.is_secure() {
            return if is_used {
                Err(Failure::usage(
                    "--insecure, --ca-file and --pin: only https targets have a certificate; leave it out",
                ))
            } else {
                Ok(None)
            };
        }
        let trust = match (&self.ca_file, self.insecure) {
            _ if !self.pin.is_empty() => Trust::Pinned(self.pin.clone()),
            (Some(file), _) => Trust::CaFile(file.clone()),
            (None, true) => Trust::AnyCertificate,
            (None, false) => Trust::Public,
        };
        let config = tls_client_config(None, &trust).map_err(Failure::usage)?;
        let name = target.certificate_name();
        let tls = TlsTarget::new(config, name);
        tls.map(Some).ok_or_else(|| {
            Failure::usage(format!("'{name}' is no name that a certificate can have"))
        })
    }
}
