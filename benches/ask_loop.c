/* Asks a reflector, one request after the other, as fast as it answers.
 *
 *     cc -O2 -o ask_loop ask_loop.c
 *     ask_loop udp|http ADDRESS PORT SECONDS
 *
 * Prints how many were answered in a second. udp is STAMP (RFC 8762), http keeps its connection.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static const char REQUEST[] = "GET /?reply=100 HTTP/1.1\r\nHost: h\r\n\r\n";

int main(int count, char **words) {
    if (count != 5) {
        fprintf(stderr, "ask_loop udp|http ADDRESS PORT SECONDS\n");
        return 2;
    }
    int is_udp = strcmp(words[1], "udp") == 0;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[3]))};
    inet_pton(AF_INET, words[2], &to.sin_addr);
    int fd = socket(AF_INET, is_udp ? SOCK_DGRAM : SOCK_STREAM, 0), one = 1;
    struct timeval patience = {.tv_sec = 2};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) fail("connect");
    if (!is_udp) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    double begun = now(), until = begun + atof(words[4]);
    uint32_t answered = 0;
    char buffer[65536];
    size_t length = 0;
    while (now() < until) {
        if (is_udp) {
            /* Number, time, error estimate (a multiplier of 1), zeroes. */
            unsigned char packet[44] = {0};
            uint32_t number = htonl(answered);
            memcpy(packet, &number, 4);
            packet[4] = 0xe8;
            packet[13] = 1;
            if (send(fd, packet, sizeof packet, 0) < 0) fail("send");
            if (recv(fd, buffer, sizeof buffer, 0) < 0) fail("receive");
        } else {
            if (send(fd, REQUEST, sizeof REQUEST - 1, 0) < 0) fail("send");
            size_t got = 0;
            /* All responses are of one length but for their marks; the first one shows it. */
            do {
                ssize_t more = recv(fd, buffer + got, sizeof buffer - got - 1, 0);
                if (more <= 0) fail("receive");
                got += more;
                buffer[got] = 0;
                char *body = strstr(buffer, "\r\n\r\n");
                length = body ? (size_t)(body + 4 - buffer) + 100 : SIZE_MAX;
            } while (got < length);
        }
        answered++;
    }
    printf("%.0f\n", answered / (now() - begun));
    return 0;
}
