"""What really went over the client's interface: a packet socket with the kernel's time stamps.

The socket is not read while a tool measures: its buffer holds everything, so nothing wakes up
beside the tool on a machine of two cores. An outgoing packet is stamped as it is handed to the
interface, an incoming one as the interface hands it to the kernel. The socket's wish for stamps
keeps the kernel's stamping switched on for all tools alike.
"""

import ctypes
import socket
import struct
from dataclasses import dataclass
from types import TracebackType

from namespaces import INTERFACE, entered

ETH_P_ALL = 3
SO_ATTACH_FILTER = 26
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_OUTGOING = 4
# One packet of 64 bytes takes about 1 KiB of it; the kernel doubles the number.
BUFFER_BYTES = 500 << 20
SNAP_LENGTH = 160
ICMP, TCP, UDP = 1, 6, 17
FIN, SYN = 0x01, 0x02


@dataclass(frozen=True, slots=True)
class Packet:
    """One IPv4 packet. `flow` is (protocol, client's port or ICMP id, server's port)."""

    stamp_ns: int
    is_outgoing: bool
    flow: tuple[int, int, int]
    payload_bytes: int
    flags: int
    head: bytes


def _outgoing_filter() -> tuple[ctypes.Array[ctypes.c_char], bytes]:
    """A filter that lets packets through that leave; the buffer must outlive the call."""
    load_packet_type = struct.pack("HBBI", 0x20, 0, 0, 0xFFFFF000 + 4)
    match_outgoing = struct.pack("HBBI", 0x15, 0, 1, PACKET_OUTGOING)
    accept, refuse = (struct.pack("HBBI", 0x06, 0, 0, length) for length in (SNAP_LENGTH, 0))
    code = ctypes.create_string_buffer(load_packet_type + match_outgoing + accept + refuse)
    return code, struct.pack("HL", 4, ctypes.addressof(code))


class Capture:
    """Packets from the moment it is made until `packets` is called."""

    def __init__(self, namespace: str, *, only_outgoing: bool = False) -> None:
        with entered(namespace):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        if only_outgoing:
            _code, program = _outgoing_filter()
            self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        self._socket.setblocking(False)
        self._socket.bind((INTERFACE, ETH_P_ALL))

    def __enter__(self) -> "Capture":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def packets(self) -> list[Packet]:
        """Everything captured, in order of time. Raises RuntimeError if the kernel dropped any."""
        packets = []
        while True:
            try:
                frame, control, _, address = self._socket.recvmsg(SNAP_LENGTH, 64)
            except BlockingIOError:
                break
            packet = _parse(frame, _stamp(control), address[2] == PACKET_OUTGOING)
            if packet is not None:
                packets.append(packet)
        statistics = self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        _, drops = struct.unpack("II", statistics)
        if drops:
            raise RuntimeError(f"the capture lost {drops} packets: its buffer is too small")
        return sorted(packets, key=lambda packet: packet.stamp_ns)


def _stamp(control: list[tuple[int, int, bytes]]) -> int:
    for level, kind, content in control:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, nanos = struct.unpack("qq", content[:16])
            return seconds * 1_000_000_000 + nanos
    raise RuntimeError("a captured packet has no time stamp")


def _parse(frame: bytes, stamp_ns: int, is_outgoing: bool) -> Packet | None:
    """An IPv4 packet of a protocol that is measured; None for anything else."""
    if len(frame) < 34 or frame[12:14] != b"\x08\x00":
        return None
    ip_header_length = (frame[14] & 15) * 4
    ip_length = int.from_bytes(frame[16:18])
    protocol = frame[23]
    transport = frame[14 + ip_header_length :]
    if len(transport) < 8:
        return None
    first_port, second_port = struct.unpack(">HH", transport[:4])
    client_port, server_port = (first_port, second_port) if is_outgoing else (second_port, first_port)
    flags, header_length = 0, 8
    if protocol == TCP:
        header_length, flags = (transport[12] >> 4) * 4, transport[13]
    elif protocol == ICMP:
        client_port, server_port = int.from_bytes(transport[4:6]), 0
    elif protocol != UDP:
        return None
    flow = (protocol, client_port, server_port)
    payload_bytes = ip_length - ip_header_length - header_length
    return Packet(stamp_ns, is_outgoing, flow, payload_bytes, flags, transport[header_length : header_length + 32])
