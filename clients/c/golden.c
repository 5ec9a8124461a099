/* Compares rallypoint_lobby.h with golden datagrams; run by tests/tests/single_file_clients.rs.
 *
 *     ./golden register      prints the first registration of the golden datagrams in hexadecimal digits
 *     ./golden list < FILE   parses a list reply and every truncation of it, and prints what the whole list has
 */
#define RALLYPOINT_LOBBY_IMPLEMENTATION
#include "rallypoint_lobby.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT(key, value) { key, value, sizeof(value) - 1 }

static void print_hex(const unsigned char *data, long length) {
    for (long i = 0; i < length; i++) printf("%02x", data[i]);
    putchar('\n');
}

static int print_registration(void) {
    static const struct rpl_entry info[] = {
        TEXT("name", "Bacon Town 24/7"),
        TEXT("game", "Gang Garrison 2"),
        TEXT("game_short", "gg2"),
        TEXT("game_ver", "v2.9.2"),
        TEXT("game_url", "http://www.ganggarrison.com"),
        TEXT("map", "ctf_truefort"),
        TEXT("protocol_id", "\xb3\x1c\x22\x09\x42\x56\x9a\x19\xd0\xef\xc7\x1c\x53\x73\xbd\x75"),
    };
    static const unsigned char id[16] = {0x0f, 0x1e, 0x2d, 0x3c, 0x4b, 0x5a, 0x69, 0x78,
                                         0x87, 0x96, 0xa5, 0xb4, 0xc3, 0xd2, 0xe1, 0xf0};
    struct rpl_registration server;
    unsigned char datagram[RPL_MAX_DATAGRAM];
    long length;
    memset(&server, 0, sizeof server);
    memcpy(server.server_id, id, 16);
    memcpy(server.lobby_id, rpl_gang_garrison_2, 16);
    server.port = 8190;
    server.slots = 24;
    server.players = 7;
    server.entries = info;
    server.entry_count = sizeof info / sizeof *info;
    length = rpl_write_registration(&server, datagram, sizeof datagram);
    print_hex(datagram, length);
    for (long capacity = 0; capacity < length; capacity++) {
        /* Of exactly this size, so that valgrind sees a write behind it. */
        unsigned char *small = (unsigned char *)malloc((size_t)capacity + 1);
        if (rpl_write_registration(&server, small, (size_t)capacity) != RPL_TOO_SMALL) return 1;
        free(small);
    }
    server.entry_count = 0;
    if (rpl_write_registration(&server, datagram, sizeof datagram) != RPL_INVALID) return 1;
    print_hex(datagram, rpl_write_unregistration(id, datagram, sizeof datagram));
    return 0;
}

/* Returns the number of servers, or an error. */
static int read_list(const unsigned char *data, size_t length, int print) {
    struct rpl_list list;
    struct rpl_server server;
    int count = 0, more = rpl_list_begin(&list, data, length);
    if (more < 0) return more;
    while ((more = rpl_list_next(&list, &server)) == 1) {
        const unsigned char *name;
        long name_length = rpl_server_value(&server, "name", &name);
        if (print) printf("%u/%u %u %u %.*s\n", server.players, server.slots, server.port4, server.port6, (int)name_length, name);
        count++;
    }
    return more < 0 ? more : count;
}

static int print_list(void) {
    static unsigned char input[1 << 20];
    size_t length = fread(input, 1, sizeof input, stdin);
    for (size_t shorter = 0; shorter < length; shorter++) {
        unsigned char *copy = (unsigned char *)malloc(shorter + 1);
        int count;
        memcpy(copy, input, shorter);
        count = read_list(copy, shorter, 0);
        free(copy);
        if (count >= 0) return 1;
    }
    return read_list(input, length, 1) < 0;
}

int main(int argc, char **argv) {
    (void)argv;
    return argc > 1 && strcmp(argv[1], "list") == 0 ? print_list() : print_registration();
}
