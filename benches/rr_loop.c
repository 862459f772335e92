/* Requests and replies in turn with nothing but the calls: what neph rr is held against.
 *
 *     cc -O2 -o rr_loop rr_loop.c                                  # or with -DTIMEOUT
 *     rr_loop serve udp|tcp|connect ADDRESS PORT REQUEST REPLY     # until it is ended
 *     rr_loop ask udp|tcp|connect ADDRESS PORT REQUEST REPLY SECONDS
 *
 * One stream. The client prints transactions per second, and the median in microseconds. It reads the
 * clock once for each transaction and counts times in buckets of 0.1 us. With connect the server closes
 * first and the client reads the end of the connection.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 1 << 20 };

static unsigned counts[BUCKETS];
static char buffer[1 << 20];

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* With TIMEOUT a receive call ends after 50 ms, as neph's do: a lost datagram ends no test. */
static void limit(int fd) {
#ifdef TIMEOUT
    struct timeval tick = {.tv_usec = 50000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick);
#else
    (void)fd;
#endif
}

/* So many bytes; 0 where the other end has closed. */
static int take(int fd, size_t size) {
    for (size_t got = 0; got < size;) {
        ssize_t more = recv(fd, buffer + got, size - got, 0);
        if (more <= 0) return 0;
        got += more;
    }
    return 1;
}

static void serve(int type, int anew, struct sockaddr_in at, size_t request, size_t reply) {
    int fd = socket(AF_INET, type, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&at, sizeof at)) fail("bind");
    if (type == SOCK_DGRAM) {
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        ssize_t count = recvfrom(fd, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &length);
        limit(fd);
        if (count < 0 || connect(fd, (struct sockaddr *)&from, length)) fail("connect");
        do {
            if (send(fd, buffer, reply, 0) < 0) fail("send");
        } while (recv(fd, buffer, sizeof buffer, 0) >= 0);
        fail("receive");
    }
    if (listen(fd, 256)) fail("listen");
    for (;;) {
        int stream = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (stream < 0) fail("accept");
        limit(stream);
        if (!anew) setsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        while (take(stream, request)) {
            if (send(stream, buffer, reply, MSG_NOSIGNAL) < 0) break;
            if (anew) break;
        }
        close(stream);
    }
}

static int opened(int type, struct sockaddr_in to) {
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    limit(fd);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to)) fail("connect");
    return fd;
}

int main(int count, char **words) {
    int asks = count == 8 && !strcmp(words[1], "ask");
    if (!asks && (count != 7 || strcmp(words[1], "serve"))) {
        fprintf(stderr, "see the beginning of rr_loop.c\n");
        return 2;
    }
    int type = strcmp(words[2], "udp") ? SOCK_STREAM : SOCK_DGRAM, anew = !strcmp(words[2], "connect");
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[4]))};
    inet_pton(AF_INET, words[3], &to.sin_addr);
    size_t request = atol(words[5]), reply = atol(words[6]);
    if (!asks) serve(type, anew, to, request, reply);
    int fd = anew ? -1 : opened(type, to), one = 1;
    if (type == SOCK_STREAM && !anew) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int64_t begun = now(), before = begun, until = begun + (int64_t)(atof(words[7]) * 1e9);
    uint64_t all = 0;
    while (before < until) {
        if (anew) fd = opened(type, to);
        if (send(fd, buffer, request, 0) < 0) fail("send");
        if (type == SOCK_DGRAM) {
            if (recv(fd, buffer, sizeof buffer, 0) < 0) fail("receive");
        } else if (!take(fd, reply)) {
            fail("receive");
        }
        if (anew) {
            if (recv(fd, buffer, 1, 0) != 0) fail("end");
            close(fd);
        }
        int64_t after = now(), bucket = (after - before) / 100;
        counts[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
        before = after;
        all++;
    }
    uint64_t below = 0;
    int median = 0;
    while ((below += counts[median]) * 2 < all) median++;
    printf("%.1f %.1f\n", all * 1e9 / (before - begun), median / 10.0);
    return 0;
}
