"""Writes the hand-made seeds of the fuzz targets into corpus/. Run it in this folder."""

import pathlib
import struct

MARKS = bytes([1, 15]) + bytes(6) + struct.pack(">qqqqQq", 10, 20, 30, 40, 5, 60)
HEAD = b"Host: a\r\n"
TCP_PACKET = bytes.fromhex(
    "45020038123440004006000" "00a0000010a0000021f90c001000000050000000980180200"
    "000000000101080a000000070000000364617461"
)
ECHO = bytes.fromhex("0800000000070001") + b"NEpi" + struct.pack(">Q", 1)


def checksum(message: bytes) -> bytes:
    total = sum(struct.unpack(f">{len(message) // 2}H", message))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return message[:2] + struct.pack(">H", ~total & 0xFFFF) + message[4:]


def tlv(code: int, value: bytes) -> bytes:
    return struct.pack(">BBH", 0xC0, code, len(value)) + value


BASE = struct.pack(">IQHH", 1, 0xE5_00_00_00_80_00_00_00, 0x8301, 7) + bytes(28)

SEEDS = {
    "ws": [
        b"\x06\x81\x05Hello",
        b"\x07\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
        b"\x06\x01\x03Hel\x89\x00\x80\x02lo\x88\x02\x03\xe8",
        b"\x06\x82\x7e\x00\x7e" + bytes(126),
        b"\x06\x82\x7f\x00\x00\x00\x02\x54\x0b\xe4\x00",
    ],
    "http_request": [
        b"GET /echo?reply=100 HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: 3\r\n\r\nabc",
        b"POST / HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /?reply=-1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    ],
    "http_response": [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nNeph-Marks: " + MARKS.hex().encode() + b"\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
    ],
    "frame_echo": [
        b"NEPH\x01\x00\x00\x00" + struct.pack(">II", 100, 0),
        b"NEPR\x01\x03\x00\x00" + struct.pack(">II", 100, 1000),
        struct.pack(">I", 12) + b"NEq1" + struct.pack(">Q", 5),
        struct.pack(">I", 68) + b"NEr1" + struct.pack(">Q", 5) + MARKS,
    ],
    "stamp": [
        BASE,
        BASE + tlv(252, bytes(56)) + tlv(1, bytes(20)),
        BASE + tlv(7, bytes(16)) + tlv(8, bytes(16)) + tlv(99, b"abc") + b"\xc0\x01\x00",
    ],
    "icmp_ip": [
        checksum(ECHO),
        b"\x80" + ECHO[1:],
        checksum(b"\x0b\x00" + bytes(6) + TCP_PACKET[:28]),
        TCP_PACKET,
        bytes(12) + b"\x81\x00\x00\x05\x08\x00" + TCP_PACKET,
        bytes.fromhex("60000000001a2c40") + bytes(32) + bytes.fromhex("1100000100000007123400350012" "0000") + bytes(10),
    ],
    "marks": [MARKS, MARKS.hex().encode(), bytes([1]) + bytes(55)],
}

for target, seeds in SEEDS.items():
    folder = pathlib.Path("corpus") / target
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (folder / f"seed-{number}").write_bytes(seed)
