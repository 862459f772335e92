//! The merged rows of the summary, and the timestamp that is absent in each.

use neph_model::{ProbeKind, Stage, StageSet};
use neph_probe::{ConnectionUse, FlowSpec};

/// Why these entries are merged, a line for each reason.
pub(super) fn lines(merged: impl IntoIterator<Item = StageSet>, spec: &FlowSpec) -> String {
    let mut by_reason: Vec<(String, Vec<String>)> = Vec::new();
    for set in merged {
        let reason = merge_reasons(set, spec).join("; ");
        match by_reason
            .iter_mut()
            .find(|(known_reason, _)| *known_reason == reason)
        {
            Some((_, sets)) => sets.push(set.to_string()),
            None => by_reason.push((reason, vec![set.to_string()])),
        }
    }
    let lines = by_reason.into_iter().map(|(reason, sets)| {
        let sets = sets.join("; ");
        format!("{sets}: merged stages, an upper bound of each of them; {reason}\n")
    });
    lines.collect()
}

/// Why the timestamps inside a merged entry are absent.
fn merge_reasons(set: StageSet, spec: &FlowSpec) -> Vec<&'static str> {
    use Stage::{Network, OwnKernel, PeerApp, PeerKernel, PeerSend, SendQueue, SendWindow};
    let contains_all = |stages: &[Stage]| stages.iter().all(|stage| set.contains(*stage));
    let mut reasons = Vec::new();
    if contains_all(&[SendWindow, SendQueue]) || contains_all(&[SendQueue, Network]) {
        reasons.push("this host's kernel gave no timestamp of the request's departure");
    }
    if contains_all(&[Network, PeerKernel, PeerApp, PeerSend]) {
        reasons.push(no_peer_timestamps_reason(spec));
    } else if contains_all(&[PeerKernel, PeerApp]) || contains_all(&[PeerApp, PeerSend]) {
        reasons.push(partial_peer_timestamps_reason(spec));
    } else {
        if contains_all(&[Network, PeerKernel]) {
            reasons.push(
                "the peer's kernel gave no timestamp of the request's arrival, for example because it read \
                 several requests with one call",
            );
        }
        if contains_all(&[Network, PeerSend]) {
            reasons.push(no_peer_departure_reason(spec));
        }
    }
    if contains_all(&[Network, OwnKernel]) {
        reasons.push(
            "this host's kernel gave no timestamp of the reply's arrival, for example because one call read several replies",
        );
    }
    if reasons.is_empty() {
        reasons.push("a timestamp between them is missing");
    }
    reasons
}

fn no_peer_timestamps_reason(spec: &FlowSpec) -> &'static str {
    let kind = spec.target.kind();
    if kind.properties().is_answered_by_kernel {
        "the peer's kernel replies, without timestamps"
    } else if !kind.is_identified() {
        "replies of this protocol have no peer timestamps"
    } else if spec.reflector {
        "the replies had no peer timestamps"
    } else {
        "the peer is not a neph reflector and sends no timestamps"
    }
}

const BARE_STAMP_REASON: &str =
    "a standard STAMP packet has two of the peer's four timestamps: peer_rx and peer_app_tx";

const fn partial_peer_timestamps_reason(spec: &FlowSpec) -> &'static str {
    match spec.target.kind() {
        ProbeKind::Udp => BARE_STAMP_REASON,
        _ => "the replies had only some of the peer's timestamps",
    }
}

fn no_peer_departure_reason(spec: &FlowSpec) -> &'static str {
    let is_fresh = spec.connection_use == ConnectionUse::PerMessage;
    match spec.target.kind() {
        ProbeKind::Udp if !(spec.reflector && spec.has_room_for_marks()) => BARE_STAMP_REASON,
        ProbeKind::Tcp if is_fresh => {
            "the timestamp of a reply's departure comes with the next reply on its connection, and each connection has one message"
        }
        _ => {
            "the timestamp of a reply's departure comes with the next reply, which was lost or did not have it"
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_model::Target;

    use super::*;

    fn spec(target: &str) -> FlowSpec {
        let target = Target::parse(target).expect("a target");
        let mut spec = FlowSpec::plain(target, ([127, 0, 0, 1], 9).into());
        spec.reflector = true;
        spec.request_size = 104;
        spec
    }

    fn set(stages: &[Stage]) -> StageSet {
        let stages = stages.iter().copied();
        stages.fold(StageSet::EMPTY, StageSet::with)
    }

    /// The reasons of an entry of network and peer send.
    fn departure_reasons(spec: &FlowSpec) -> Vec<&'static str> {
        merge_reasons(set(&[Stage::Network, Stage::PeerSend]), spec)
    }

    #[test]
    fn a_bare_stamp_packet_has_no_room_for_marks() {
        let mut bare_spec = spec("udp://h:9");
        bare_spec.request_size = 44;
        let sets = [
            set(&[Stage::Network, Stage::PeerSend]),
            set(&[Stage::PeerKernel, Stage::PeerApp]),
        ];
        assert_eq!(
            lines(sets, &bare_spec),
            format!(
                "network + peer send; peer kernel + peer application: merged stages, an upper bound \
                 of each of them; {BARE_STAMP_REASON}\n"
            )
        );
        let mut server_spec = spec("udp://h:9");
        server_spec.reflector = false;
        assert_eq!(
            departure_reasons(&server_spec),
            [BARE_STAMP_REASON],
            "whatever its size"
        );
    }

    #[test]
    fn departure_timestamps_of_replies_come_with_the_next_reply() {
        let lost_reasons = departure_reasons(&spec("udp://h:9"));
        assert!(lost_reasons[0].ends_with("was lost or did not have it"));
        let mut spec_per_message = spec("tcp://h:9");
        assert_eq!(departure_reasons(&spec_per_message), lost_reasons);
        spec_per_message.connection_use = ConnectionUse::PerMessage;
        assert!(
            departure_reasons(&spec_per_message)[0].ends_with("each connection has one message")
        );
    }

    #[test]
    fn each_missing_timestamp_has_a_reason() {
        use Stage::{Network, OwnKernel, PeerApp, PeerKernel, PeerSend};
        let reflector_spec = spec("ws://h:9");
        let mut server_spec = spec("ws://h:9");
        server_spec.reflector = false;
        let peer_stages = [Network, PeerKernel, PeerApp, PeerSend];
        let no_timestamps_text = "the peer is not a neph reflector and sends no timestamps";
        assert_eq!(
            merge_reasons(set(&peer_stages), &server_spec),
            [no_timestamps_text]
        );
        let late_read_reasons = merge_reasons(set(&peer_stages).with(OwnKernel), &server_spec);
        assert_eq!(late_read_reasons[0], no_timestamps_text);
        assert!(late_read_reasons[1].contains("one call read several replies"));
        let kernel_text = "the peer's kernel replies, without timestamps";
        assert_eq!(
            merge_reasons(set(&peer_stages), &spec("icmp://h")),
            [kernel_text]
        );
        let late_read_reasons = merge_reasons(set(&[Network, PeerKernel]), &reflector_spec);
        assert!(late_read_reasons[0].contains("several requests with one call"));
        let reasons_of_both = merge_reasons(set(&[Network, PeerKernel, PeerSend]), &reflector_spec);
        assert_eq!(reasons_of_both.len(), 2, "{reasons_of_both:?}");
        let unstamped_reasons =
            merge_reasons(set(&[Stage::SendWindow, Stage::SendQueue]), &reflector_spec);
        assert!(unstamped_reasons[0].contains("the request's departure"));
    }
}
