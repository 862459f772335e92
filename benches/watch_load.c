/* Traffic to be watched, for watch.py.
 *
 *   watch_load serve ADDRESS PORT                     echoes what comes, on one thread
 *   watch_load sink ADDRESS PORT                      takes what comes, and says nothing
 *   watch_load ask ADDRESS PORT CONNECTIONS SECONDS   one request of 64 bytes at a time on each
 *                                                     connection; prints transactions
 *   watch_load flood INTERFACE RATE SECONDS FLOWS     frames of TCP connections between two made-up
 *                                                     hosts, both directions; prints frames sent
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 64, BATCH = 64 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static struct sockaddr_in address(const char *host, const char *port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    if (inet_pton(AF_INET, host, &a.sin_addr) != 1) die("address");
    return a;
}

static void listen_to(int epoll, int fd) {
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e)) die("epoll");
}

static void serve(char **arg, int echoes) {
    struct sockaddr_in a = address(arg[0], arg[1]);
    int door = socket(AF_INET, SOCK_STREAM, 0), one = 1, epoll = epoll_create1(0);
    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(door, (struct sockaddr *)&a, sizeof a) || listen(door, 1024)) die("listen");
    listen_to(epoll, door);
    for (;;) {
        struct epoll_event found[BATCH];
        int n = epoll_wait(epoll, found, BATCH, -1);
        for (int i = 0; i < n; i++) {
            int fd = found[i].data.fd;
            char bytes[4096];
            if (fd == door) {
                listen_to(epoll, accept(door, NULL, NULL));
                continue;
            }
            ssize_t got = read(fd, bytes, sizeof bytes);
            if (got <= 0 || (echoes && write(fd, bytes, got) != got)) close(fd);
        }
    }
}

static void ask(char **arg) {
    struct sockaddr_in a = address(arg[0], arg[1]);
    int many = atoi(arg[2]), epoll = epoll_create1(0);
    char bytes[SIZE] = {0};
    for (int i = 0; i < many; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&a, sizeof a)) die("connect");
        listen_to(epoll, fd);
        if (write(fd, bytes, SIZE) != SIZE) die("ask");
    }
    double begun = now(), end = begun + atof(arg[3]);
    long transactions = 0;
    while (now() < end) {
        struct epoll_event found[BATCH];
        int n = epoll_wait(epoll, found, BATCH, 100);
        for (int i = 0; i < n; i++) {
            if (read(found[i].data.fd, bytes, SIZE) != SIZE) die("answer");
            transactions++;
            if (write(found[i].data.fd, bytes, SIZE) != SIZE) die("ask");
        }
    }
    printf("%ld %.6f\n", transactions, now() - begun);
}

/* Ethernet, IPv4, TCP with time stamps, and a payload of the client's. */
struct frame {
    uint8_t mac[12];
    uint16_t kind;
    uint8_t ip[20];
    uint16_t ports[2];
    uint32_t seq, ack;
    uint16_t flags, window, sum, urgent;
    uint8_t options[4];
    uint32_t stamps[2];
    uint8_t payload[100];
} __attribute__((packed));

/* The n-th frame: of each flow in turn a request, then its bare acknowledgement. */
static size_t fill(struct frame *f, long n, int flows) {
    long pair = n / 2, flow = pair % flows, turn = pair / flows;
    int is_client = n % 2 == 0;
    size_t payload = is_client ? sizeof f->payload : 0, length = sizeof *f - sizeof f->payload + payload;
    memset(f, 0, sizeof *f);
    memset(f->mac, 0xff, 6);
    f->mac[6] = 2;
    f->kind = htons(ETHERTYPE_IP);
    uint8_t hosts[2][4] = {{198, 18, flow >> 8 & 255, flow & 255}, {198, 19, 0, 1}};
    uint16_t ports[2] = {htons(20000 + flow % 40000), htons(443)};
    f->ip[0] = 0x45, f->ip[8] = 64, f->ip[9] = 6;
    f->ip[2] = (length - 14) >> 8, f->ip[3] = (length - 14) & 255;
    memcpy(f->ip + 12, hosts[!is_client], 4);
    memcpy(f->ip + 16, hosts[is_client], 4);
    f->ports[0] = ports[!is_client], f->ports[1] = ports[is_client];
    uint32_t sent = 1000 + turn * sizeof f->payload;
    f->seq = htonl(is_client ? sent : 5000);
    f->ack = htonl(is_client ? 5000 : sent + sizeof f->payload);
    f->flags = htons(8 << 12 | 0x10);
    f->window = htons(60000);
    f->options[0] = f->options[1] = 1, f->options[2] = 8, f->options[3] = 10;
    f->stamps[is_client ? 0 : 1] = htonl(1 + turn);
    f->stamps[is_client ? 1 : 0] = htonl(turn);
    return length;
}

static void flood(char **arg) {
    int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1, flows = atoi(arg[3]);
    struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(arg[0])};
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a)) die("packet socket");
    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
    double rate = atof(arg[1]), begun = now(), end = begun + atof(arg[2]);
    static struct frame frames[BATCH];
    static struct mmsghdr messages[BATCH];
    static struct iovec parts[BATCH];
    long sent = 0;
    for (int i = 0; i < BATCH; i++) {
        parts[i].iov_base = &frames[i];
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    for (double t = now(); t < end; t = now()) {
        if (sent > (t - begun) * rate) {
            struct timespec nap = {0, 200000};
            nanosleep(&nap, NULL);
            continue;
        }
        for (int i = 0; i < BATCH; i++) parts[i].iov_len = fill(&frames[i], sent + i, flows);
        int n = sendmmsg(fd, messages, BATCH, 0);
        if (n < 0 && errno != ENOBUFS) die("send");
        sent += n > 0 ? n : 0;
    }
    printf("%ld %.6f\n", sent, now() - begun);
}

int main(int count, char **arg) {
    if (count == 4 && !strcmp(arg[1], "serve")) serve(arg + 2, 1);
    else if (count == 4 && !strcmp(arg[1], "sink")) serve(arg + 2, 0);
    else if (count == 6 && !strcmp(arg[1], "ask")) ask(arg + 2);
    else if (count == 6 && !strcmp(arg[1], "flood")) flood(arg + 2);
    else return fprintf(stderr, "see the head of watch_load.c\n"), 2;
    return 0;
}
