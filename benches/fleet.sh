#!/bin/sh
# What a fleet costs and disturbs: round trips by kernel stamps over a veth pair between two
# namespaces, for one flow and for thousands. Needs root; run from the repository's root.
#
#   benches/fleet.sh            all shapes
#   benches/fleet.sh 512 200000 10     one: flows, interval in us, seconds
set -eu
program=${FLEET:-target/release/examples/fleet}
[ -x "$program" ] || cargo build --release -p neph-probe --example fleet
a=neph-bench-$$-a b=neph-bench-$$-b
work=$(mktemp -d)
clean() {
    exec 3>&- 2>/dev/null || true
    ip netns del "$a" 2>/dev/null || true
    ip netns del "$b" 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM
ip netns add "$a"
ip netns add "$b"
ip link add va netns "$a" type veth peer name vb netns "$b"
ip -n "$a" addr add 10.9.0.1/24 dev va
ip -n "$b" addr add 10.9.0.2/24 dev vb
for side in "$a lo" "$a va" "$b lo" "$b vb"; do
    # shellcheck disable=SC2086
    set -- $side "$@"
    ip -n "$1" link set "$2" up
    shift 2
done
shape() {
    mkfifo "$work/end"
    nsenter --net="/run/netns/$b" "$program" reflect 10.9.0.2:862 <"$work/end" >"$work/reflector" &
    pid=$!
    exec 3>"$work/end"
    sleep 0.5
    echo "== $1 flows, each $2 us, $3 s"
    head -1 /proc/stat | awk '{print "steal_before", $9}'
    nsenter --net="/run/netns/$a" "$program" ask 10.9.0.2:862 "$1" "$2" "$3"
    head -1 /proc/stat | awk '{print "steal_after", $9}'
    exec 3>&-
    wait "$pid"
    sed 's/^/reflector_/' "$work/reflector"
    rm "$work/end"
}
if [ $# -eq 3 ]; then
    shape "$1" "$2" "$3"
else
    shape 1 200000 20
    shape 512 200000 10
    shape 512 5000 10
    shape 50000 1000000 10
fi
