"""Writes the seeds of the fuzz targets into corpus/: hand-made ones, and the plans and topologies
that are shipped, without their comments."""

import gzip
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
    "shown": [
        b"\x1b]52;c;Y3VybA==\x07\x1b[2J\x9b31m",
        "a\u202eb\u2066c\u200bd\ufeff\u061c\u0085\U000e0041".encode(),
        b"=HYPERLINK(\"http://a\",1)\r\n-3.5,+1\t@x",
        b"clean text, \xc3\xa4 \xe2\x86\x92 \xf0\x9f\x91\x8d",
        b"\xe2\x80\r\xf0\x9f\xed\xa0\x80",
        b"x" * 400,
    ],
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
    "throughput": [
        b'{"message":"ask","version":1,"protocol":"udp","direction":"both","streams":2,'
        b'"duration_ns":1000000000,"rate_bit_s":null,"datagram_bytes":1448,"congestion":null,"dscp":46}\n'
        b'{"message":"start"}\n{"message":"end"}\n',
        b'{"message":"granted","token":"00000000000000ab"}\n{"message":"ready"}\n{"message":"started"}\n'
        b'{"message":"intervals","sent":[],"received":[],"variation":[],"cpu":[{"index":0,"from_ns":0,'
        b'"to_ns":1,"process_ns":1,"rcvbuf_errors":0,"cores":[{"core":0,"busy_permille":1,'
        b'"softirq_permille":0,"steal_permille":0}]}]}\n{"message":"done"}\n',
        b'{"message":"ask_rr","version":1,"kind":"udp_rr","streams":2,"duration_ns":1000000000,'
        b'"request_bytes":16,"reply_bytes":16,"dscp":null}\n{"message":"start"}\n{"message":"end"}\n',
        b'{"message":"intervals","sent":[],"received":[],"variation":[],"exchanged":[{"stream":0,"index":0,'
        b'"from_ns":0,"to_ns":1,"transactions":1,"lost":0,"lost_wait_ns":0,"late":0,"duplicates":0,'
        b'"foreign":0,"cpu_ns":1,"core":null}],"cpu":[]}\n{"message":"done"}\n',
        b"NTPs\x01\x00\x00\x07" + bytes(8),
        b"NTPd\x01\x01\x00\x07" + bytes(24) + b"payload",
    ],
    "rtp": [
        b"\x90\xe0\x12\x34\x01\x02\x03\x04\xa0\xb0\xc0\xd0\xbe\xde\x00\x01\x12\xff\xff\xfepayload",
        b"\xa1\x60" + bytes(14) + b"abcd\x03\x00\x03",
        b"\x81\xc9\x00\x07" + bytes(28) + b"\x81\xca\x00\x04" + bytes(4) + b"\x01\x0anephoscope",
    ],
    "rtsp": [
        b"SETUP rtsp://[::1]:8554/video/track0 RTSP/1.0\r\nCSeq: 3\r\n"
        b"Transport: RTP/AVP;unicast;client_port=5000-5001,RTP/AVP/TCP;unicast;interleaved=0-1\r\n\r\n"
        b"RTSP/1.0 200 OK\r\nCSeq: 3\r\nSession: a1;timeout=10\r\nTransport: RTP/AVP;unicast;"
        b"destination=a;source=b;client_port=5000-5001;server_port=6000-6001;ssrc=0000ABCD\r\n\r\n",
        b"RTSP/1.0 200 OK\r\nCSeq: 4\r\nRTP-Info: url=rtsp://h/v/t;seq=7;rtptime=9,url=x;seq=1\r\n\r\n",
        b"RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Length: 4\r\n\r\nv=0\n",
        b"v=0\r\na=control:*\r\nm=video 0 RTP/AVP 96\r\nb=AS:957\r\na=rtpmap:96 H264/90000\r\n"
        b"a=framerate:29.97\r\na=extmap:1 urn:ietf:params:rtp-hdrext:toffset\r\na=control:t\r\n",
        b"rtsp://[fd00::1]:8554/video",
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
    "syn": [
        bytes.fromhex("1f90c000000000010000000a6012ffff00000000020405b4"),
        bytes.fromhex("1f90c000000000000000000a5014000000000000"),
        bytes.fromhex("1f90c000000000010000000a5010ffff00000000"),
        struct.pack(">IQHH", 7, 0x0123456789ABCDEF, 40000, 443),
    ],
    "dns": [
        bytes.fromhex("beef81830001000000010000") + b"\x07eXample\x03ORG\0\0\x01\0\x01",
        b"\0\x1f" + bytes.fromhex("00078380000100000000") + bytes(2) + b"\x05other\x07example\0\0\x01\0\x01",
        bytes.fromhex("00078180000100000000") + bytes(2) + b"\xc0\x0c\0\x01\0\x01",
        b"_sip._udp.example.org.",
    ],
    "mqtt": [
        bytes.fromhex("0020020000d000d000"),
        bytes.fromhex("0320020005"),
        bytes.fromhex("0120020000d0003003000161"),
        bytes.fromhex("02d000"),
    ],
    "icmp_ip": [
        checksum(ECHO),
        b"\x80" + ECHO[1:],
        checksum(b"\x0b\x00" + bytes(6) + TCP_PACKET[:28]),
        TCP_PACKET,
        bytes(12) + b"\x81\x00\x00\x05\x08\x00" + TCP_PACKET,
        bytes.fromhex("60000000001a2c40") + bytes(32) + bytes.fromhex("1100000100000007123400350012" "0000") + bytes(10),
    ],
    "icmp_quote": [
        checksum(b"\x0b\x00" + bytes(6) + TCP_PACKET[:28]),
        checksum(
            b"\x0b\x00\x00\x00\x00\x20\x00\x00" + TCP_PACKET[:28] + bytes(100)
            + bytes.fromhex("20000000000c010105dc100100003a09")
        ),
        b"\x03\x00" + bytes(6) + bytes.fromhex("6000000000081101") + bytes(32) + bytes(8),
    ],
    "marks": [MARKS, MARKS.hex().encode(), bytes([1]) + bytes(55)],
}

PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
RECORDED = struct.pack("<IIII", 1, 2, len(TCP_PACKET), len(TCP_PACKET)) + TCP_PACKET


def block(kind: int, body: bytes) -> bytes:
    """A block of pcapng, padded."""
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
INTERFACE = block(1, struct.pack("<HHI", 101, 0, 0) + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0))
ENHANCED = struct.pack("<IIIII", 0, 5, 6, len(TCP_PACKET), len(TCP_PACKET)) + TCP_PACKET
SEEDS["capture"] = [
    b"\x05" + PCAP + RECORDED * 3,
    b"\xff" + PCAP[:4][::-1] + struct.pack(">HHiIII", 2, 4, 0, 0, 65535, 1) + bytes(16),
    b"\x40" + SECTION + INTERFACE + block(6, ENHANCED) * 2 + block(5, struct.pack("<III", 0, 1, 2)),
    b"\x00" + SECTION + INTERFACE + block(3, struct.pack("<I", len(TCP_PACKET)) + TCP_PACKET),
]
ETHERNET = bytes(12) + b"\x08\x00"
VXLAN = struct.pack(">HHHH", 50000, 4789, 24 + 14 + len(TCP_PACKET), 0) + b"\x08" + bytes(7)
SEEDS["dissect"] = [
    b"\x65\x00" + TCP_PACKET,
    b"\x01\x04" + ETHERNET + TCP_PACKET,
    b"\x01\x08" + bytes(12) + b"\x81\x00\x00\x05\x88\x47\x00\x01\x01\x40" + TCP_PACKET,
    b"\x71\x00" + bytes(14) + b"\x08\x00" + TCP_PACKET,
    b"\x65\x01"
    + struct.pack(">BBHIBBH", 0x45, 0, 20 + len(VXLAN) + 14 + len(TCP_PACKET), 0, 64, 17, 0)
    + bytes(8) + VXLAN + ETHERNET + TCP_PACKET,
]
LAYERS = pathlib.Path(__file__).parent.parent / "crates/neph-wire/src/dissect/tests/layers.txt"
for line in LAYERS.read_text().splitlines():
    if not line.startswith("#"):
        _, link, _, _, packet = line.split()
        SEEDS["dissect"].append(bytes([int(link), 0]) + bytes.fromhex(packet))
        SEEDS["dissect"].append(bytes([int(link), 9]) + bytes.fromhex(packet))
SEEDS["tcp_options"] = [
    b"\x01\x01\x08\x0a" + struct.pack(">II", 7, 8),
    b"\x02\x04\x05\xb4\x04\x02\x08\x0a" + struct.pack(">II", 7, 0) + b"\x01\x03\x03\x07",
    b"\x01\x01\x08\x0a" + struct.pack(">II", 7, 8) + b"\x01\x01\x05\x0a" + struct.pack(">II", 1, 2),
    TCP_PACKET[20:],
]
# Ends, flags, sequence number, acknowledgement, timestamp, echo, length, options, window, time step.
SEEDS["segments"] = [
    b"\xff" + bytes([0, 2, 0, 0, 1, 0, 0, 5, 1, 20, 1, 18, 0, 1, 1, 1, 0, 5, 1, 24, 0, 16, 1, 1, 2, 1, 0, 1, 1, 20])
    + bytes([0, 24, 1, 1, 3, 1, 4, 1, 1, 24, 1, 16, 1, 2, 2, 3, 0, 1, 1, 24, 0, 24, 1, 1, 4, 2, 4, 1, 1, 27]),
    b"\x03" + bytes(byte for n in range(40) for byte in (n % 2, 16, n // 4, n // 4, n, n, n % 3, 1, 1, 20)),
]
# Kind, hosts, id, content, cut, time step.
SEEDS["exchanges"] = [
    b"\x0f" + bytes(byte for n in range(8) for byte in (0, 4, n, 0, 255, 20, 4, 1, n, 0, 255, 20)),
    b"\x0f" + bytes(byte for n in range(8) for byte in (1, 4, n, 0, 255, 20, 5, 1, n, 128, 255, 20)),
    b"\x0f" + bytes(byte for n in range(12) for byte in (2, 4, n, 64 + n % 2 * 32, 255, 20, 6, 1, n, 64 + n % 2 * 32, 255, 20)),
]
SEEDS["meeting"] = [
    b"\x00\x07" + bytes([len(TCP_PACKET)]) + TCP_PACKET + bytes([len(TCP_PACKET)]) + TCP_PACKET[:5] + b"\x09" + TCP_PACKET[6:],
]
SEEDS["filter"] = [bytes([0, 10, 0, 0, 1]) + bytes(12) + b"\x02\x01\xbb" + bytes(14) + b"\x03\x00", b"\x01" + bytes(15) + b"\x01"]
SEEDS["memory"] = SEEDS["capture"]
SEEDS["merged"] = [struct.pack("<H", len(one)) + one + one for one in SEEDS["capture"]]
SEEDS["records"] = SEEDS["capture"]
# By zstd -c: "capture" nine times, 100,000 zeros, the first without its checksum.
ZSTD = [
    bytes.fromhex("28b52ffd04586d000038636170747572650100d5598ce2a3b4cf"),
    bytes.fromhex("28b52ffd045855000010000001009b8639c002db234ef3"),
    bytes.fromhex("28b52ffd00586d000038636170747572650100d5598c"),
]
SKIPPED = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
SEEDS["packed"] = [
    b"\x07" + PCAP + RECORDED,
    b"\x00" + gzip.compress(PCAP + RECORDED * 3, mtime=0),
    b"\x07" + gzip.compress(PCAP, 0, mtime=0) + gzip.compress(RECORDED, mtime=0),
    b"\xff" + gzip.compress(bytes(100_000), mtime=0),
    b"\x00\xfd7zXZ",
    b"\x07" + ZSTD[0] + SKIPPED + ZSTD[2],
    b"\xff" + ZSTD[1],
]

HELLO = b"NEPH\x01\x00\x00\x00" + struct.pack(">II", 100, 0)
FRAME = struct.pack(">I", 12) + b"NEq1" + struct.pack(">Q", 5)
UPGRADE = (
    b"GET /?reply=100 HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def ws(opcode: int, payload: bytes, mask: bytes = b"") -> bytes:
    """A frame of fewer than 126 bytes; with a key it is a client's."""
    masked = bytes(b ^ mask[i % 4] for i, b in enumerate(payload)) if mask else payload
    return bytes([0x80 | opcode, (0x80 if mask else 0) | len(payload)]) + mask + masked


KEY = b"abcd"
WS_REQUEST = ws(2, FRAME[4:], KEY)
SEEDS["reflector"] = [
    b"\x00" + HELLO + FRAME * 3,
    b"\x07" + HELLO + FRAME * 3,
    b"\x01NEPH\x01\x01\x00\x00" + struct.pack(">II", 0, 500) + bytes(40),
    b"\x00NEPH\x01\x00\x00\x00" + struct.pack(">II", 0xFFFFFFFF, 0),
    b"\x00NEPH\x01\x00\x00\x00" + struct.pack(">II", 200_000, 0) + FRAME * 9,
    b"\x05" + UPGRADE + WS_REQUEST * 2 + ws(8, b"\x03\xe8", KEY),
    b"\x00" + UPGRADE + ws(9, b"hi", KEY) + ws(1, b"not ours", KEY) + WS_REQUEST * 70,
    b"\x03" + SEEDS["http_request"][0] + SEEDS["http_request"][1] + SEEDS["http_request"][2],
    b"\x00" + SEEDS["http_request"][3],
    b"\x00" + b"POST /?reply=65536 HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n" + FRAME[4:],
    b"\x02" + b"HEAD /?reply=9 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n" * 3,
    b"\x00\x16\x03\x01\x00\x05hello",
]
OUR_REPLY = b"NEr1" + struct.pack(">Q", 5) + MARKS
SEEDS["prober"] = [
    b"\x00\x00" + ws(2, OUR_REPLY) * 2 + ws(9, b"hi") + ws(8, b"\x03\xe8bye"),
    b"\x01\x03" + ws(10, FRAME[4:]) + ws(1, b"not ours") + ws(8, b""),
    b"\x02\x00" + SEEDS["http_response"][0] * 2,
    b"\x02\x05HTTP/1.1 100 Continue\r\n\r\n" + SEEDS["http_response"][1],
    b"\x02\x00HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
    b"\x03\x07" + SEEDS["http_response"][1] * 2,
    b"\x03\x00" + SEEDS["http_response"][2],
    b"\x04\x00NEPR\x01\x00\x00\x00" + struct.pack(">II", 100, 1000)
    + (struct.pack(">I", len(OUR_REPLY)) + OUR_REPLY) * 2,
    b"\x04\x09" + SEEDS["frame_echo"][1],
]


def piece(payload: bytes) -> bytes:
    return struct.pack("<H", len(payload)) + payload


def text(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


RECORD = b"\x01" + struct.pack("<HIQBBHIq", 0x3FFF, 0, 7, 0, 0, 0, 0, 1000)
JOURNALED = [
    RECORD + struct.pack("<14q", *range(1100, 2500, 100)),
    b"\x01" + struct.pack("<HIQBBHIq", 0xC000, 0, 8, 1, 1, 2, 1, 2000) + bytes(56),
    b"\x02" + struct.pack("<Iq", 0, 5) + text(b"connection_lost") + text(b"reset"),
    b"\x03" + struct.pack("<qQ", 5, 0x3FF0000000000000) + text(b"cpu_steal_percent"),
]
SEEDS["journal"] = [
    b"".join(map(piece, JOURNALED)),
    piece(JOURNALED[0]) + b"\xff\xff" + JOURNALED[1],
    piece(JOURNALED[0]) + piece(b"") + piece(JOURNALED[2]),
    b"NEPHJRNL" + struct.pack("<I", 1) + bytes(20),
]
FLEET = struct.pack("<BIHIqqqqqIBBB", 0x78, 3, 40000, 7, 1000, 9, 850000, -5, 300, 7, 64, 63, 1)
FLEET_LOST = struct.pack("<BIHIqqqqqIBBB", 1, 4, 40001, 7, 1100, 9, 0, 0, 0, 0, 0, 0, 0)
FLEET_FRAME = struct.pack("<II", 58, 0)
SEEDS["fleet_journal"] = [
    piece(FLEET + FLEET_LOST) + piece(FLEET),
    piece(FLEET) + FLEET_FRAME + FLEET_LOST,
    piece(FLEET[:57]) + piece(b""),
    b"NEPHFLET" + struct.pack("<I", 1) + bytes([7]) * 16 + struct.pack("<I", 1),
]
TRUTH = b"NEPHTRU2" + struct.pack("<II", 56, 1) + b"uplink".ljust(48, b"\0")
ANCHOR = b"\x02" + bytes(7) + struct.pack("<qq", 9, 7) + bytes(32)
STEP = b"\x03\x01\x02\0" + struct.pack("<I", 2) + struct.pack("<q", 9) + bytes(40)
PACKET = b"\x01\0\x01\x11" + struct.pack("<IqqqQIHHH", 60, 9, 9, 9, 7, 0, 0, 80, 80) + b"\x02\x0d\x09" + bytes(3)
SEEDS["truth"] = [
    b"\x80" + TRUTH + ANCHOR + STEP + PACKET * 3,
    b"\xff" + TRUTH + PACKET + PACKET[:20],
    b"\x40" + TRUTH + PACKET + bytes(56) + ANCHOR,
]
RAW = b"""#client-send-timestamp,server-timestamp,e2e-rtt
1611336441708429104,1611336441732325106,43.745733
1611336442208693801,1611336442234417528,44.207570
1611336441958579188,,41.819516
"""
TSHARK = b"""#frame-timestamp,tcp-ack-rtt,tcp-stream-id,retransmission,ip-dst
"1611336441.750143006","0.039583780","0",,"172.17.0.2"
"1611336442.002436800","0.041769282","0","1","172.17.0.2"
"""
PING = b"""PING 130.192.31.254 (130.192.31.254) 56(84) bytes of data.
[1611336441.750000] 64 bytes from 130.192.31.254: icmp_seq=1 ttl=242 time=41.8 ms
[1611336442.150000] no answer yet for icmp_seq=2
[1611336442.550000] 64 bytes from 130.192.31.254: icmp_seq=3 ttl=242 time=42.0 ms
"""
SEEDS["import"] = [
    b"\0".join([b"1-Metro.i250.x1024", RAW, b"", TSHARK, PING, b"runs: 1\n"]),
    b"\0".join([b"3-cloud-eu-400-10240", RAW, RAW.replace(b"161133644", b"161133645"), b"", PING]),
    b"\0".join([b"log", RAW]),
    b"\0".join([b"x", PING, TSHARK]),
]

ROOT = pathlib.Path(__file__).parent.parent
SHIPPED = {
    "plan": [
        *(path for path in ROOT.glob("plans/*.toml") if ".lab." not in path.name),
        *ROOT.glob("gallery/*/plan.toml"),
    ],
    "topology": [
        *ROOT.glob("plans/*.lab.toml"),
        *ROOT.glob("crates/neph-lab/topologies/*.toml"),
        *ROOT.glob("gallery/*/*lab.toml"),
    ],
    "settings": ROOT.glob("plans/*.yaml"),
}


def strip_comments(shipped: bytes) -> bytes:
    """The file without comments: the fuzzer would spend its time on them."""
    lines = (line for line in shipped.splitlines() if not line.startswith(b"#"))
    return b"\n".join(line for line in lines if line) + b"\n"


SEEDS |= {name: [strip_comments(path.read_bytes()) for path in sorted(paths)] for name, paths in SHIPPED.items()}
SEEDS["plan"] += [
    b"version = 1\nname = 'n'\nmessages = 3\ninterval = '25ms'\nrequest_size = 64\n"
    b"[[endpoint]]\nname = 'a'\nurl = 'udp://h:862'\n[[endpoint]]\nname = 'b'\nurl = 'icmp://::1'\n"
    b"interval = ['1s', '2s']\n[[skip]]\nendpoint = 'b'\ninterval = '2s'\n[throughput]\nduration = '2s'\n"
    b"tool = 'iperf3'\nserver = 'h:5201'\n[traceroute]\nmax_hops = 9\nqueries = 2\n",
    b"version = 1\nname = 'n'\nduration = '1h'\ninterval = '1us'\nrequest_size = '64MiB'\nblocks = 4\n"
    b"block_interval = '1d'\npause = '1s'\ntimeout = '5s'\ntries = 2\nseed = 7\norder = 'sequential'\n"
    b"[[endpoint]]\nname = 'a'\nurl = 'https://[::1]:8/p?q'\ntls = ['1.2', '1.3']\nsource_port = [1, 2]\n"
    b"[[ping]]\nname = 'p'\naddress = '1.1.1.1'\ninterval = '1s'\n[plot]\nblocks = [1]\n[limits]\nsteal = '1%'\n",
    b"version = 1\nname = 'n'\nduration = '1h'\ninterval = '200ms'\nblocks = 3\nflows = [8, 512]\n"
    b"renewal = '30s'\nrate_cap = 4000\n[[endpoint]]\nname = 'a'\nurl = 'syn://h:443'\n"
    b"[[endpoint]]\nname = 'b'\nurl = 'udp://h:862'\n[[season]]\nname = 'quiet'\nhours = '22:00-05:00'\n"
    b"[[season]]\nname = 'busy'\nhours = '14:00-20:00'\ndays = ['mon', 'fri']\n[trace]\nflows = 8\n",
]
SEEDS["settings"] += [
    b"runs: 1\nruns_interval: 1\nendpoints:\n- {description: a, destination: 'h:1', tls_enabled: true}\n"
    b"intervals: [1]\nmsg_sizes: [1]\nruns_to_plot: [1]\nwhisker_max: 0\n",
]
SEEDS["topology"] += [
    b"version = 1\n[[site]]\nname = 'a'\naddress = '10.0.0.1/24'\naddress_v6 = 'fd00::1/64'\n"
    b"[[site]]\nname = 'b'\naddress = '10.0.0.2'\n[[link]]\na = 'a'\nb = 'b'\nkind = 'netem'\n"
    b"delay = '5ms'\nloss = '1%'\nrate = '3Mbit/s'\nqueue = '64KiB'\n"
    b"a_to_b = { delay = '1ms', jitter = { normal = '1ms' } }\n",
]

# Settings, then for each probe whether it was stamped and what answers it.
SEEDS["trace"] = [
    b"\x3c\x05" + b"\x00\x11\x01\x0a" * 90,
    b"\x3e\xc6" + bytes(range(256)) * 2,
    b"\x61\x13" + b"\x00\x1f\x02\x05\x06\x07\x08\x04\x00" * 40,
]
# Slots, lifetime and timeout, then the events.
SEEDS["fleet"] = [
    b"\x02\x00\x10" + (b"\x00" * 3 + b"\x07\x05\x01\x00\x01\x00" + b"\x47\x09\x00\x01\x2a\x02\x00\x04\x0a\x05") * 8,
    b"\x01\x03\x05" + b"\x00\x00\x04\x07\x02\x06\x01\x00\x47\xff\x02\x00\x03\xff\x01\x09" * 9,
]
# Slot, flags, path, noise.
SEEDS["digest"] = [
    bytes(byte for n in range(160) for byte in (n % 6, 0x0a, 0x10 + n // 40 % 4, n * 37 % 64)),
    bytes(byte for n in range(120) for byte in (n % 7, n % 5 << 4 | 2, n * 11 % 256, n * 7 % 256)),
    bytes(byte for n in range(60) for byte in (0xf0 + n % 6 if n == 30 else n % 6, 2, 0x12, 0)),
]

for target, seeds in SEEDS.items():
    folder = pathlib.Path(__file__).parent / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (folder / f"seed-{number}").write_bytes(seed)
