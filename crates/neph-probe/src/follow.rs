//! Follows HTTP redirects to the target that is measured.
//!
//! Owns which answers are redirects and their destinations. They are followed once, before the first message,
//! so that a message stays one request and one reply.

use std::net::SocketAddr;

use neph_model::Target;
use url::Url;

use crate::ProbeError;
use crate::discover::{Discovery, DiscoveryOptions, discover};
use crate::resolver::{Resolve, Resolving};
use crate::target_error::TargetError;

/// As many as browsers follow (Fetch standard, "HTTP-redirect fetch").
pub const MAX_REDIRECTS: usize = 20;

/// The result of following redirects.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The target that does not redirect.
    pub target: Target,
    /// Its address.
    pub address: SocketAddr,
    /// What was discovered there.
    pub discovery: Discovery,
    /// Each redirect in words: `301 from http://h:80 to https://h:443`.
    pub redirects: Vec<String>,
}

impl Followed {
    /// The target itself, with its known `discovery`.
    pub fn unredirected(target: Target, address: SocketAddr, discovery: Discovery) -> Self {
        Self {
            target,
            address,
            discovery,
            redirects: Vec::new(),
        }
    }
}

/// Why redirects could not be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// Too many redirects.
    #[error(
        "{from} is the last of {MAX_REDIRECTS} redirects, and it redirects again; give the final URL"
    )]
    TooMany {
        /// The target of the last redirect.
        from: String,
    },
    /// The destination is no target that can be measured.
    #[error("{from} redirects to '{location}': {reason}")]
    Location {
        /// The target that redirects.
        from: String,
        /// Its header `Location`.
        location: String,
        /// The error in it.
        reason: String,
    },
    /// The new target has no address.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The new target could not be asked.
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

/// Follows redirects from `target`, whose `address` and `discovery` are known, until there is none.
///
/// # Errors
/// More than [`MAX_REDIRECTS`], a redirect that cannot be measured, or a name without an address.
pub fn follow(
    target: Target,
    address: SocketAddr,
    discovery: Discovery,
    resolving: &Resolving,
    options: &DiscoveryOptions,
) -> Result<Followed, FollowError> {
    let mut followed = Followed::unredirected(target, address, discovery);
    while let Some(location) = followed.discovery.redirect.take() {
        let from = &followed.target;
        if followed.redirects.len() == MAX_REDIRECTS {
            return Err(FollowError::TooMany {
                from: from.to_string(),
            });
        }
        let next = redirected(from, &location).map_err(|reason| FollowError::Location {
            from: from.to_string(),
            location,
            reason,
        })?;
        let status = followed.discovery.http.unwrap_or_default();
        let redirect = format!("{status} from {from} to {next}");
        let address = next.find(resolving)?.address;
        followed.discovery = discover(&next, address, options)?;
        followed.address = address;
        followed.target = next;
        followed.redirects.push(redirect);
    }
    Ok(followed)
}

/// The target of a header `Location` (RFC 9110, section 10.2.2). Credentials are kept only for the same host,
/// port and scheme.
fn redirected(from: &Target, location: &str) -> Result<Target, String> {
    let base = Url::parse(&from.to_string()).map_err(|error| error.to_string())?;
    let mut url = base.join(location).map_err(|error| error.to_string())?;
    url.set_fragment(None);
    let next = Target::parse(url.as_str()).map_err(|error| error.to_string())?;
    if !next.kind().properties().has_status {
        return Err("only http:// and https:// can be followed".to_owned());
    }
    Ok(next.with_credentials_of(from))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use neph_model::Span;

    use super::*;
    use crate::Trust;

    #[test]
    fn a_location_is_resolved_against_its_origin() {
        let target = Target::parse("http://h:8080/a/b?c").expect("a target");
        for (location, leads) in [
            ("/x", "http://h:8080/x"),
            ("x?y=1#part", "http://h:8080/a/x?y=1"),
            ("//other/", "http://other:80"),
            ("https://h/", "https://h:443"),
            ("../../..", "http://h:8080"),
        ] {
            let next = redirected(&target, location).expect(location);
            assert_eq!(next.to_string(), leads, "{location}");
        }
        for invalid in ["ftp://h/", "https://", "http://h:99999/", "mailto:me@h"] {
            assert!(redirected(&target, invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn credentials_do_not_go_to_another_host() {
        let target = Target::parse("http://me:secret@h:8080/").expect("a target");
        let same = redirected(&target, "/x").expect("the same host");
        assert_eq!(same.authorization(), target.authorization());
        for other in ["http://h/", "https://h:8080/", "http://g:8080/"] {
            let next = redirected(&target, other).expect(other);
            assert_eq!(next.authorization(), None, "{other}");
        }
    }

    /// Answers each of `count` connections with a redirect to its own `/next`.
    fn redirecting(count: usize, last: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.86.2.3:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate().take(count + 1) {
                let mut stream = stream;
                let mut requested = [0; 512];
                let _ = stream.read(&mut requested);
                let reply = if number == count {
                    last
                } else {
                    "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n"
                };
                let _ = stream.write_all(reply.as_bytes());
            }
        });
        address
    }

    fn followed(count: usize) -> Result<Followed, FollowError> {
        let end = "HTTP/1.1 204 No Content\r\n\r\n";
        let address = redirecting(count, end);
        let options = DiscoveryOptions {
            tls_version: None,
            trust: Trust::Public,
            patience: Span::from_secs(2),
            site: None,
        };
        let target = Target::parse(&format!("http://{address}")).expect("a target");
        let discovery = discover(&target, address, &options).expect("no namespace to enter");
        follow(target, address, discovery, &Resolving::here(None), &options)
    }

    #[test]
    fn redirects_are_followed_up_to_a_limit() {
        let three = followed(3).expect("three are few");
        assert_eq!(three.redirects.len(), 3);
        assert_eq!(three.discovery.http, Some(204));
        assert_eq!(three.target.path(), "/next");
        assert_eq!(followed(0).expect("none").redirects, Vec::<String>::new());
        let more = followed(MAX_REDIRECTS + 1).expect_err("too many");
        assert!(matches!(more, FollowError::TooMany { .. }), "{more}");
    }
}
