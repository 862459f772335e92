//! Imports a Latency Tester's output folder as a campaign, so that old measurements get the new
//! report.
//!
//! The first line of a file determines its kind, its path does not. A line that cannot be read is
//! counted and reported; it never ends the import. Values that old files lack stay absent;
//! `docs/schema.md` has the source of each value.

mod acknowledgement;
mod assemble;
mod decimal;
mod file_name;
mod folder;
mod iperf;
mod lines;
mod matrix;
mod message;
mod ping;
mod raw;
mod report;
mod route;
mod settings;
mod tcp_stats;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{Store, StoreError};
use acknowledgement::read_tshark;
pub(crate) use file_name::FileName;
use folder::{FileKind, SourceFile};
use iperf::IperfFile;
use ping::PingFile;
use raw::RawFile;
pub use report::{ImportReport, ImportedExperiment, Problem};
use route::RouteFile;
pub use settings::{ImportedEndpoint, ImportedSettings};
use tcp_stats::read_tcp_stats;

/// The parsed contents of a Latency Tester's output folder, not yet stored.
#[derive(Debug)]
pub struct LatencyTesterOutput {
    folder: PathBuf,
    settings: Option<(PathBuf, String)>,
    files: Vec<RawFile>,
    pings: Vec<PingFile>,
    transfers: Vec<IperfFile>,
    routes: Vec<RouteFile>,
    imported_settings: ImportedSettings,
    report: ImportReport,
}

impl LatencyTesterOutput {
    /// Reads `folder` and its subfolders.
    ///
    /// # Errors
    /// No raw-data file, or a file that cannot be read. Malformed content is no error: the report
    /// lists it.
    pub fn read(folder: &Path) -> Result<Self, StoreError> {
        let sources = folder::sources(folder)?;
        let mut report = ImportReport::default();
        let sources_of = |kind| {
            sources
                .iter()
                .filter(move |source: &&SourceFile| source.kind == kind)
        };
        let mut files = Vec::new();
        for source in sources_of(FileKind::Raw) {
            files.extend(RawFile::read(&source.path, &mut report)?);
        }
        if files.is_empty() {
            return Err(StoreError::NothingToImport {
                path: folder.to_owned(),
                reason: "no file in it has messages below the line '#client-send-timestamp,server-timestamp,e2e-rtt'".to_owned(),
            });
        }
        files.sort_by_key(RawFile::started_unix_ns);
        for source in sources_of(FileKind::Tshark) {
            read_tshark(&source.path, &mut files, &mut report)?;
        }
        let mut pings = Vec::new();
        for source in sources_of(FileKind::Ping) {
            pings.push(PingFile::read(&source.path, &mut report)?);
        }
        for source in sources_of(FileKind::TcpStats) {
            read_tcp_stats(&source.path, &mut files, &mut report)?;
        }
        let mut transfers = Vec::new();
        for source in sources_of(FileKind::Iperf) {
            transfers.push(IperfFile::read(&source.path, &mut report)?);
        }
        let mut routes = Vec::new();
        for source in sources_of(FileKind::Traceroute) {
            routes.push(RouteFile::read(&source.path, &mut report)?);
        }
        for source in sources_of(FileKind::Unknown) {
            report.ignored.push(source.path.clone());
        }
        Ok(Self {
            folder: folder.to_owned(),
            settings: folder::settings(&sources)?,
            files,
            pings,
            transfers,
            routes,
            imported_settings: ImportedSettings::default(),
            report,
        })
    }

    /// Path and text of the settings file, if there is exactly one.
    pub fn settings(&self) -> Option<(&Path, &str)> {
        let (path, text) = self.settings.as_ref()?;
        Some((path, text))
    }

    /// Adds the endpoints, sizes and ports of its settings file.
    #[must_use]
    pub fn with_settings(mut self, imported_settings: ImportedSettings) -> Self {
        self.imported_settings = imported_settings;
        self
    }

    /// Adds it to `store` as a new campaign with status imported. Each raw-data file becomes an
    /// experiment. tshark reports, pings and TCP statistics join experiments by time, the output of
    /// iperf3 and traceroute joins the block of its file name.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn import_into(self, store: &mut dyn Store) -> Result<ImportReport, StoreError> {
        assemble::store_all(store, self)
    }
}

/// Imports a Latency Tester's output folder into `store`. A caller that must not touch the store
/// before it knows that the folder has measurements uses [`LatencyTesterOutput`] directly.
///
/// # Errors
/// Those of [`LatencyTesterOutput::read`] and [`LatencyTesterOutput::import_into`].
pub fn import_latency_tester(
    store: &mut dyn Store,
    folder: &Path,
) -> Result<ImportReport, StoreError> {
    LatencyTesterOutput::read(folder)?.import_into(store)
}
