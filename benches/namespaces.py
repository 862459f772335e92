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


def _inside(namespace: str, *command: str) -> None:
    _run("nsenter", f"--net=/run/netns/{namespace}", *command)


def _set_up(namespace: str, address: str, *, is_cut: bool) -> None:
    _inside(namespace, "ip", "address", "add", f"{address}/24", "dev", INTERFACE)
    _inside(namespace, "ip", "link", "set", "lo", "up")
    _inside(namespace, "ip", "link", "set", INTERFACE, "up")
    for offload in OFFLOADS if is_cut else ():
        _inside(namespace, "ethtool", "-K", INTERFACE, offload, "off")
    # ICMP without privileges, as `neph ping` wants it; closed in a new namespace.
    _inside(namespace, "sysctl", "-qw", "net.ipv4.ping_group_range=0 2147483647")


@contextmanager
def veth_pair(*, is_cut: bool = True) -> Iterator[Pair]:
    """A pair of namespaces; both are gone afterwards, whatever happened.

    Packets are cut to the size of the wire unless `is_cut` is False: then offloads are as the kernel
    gives them to a new pair, as containers have it.
    """
    pair = Pair(f"nephbench-c{os.getpid()}", f"nephbench-s{os.getpid()}")
    try:
        for name in (pair.client, pair.server):
            _run("ip", "netns", "add", name)
        _run(
            *("ip", "link", "add", INTERFACE, "netns", pair.client, "type", "veth"),
            *("peer", "name", INTERFACE, "netns", pair.server),
        )
        _set_up(pair.client, CLIENT_ADDRESS, is_cut=is_cut)
        _set_up(pair.server, SERVER_ADDRESS, is_cut=is_cut)
        # The address is learnt now, so that no measurement pays for it.
        _inside(pair.client, "ping", "-qc", "3", "-i", "0.1", SERVER_ADDRESS)
        yield pair
    finally:
        for name in (pair.client, pair.server):
            subprocess.run(("ip", "netns", "delete", name), capture_output=True, check=False)


@contextmanager
def entered(namespace: str) -> Iterator[None]:
    """This thread is in the namespace for as long as the block lasts: sockets opened stay there."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(there, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"enter the network namespace {namespace}")
        try:
            yield
        finally:
            if libc.setns(home, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "return to the own network namespace")
    finally:
        os.close(there)
        os.close(home)
