/* A sender with nothing else to do: sleeps until 60 us before each moment of its grid, then reads
 * the clock until it is there. What a program that measures can be held against.
 *
 * spin_loop ADDRESS PORT INTERVAL_NS COUNT REALTIME_PRIORITY(0: none)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { SPIN_NS = 60000, PAYLOAD = 64 };

static int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void reach(int64_t due) {
    int64_t wake = due - SPIN_NS;
    if (wake > now()) {
        struct timespec at = {wake / 1000000000LL, wake % 1000000000LL};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
    while (now() < due) {
    }
}

static int connected(const char *address, const char *port) {
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    inet_pton(AF_INET, address, &peer.sin_addr);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&peer, sizeof peer) != 0) {
        perror("connect");
        exit(1);
    }
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        return 2;
    }
    int fd = connected(argv[1], argv[2]);
    int64_t interval = atoll(argv[3]), count = atoll(argv[4]);
    prctl(PR_SET_TIMERSLACK, 1);
    struct sched_param priority = {.sched_priority = atoi(argv[5])};
    if (priority.sched_priority > 0 && sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
        perror("SCHED_FIFO");
        return 1;
    }
    char payload[PAYLOAD];
    memset(payload, 0, sizeof payload);
    int64_t start = now() + 20000000;
    for (int64_t sent = 0; sent < count; sent++) {
        reach(start + sent * interval);
        if (send(fd, payload, sizeof payload, 0) != PAYLOAD) {
            perror("send");
            return 1;
        }
    }
    return 0;
}
