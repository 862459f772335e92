"""Attacks on a reflector: each one is a function that a namespace's process runs until its time is over.

Owns what an attacker sends. Where it runs, and what becomes of others meanwhile, is in soak.py. Every
attack is bounded in rate and in the memory of its own process.
"""

import random
import socket
import ssl
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

PORT = 8080
MEGABYTE = 1 << 20
# An unauthenticated STAMP request with room for nothing (RFC 8762).
STAMP_LENGTH = 44
UPGRADE = (
    b"GET /?reply=%d HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@dataclass(frozen=True)
class AttackTarget:
    """Addresses of the reflector and of the attacker, and the end of the attack."""

    reflector_v4: str
    reflector_v6: str
    attacker_v4: str
    # A /64 of its own, whose every address it may use.
    attacker_prefix: str
    deadline: float

    def is_over(self) -> bool:
        return time.monotonic() >= self.deadline

    def pause(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, self.deadline - time.monotonic())))


def connect(target: AttackTarget, source: str | None = None) -> socket.socket:
    family = socket.AF_INET6 if source and ":" in source else socket.AF_INET
    stream = socket.socket(family, socket.SOCK_STREAM)
    stream.settimeout(2)
    if source:
        stream.bind((source, 0))
    stream.connect((target.reflector_v6 if family == socket.AF_INET6 else target.reflector_v4, PORT))
    return stream


def websocket(target: AttackTarget, reply: int) -> socket.socket:
    stream = connect(target)
    stream.sendall(UPGRADE % reply)
    stream.recv(4096)
    return stream


def frame(opcode: int, payload: bytes, announced: int | None = None) -> bytes:
    """A masked frame; the mask is zero."""
    length = len(payload) if announced is None else announced
    if length < 126:
        head = struct.pack("!BB", opcode, 0x80 | length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", opcode, 0x80 | 126, length)
    else:
        head = struct.pack("!BBQ", opcode, 0x80 | 127, length)
    return head + bytes(4) + payload


def message(seq: int) -> bytes:
    return b"NEq1" + struct.pack("!Q", seq)


def stamp(seq: int) -> bytes:
    # Number, a time of now in NTP's form, an error estimate, zeroes.
    seconds = int(time.time()) + 2_208_988_800
    return struct.pack("!IIIH30x", seq, seconds, random.getrandbits(32), 0x0001)


def spoof(target: AttackTarget, source: tuple[str, int], payload: bytes) -> None:
    """Sends a datagram to the reflector with a spoofed source address."""
    udp = struct.pack("!HHHH", source[1], PORT, 8 + len(payload), 0) + payload
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(target.reflector_v4)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + addresses
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        raw.sendto(header + udp, (target.reflector_v4, 0))


def repeat_until_deadline(target: AttackTarget, pause: float, attempt: Callable[[int], None]) -> None:
    """Calls `attempt` until the deadline; an attempt that the reflector refuses is no error."""
    count = 0
    while not target.is_over():
        try:
            attempt(count)
        except (OSError, ssl.SSLError):
            pass
        count += 1
        target.pause(pause)


def hold_connections(
    target: AttackTarget,
    max_connections: int,
    pause: float,
    open_connection: Callable[[int], socket.socket],
) -> None:
    """Keeps at most `max_connections` open; closes the oldest for a new one."""
    held: list[socket.socket] = []

    def attempt(count: int) -> None:
        if len(held) >= max_connections:
            held.pop(0).close()
        held.append(open_connection(count))

    repeat_until_deadline(target, pause, attempt)
    for stream in held:
        stream.close()


def hold_idle_connections(target: AttackTarget) -> None:
    """Takes as many connections as it gets and asks once on each."""

    def open_connection(count: int) -> socket.socket:
        stream = websocket(target, 100)
        stream.sendall(frame(0x82, message(count)))
        return stream

    hold_connections(target, 600, 0.02, open_connection)


def hold_connections_from_many_addresses(target: AttackTarget) -> None:
    """As before, each connection from another IPv6 address."""

    def open_connection(_: int) -> socket.socket:
        source = target.attacker_prefix + f"{random.getrandbits(16):x}:{random.getrandbits(16):x}"
        stream = connect(target, source)
        stream.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        return stream

    hold_connections(target, 600, 0.02, open_connection)


def send_head_byte_by_byte(target: AttackTarget) -> None:
    """A request head byte by byte."""

    def attempt(_: int) -> None:
        with connect(target) as stream:
            for byte in b"GET / HTTP/1.1\r\nX: " + b"x" * 200:
                stream.sendall(bytes([byte]))
                target.pause(0.1)

    repeat_until_deadline(target, 0.1, attempt)


def send_incomplete_requests(target: AttackTarget) -> None:
    """Almost all of a large request."""

    def open_connection(_: int) -> socket.socket:
        stream = websocket(target, 100)
        stream.sendall(frame(0x82, b"", 60 * MEGABYTE))
        for _ in range(58):
            stream.sendall(bytes(MEGABYTE))
            target.pause(0.02)
        return stream

    hold_connections(target, 8, 0.5, open_connection)


def send_endless_fragments(target: AttackTarget) -> None:
    """Fragments of a message that has no end."""

    def attempt(_: int) -> None:
        with websocket(target, 100) as stream:
            stream.sendall(frame(0x02, bytes(MEGABYTE)))
            while not target.is_over():
                stream.sendall(frame(0x00, bytes(MEGABYTE)))
                target.pause(0.05)

    repeat_until_deadline(target, 0.5, attempt)


def leave_replies_unread(target: AttackTarget) -> None:
    """Asks for the largest reply and reads nothing."""

    def open_connection(count: int) -> socket.socket:
        stream = websocket(target, 16 * MEGABYTE)
        stream.sendall(frame(0x82, message(count)))
        return stream

    hold_connections(target, 16, 0.25, open_connection)


def leave_replies_unread_over_tls(target: AttackTarget) -> None:
    """As before, over TLS."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def open_connection(count: int) -> socket.socket:
        stream = context.wrap_socket(connect(target))
        stream.sendall(UPGRADE % (16 * MEGABYTE))
        stream.recv(4096)
        stream.sendall(frame(0x82, message(count)))
        return stream

    hold_connections(target, 16, 0.5, open_connection)


def read_reply_byte_by_byte(target: AttackTarget) -> None:
    """Reads a large reply a byte at a time."""

    def attempt(count: int) -> None:
        with websocket(target, 4 * MEGABYTE) as stream:
            stream.sendall(frame(0x82, message(count)))
            while not target.is_over():
                if not stream.recv(1):
                    return
                target.pause(0.1)

    repeat_until_deadline(target, 0.2, attempt)


def send_invalid_tls_handshakes(target: AttackTarget) -> None:
    """Half a TLS handshake, or garbage in its place."""

    def open_connection(_: int) -> socket.socket:
        stream = connect(target)
        stream.sendall(b"\x16\x03\x01" + random.randbytes(random.choice([0, 5, 300])))
        return stream

    hold_connections(target, 50, 0.05, open_connection)


def send_invalid_requests(target: AttackTarget) -> None:
    """Random bytes, negative lengths, heads that are too long, two lengths."""
    payloads = [
        random.randbytes(200),
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 70_000,
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /?reply=99999999999999999999 HTTP/1.1\r\nHost: h\r\n\r\n",
    ]

    def attempt(count: int) -> None:
        with connect(target) as stream:
            stream.sendall(payloads[count % len(payloads)])
            stream.recv(4096)

    repeat_until_deadline(target, 0.02, attempt)


def connect_and_close(target: AttackTarget) -> None:
    """Connections that end at once."""
    repeat_until_deadline(target, 0.01, lambda _: connect(target).close())


def ping_without_reading(target: AttackTarget) -> None:
    """WebSocket pings whose pongs are not read."""
    pings = frame(0x89, bytes(125)) * 100

    def attempt(_: int) -> None:
        with websocket(target, 100) as stream:
            while not target.is_over():
                stream.sendall(pings)
                target.pause(0.02)

    repeat_until_deadline(target, 0.2, attempt)


def upload_without_data(target: AttackTarget) -> None:
    """Starts bulk uploads and sends no data: others cannot start one meanwhile."""

    def attempt(_: int) -> None:
        with connect(target) as stream:
            # Hello (neph-wire/frame.rs): magic, upload, no reply, 30 s.
            stream.sendall(b"NEPH\x01\x01\x00\x00" + struct.pack("!II", 0, 30_000))
            stream.settimeout(5)
            while stream.recv(4096):
                pass

    repeat_until_deadline(target, 0.2, attempt)


def request_many_flow_tokens(target: AttackTarget) -> None:
    """Many flows' tokens, each on a connection of its own."""

    def attempt(_: int) -> None:
        with connect(target) as stream:
            token = random.getrandbits(64)
            stream.sendall(b"GET /?reply=100&flow=%016x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" % token)
            while stream.recv(4096):
                pass

    repeat_until_deadline(target, 0.01, attempt)


def provoke_reply_loops(target: AttackTarget) -> None:
    """Requests in the name of the reflector itself, of an echo service, and of another reflector."""
    reflector, attacker = target.reflector_v4, target.attacker_v4
    sources = [(reflector, PORT), (reflector, 7), (attacker, 862), (attacker, 19)]
    repeat_until_deadline(target, 0.01, lambda count: spoof(target, sources[count % 4], stamp(0)))


def repeat_one_request(target: AttackTarget) -> None:
    """The same STAMP packet repeatedly, as an echo service would send it."""
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    packet = stamp(7)
    repeat_until_deadline(target, 0.005, lambda _: datagrams.sendto(packet, (target.reflector_v4, PORT)))


def send_from_spoofed_sources(target: AttackTarget) -> None:
    """STAMP requests in the names of a million addresses."""

    def attempt(_: int) -> None:
        for _ in range(10):
            source = f"10.{random.randrange(100, 116)}.{random.randrange(256)}.{random.randrange(1, 255)}"
            spoof(target, (source, random.randrange(20_000, 60_000)), stamp(0))

    repeat_until_deadline(target, 0.02, attempt)


def send_malformed_datagrams(target: AttackTarget) -> None:
    """Datagrams that are no STAMP packets, and replies."""
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    payloads = [b"", random.randbytes(43), bytes(1_400), stamp(1)[:14] + random.randbytes(98)]
    reflector = (target.reflector_v4, PORT)
    repeat_until_deadline(
        target, 0.002, lambda count: datagrams.sendto(payloads[count % 4], reflector)
    )


ATTACKS: list[Callable[[AttackTarget], None]] = [
    hold_idle_connections,
    hold_connections_from_many_addresses,
    send_head_byte_by_byte,
    send_incomplete_requests,
    send_endless_fragments,
    leave_replies_unread,
    leave_replies_unread_over_tls,
    read_reply_byte_by_byte,
    send_invalid_tls_handshakes,
    send_invalid_requests,
    connect_and_close,
    ping_without_reading,
    upload_without_data,
    request_many_flow_tokens,
    provoke_reply_loops,
    repeat_one_request,
    send_from_spoofed_sources,
    send_malformed_datagrams,
    hold_idle_connections,
    hold_connections_from_many_addresses,
]
