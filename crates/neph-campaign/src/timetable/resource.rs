//! What two measurements may disturb, and which modes of use exclude each other.

use std::fmt;

/// What a measurement needs. Two that need the same may disturb each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A host, by the name of its site or its address.
    Host(String),
    /// A link that several circuits share, by its name in the plan.
    Link(String),
    /// An overlay network whose forwarding or control several circuits share, by its name.
    Overlay(String),
}

impl Resource {
    /// Its name, without what it is.
    pub fn name(&self) -> &str {
        match self {
            Self::Host(name) | Self::Link(name) | Self::Overlay(name) => name,
        }
    }
}

/// `host ams`, `link uplink`, `overlay weave`.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Host(_) => "host",
            Self::Link(_) => "link",
            Self::Overlay(_) => "overlay",
        };
        write!(f, "{kind} {}", self.name())
    }
}

/// How a measurement uses a resource; the strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UseMode {
    /// Nothing else may use it.
    Exclusive,
    /// It fills the resource: throughput, generated load.
    Load,
    /// It measures latency, and must not be disturbed by load.
    Latency,
    /// A few packets that need no protection, such as monitoring.
    Background,
}

impl UseMode {
    /// Every mode, the strictest first.
    pub const ALL: [Self; 4] = [Self::Exclusive, Self::Load, Self::Latency, Self::Background];

    /// Its name in plans.
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Exclusive => "alone",
            Self::Load => "load",
            Self::Latency => "quiet",
            Self::Background => "background",
        }
    }

    /// Whether two uses of `resource` in these modes must not overlap.
    ///
    /// | | alone | load | quiet | background |
    /// |---|---|---|---|---|
    /// | alone | yes | yes | yes | yes |
    /// | load | yes | yes | yes | no |
    /// | quiet | yes | yes | on a host | no |
    /// | background | yes | no | no | no |
    ///
    /// Two latency measurements of one host share its cores, so they exclude each other there. Next to
    /// seven busy threads the p99 of a round trip that a program reads rises from 45 us to 1.1 ms (measured
    /// on a veth, 2 cores). On a link a small packet delays another by its transmission time, 0.5 us at
    /// 1 Gbit/s. This is below the precision of clock readings, so there they do not.
    pub const fn excludes(self, other: Self, resource: &Resource) -> bool {
        match (self, other) {
            (Self::Exclusive, _) | (_, Self::Exclusive) => true,
            (Self::Background, _) | (_, Self::Background) => false,
            (Self::Latency, Self::Latency) => matches!(resource, Resource::Host(_)),
            (Self::Load, _) | (_, Self::Load) => true,
        }
    }
}

/// A resource and how it is used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// The resource.
    pub resource: Resource,
    /// The mode of its use.
    pub mode: UseMode,
}

impl Claim {
    /// A claim of `resource` in `mode`.
    pub const fn new(resource: Resource, mode: UseMode) -> Self {
        Self { resource, mode }
    }
}
