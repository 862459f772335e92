"""Two network namespaces joined by a veth pair, made and removed here.

Owns their names, addresses and offload settings. Does not run anything inside them: see
processes.py and capture.py.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

CLIENT_ADDRESS = "10.97.0.1"
SERVER_ADDRESS = "10.97.0.2"
INTERFACE = "veth0"
# Offloads would let one captured packet stand for several that were sent.
OFFLOADS = ("tx", "rx", "tso", "gso", "gro")
CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class Pair:
    """The namespaces' names."""

    client: str
    server: str


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def _run_in(namespace: str, *command: str) -> None:
    _run("nsenter", f"--net=/run/netns/{namespace}", *command)


def _set_up(namespace: str, address: str, *, disable_offloads: bool) -> None:
    _run_in(namespace, "ip", "address", "add", f"{address}/24", "dev", INTERFACE)
    _run_in(namespace, "ip", "link", "set", "lo", "up")
    _run_in(namespace, "ip", "link", "set", INTERFACE, "up")
    for offload in OFFLOADS if disable_offloads else ():
        _run_in(namespace, "ethtool", "-K", INTERFACE, offload, "off")
    # ICMP without privileges, as `neph ping` wants it; closed in a new namespace.
    _run_in(namespace, "sysctl", "-qw", "net.ipv4.ping_group_range=0 2147483647")


@contextmanager
def veth_pair(*, disable_offloads: bool = True) -> Iterator[Pair]:
    """A pair of namespaces; both are gone afterwards, whatever happened.

    Without offloads each captured packet is one packet on the wire. With `disable_offloads=False` the
    offloads are as the kernel sets them for a new pair, as in containers.
    """
    pair = Pair(f"nephbench-c{os.getpid()}", f"nephbench-s{os.getpid()}")
    try:
        for name in (pair.client, pair.server):
            _run("ip", "netns", "add", name)
        _run(
            *("ip", "link", "add", INTERFACE, "netns", pair.client, "type", "veth"),
            *("peer", "name", INTERFACE, "netns", pair.server),
        )
        _set_up(pair.client, CLIENT_ADDRESS, disable_offloads=disable_offloads)
        _set_up(pair.server, SERVER_ADDRESS, disable_offloads=disable_offloads)
        # The address is learnt now, so that no measurement pays for it.
        _run_in(pair.client, "ping", "-qc", "3", "-i", "0.1", SERVER_ADDRESS)
        yield pair
    finally:
        for name in (pair.client, pair.server):
            subprocess.run(("ip", "netns", "delete", name), capture_output=True, check=False)


@contextmanager
def entered(namespace: str) -> Iterator[None]:
    """This thread is in the namespace for as long as the block lasts: sockets opened stay there."""
    libc = ctypes.CDLL(None, use_errno=True)
    own_namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    target_namespace = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(target_namespace, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"enter the network namespace {namespace}")
        try:
            yield
        finally:
            if libc.setns(own_namespace, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "return to the own network namespace")
    finally:
        os.close(target_namespace)
        os.close(own_namespace)
