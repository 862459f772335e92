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
struct AnsweredAddress {
    target: Target,
    address: SocketAddr,
    printed: Option<Discovery>,
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
pub(super) fn first_that_answers(
    args: &Args,
    options: &DiscoveryOptions,
) -> Result<Answers, Failure> {
    let typed = Typed::parse(&args.target, args.needs_certificate())?;
    let mut places = Vec::new();
    for address in addresses(&typed.plain, args.ip.version())? {
        for target in typed.targets()? {
            places.push(AnsweredAddress {
                address: with_port(address, target.port()),
                target,
                printed: None,
            });
        }
    }
    ask_all(&mut places, options)?;
    let Some((rank, answered_address)) = best(&places) else {
        return Ok(Answers {
            best: None,
            sentence: no_answer(&places),
        });
    };
    let answer = typed.answer(rank, answered_address)?;
    Ok(Answers {
        sentence: sentence(&places, answered_address, &answer),
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
struct Typed {
    /// As http and as https: both have the same port only if a port was given.
    plain: Target,
    secure: Target,
    /// A certificate is required, so plain text is not an alternative.
    only_secure: bool,
}

impl Typed {
    fn parse(text: &str, only_secure: bool) -> Result<Self, Failure> {
        let with = |scheme: &str| Target::under(scheme, text);
        Ok(Self {
            plain: with("http").map_err(Failure::usage)?,
            secure: with("https").map_err(Failure::usage)?,
            only_secure,
        })
    }

    fn at(&self, scheme: &str, port: u16) -> Result<Target, Failure> {
        let (host, path) = (bracketed(self.plain.host()), self.plain.path());
        Target::parse(&format!("{scheme}://{host}:{port}{path}")).map_err(Failure::usage)
    }

    fn targets(&self) -> Result<Vec<Target>, Failure> {
        let (plain, secure) = (self.plain.port(), self.secure.port());
        if self.only_secure {
            return Ok(if plain == secure {
                vec![self.secure.clone()]
            } else {
                vec![self.at("https", PORT)?, self.secure.clone()]
            });
        }
        if plain == secure {
            return Ok(vec![self.plain.clone(), self.secure.clone()]);
        }
        Ok(vec![
            self.at("http", PORT)?,
            self.secure.clone(),
            self.plain.clone(),
        ])
    }

    /// One flow per protocol in which a reflector answers; one flow for any other server.
    fn answer(&self, rank: Rank, address: &AnsweredAddress) -> Result<Answer, Failure> {
        let port = address.target.port();
        let schemes: &[&str] = match rank {
            Rank::Reflector if !address.target.is_secure() => &["ws", "tcp", "udp"],
            Rank::Reflector if self.only_secure => &["wss"],
            // Behind a proxy only HTTP is known to work.
            Rank::Reflector | Rank::Https => &["https"],
            Rank::Http => &["http"],
            Rank::Tcp => &["tcp"],
        };
        let targets: Result<Vec<Target>, Failure> =
            schemes.iter().map(|scheme| self.at(scheme, port)).collect();
        Ok(Answer {
            targets: targets?,
            address: address.address,
            discovery: address.printed.clone().unwrap_or_default(),
        })
    }
}

impl AnsweredAddress {
    /// Whether https at this address would have been preferred to `best`. If the same port has
    /// plain text, https is not needed.
    fn is_missed_by(&self, best: &Self) -> bool {
        let is_plain_port =
            best.rank() == Some(Rank::Http) && best.target.port() == self.target.port();
        self.target.is_secure() && best.rank() > Some(Rank::Https) && !is_plain_port
    }

    fn rank(&self) -> Option<Rank> {
        let printed = self.printed.as_ref()?;
        match printed.http {
            _ if printed.reflector => Some(Rank::Reflector),
            Some(_) if self.target.is_secure() => Some(Rank::Https),
            // A server that answers a plain request with status 400 usually expects TLS.
            Some(status) if status != 400 => Some(Rank::Http),
            // A TLS server without a trusted certificate still accepts connections.
            _ => (printed.accepted && !self.target.is_secure()).then_some(Rank::Tcp),
        }
    }
}

/// The answer with the best rank; of several, the first.
fn best(places: &[AnsweredAddress]) -> Option<(Rank, &AnsweredAddress)> {
    let ranked = places
        .iter()
        .filter_map(|address| Some((address.rank()?, address)));
    ranked.min_by_key(|(rank, _)| *rank)
}

/// Tries all addresses at the same time.
fn ask_all(places: &mut [AnsweredAddress], options: &DiscoveryOptions) -> Result<(), ProbeError> {
    let (sender, receiver) = channel();
    let start = now();
    for (number, address) in places.iter().enumerate() {
        ask(number, address, options, sender.clone())?;
    }
    drop(sender);
    let mut deadline = start + options.patience;
    loop {
        let remaining = (deadline - now()).max(Span::ZERO);
        match receiver.recv_timeout(remaining.to_duration()) {
            Ok((number, printed)) => {
                let address = &mut places[number];
                address.printed = Some(printed?);
                if address.rank().is_some() {
                    deadline = deadline.min(now() + (now() - start) + ANSWER_GRACE);
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

type Reported = (usize, Result<Discovery, ProbeError>);

/// On a detached thread: a late result is discarded.
fn ask(
    number: usize,
    answered_address: &AnsweredAddress,
    options: &DiscoveryOptions,
    sender: Sender<Reported>,
) -> Result<(), ProbeError> {
    let (target, address, options) = (
        answered_address.target.clone(),
        answered_address.address,
        options.clone(),
    );
    let requested = move || {
        // The receiver may be gone.
        let _ = sender.send((number, neph_probe::discover(&target, address, &options)));
    };
    let thread = thread::Builder::new().name("neph-ask".to_owned());
    thread.spawn(requested).map_err(ProbeError::Thread)?;
    Ok(())
}

/// The target, with the address if there are several.
fn name_of(target: &Target, address: &AnsweredAddress, places: &[AnsweredAddress]) -> String {
    let ip = address.address.ip();
    if places.iter().any(|other| other.address.ip() != ip) {
        format!("{target} ({ip})")
    } else {
        target.to_string()
    }
}

/// `https://h:443 answers; http://h:80 too`, and why a better target was not used although it
/// answers: usually an untrusted certificate.
fn sentence(places: &[AnsweredAddress], best: &AnsweredAddress, answer: &Answer) -> String {
    let chosen = answer.targets.first().unwrap_or(&best.target);
    let mut text = format!("{} answers", name_of(chosen, best, places));
    for address in places.iter().filter(|other| !std::ptr::eq(*other, best)) {
        let name = name_of(&address.target, address, places);
        let printed = address.printed.as_ref().filter(|printed| printed.accepted);
        match printed.map(|printed| &printed.silence) {
            Some(Some(reason)) if address.is_missed_by(best) => {
                text.push_str(&format!("; {name}: {reason}"));
            }
            Some(None) if address.rank().is_some_and(|rank| rank < Rank::Tcp) => {
                text.push_str(&format!("; {name} too"));
            }
            _ => {}
        }
    }
    text
}

/// `no answer: https://h:443: connection refused; ...`
fn no_answer(places: &[AnsweredAddress]) -> String {
    let reasons = places.iter().map(|address| {
        let printed = address
            .printed
            .as_ref()
            .and_then(|printed| printed.silence.as_deref());
        let name = name_of(&address.target, address, places);
        format!("{name}: {}", printed.unwrap_or("no answer in time"))
    });
    format!("no answer: {}", reasons.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered_address(target: &str, printed: Discovery) -> AnsweredAddress {
        let target = Target::parse(target).expect("a target");
        AnsweredAddress {
            address: SocketAddr::from(([192, 0, 2, 1], target.port())),
            target,
            printed: Some(printed),
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

    fn chosen(printed: [Discovery; 3]) -> (Option<Vec<String>>, String) {
        let typed = Typed::parse("h", false).expect("a host");
        let targets = typed.targets().expect("targets");
        let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let places: Vec<AnsweredAddress> = names
            .iter()
            .zip(printed)
            .map(|(name, printed)| answered_address(name, printed))
            .collect();
        let Some((rank, discovery)) = best(&places) else {
            return (None, no_answer(&places));
        };
        let answer = typed.answer(rank, discovery).expect("targets");
        let flows = answer.targets.iter().map(ToString::to_string).collect();
        (Some(flows), sentence(&places, discovery, &answer))
    }

    #[test]
    fn a_reflector_comes_first_then_https_then_http_then_whoever_takes_connections() {
        let list = |targets: &[&str]| {
            let targets = targets.iter().map(|target| (*target).to_owned());
            Some(targets.collect::<Vec<_>>())
        };
        let ours = list(&["ws://h:8080", "tcp://h:8080", "udp://h:8080"]);
        for (printed, flows, expected) in [
            (
                [reflector(), http(200), http(301)],
                ours,
                "ws://h:8080 answers; https://h:443 too; http://h:80 too",
            ),
            (
                [refused(), http(404), http(301)],
                list(&["https://h:443"]),
                "https://h:443 answers; http://h:80 too",
            ),
            (
                [refused(), untrusted(), http(301)],
                list(&["http://h:80"]),
                "http://h:80 answers; https://h:443: invalid peer certificate",
            ),
            (
                [http(400), refused(), refused()],
                list(&["tcp://h:8080"]),
                "tcp://h:8080 answers",
            ),
            (
                [refused(), reflector(), refused()],
                list(&["https://h:443"]),
                "https://h:443 answers",
            ),
            (
                [refused(), refused(), refused()],
                None,
                "no answer: http://h:8080: connection refused; \
                 https://h:443: connection refused; http://h:80: connection refused",
            ),
        ] {
            assert_eq!(chosen(printed), (flows, expected.to_owned()));
        }
    }

    #[test]
    fn a_typed_port_is_queried_only_with_and_without_tls() {
        for (typed, places) in [
            ("h:9", ["http://h:9", "https://h:9"]),
            ("[::1]:9/x", ["http://[::1]:9/x", "https://[::1]:9/x"]),
        ] {
            let targets = Typed::parse(typed, false).and_then(|typed| typed.targets());
            let targets = targets.expect("a host and a port");
            let messages: Vec<String> = targets.iter().map(ToString::to_string).collect();
            assert_eq!(messages, places);
        }
    }
}
