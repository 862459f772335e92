/* HTTP requests with nothing but the calls: what neph load is held against.
 *
 *     cc -O2 -o load_loop load_loop.c
 *     load_loop ADDRESS PORT CONNECTIONS SECONDS
 *
 * A closed loop without think time. One connection blocks in recv; several are watched by epoll. The client
 * reads the clock once for each response, counts times in buckets of 0.1 us, and looks for the end of the head
 * only: the service must answer each request in one segment. Prints responses per second, the median in
 * microseconds, and CPU seconds per million responses.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 1 << 20, MAX_CONNECTIONS = 1024 };

static unsigned counts[BUCKETS];
static char buffer[1 << 16];
static char request[256];
static size_t request_length;
static uint64_t responses;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void ask(int fd) {
    if (send(fd, request, request_length, 0) != (ssize_t)request_length) fail("send");
}

static void take(int fd) {
    ssize_t count = recv(fd, buffer, sizeof buffer - 1, 0);
    if (count <= 0) fail("receive");
    if (!memmem(buffer, count, "\r\n\r\n", 4)) fail("a response in one segment");
}

static void record(int64_t nanos) {
    uint64_t bucket = nanos / 100;
    counts[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
    responses++;
}

static int open_connection(struct sockaddr_in to) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) fail("connect");
    return fd;
}

static void one_connection(struct sockaddr_in to, int64_t end) {
    int fd = open_connection(to);
    for (int64_t begun = now(); begun < end;) {
        ask(fd);
        take(fd);
        int64_t done = now();
        record(done - begun);
        begun = done;
    }
}

static void several(struct sockaddr_in to, int connections, int64_t end) {
    static int64_t begun[MAX_CONNECTIONS + 8];
    int watch = epoll_create1(0);
    for (int i = 0; i < connections; i++) {
        int fd = open_connection(to);
        if (fd >= MAX_CONNECTIONS + 8) fail("descriptors");
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (epoll_ctl(watch, EPOLL_CTL_ADD, fd, &event)) fail("epoll");
        begun[fd] = now();
        ask(fd);
    }
    for (int64_t done = now(); done < end;) {
        struct epoll_event events[256];
        int count = epoll_wait(watch, events, 256, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            take(fd);
            done = now();
            record(done - begun[fd]);
            begun[fd] = done;
            ask(fd);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
    if (inet_pton(AF_INET, argv[1], &to.sin_addr) != 1) return 2;
    int connections = atoi(argv[3]);
    if (connections < 1 || connections > MAX_CONNECTIONS) return 2;
    double seconds = atof(argv[4]);
    request_length = snprintf(request, sizeof request,
                              "GET / HTTP/1.1\r\nHost: %s\r\nConnection: keep-alive\r\n\r\n", argv[1]);
    int64_t end = now() + (int64_t)(seconds * 1e9);
    if (connections == 1)
        one_connection(to, end);
    else
        several(to, connections, end);
    uint64_t half = responses / 2, seen = 0, bucket = 0;
    while (bucket < BUCKETS - 1 && seen + counts[bucket] <= half) seen += counts[bucket++];
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
    cpu += (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("%.1f %.1f %.3f\n", responses / seconds, bucket / 10.0, cpu / (responses / 1e6));
    return 0;
}
