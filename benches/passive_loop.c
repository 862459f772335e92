// A plain loop over a mapped capture: what a program costs that looks at each segment and at little
// else. Ethernet, IPv4 and TCP without options beyond the header's length; of each direction it keeps
// the latest segment that awaits its acknowledgement. Prints packets, flows and round trips.
//
//     cc -O2 -o passive_loop passive_loop.c && ./passive_loop FILE.pcap

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct side {
    uint32_t end, waits;
    uint64_t at;
};

struct flow {
    uint32_t low, high, ports, used;
    struct side sides[2];
    uint64_t packets, bytes;
};

#define PLACES (1u << 17)

static uint32_t u32(const uint8_t *at) { return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]; }
static uint32_t u16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

int main(int argc, char **argv) {
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    struct stat file;
    if (fd < 0 || fstat(fd, &file) != 0) return 2;
    const uint8_t *bytes = mmap(NULL, file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    struct flow *flows = calloc(PLACES, sizeof *flows);
    if (bytes == MAP_FAILED || !flows) return 2;
    uint64_t packets = 0, known = 0, trips = 0;
    for (uint64_t at = 24; at + 16 <= (uint64_t)file.st_size;) {
        uint32_t record[4];
        memcpy(record, bytes + at, 16);
        const uint8_t *ip = bytes + at + 16 + 14;
        at += 16 + record[2];
        packets++;
        if (ip[0] >> 4 != 4 || ip[9] != 6) continue;
        const uint8_t *tcp = ip + (ip[0] & 15) * 4;
        uint32_t from = u32(ip + 12), to = u32(ip + 16), source = u16(tcp), target = u16(tcp + 2);
        int up = from < to || (from == to && source <= target);
        uint32_t low = up ? from : to, high = up ? to : from;
        uint32_t ports = up ? source << 16 | target : target << 16 | source;
        uint32_t place = (low * 2654435761u ^ high * 2246822519u ^ ports * 3266489917u) >> 15;
        while (flows[place].used && (flows[place].low != low || flows[place].high != high || flows[place].ports != ports))
            place = (place + 1) % PLACES;
        struct flow *flow = &flows[place];
        if (!flow->used) {
            *flow = (struct flow){.low = low, .high = high, .ports = ports, .used = 1};
            known++;
        }
        uint32_t payload = u16(ip + 2) - (ip[0] & 15) * 4 - (tcp[12] >> 4) * 4;
        uint64_t now = record[0] * 1000000000ull + record[1];
        struct side *sender = &flow->sides[up], *receiver = &flow->sides[!up];
        flow->packets++;
        flow->bytes += payload;
        if (receiver->waits && (int32_t)(u32(tcp + 8) - receiver->end) >= 0) {
            trips++;
            receiver->waits = 0;
        }
        if (payload) *sender = (struct side){.end = u32(tcp + 4) + payload, .waits = 1, .at = now};
    }
    printf("%lu packets, %lu flows, %lu round trips\n", packets, known, trips);
    return 0;
}
