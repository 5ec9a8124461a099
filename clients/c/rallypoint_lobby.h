/*
 * rallypoint_lobby.h: register a game server in a lobby, and list the servers of one.
 *
 * One header without dependencies, C99 or C++, for Windows (link ws2_32), macOS, Linux and BSD. In one source file:
 *
 *     #define RALLYPOINT_LOBBY_IMPLEMENTATION
 *     #include "rallypoint_lobby.h"
 *
 * and include it without the macro elsewhere. On Windows call WSAStartup before anything else, and link
 * ws2_32; with -std=c99 on Unix, define _POSIX_C_SOURCE as 200809L.
 *
 * Register a server:
 *
 *     struct rpl_entry info[] = { { "name", "Bacon Town", 10 } };
 *     struct rpl_registration server = { 0 };
 *     struct rpl_announcer announcer;
 *     rpl_random_id(server.server_id);
 *     memcpy(server.lobby_id, rpl_gang_garrison_2, 16);
 *     server.port = 8190; server.slots = 24; server.entries = info; server.entry_count = 1;
 *     if (rpl_announcer_open(&announcer, "lobby.example.org", "29944") == 0) {
 *         while (game_runs) {
 *             server.players = player_count;
 *             rpl_announcer_update(&announcer, &server, seconds);   // once per frame: sends only what is due
 *         }
 *         rpl_announcer_close(&announcer, &server);                 // leaves the list at once
 *     }
 *
 * List the servers:
 *
 *     static unsigned char reply[1 << 20];
 *     long length = rpl_list_fetch("lobby.example.org", "29944", rpl_gang_garrison_2, reply, sizeof reply, 10);
 *     struct rpl_list list;
 *     struct rpl_server server;
 *     if (length >= 0 && rpl_list_begin(&list, reply, (size_t)length) == 0)
 *         while (rpl_list_next(&list, &server) == 1)
 *             printf("%u/%u\n", server.players, server.slots);
 *
 * Functions that can fail return a negative rpl_error. Nothing allocates memory, nothing starts a thread; a value is used
 * by one thread at a time. Only rpl_announcer_open (name lookup) and rpl_list_fetch wait.
 */
#ifndef RALLYPOINT_LOBBY_H
#define RALLYPOINT_LOBBY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rpl_error {
    RPL_INVALID = -1,   /* an argument is invalid: port 0, no name, a text that is too long */
    RPL_TOO_SMALL = -2, /* the buffer is too small */
    RPL_LOOKUP = -3,    /* the name of the lobby cannot be looked up */
    RPL_NETWORK = -4,   /* the lobby cannot be reached, or the connection broke */
    RPL_TIMEOUT = -5,   /* the lobby did not reply completely in time */
    RPL_MALFORMED = -6  /* the reply is not a list */
};

enum rpl_transport { RPL_TCP = 0, RPL_UDP = 1 };

/* A registration that is larger than this does not fit into one datagram on most paths. */
#define RPL_MAX_DATAGRAM 1400

/* The list of Gang Garrison 2 and its mods. Another game uses a random UUID of its own. */
extern const unsigned char rpl_gang_garrison_2[16];

struct rpl_entry {
    const char *key;   /* zero-terminated, at most 255 bytes */
    const void *value; /* at most 65,535 bytes */
    size_t value_length;
};

struct rpl_registration {
    unsigned char server_id[16]; /* random; known to the server and the lobby only */
    unsigned char lobby_id[16];
    uint8_t transport;
    uint16_t port;
    uint16_t slots;
    uint16_t players;
    uint16_t bots;
    int password;
    const struct rpl_entry *entries; /* "name" is mandatory */
    size_t entry_count;
};

/* Writes the datagram that registers or refreshes a server. Returns its length. */
long rpl_write_registration(const struct rpl_registration *server, unsigned char *buffer, size_t capacity);

/* Writes the datagram that removes a server. Returns its length, 32. */
long rpl_write_unregistration(const unsigned char server_id[16], unsigned char *buffer, size_t capacity);

/* Fills an ID from the random source of the system. */
int rpl_random_id(unsigned char id[16]);

struct rpl_announcer {
    intptr_t sockets[2];
    unsigned char addresses[2][28]; /* sockaddr_in or sockaddr_in6 */
    int address_lengths[2];
    int count;
    unsigned char sent[RPL_MAX_DATAGRAM];
    long sent_length;
    double sent_at;
};

/* Looks the lobby up and opens a socket for each family by which it can be reached. */
int rpl_announcer_open(struct rpl_announcer *announcer, const char *host, const char *port);

/* Sends the registration if it is due: at once the first time, every 30 seconds, and at most a second after a change.
   `seconds` is any clock that does not go back. Returns 1 if it was sent, 0 if not. */
int rpl_announcer_update(struct rpl_announcer *announcer, const struct rpl_registration *server, double seconds);

/* Removes the server from the list and closes the sockets. */
void rpl_announcer_close(struct rpl_announcer *announcer, const struct rpl_registration *server);

/* Reads a list into a buffer. Returns its length. `timeout` is in seconds, for connecting and again for the whole reply. */
long rpl_list_fetch(const char *host, const char *port, const unsigned char lobby_id[16], unsigned char *buffer,
                    size_t capacity, int timeout);

struct rpl_list {
    const unsigned char *data;
    size_t length;
    size_t offset;
    uint32_t left; /* number of servers that rpl_list_next has not returned */
};

/* A server in a list. Pointers point into the buffer of the list. Strangers write the texts: expect any bytes. */
struct rpl_server {
    uint8_t transport;
    uint16_t port4; /* 0: no IPv4 endpoint is known */
    const unsigned char *address4;
    uint16_t port6; /* 0: no IPv6 endpoint is known */
    const unsigned char *address6;
    uint16_t slots;
    uint16_t players;
    uint16_t bots;
    int password;
    uint16_t entry_count;
    const unsigned char *table;
    size_t table_length;
};

/* Starts to read a list. */
int rpl_list_begin(struct rpl_list *list, const unsigned char *data, size_t length);

/* Reads the next server. Returns 1 if there is one, 0 at the end. */
int rpl_list_next(struct rpl_list *list, struct rpl_server *server);

/* Finds the value of a key. Returns its length, or -1 if the server has no such key. */
long rpl_server_value(const struct rpl_server *server, const char *key, const unsigned char **value);

#ifdef __cplusplus
}
#endif
#endif /* RALLYPOINT_LOBBY_H */

#ifdef RALLYPOINT_LOBBY_IMPLEMENTATION
#ifndef RALLYPOINT_LOBBY_IMPLEMENTED
#define RALLYPOINT_LOBBY_IMPLEMENTED

#include <stdio.h>
#include <string.h>
#include <time.h>

#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
/* The system's random numbers (RtlGenRandom, in advapi32, which compilers link by default). */
#ifdef __cplusplus
extern "C"
#endif
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);
typedef SOCKET rpl_socket;
#define RPL_NO_SOCKET INVALID_SOCKET
#define rpl_close_socket closesocket
#define RPL_SEND_FLAGS 0
#else
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>
#include <errno.h>
typedef int rpl_socket;
#define RPL_NO_SOCKET (-1)
#define rpl_close_socket close
#ifdef MSG_NOSIGNAL
#define RPL_SEND_FLAGS MSG_NOSIGNAL
#else
#define RPL_SEND_FLAGS 0
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

const unsigned char rpl_gang_garrison_2[16] = {0x1c, 0xcf, 0x16, 0xb1, 0x43, 0x6d, 0x85, 0x6f,
                                               0x50, 0x4d, 0xcc, 0x1a, 0xf3, 0x06, 0xaa, 0xa7};

static const unsigned char rpl_register_type[16] = {0xb5, 0xda, 0xe2, 0xe8, 0x42, 0x4f, 0x9e, 0xd0,
                                                    0x0f, 0xcb, 0x8c, 0x21, 0xc7, 0xca, 0x13, 0x52};
static const unsigned char rpl_unregister_type[16] = {0x48, 0x89, 0x84, 0xac, 0x45, 0xdc, 0x86, 0xe1,
                                                      0x99, 0x01, 0x98, 0xdd, 0x1c, 0x01, 0xc0, 0x64};
static const unsigned char rpl_list_protocol[16] = {0x29, 0x7d, 0x0d, 0xf4, 0x43, 0x0c, 0xbf, 0x61,
                                                    0x64, 0x0a, 0x64, 0x08, 0x97, 0xea, 0xef, 0x57};

static void rpl_put16(unsigned char *at, unsigned value) {
    at[0] = (unsigned char)(value >> 8 & 0xff);
    at[1] = (unsigned char)(value & 0xff);
}

static uint16_t rpl_get16(const unsigned char *at) { return (uint16_t)(at[0] << 8 | at[1]); }

static uint32_t rpl_get32(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

long rpl_write_registration(const struct rpl_registration *server, unsigned char *buffer, size_t capacity) {
    size_t at = 61, i;
    int has_name = 0;
    if (server->port == 0 || server->transport > RPL_UDP || server->entry_count > 65535) return RPL_INVALID;
    if (capacity < at) return RPL_TOO_SMALL;
    memcpy(buffer, rpl_register_type, 16);
    memcpy(buffer + 16, server->server_id, 16);
    memcpy(buffer + 32, server->lobby_id, 16);
    buffer[48] = server->transport;
    rpl_put16(buffer + 49, server->port);
    rpl_put16(buffer + 51, server->slots);
    rpl_put16(buffer + 53, server->players);
    rpl_put16(buffer + 55, server->bots);
    rpl_put16(buffer + 57, server->password ? 1 : 0);
    rpl_put16(buffer + 59, (unsigned)server->entry_count);
    for (i = 0; i < server->entry_count; i++) {
        const struct rpl_entry *entry = &server->entries[i];
        size_t key_length = strlen(entry->key);
        if (key_length > 255 || entry->value_length > 65535) return RPL_INVALID;
        if (capacity - at < 3 + key_length + entry->value_length) return RPL_TOO_SMALL;
        has_name |= strcmp(entry->key, "name") == 0;
        buffer[at] = (unsigned char)key_length;
        memcpy(buffer + at + 1, entry->key, key_length);
        at += 1 + key_length;
        rpl_put16(buffer + at, (unsigned)entry->value_length);
        if (entry->value_length > 0) memcpy(buffer + at + 2, entry->value, entry->value_length);
        at += 2 + entry->value_length;
    }
    return has_name ? (long)at : (long)RPL_INVALID;
}

long rpl_write_unregistration(const unsigned char server_id[16], unsigned char *buffer, size_t capacity) {
    if (capacity < 32) return RPL_TOO_SMALL;
    memcpy(buffer, rpl_unregister_type, 16);
    memcpy(buffer + 16, server_id, 16);
    return 32;
}

int rpl_random_id(unsigned char id[16]) {
#ifdef _WIN32
    return SystemFunction036(id, 16) ? 0 : RPL_INVALID;
#else
    FILE *file = fopen("/dev/urandom", "rb");
    size_t read = file ? fread(id, 1, 16, file) : 0;
    if (file) fclose(file);
    return read == 16 ? 0 : RPL_INVALID;
#endif
}

static struct addrinfo *rpl_lookup(const char *host, const char *port, int type) {
    struct addrinfo hints, *found = NULL;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = type;
    return getaddrinfo(host, port, &hints, &found) == 0 ? found : NULL;
}

int rpl_announcer_open(struct rpl_announcer *announcer, const char *host, const char *port) {
    struct addrinfo *found = rpl_lookup(host, port, SOCK_DGRAM), *next;
    int has_family[2] = {0, 0};
    memset(announcer, 0, sizeof *announcer);
    if (!found) return RPL_LOOKUP;
    for (next = found; next; next = next->ai_next) {
        int is_v6 = next->ai_family == AF_INET6;
        rpl_socket sock;
        if ((!is_v6 && next->ai_family != AF_INET) || has_family[is_v6]) continue;
        if ((size_t)next->ai_addrlen > sizeof announcer->addresses[0]) continue;
        sock = socket(next->ai_family, SOCK_DGRAM, 0);
        if (sock == RPL_NO_SOCKET) continue;
        has_family[is_v6] = 1;
        announcer->sockets[announcer->count] = (intptr_t)sock;
        memcpy(announcer->addresses[announcer->count], next->ai_addr, (size_t)next->ai_addrlen);
        announcer->address_lengths[announcer->count] = (int)next->ai_addrlen;
        announcer->count++;
    }
    freeaddrinfo(found);
    return announcer->count > 0 ? 0 : RPL_NETWORK;
}

static int rpl_announcer_send(struct rpl_announcer *announcer, const unsigned char *data, long length) {
    int i, sent = 0;
    for (i = 0; i < announcer->count; i++) {
        /* The copy has the alignment that sockaddr needs. A family without a route fails, and the other one is enough. */
        struct sockaddr_storage address;
        memset(&address, 0, sizeof address);
        memcpy(&address, announcer->addresses[i], (size_t)announcer->address_lengths[i]);
        if (sendto((rpl_socket)announcer->sockets[i], (const char *)data, (size_t)length, RPL_SEND_FLAGS,
                   (const struct sockaddr *)&address, (socklen_t)announcer->address_lengths[i]) == (int)length)
            sent = 1;
    }
    return sent;
}

int rpl_announcer_update(struct rpl_announcer *announcer, const struct rpl_registration *server, double seconds) {
    unsigned char datagram[RPL_MAX_DATAGRAM];
    long length = rpl_write_registration(server, datagram, sizeof datagram);
    int is_equal = length == announcer->sent_length && length > 0 && memcmp(datagram, announcer->sent, (size_t)length) == 0;
    if (length < 0) return (int)length;
    if (announcer->sent_length > 0 && seconds - announcer->sent_at < (is_equal ? 30.0 : 1.0)) return 0;
    memcpy(announcer->sent, datagram, (size_t)length);
    announcer->sent_length = length;
    announcer->sent_at = seconds;
    return rpl_announcer_send(announcer, datagram, length) ? 1 : RPL_NETWORK;
}

void rpl_announcer_close(struct rpl_announcer *announcer, const struct rpl_registration *server) {
    unsigned char datagram[32];
    int i;
    if (announcer->sent_length > 0)
        rpl_announcer_send(announcer, datagram, rpl_write_unregistration(server->server_id, datagram, sizeof datagram));
    for (i = 0; i < announcer->count; i++) rpl_close_socket((rpl_socket)announcer->sockets[i]);
    memset(announcer, 0, sizeof *announcer);
}

static int rpl_set_options(rpl_socket sock, int seconds) {
#ifdef SO_NOSIGPIPE
    int on = 1;
#endif
#ifdef _WIN32
    DWORD timeout = (DWORD)seconds * 1000;
#else
    struct timeval timeout;
    timeout.tv_sec = seconds;
    timeout.tv_usec = 0;
#endif
#ifdef SO_NOSIGPIPE
    setsockopt(sock, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    return setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, (const char *)&timeout, sizeof timeout) |
           setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, (const char *)&timeout, sizeof timeout);
}

static int rpl_timed_out(void) {
#ifdef _WIN32
    return WSAGetLastError() == WSAETIMEDOUT;
#else
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS;
#endif
}

long rpl_list_fetch(const char *host, const char *port, const unsigned char lobby_id[16], unsigned char *buffer,
                    size_t capacity, int timeout) {
    struct addrinfo *found = rpl_lookup(host, port, SOCK_STREAM), *next;
    unsigned char request[32];
    rpl_socket sock = RPL_NO_SOCKET;
    size_t length = 0;
    long result = RPL_NETWORK;
    time_t end;
    if (!found) return RPL_LOOKUP;
    memcpy(request, rpl_list_protocol, 16);
    memcpy(request + 16, lobby_id, 16);
    for (next = found; next && sock == RPL_NO_SOCKET; next = next->ai_next) {
        sock = socket(next->ai_family, SOCK_STREAM, 0);
        if (sock == RPL_NO_SOCKET) continue;
        if (rpl_set_options(sock, timeout) != 0 || connect(sock, next->ai_addr, next->ai_addrlen) != 0) {
            result = rpl_timed_out() ? RPL_TIMEOUT : RPL_NETWORK;
            rpl_close_socket(sock);
            sock = RPL_NO_SOCKET;
        }
    }
    freeaddrinfo(found);
    if (sock == RPL_NO_SOCKET) return result;
    result = send(sock, (const char *)request, sizeof request, RPL_SEND_FLAGS) == (int)sizeof request ? 0 : RPL_NETWORK;
    end = time(NULL) + timeout;
    while (result == 0) {
        size_t room = capacity - length;
        long received;
        if (room == 0) {
            unsigned char extra;
            result = recv(sock, (char *)&extra, 1, 0) == 0 ? (long)length : (long)RPL_TOO_SMALL;
            break;
        }
        received = (long)recv(sock, (char *)buffer + length, room > 65536 ? 65536 : room, 0);
        if (time(NULL) > end)
            result = RPL_TIMEOUT; /* a lobby that sends a byte now and then */
        else if (received > 0)
            length += (size_t)received;
        else if (received == 0)
            break;
        else
            result = rpl_timed_out() ? RPL_TIMEOUT : RPL_NETWORK;
    }
    rpl_close_socket(sock);
    return result < 0 ? result : (long)length;
}

int rpl_list_begin(struct rpl_list *list, const unsigned char *data, size_t length) {
    if (length < 4) return RPL_MALFORMED;
    list->data = data;
    list->length = length;
    list->offset = 4;
    list->left = rpl_get32(data);
    return 0;
}

/* Reads the entry at an offset of a table. Returns the offset of the next one, or 0 if the entry is truncated. */
static size_t rpl_read_entry(const unsigned char *table, size_t length, size_t at, size_t *key_length,
                             const unsigned char **value, size_t *value_length) {
    if (at >= length) return 0;
    *key_length = table[at];
    if (length - at - 1 < *key_length + 2) return 0;
    *value_length = rpl_get16(table + at + 1 + *key_length);
    *value = table + at + 3 + *key_length;
    if (length - at - 3 - *key_length < *value_length) return 0;
    return at + 3 + *key_length + *value_length;
}

int rpl_list_next(struct rpl_list *list, struct rpl_server *server) {
    const unsigned char *block, *value;
    size_t length, at = 0, key_length, value_length;
    uint16_t i;
    if (list->left == 0) return list->offset == list->length ? 0 : RPL_MALFORMED;
    if (list->length - list->offset < 4) return RPL_MALFORMED;
    length = rpl_get32(list->data + list->offset);
    if (length < 35 || length > list->length - list->offset - 4) return RPL_MALFORMED;
    block = list->data + list->offset + 4;
    server->transport = block[0];
    server->port4 = rpl_get16(block + 1);
    server->address4 = block + 3;
    server->port6 = rpl_get16(block + 7);
    server->address6 = block + 9;
    server->slots = rpl_get16(block + 25);
    server->players = rpl_get16(block + 27);
    server->bots = rpl_get16(block + 29);
    server->password = block[32] & 1;
    server->entry_count = rpl_get16(block + 33);
    server->table = block + 35;
    server->table_length = length - 35;
    for (i = 0; i < server->entry_count; i++) {
        at = rpl_read_entry(server->table, server->table_length, at, &key_length, &value, &value_length);
        if (at == 0) return RPL_MALFORMED;
    }
    list->offset += 4 + length;
    list->left--;
    return 1;
}

long rpl_server_value(const struct rpl_server *server, const char *key, const unsigned char **value) {
    size_t wanted = strlen(key), at = 0, key_length, value_length;
    uint16_t i;
    for (i = 0; i < server->entry_count; i++) {
        size_t next = rpl_read_entry(server->table, server->table_length, at, &key_length, value, &value_length);
        if (next == 0) return -1;
        if (key_length == wanted && memcmp(server->table + at + 1, key, wanted) == 0) return (long)value_length;
        at = next;
    }
    return -1;
}

#ifdef __cplusplus
}
#endif
#endif /* RALLYPOINT_LOBBY_IMPLEMENTED */
#endif /* RALLYPOINT_LOBBY_IMPLEMENTATION */
