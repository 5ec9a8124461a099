/* A race for two or more players, in one file: `game` is the server, `game ADDRESS NAME` a player.
 * The first to reach line 20 wins. cc game.c -o game $(pkg-config --cflags --libs rallypoint) */
#include <rallypoint.h>
#include <stdio.h>
#include <string.h>

enum { FINISH = 20 };

static int failed(const char *what) {
    char text[256];
    rp_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", what, text);
    return 1;
}

static int serve(void) {
    rp_server_config config = {.size = sizeof config, .game = "race", .listen = "127.0.0.1:0", .max_players = 8};
    rp_server server;
    if (rp_server_bind(&config, &server) < 0) return failed("bind");
    char text[1200];
    rp_server_local_address(server, 0, text, sizeof text);
    printf("listening %s\n", text);
    fflush(stdout);
    unsigned positions[256] = {0}, players[256] = {0}, count = 0, winner = 0;
    do {
        rp_event event;
        rp_server_wait(server, 50);
        rp_server_poll(server);
        while (rp_server_next_event(server, &event, (uint8_t *)text, sizeof text) == 1) {
            unsigned slot = event.player & 0xff; /* the low byte of a player's number is its slot */
            if (event.kind == RP_EVENT_CONNECTED) {
                printf("%s joined\n", text);
                players[slot] = event.player;
                positions[slot] = 0;
                if (++count < 2) continue; /* the race begins with the second player */
            } else if (event.kind == RP_EVENT_MESSAGE && event.length == 1 && count > 1 && !winner) {
                positions[slot] += (unsigned char)text[0] % 4;
                if (positions[slot] >= FINISH) winner = event.player;
            } else if (event.kind == RP_EVENT_DISCONNECTED) {
                players[slot] = 0;
                count--;
            }
            if (event.kind > RP_EVENT_MESSAGE) continue;
            for (unsigned other = 0; other < 256; other++) { /* everyone sees everyone */
                uint8_t state[2] = {(uint8_t)slot, (uint8_t)positions[slot]};
                if (players[other]) rp_server_send(server, players[other], state, sizeof state);
            }
        }
        rp_server_flush(server);
    } while (!winner || count > 0);
    printf("slot %u won\n", winner & 0xff);
    return rp_server_close(server) < 0 ? failed("close") : 0;
}

static int play(const char *address, const char *name) {
    rp_client_config config = {.size = sizeof config, .game = "race", .username = name, .login_timeout_ms = 60000};
    rp_client client;
    if (rp_client_connect(address, &config, &client) < 0) return failed("connect");
    for (int racing = 0; rp_client_state(client) != RP_STATE_CLOSED;) {
        rp_event event;
        uint8_t data[1200], step = 3;
        rp_client_wait(client, 50);
        rp_client_poll(client);
        while (rp_client_next_event(client, &event, data, sizeof data) == 1) {
            if (event.kind == RP_EVENT_LOGIN_FAILED) return fprintf(stderr, "login: %s\n", (char *)data), 1;
            if (event.kind != RP_EVENT_MESSAGE) continue;
            printf("slot %d is at line %d\n", data[0], data[1]);
            if (!(racing = data[1] < FINISH)) rp_client_disconnect(client);
        }
        if (racing) rp_client_send(client, &step, 1);
        rp_client_flush(client);
    }
    return rp_client_close(client) < 0 ? failed("close") : 0;
}

int main(int count, char **arguments) {
    if (rp_abi_version() != RP_ABI_VERSION) return fprintf(stderr, "another version of librallypoint\n"), 1;
    return count > 2 ? play(arguments[1], arguments[2]) : serve();
}
