/* The least that N paced UDP flows can cost: one thread, one epoll, a socket per flow, the user's
 * clock, no statistics. It asks any server that echoes what it is sent.
 *
 *     cc -O2 -o fleet_loop fleet_loop.c
 *     fleet_loop ADDRESS PORT FLOWS INTERVAL_US SECONDS FIRST_PORT
 *     fleet_loop serve PORT
 *
 * Prints how many it sent and how many came back; `serve` echoes until it is ended.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int open_flow(const struct sockaddr_in *to, uint16_t port, int epoll) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof own) < 0) fail("bind a flow's socket");
    if (connect(fd, (const struct sockaddr *)to, sizeof *to) < 0) fail("connect");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll_ctl");
    return fd;
}

static _Noreturn void serve(uint16_t port) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof own) < 0) fail("bind the server");
    char packet[2048];
    for (;;) {
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        ssize_t got = recvfrom(fd, packet, sizeof packet, 0, (struct sockaddr *)&from, &length);
        if (got >= 0) sendto(fd, packet, got, 0, (struct sockaddr *)&from, length);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "serve") == 0) serve(atoi(argv[2]));
    if (argc != 7) return fprintf(stderr, "see the top of fleet_loop.c\n"), 2;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
    inet_pton(AF_INET, argv[1], &to.sin_addr);
    int flows = atoi(argv[3]), seconds = atoi(argv[5]), first = atoi(argv[6]);
    int64_t interval = atoll(argv[4]) * 1000;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    prctl(PR_SET_TIMERSLACK, 1);
    int epoll = epoll_create1(0);
    int *fd = calloc(flows, sizeof *fd);
    for (int n = 0; n < flows; n++) fd[n] = open_flow(&to, first + n, epoll);
    int64_t begin = now(), total = (int64_t)flows * seconds * 1000000000LL / interval;
    int64_t sent = 0, received = 0;
    char packet[64] = {0};
    struct epoll_event ready[64];
    while (sent < total || now() < begin + seconds * 1000000000LL + 500000000LL) {
        int64_t due = begin + sent * interval / flows;
        if (sent < total && now() >= due) {
            if (send(fd[sent % flows], packet, sizeof packet, 0) > 0) sent++;
            continue;
        }
        int64_t left = sent < total ? due - now() : 10000000;
        struct timespec wait = {.tv_nsec = left > 0 ? left : 0};
        int found = epoll_pwait2(epoll, ready, 64, &wait, NULL);
        for (int n = 0; n < found; n++)
            while (recv(ready[n].data.fd, packet, sizeof packet, 0) > 0) received++;
    }
    printf("sent %lld received %lld\n", (long long)sent, (long long)received);
    return 0;
}
