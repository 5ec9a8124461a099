/* Lists a lobby, or registers a server for a while:
 *
 *     cc -o example example.c                   (on Windows: with -lws2_32)
 *     ./example HOST PORT                       lists
 *     ./example HOST PORT register NAME PORT    registers a UDP server until standard input ends
 */
#define RALLYPOINT_LOBBY_IMPLEMENTATION
#include "rallypoint_lobby.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned char reply[16 << 20];

static int list_servers(const char *host, const char *port) {
    struct rpl_list list;
    struct rpl_server server;
    int more;
    long length = rpl_list_fetch(host, port, rpl_gang_garrison_2, reply, sizeof reply, 10);
    if (length < 0) return (int)length;
    more = rpl_list_begin(&list, reply, (size_t)length);
    while (more >= 0 && (more = rpl_list_next(&list, &server)) == 1) {
        const unsigned char *name;
        long i, name_length = rpl_server_value(&server, "name", &name);
        printf("%u/%u  ", server.players, server.slots);
        /* A stranger chose this name: show nothing that a terminal could take for a command. */
        for (i = 0; i < name_length; i++) putchar(name[i] >= 0x20 && name[i] < 0x7f ? name[i] : '?');
        if (server.port4)
            printf("  %u.%u.%u.%u:%u", server.address4[0], server.address4[1], server.address4[2], server.address4[3],
                   server.port4);
        putchar('\n');
    }
    return more;
}

static int register_server(const char *host, const char *port, const char *name, int game_port) {
    struct rpl_announcer announcer;
    struct rpl_entry info[1];
    struct rpl_registration server;
    int result;
    memset(&server, 0, sizeof server);
    info[0].key = "name";
    info[0].value = name;
    info[0].value_length = strlen(name);
    memcpy(server.lobby_id, rpl_gang_garrison_2, 16);
    server.transport = RPL_UDP;
    server.port = (uint16_t)game_port;
    server.slots = 16;
    server.entries = info;
    server.entry_count = 1;
    if ((result = rpl_random_id(server.server_id)) < 0) return result;
    if ((result = rpl_announcer_open(&announcer, host, port)) < 0) return result;
    /* A game calls this once per frame, with its own clock. Here, each line of input is a frame, a second apart. */
    for (double seconds = 0; result >= 0; seconds += 1) {
        result = rpl_announcer_update(&announcer, &server, seconds);
        if (getchar() == EOF) break;
        server.players++;
    }
    rpl_announcer_close(&announcer, &server);
    return result < 0 ? result : 0;
}

int main(int argc, char **argv) {
    int result = RPL_INVALID;
#ifdef _WIN32
    WSADATA sockets;
    if (WSAStartup(MAKEWORD(2, 2), &sockets) != 0) return 1;
#endif
    if (argc == 3) result = list_servers(argv[1], argv[2]);
    if (argc == 6) result = register_server(argv[1], argv[2], argv[4], atoi(argv[5]));
    if (result < 0) fprintf(stderr, "failed with error %d\n", result);
    return result < 0;
}
