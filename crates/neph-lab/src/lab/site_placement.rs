//! Where something runs at a site: its namespace, and its share of the machine.

use neph_sys::netns::NetNs;
use neph_sys::place::Placement;

use super::{LabError, check_name, namespace_name};
use crate::group::CgroupMounts;

/// The place at `site` of the lab called `lab`, which another process may have started.
pub(super) fn find(lab: &str, site: &str) -> Result<Placement, LabError> {
    check_name(lab)?;
    let namespace = namespace_name(lab, site);
    NetNs::open(&namespace).map_err(|_| LabError::NoSite {
        lab: lab.to_owned(),
        site: site.to_owned(),
    })?;
    let groups = CgroupMounts::of_host().existing_folders(&namespace);
    Ok(Placement::with_name(namespace).within(groups))
}
