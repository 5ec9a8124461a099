/* Messages there and back through librallypoint, in one thread: `exchange N`. The same loop as in exchange.rs. */
#include <rallypoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rp_server server;
static rp_client client;

/* Takes all events of the server; returns whether one of them is of this kind. */
static int server_has(uint32_t kind, rp_event *found) {
    rp_event event;
    uint8_t message[600];
    int has = 0;
    while (rp_server_next_event(server, &event, message, sizeof message) == 1)
        if (event.kind == kind) *found = event, has = 1;
    return has;
}

static int client_has(uint32_t kind) {
    rp_event event;
    uint8_t message[600];
    int has = 0;
    while (rp_client_next_event(client, &event, message, sizeof message) == 1) has |= event.kind == kind;
    return has;
}

int main(int count, char **arguments) {
    long iterations = count > 1 ? atol(arguments[1]) : 1;
    rp_server_config listen = {.size = sizeof listen, .game = "tag", .listen = "127.0.0.1:0"};
    rp_client_config config = {.size = sizeof config, .game = "tag", .username = "alice", .encryption = RP_ENCRYPTION_PLAIN};
    char address[64];
    if (rp_server_bind(&listen, &server) < 0 || rp_server_local_address(server, 0, address, sizeof address) < 0) return 1;
    if (rp_client_connect(address, &config, &client) < 0) return 1;
    rp_event joined = {0};
    int is_connected = 0;
    while (!is_connected || !joined.player) {
        rp_client_poll(client);
        is_connected |= client_has(RP_EVENT_CONNECTED);
        rp_server_poll(server);
        server_has(RP_EVENT_CONNECTED, &joined);
        rp_server_flush(server);
    }
    uint8_t message[64];
    memset(message, 7, sizeof message);
    /* The same calls in each iteration, whether a message has arrived by then or not: a sender may wait before it sends. */
    for (long i = 0; i < iterations; i++) {
        rp_event event;
        if (rp_client_send(client, message, sizeof message) < 0) return 2;
        rp_client_poll(client);
        rp_server_poll(server);
        server_has(RP_EVENT_MESSAGE, &event);
        if (rp_server_send(server, joined.player, message, sizeof message) < 0) return 3;
        rp_server_poll(server);
        rp_client_poll(client);
        client_has(RP_EVENT_MESSAGE);
    }
    return 0;
}
