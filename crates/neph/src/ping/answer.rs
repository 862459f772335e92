//! A target without a scheme: tries every likely port at the same time, and selects the best answer.

use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;

use neph_model::{IpVersion, Span, Target, bracketed};
use neph_probe::{Discovery, DiscoveryOptions, ProbeError, Resolve, TargetError, now};

use super::Args;
use crate::exit::Failure;
use crate::reflect::PORT;

/// After the first answer, the others get as much time again, plus this.
const ANSWER_GRACE: Span = Span::from_millis(100);

/// An answering server, and how to measure it.
#[derive(Debug)]
pub(super) struct Answer {
    /// One target per flow, the main flow first.
    pub(super) targets: Vec<Target>,
    pub(super) address: SocketAddr,
    pub(super) discovery: Discovery,
}

/// The result of the attempts.
#[derive(Debug)]
pub(super) struct Answers {
    /// The best server.
    pub(super) best: Option<Answer>,
    /// Which server answers, or why none does.
    pub(super) sentence: String,
}

/// An address and its answer.
#[derive(Debug)]
struct Candidate {
    target: Target,
    address: SocketAddr,
    discovery: Option<Discovery>,
}

/// The rank of an answer; the lowest is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Reflector,
    Https,
    Http,
    /// The server accepts connections.
    Tcp,
}

/// Tries the reflector's port, https and http; for a given port, with and without TLS. Waits for
/// each at most as long as `options` allow.
pub(super) fn find_first_answer(
    args: &Args,
    options: &DiscoveryOptions,
) -> Result<Answers, Failure> {
    let schemeless_target = SchemelessTarget::parse(&args.target, args.needs_certificate())?;
    let mut candidates = Vec::new();
    for address in addresses(&schemeless_target.plain, args.ip.version())? {
        for target in schemeless_target.targets()? {
            candidates.push(Candidate {
                address: with_port(address, target.port()),
                target,
                discovery: None,
            });
        }
    }
    probe_all(&mut candidates, options)?;
    let Some((rank, candidate)) = best_answer(&candidates) else {
        return Ok(Answers {
            best: None,
            sentence: no_answer_sentence(&candidates),
        });
    };
    let answer = schemeless_target.build_answer(rank, candidate)?;
    Ok(Answers {
        sentence: answer_sentence(&candidates, candidate, &answer),
        best: Some(answer),
    })
}

/// Every address of a name, in the order of attempts.
fn addresses(target: &Target, version: Option<IpVersion>) -> Result<Vec<SocketAddr>, Failure> {
    target.addresses(version).map_err(|error| match error {
        TargetError::Unresolved { .. } => Failure::refused(error),
        other => Failure::usage(other),
    })
}

/// The same host at another port: a link-local address keeps its zone.
fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// A target without a scheme.
struct SchemelessTarget {
    /// As http and as https: both have the same port only if a port was given.
    plain: Target,
    secure: Target,
    /// A certificate is required, so plain text is not an alternative.
    requires_tls: bool,
}

impl SchemelessTarget {
    fn parse(text: &str, requires_tls: bool) -> Result<Self, Failure> {
        let parse_with_scheme = |scheme: &str| Target::under(scheme, text);
        Ok(Self {
            plain: parse_with_scheme("http").map_err(Failure::usage)?,
            secure: parse_with_scheme("https").map_err(Failure::usage)?,
            requires_tls,
        })
    }

    fn with_scheme(&self, scheme: &str, port: u16) -> Result<Target, Failure> {
        let (host, path) = (bracketed(self.plain.host()), self.plain.path());
        Target::parse(&format!("{scheme}://{host}:{port}{path}")).map_err(Failure::usage)
    }

    fn targets(&self) -> Result<Vec<Target>, Failure> {
        let (plain, secure) = (self.plain.port(), self.secure.port());
        if self.requires_tls {
            return Ok(if plain == secure {
                vec![self.secure.clone()]
            } else {
                vec![self.with_scheme("https", PORT)?, self.secure.clone()]
            });
        }
        if plain == secure {
            return Ok(vec![self.plain.clone(), self.secure.clone()]);
        }
        Ok(vec![
            self.with_scheme("http", PORT)?,
            self.secure.clone(),
            self.plain.clone(),
        ])
    }

    /// One flow per protocol in which a reflector answers; one flow for any other server.
    fn build_answer(&self, rank: Rank, candidate: &Candidate) -> Result<Answer, Failure> {
        let port = candidate.target.port();
        let schemes: &[&str] = match rank {
            Rank::Reflector if !candidate.target.is_secure() => &["ws", "tcp", "udp"],
            Rank::Reflector if self.requires_tls => &["wss"],
            // Behind a proxy only HTTP is known to work.
            Rank::Reflector | Rank::Https => &["https"],
            Rank::Http => &["http"],
            Rank::Tcp => &["tcp"],
        };
        let targets = schemes.iter().map(|scheme| self.with_scheme(scheme, port));
        Ok(Answer {
            targets: targets.collect::<Result<_, _>>()?,
            address: candidate.address,
            discovery: candidate.discovery.clone().unwrap_or_default(),
        })
    }
}

impl Candidate {
    /// Whether https at this address would have been preferred to `best`. If the same port has
    /// plain text, https is not needed.
    fn is_preferred_to(&self, best: &Self) -> bool {
        let is_plain_port =
            best.rank() == Some(Rank::Http) && best.target.port() == self.target.port();
        self.target.is_secure() && best.rank() > Some(Rank::Https) && !is_plain_port
    }

    fn rank(&self) -> Option<Rank> {
        let discovery = self.discovery.as_ref()?;
        match discovery.http {
            _ if discovery.reflector => Some(Rank::Reflector),
            Some(_) if self.target.is_secure() => Some(Rank::Https),
            // A server that answers a plain request with status 400 usually expects TLS.
            Some(status) if status != 400 => Some(Rank::Http),
            // A TLS server without a trusted certificate still accepts connections.
            _ => (discovery.accepted && !self.target.is_secure()).then_some(Rank::Tcp),
        }
    }
}

/// The answer with the best rank; of several, the first.
fn best_answer(candidates: &[Candidate]) -> Option<(Rank, &Candidate)> {
    let ranked = candidates
        .iter()
        .filter_map(|candidate| Some((candidate.rank()?, candidate)));
    ranked.min_by_key(|(rank, _)| *rank)
}

/// Tries all addresses at the same time.
fn probe_all(candidates: &mut [Candidate], options: &DiscoveryOptions) -> Result<(), ProbeError> {
    let (sender, receiver) = channel();
    let start = now();
    for (index, candidate) in candidates.iter().enumerate() {
        start_discovery(index, candidate, options, sender.clone())?;
    }
    drop(sender);
    let mut deadline = start + options.patience;
    loop {
        let remaining = (deadline - now()).max(Span::ZERO);
        match receiver.recv_timeout(remaining.to_duration()) {
            Ok((index, discovery)) => {
                let candidate = &mut candidates[index];
                candidate.discovery = Some(discovery?);
                if candidate.rank().is_some() {
                    deadline = deadline.min(now() + (now() - start) + ANSWER_GRACE);
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

type DiscoveryResult = (usize, Result<Discovery, ProbeError>);

/// On a detached thread: a late result is discarded.
fn start_discovery(
    index: usize,
    candidate: &Candidate,
    options: &DiscoveryOptions,
    sender: Sender<DiscoveryResult>,
) -> Result<(), ProbeError> {
    let (target, address, options) = (candidate.target.clone(), candidate.address, options.clone());
    let discovery_task = move || {
        // The receiver may be gone.
        let _ = sender.send((index, neph_probe::discover(&target, address, &options)));
    };
    let builder = thread::Builder::new().name("neph-ask".to_owned());
    builder.spawn(discovery_task).map_err(ProbeError::Thread)?;
    Ok(())
}

/// The target, with the address if there are several.
fn candidate_name(target: &Target, candidate: &Candidate, candidates: &[Candidate]) -> String {
    let ip = candidate.address.ip();
    if candidates.iter().any(|other| other.address.ip() != ip) {
        format!("{target} ({ip})")
    } else {
        target.to_string()
    }
}

/// `https://h:443 answers; http://h:80 too`, and why a better target was not used although it
/// answers: usually an untrusted certificate.
fn answer_sentence(candidates: &[Candidate], best: &Candidate, answer: &Answer) -> String {
    let chosen_target = answer.targets.first().unwrap_or(&best.target);
    let name = candidate_name(chosen_target, best, candidates);
    let mut text = format!("{name} answers");
    let others = candidates
        .iter()
        .filter(|other| !std::ptr::eq(*other, best));
    for candidate in others {
        let name = candidate_name(&candidate.target, candidate, candidates);
        let reply = candidate.discovery.as_ref().filter(|reply| reply.accepted);
        match reply.map(|reply| &reply.silence) {
            Some(Some(reason)) if candidate.is_preferred_to(best) => {
                text.push_str(&format!("; {name}: {reason}"));
            }
            Some(None) if candidate.rank().is_some_and(|rank| rank < Rank::Tcp) => {
                text.push_str(&format!("; {name} too"));
            }
            _ => {}
        }
    }
    text
}

/// `no answer: https://h:443: connection refused; ...`
fn no_answer_sentence(candidates: &[Candidate]) -> String {
    let reasons = candidates.iter().map(|candidate| {
        let discovery = candidate.discovery.as_ref();
        let reason = discovery.and_then(|discovery| discovery.silence.as_deref());
        let name = candidate_name(&candidate.target, candidate, candidates);
        format!("{name}: {}", reason.unwrap_or("no answer in time"))
    });
    format!("no answer: {}", reasons.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(target: &str, discovery: Discovery) -> Candidate {
        let target = Target::parse(target).expect("a target");
        Candidate {
            address: SocketAddr::from(([192, 0, 2, 1], target.port())),
            target,
            discovery: Some(discovery),
        }
    }

    fn http(status: u16) -> Discovery {
        Discovery {
            accepted: true,
            http: Some(status),
            ..Discovery::default()
        }
    }

    fn reflector() -> Discovery {
        Discovery {
            reflector: true,
            ..http(200)
        }
    }

    fn refused() -> Discovery {
        Discovery {
            silence: Some("connection refused".to_owned()),
            ..Discovery::default()
        }
    }

    fn untrusted() -> Discovery {
        Discovery {
            accepted: true,
            silence: Some("invalid peer certificate".to_owned()),
            ..Discovery::default()
        }
    }

    fn choose(discoveries: [Discovery; 3]) -> (Option<Vec<String>>, String) {
        let host = SchemelessTarget::parse("h", false).expect("a host");
        let targets = host.targets().expect("targets");
        let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let candidates: Vec<Candidate> = names
            .iter()
            .zip(discoveries)
            .map(|(name, discovery)| candidate(name, discovery))
            .collect();
        let Some((rank, candidate)) = best_answer(&candidates) else {
            return (None, no_answer_sentence(&candidates));
        };
        let answer = host.build_answer(rank, candidate).expect("targets");
        let flows = answer.targets.iter().map(ToString::to_string).collect();
        (
            Some(flows),
            answer_sentence(&candidates, candidate, &answer),
        )
    }

    #[test]
    fn a_reflector_is_preferred_then_https_then_http_then_tcp() {
        let flow_list = |targets: &[&str]| {
            let targets = targets.iter().map(|target| (*target).to_owned());
            Some(targets.collect::<Vec<_>>())
        };
        let reflector_flows = flow_list(&["ws://h:8080", "tcp://h:8080", "udp://h:8080"]);
        for (discoveries, flows, expected) in [
            (
                [reflector(), http(200), http(301)],
                reflector_flows,
                "ws://h:8080 answers; https://h:443 too; http://h:80 too",
            ),
            (
                [refused(), http(404), http(301)],
                flow_list(&["https://h:443"]),
                "https://h:443 answers; http://h:80 too",
            ),
            (
                [refused(), untrusted(), http(301)],
                flow_list(&["http://h:80"]),
                "http://h:80 answers; https://h:443: invalid peer certificate",
            ),
            (
                [http(400), refused(), refused()],
                flow_list(&["tcp://h:8080"]),
                "tcp://h:8080 answers",
            ),
            (
                [refused(), reflector(), refused()],
                flow_list(&["https://h:443"]),
                "https://h:443 answers",
            ),
            (
                [refused(), refused(), refused()],
                None,
                "no answer: http://h:8080: connection refused; \
                 https://h:443: connection refused; http://h:80: connection refused",
            ),
        ] {
            assert_eq!(choose(discoveries), (flows, expected.to_owned()));
        }
    }

    #[test]
    fn a_given_port_is_tried_with_and_without_tls() {
        for (text, expected) in [
            ("h:9", ["http://h:9", "https://h:9"]),
            ("[::1]:9/x", ["http://[::1]:9/x", "https://[::1]:9/x"]),
        ] {
            let targets = SchemelessTarget::parse(text, false).and_then(|host| host.targets());
            let targets = targets.expect("a host and a port");
            let urls: Vec<String> = targets.iter().map(ToString::to_string).collect();
            assert_eq!(urls, expected);
        }
    }
}
