//! The syntax of a live point: `[NAME=]iface:INTERFACE[@SITE]` on this host, and
//! `[NAME=]ssh:[USER@]HOST[:PORT]/INTERFACE[@SITE]` or `[NAME=]agent:AGENT/INTERFACE` on another.
//! Any other text is a file.
//!
//! Owns the allowed characters: text for a remote command line has only letters, digits and a few
//! characters without a meaning in shells.

use neph_model::AgentName;

use crate::ListenError;

const HERE: &str = "iface:";
const REMOTE: &str = "ssh:";
const AT_AGENT: &str = "agent:";
/// The longest interface name (`IFNAMSIZ` without the terminating zero).
const LONGEST: usize = 15;

/// Finds the network namespace with this name; the error is the reason why there is none.
pub type Namespaces<'n> = &'n dyn Fn(&str) -> Result<String, String>;

/// A live point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    pub name: String,
    pub(super) location: PointLocation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PointLocation {
    /// An interface of this host.
    Local(Interface),
    /// An interface of another host, over ssh.
    Remote(Host, Interface),
    /// An interface of an agent's host.
    Agent(AgentName, Interface),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    /// The network namespace of the interface; on another host also a site of a lab there.
    pub(super) site: Option<String>,
}

/// The destination of ssh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// With the user, as an argument of ssh.
    pub(super) destination: String,
    pub(super) port: Option<u16>,
}

impl Point {
    /// The live point that `text` names, or `None` if it names a file.
    ///
    /// # Errors
    /// It begins like a live point but is not valid, or names an unknown site.
    pub fn parse(text: &str, namespaces: Namespaces<'_>) -> Result<Option<Self>, ListenError> {
        let (name, location_text) = match text.split_once('=') {
            Some((name, location_text)) if is_live(location_text) => (Some(name), location_text),
            _ if is_live(text) => (None, text),
            _ => return Ok(None),
        };
        let wrong = |reason: String| ListenError::wrong(format!("{text}: {reason}"));
        let (location, usual) = location(location_text, namespaces).map_err(wrong)?;
        let name = name.unwrap_or(&usual);
        let is_name = |c: char| c.is_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_name) {
            return Err(wrong(format!(
                "'{name}' is no name of a point; write letters, digits, '-', '_' and '.' before the '='"
            )));
        }
        let name = name.to_owned();
        Ok(Some(Self { name, location }))
    }

    /// Whether it is an interface of this host, in any namespace.
    pub const fn is_local(&self) -> bool {
        matches!(self.location, PointLocation::Local(_))
    }

    /// Whether it is at an agent.
    pub const fn is_at_agent(&self) -> bool {
        matches!(self.location, PointLocation::Agent(..))
    }

    /// Whether it is on another host, over ssh.
    pub const fn is_remote(&self) -> bool {
        matches!(self.location, PointLocation::Remote(..))
    }

    /// The agent, if it is at one.
    pub const fn agent(&self) -> Option<&AgentName> {
        match &self.location {
            PointLocation::Agent(agent, _) => Some(agent),
            PointLocation::Local(_) | PointLocation::Remote(..) => None,
        }
    }

    /// Whether it is in a named network namespace.
    pub fn has_site(&self) -> bool {
        matches!(&self.location, PointLocation::Local(interface) if interface.site.is_some())
    }

    /// Its description in messages.
    pub(super) fn description(&self) -> String {
        let of = |interface: &Interface| match &interface.site {
            Some(site) => format!("{} of {site}", interface.name),
            None => interface.name.clone(),
        };
        match &self.location {
            PointLocation::Local(interface) => of(interface),
            PointLocation::Remote(host, interface) => {
                format!("{} at {}", of(interface), host.destination)
            }
            PointLocation::Agent(agent, interface) => format!("{} of agent {agent}", of(interface)),
        }
    }
}

fn is_live(location_text: &str) -> bool {
    [HERE, REMOTE, AT_AGENT]
        .iter()
        .any(|begin| location_text.starts_with(begin))
}

/// Its location, and its default name.
fn location(
    location_text: &str,
    namespaces: Namespaces<'_>,
) -> Result<(PointLocation, String), String> {
    if let Some(interface) = location_text.strip_prefix(HERE) {
        let mut interface = self::interface(interface, "iface:eth0 or iface:eth0@SITE")?;
        if let Some(site) = &mut interface.site {
            *site = namespaces(site)?;
        }
        let name = interface.name.clone();
        return Ok((PointLocation::Local(interface), name));
    }
    if let Some(rest) = location_text.strip_prefix(AT_AGENT) {
        return at_agent(rest);
    }
    let rest = location_text.strip_prefix(REMOTE).unwrap_or(location_text);
    let form = "ssh:user@host/eth0";
    let Some((host, interface)) = rest.split_once('/').filter(|_| !rest.starts_with("//")) else {
        return Err(format!(
            "the interface is missing; write {form} or ssh:user@host:2222/eth0"
        ));
    };
    let interface = self::interface(interface, form)?;
    let is_plain = |site: &String| site.chars().all(is_sign) && !site.starts_with('-');
    if !interface.site.iter().all(is_plain) {
        return Err("the site has signs that no shell may see; give it another name".to_owned());
    }
    let host = self::host(host)?;
    let destination = &host.destination;
    let name = destination
        .rsplit_once('@')
        .map_or(destination.as_str(), |(_, host)| host)
        .replace(':', "-");
    Ok((PointLocation::Remote(host, interface), name))
}

/// `ams/eth0`.
fn at_agent(text: &str) -> Result<(PointLocation, String), String> {
    const FORM: &str = "agent:ams/eth0";
    let Some((agent, interface)) = text.split_once('/') else {
        return Err(format!("the interface is missing; write {FORM}"));
    };
    let agent: AgentName = agent.parse().map_err(|error| format!("{error}"))?;
    let interface = self::interface(interface, FORM)?;
    if interface.site.is_some() {
        return Err(format!(
            "an agent captures in its own network namespace; write {FORM}"
        ));
    }
    let name = agent.to_string();
    Ok((PointLocation::Agent(agent, interface), name))
}

/// `eth0` or `eth0@SITE`.
fn interface(text: &str, form: &str) -> Result<Interface, String> {
    let (name, site) = match text.split_once('@') {
        Some((name, site)) => (name, Some(site.to_owned())),
        None => (text, None),
    };
    let is_name = !name.is_empty() && name.len() <= LONGEST && !name.starts_with('-');
    if !is_name || !name.chars().all(is_sign) || site.as_ref().is_some_and(String::is_empty) {
        return Err(format!("'{text}' is no interface; write {form}"));
    }
    let name = name.to_owned();
    Ok(Interface { name, site })
}

/// `host`, `user@host`, `host:2222`, `[fd00::7]:2222`.
fn host(text: &str) -> Result<Host, String> {
    let (user, rest) = match text.rsplit_once('@') {
        Some((user, rest)) => (format!("{user}@"), rest),
        None => (String::new(), text),
    };
    let bracketed = rest
        .strip_prefix('[')
        .and_then(|inner| inner.split_once(']'));
    let (name, port) = match bracketed {
        Some((inner, "")) => (inner, None),
        Some((inner, after)) => (inner, Some(after.strip_prefix(':').unwrap_or(after))),
        None if rest.matches(':').count() > 1 => {
            return Err(format!(
                "'{rest}' may have a port or not; write an IPv6 address in brackets: [{rest}]"
            ));
        }
        None => match rest.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (rest, None),
        },
    };
    let destination = format!("{user}{name}");
    let is_plain = destination.chars().all(|c| is_sign(c) || c == '@');
    if name.is_empty() || destination.starts_with(['-', '@']) || !is_plain {
        return Err(format!(
            "'{text}' is no host; write ssh:user@host/eth0 or ssh:host/eth0"
        ));
    }
    let port = port.map(|port| {
        let number = port.parse().ok().filter(|port| *port > 0);
        number.ok_or_else(|| format!("'{port}' is no port; write ssh:user@host:2222/eth0"))
    });
    let port = port.transpose()?;
    Ok(Host { destination, port })
}

/// Characters without a meaning in shells.
fn is_sign(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-:%".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host without named namespaces.
    fn none(_: &str) -> Result<String, String> {
        Err("network namespace does not exist".to_owned())
    }

    fn live(text: &str) -> Point {
        Point::parse(text, &none)
            .expect("a good one")
            .expect("a live one")
    }

    fn remote(text: &str) -> (String, Host, Interface) {
        let point = live(text);
        match point.location {
            PointLocation::Remote(host, interface) => (point.name, host, interface),
            PointLocation::Local(_) | PointLocation::Agent(..) => panic!("{text} is elsewhere"),
        }
    }

    fn refused(text: &str) -> String {
        match Point::parse(text, &none) {
            Err(ListenError::InvalidRequest(sentence)) => sentence,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn arguments_other_than_live_points_are_files() {
        for text in [
            "a.pcap",
            "in=a.pcap",
            "./iface:eth0",
            "a=./ssh:x",
            "if:eth0",
        ] {
            assert_eq!(Point::parse(text, &none).ok(), Some(None), "{text}");
        }
    }

    #[test]
    fn a_local_point_has_the_name_of_its_interface_unless_given() {
        let point = live("iface:eth0.7");
        assert_eq!(
            (point.name.as_str(), point.description().as_str()),
            ("eth0.7", "eth0.7")
        );
        assert_eq!(live("tap=iface:eth0").name, "tap");
        for text in ["iface:", "iface:@x", "iface:eth0@", "iface:a b", "iface:-x"] {
            assert!(refused(text).contains("write iface:eth0 or"), "{text}");
        }
        assert!(refused("iface:a-name-too-long-for-it").contains("is no interface"));
        assert!(refused("iface:eth0@no-such-site").contains("network namespace does not exist"));
        assert!(refused("../x=iface:eth0").contains("no name of a point"));
        assert!(refused("=iface:eth0").contains("no name of a point"));
    }

    #[test]
    fn a_remote_point_is_named_after_its_host() {
        let (name, host, interface) = remote("ssh:root@db1:2222/eth0@client");
        assert_eq!((name.as_str(), interface.name.as_str()), ("db1", "eth0"));
        assert_eq!(interface.site.as_deref(), Some("client"));
        assert_eq!(
            (host.destination.as_str(), host.port),
            ("root@db1", Some(2222))
        );
        let (name, host, _) = remote("ssh:root@[fd00::7]:22/eth0");
        assert_eq!(
            (host.destination.as_str(), host.port),
            ("root@fd00::7", Some(22))
        );
        assert_eq!(name, "fd00--7");
        assert_eq!(remote("x=ssh:[fd00::7]/eth0").1.port, None);
    }

    #[test]
    fn a_point_at_an_agent_is_named_after_the_agent() {
        let point = live("agent:ams/eth0");
        assert_eq!(
            (point.name.as_str(), point.description().as_str()),
            ("ams", "eth0 of agent ams")
        );
        assert_eq!(point.agent().map(AgentName::as_str), Some("ams"));
        assert_eq!(live("in=agent:ams/any").name, "in");
        for text in [
            "agent:ams",
            "agent:ams/",
            "agent:ams/eth0@x",
            "agent:ams/-w",
        ] {
            assert!(refused(text).contains("write agent:ams/eth0"), "{text}");
        }
        assert!(refused("agent:Ams/eth0").contains("lower-case"));
    }

    #[test]
    fn shell_characters_and_ssh_options_are_refused_in_points() {
        for text in [
            "ssh:host",
            "ssh://host/eth0",
            "ssh:/eth0",
            "ssh:-oProxyCommand=x/eth0",
            "ssh:a b/eth0",
            "ssh:host/eth0;reboot",
            "ssh:host/$(x)",
            "ssh:host/-w",
            "ssh:host/eth0@a'b",
            "ssh:host/eth0@-x",
            "ssh:host:0/eth0",
            "ssh:host:x/eth0",
            "ssh:fd00::7/eth0",
            "ssh:`x`/eth0",
        ] {
            let message = refused(text);
            assert!(message.starts_with(&format!("{text}: ")), "{message}");
        }
    }
}
