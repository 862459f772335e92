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
class Place:
    """Where an attacker is."""

    hub: str
    hub6: str
    own: str
    # A /64 of its own, whose every address it may use.
    prefix6: str
    until: float

    def is_over(self) -> bool:
        return time.monotonic() >= self.until

    def pause(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, self.until - time.monotonic())))


def connect(place: Place, source: str | None = None) -> socket.socket:
    family = socket.AF_INET6 if source and ":" in source else socket.AF_INET
    stream = socket.socket(family, socket.SOCK_STREAM)
    stream.settimeout(2)
    if source:
        stream.bind((source, 0))
    stream.connect((place.hub6 if family == socket.AF_INET6 else place.hub, PORT))
    return stream


def websocket(place: Place, reply: int) -> socket.socket:
    stream = connect(place)
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


def spoof(place: Place, source: tuple[str, int], payload: bytes) -> None:
    """Sends a datagram to the reflector in another's name."""
    udp = struct.pack("!HHHH", source[1], PORT, 8 + len(payload), 0) + payload
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(place.hub)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + addresses
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        raw.sendto(header + udp, (place.hub, 0))


def repeatedly(place: Place, pause: float, once: Callable[[int], None]) -> None:
    """Does it repeatedly; what is refused was refused as it should be."""
    count = 0
    while not place.is_over():
        try:
            once(count)
        except (OSError, ssl.SSLError):
            pass
        count += 1
        place.pause(pause)


def hold(place: Place, most: int, pause: float, make: Callable[[int], socket.socket]) -> None:
    """Keeps up to so many connections open; the oldest makes room."""
    held: list[socket.socket] = []

    def once(count: int) -> None:
        if len(held) >= most:
            held.pop(0).close()
        held.append(make(count))

    repeatedly(place, pause, once)
    for stream in held:
        stream.close()


def hold_idle(place: Place) -> None:
    """Takes as many connections as it gets and asks once on each."""

    def make(count: int) -> socket.socket:
        stream = websocket(place, 100)
        stream.sendall(frame(0x82, message(count)))
        return stream

    hold(place, 600, 0.02, make)


def hold_from_many_addresses(place: Place) -> None:
    """As before, each connection from another IPv6 address."""

    def make(_: int) -> socket.socket:
        source = place.prefix6 + f"{random.getrandbits(16):x}:{random.getrandbits(16):x}"
        stream = connect(place, source)
        stream.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        return stream

    hold(place, 600, 0.02, make)


def trickle_a_head(place: Place) -> None:
    """A request head byte by byte."""

    def once(_: int) -> None:
        with connect(place) as stream:
            for byte in b"GET / HTTP/1.1\r\nX: " + b"x" * 200:
                stream.sendall(bytes([byte]))
                place.pause(0.1)

    repeatedly(place, 0.1, once)


def leave_requests_unfinished(place: Place) -> None:
    """Almost all of a large request."""

    def make(_: int) -> socket.socket:
        stream = websocket(place, 100)
        stream.sendall(frame(0x82, b"", 60 * MEGABYTE))
        for _ in range(58):
            stream.sendall(bytes(MEGABYTE))
            place.pause(0.02)
        return stream

    hold(place, 8, 0.5, make)


def leave_fragments_unfinished(place: Place) -> None:
    """Fragments of a message that has no end."""

    def once(_: int) -> None:
        with websocket(place, 100) as stream:
            stream.sendall(frame(0x02, bytes(MEGABYTE)))
            while not place.is_over():
                stream.sendall(frame(0x00, bytes(MEGABYTE)))
                place.pause(0.05)

    repeatedly(place, 0.5, once)


def leave_replies_unread(place: Place) -> None:
    """Asks for the largest reply and reads nothing."""

    def make(count: int) -> socket.socket:
        stream = websocket(place, 16 * MEGABYTE)
        stream.sendall(frame(0x82, message(count)))
        return stream

    hold(place, 16, 0.25, make)


def leave_replies_unread_over_tls(place: Place) -> None:
    """As before, over TLS."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def make(count: int) -> socket.socket:
        stream = context.wrap_socket(connect(place))
        stream.sendall(UPGRADE % (16 * MEGABYTE))
        stream.recv(4096)
        stream.sendall(frame(0x82, message(count)))
        return stream

    hold(place, 16, 0.5, make)


def read_byte_by_byte(place: Place) -> None:
    """Reads a large reply a byte at a time."""

    def once(count: int) -> None:
        with websocket(place, 4 * MEGABYTE) as stream:
            stream.sendall(frame(0x82, message(count)))
            while not place.is_over():
                if not stream.recv(1):
                    return
                place.pause(0.1)

    repeatedly(place, 0.2, once)


def break_tls(place: Place) -> None:
    """Half a TLS handshake, or garbage in its place."""

    def make(_: int) -> socket.socket:
        stream = connect(place)
        stream.sendall(b"\x16\x03\x01" + random.randbytes(random.choice([0, 5, 300])))
        return stream

    hold(place, 50, 0.05, make)


def speak_nonsense(place: Place) -> None:
    """Random bytes, negative lengths, heads that are too long, two lengths."""
    kinds = [
        random.randbytes(200),
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 70_000,
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /?reply=99999999999999999999 HTTP/1.1\r\nHost: h\r\n\r\n",
    ]

    def once(count: int) -> None:
        with connect(place) as stream:
            stream.sendall(kinds[count % len(kinds)])
            stream.recv(4096)

    repeatedly(place, 0.02, once)


def connect_and_leave(place: Place) -> None:
    """Connections that end at once."""
    repeatedly(place, 0.01, lambda _: connect(place).close())


def ping_without_reading(place: Place) -> None:
    """WebSocket pings whose pongs are not read."""
    pings = frame(0x89, bytes(125)) * 100

    def once(_: int) -> None:
        with websocket(place, 100) as stream:
            while not place.is_over():
                stream.sendall(pings)
                place.pause(0.02)

    repeatedly(place, 0.2, once)


def upload_in_silence(place: Place) -> None:
    """Takes the turn for a bulk transfer and sends nothing."""

    def once(_: int) -> None:
        with connect(place) as stream:
            # Hello (neph-wire/frame.rs): magic, upload, no reply, 30 s.
            stream.sendall(b"NEPH\x01\x01\x00\x00" + struct.pack("!II", 0, 30_000))
            stream.settimeout(5)
            while stream.recv(4096):
                pass

    repeatedly(place, 0.2, once)


def take_stamps(place: Place) -> None:
    """Many flows' tokens, each on a connection of its own."""

    def once(_: int) -> None:
        with connect(place) as stream:
            token = random.getrandbits(64)
            stream.sendall(b"GET /?reply=100&flow=%016x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" % token)
            while stream.recv(4096):
                pass

    repeatedly(place, 0.01, once)


def start_loops(place: Place) -> None:
    """Requests in the name of the reflector itself, of an echo service, and of another reflector."""
    sources = [(place.hub, PORT), (place.hub, 7), (place.own, 862), (place.own, 19)]
    repeatedly(place, 0.01, lambda count: spoof(place, sources[count % 4], stamp(0)))


def repeat_one_request(place: Place) -> None:
    """The same STAMP packet repeatedly, as an echo service would send it."""
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    packet = stamp(7)
    repeatedly(place, 0.005, lambda _: datagrams.sendto(packet, (place.hub, PORT)))


def come_from_everywhere(place: Place) -> None:
    """STAMP requests in the names of a million addresses."""

    def once(_: int) -> None:
        for _ in range(10):
            source = f"10.{random.randrange(100, 116)}.{random.randrange(256)}.{random.randrange(1, 255)}"
            spoof(place, (source, random.randrange(20_000, 60_000)), stamp(0))

    repeatedly(place, 0.02, once)


def send_malformed_datagrams(place: Place) -> None:
    """Datagrams that are no STAMP packets, and replies."""
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    kinds = [b"", random.randbytes(43), bytes(1_400), stamp(1)[:14] + random.randbytes(98)]
    repeatedly(place, 0.002, lambda count: datagrams.sendto(kinds[count % 4], (place.hub, PORT)))


ATTACKS: list[Callable[[Place], None]] = [
    hold_idle,
    hold_from_many_addresses,
    trickle_a_head,
    leave_requests_unfinished,
    leave_fragments_unfinished,
    leave_replies_unread,
    leave_replies_unread_over_tls,
    read_byte_by_byte,
    break_tls,
    speak_nonsense,
    connect_and_leave,
    ping_without_reading,
    upload_in_silence,
    take_stamps,
    start_loops,
    repeat_one_request,
    come_from_everywhere,
    send_malformed_datagrams,
    hold_idle,
    hold_from_many_addresses,
]
