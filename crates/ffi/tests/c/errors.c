/* Null pointers, wrong handles, use after close, small buffers and invalid texts give error codes. */
#include <assert.h>
#include <rallypoint.h>
#include <stdio.h>
#include <string.h>

static const char INVALID[] = "\xc3\x28";

static void configurations(void) {
    rp_client client = 7;
    rp_client_config config = {.size = sizeof config, .username = "alice", .game = "tag"};
    assert(rp_client_connect(NULL, &config, &client) == RP_ERROR_NULL_POINTER);
    assert(rp_client_connect("127.0.0.1:9", NULL, &client) == RP_ERROR_NULL_POINTER);
    assert(rp_client_connect("127.0.0.1:9", &config, NULL) == RP_ERROR_NULL_POINTER);
    assert(rp_client_connect(INVALID, &config, &client) == RP_ERROR_INVALID_TEXT);
    assert(rp_client_connect("no address", &config, &client) == RP_ERROR_NOT_FOUND && client == 0);
    config.size = 4;
    assert(rp_client_connect("127.0.0.1:9", &config, &client) == RP_ERROR_INVALID_ARGUMENT);
    config = (rp_client_config){.size = sizeof config, .username = "alice", .game = "tag", .window = 1};
    assert(rp_client_connect("127.0.0.1:9", &config, &client) == RP_ERROR_INVALID_ARGUMENT);
    char text[100];
    assert(rp_last_error(text, sizeof text) == strlen(text));
    assert(strcmp(text, "window is 1: use 64 to 16384") == 0);
    config = (rp_client_config){.size = sizeof config, .username = INVALID, .game = "tag"};
    assert(rp_client_connect("127.0.0.1:9", &config, &client) == RP_ERROR_INVALID_TEXT);
    config = (rp_client_config){.size = sizeof config, .game = "tag"};
    assert(rp_client_connect("127.0.0.1:9", &config, &client) == RP_ERROR_NULL_POINTER);
    config = (rp_client_config){.size = sizeof config, .username = "alice", .game = "tag", .encryption = 9};
    assert(rp_client_connect("127.0.0.1:9", &config, &client) == RP_ERROR_INVALID_ARGUMENT);

    rp_server server;
    rp_server_config listen = {.size = sizeof listen, .game = "tag", .listen = "nowhere"};
    assert(rp_server_bind(&listen, &server) == RP_ERROR_INVALID_ARGUMENT);
    listen.listen = "203.0.113.1:0"; /* not an address of this machine */
    assert(rp_server_bind(&listen, &server) == RP_ERROR_SYSTEM);
    assert(rp_server_bind(NULL, &server) == RP_ERROR_NULL_POINTER);

    rp_announcer announcer;
    rp_announcer_config game = {.size = sizeof game, .name = "a game", .lobbies = "127.0.0.1:9"};
    assert(rp_announcer_start(&game, &announcer) == RP_ERROR_INVALID_ARGUMENT); /* no port */
    game.port = 8190;
    game.lobby_id = "no such list";
    assert(rp_announcer_start(&game, &announcer) == RP_ERROR_INVALID_ARGUMENT);
    game.lobby_id = NULL;
    game.slots = 70000;
    assert(rp_announcer_start(&game, &announcer) == RP_ERROR_INVALID_ARGUMENT);

    rp_scan scan;
    rp_scan_config query = {.size = sizeof query};
    assert(rp_scan_start(" , ", NULL, &scan) == RP_ERROR_INVALID_ARGUMENT);
    assert(rp_scan_start("gopher://example.org", NULL, &scan) == RP_ERROR_INVALID_ARGUMENT);

    /* A size that was never set is not believed: nothing beyond the structure is read. */
    config = (rp_client_config){.size = UINT32_MAX, .username = "alice", .game = "tag"};
    listen = (rp_server_config){.size = 0x10000000, .game = "tag"};
    game = (rp_announcer_config){.size = 5000, .name = "a game", .lobbies = "127.0.0.1:9", .port = 8190};
    query.size = UINT32_MAX;
    assert(rp_client_connect("127.0.0.1:9", &config, &client) == RP_ERROR_INVALID_ARGUMENT);
    assert(rp_server_bind(&listen, &server) == RP_ERROR_INVALID_ARGUMENT);
    assert(rp_announcer_start(&game, &announcer) == RP_ERROR_INVALID_ARGUMENT);
    assert(rp_scan_start("127.0.0.1:9", &query, &scan) == RP_ERROR_INVALID_ARGUMENT);

    /* Texts of a megabyte, and structures at an odd address. */
    static char huge[1 << 20], odd[sizeof(rp_client_config) + 1];
    memset(huge, 'a', sizeof huge - 1);
    config = (rp_client_config){.size = sizeof config, .username = huge, .game = "tag"};
    assert(rp_client_connect("127.0.0.1:9", &config, &client) == RP_ERROR_INVALID_ARGUMENT);
    config.username = "alice";
    assert(rp_client_connect(huge, &config, &client) == RP_ERROR_NOT_FOUND);
    assert(rp_scan_start(huge, NULL, &scan) == RP_ERROR_INVALID_ARGUMENT);
    memcpy(odd + 1, &config, sizeof config);
    assert(rp_client_connect("127.0.0.1:9", (const void *)(odd + 1), &client) == 0 && rp_client_close(client) == 0);
    assert(rp_generate_key(NULL) == RP_ERROR_NULL_POINTER && rp_public_key(NULL, NULL) == RP_ERROR_NULL_POINTER);
}

static void handles(void) {
    rp_client_config config = {.size = sizeof config, .username = "alice", .game = "tag"};
    rp_server_config listen = {.size = sizeof listen, .game = "tag", .listen = "127.0.0.1:0"};
    rp_client client;
    rp_server server;
    rp_event event;
    rp_stats stats = {.size = sizeof stats};
    char text[64];
    assert(rp_server_bind(&listen, &server) == 0);
    assert(rp_server_local_address(server, 0, NULL, 0) == RP_ERROR_NULL_POINTER);
    assert(rp_server_local_address(server, 0, text, 5) == RP_ERROR_BUFFER_TOO_SMALL);
    assert(rp_server_local_address(server, 1, text, sizeof text) == RP_ERROR_INVALID_ARGUMENT);
    assert(rp_server_local_address(server, 0, text, sizeof text) > 0);
    assert(rp_client_connect(text, &config, &client) == 0);

    assert(rp_client_poll(server) == RP_ERROR_INVALID_HANDLE && rp_server_poll(client) == RP_ERROR_INVALID_HANDLE);
    assert(rp_scan_close(client) == RP_ERROR_INVALID_HANDLE && rp_announcer_poll(server) == RP_ERROR_INVALID_HANDLE);
    assert(rp_client_send(client, NULL, 3) == RP_ERROR_NULL_POINTER);
    /* Lengths that are mistakes: nothing of that length is read, or allocated. */
    rp_announcer announcer;
    rp_announcer_config game = {.size = sizeof game, .name = "a game", .lobbies = "127.0.0.1:9", .port = 8190};
    assert(rp_announcer_start(&game, &announcer) == 0);
    static const size_t WRONG[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 1000000, (size_t)1 << 29};
    for (int i = 0; i < 4; i++) {
        size_t length = WRONG[i];
        assert(rp_client_send(client, (const uint8_t *)text, length) == RP_ERROR_TOO_LARGE);
        assert(rp_server_send(server, 0, (const uint8_t *)text, length) == RP_ERROR_TOO_LARGE);
        assert(rp_server_broadcast(server, 0, (const uint8_t *)text, length) == RP_ERROR_TOO_LARGE);
        assert(rp_announcer_set_key(announcer, "map", (const uint8_t *)text, length) == RP_ERROR_TOO_LARGE);
    }
    assert(rp_announcer_close(announcer) == 0);
    assert(rp_client_send(client, (const uint8_t *)"x", 1) == RP_ERROR_NOT_CONNECTED);
    assert(rp_client_stats(client, &stats) == RP_ERROR_NOT_CONNECTED);
    assert(rp_server_send(server, 0x100, (const uint8_t *)"x", 1) == RP_ERROR_UNKNOWN_PLAYER);
    assert(rp_server_disconnect(server, 0x100, INVALID) == RP_ERROR_INVALID_TEXT);

    /* A player's name needs more room than there is: the event is kept. */
    int result;
    do {
        rp_client_poll(client);
        rp_server_wait(server, 1);
        rp_server_poll(server);
        result = rp_server_next_event(server, &event, (uint8_t *)text, 2);
    } while (result == 0);
    assert(result == RP_ERROR_BUFFER_TOO_SMALL && event.length == 5);
    assert(rp_server_next_event(server, NULL, (uint8_t *)text, sizeof text) == RP_ERROR_NULL_POINTER);
    assert(rp_server_next_event(server, &event, NULL, 64) == RP_ERROR_NULL_POINTER);
    memset(text, 'x', sizeof text);
    assert(rp_server_next_event(server, &event, (uint8_t *)text, 5) == 1 && memcmp(text, "alicex", 6) == 0);
    uint32_t player = event.player;
    uint8_t large[4000] = {0};
    assert(rp_server_send(server, player, large, sizeof large) == RP_ERROR_TOO_LARGE);
    assert(rp_server_send(server, player, large, 0) == RP_ERROR_TOO_LARGE);
    assert(rp_server_stats(server, player, &stats) == 0 && stats.max_message > 400);
    stats.size = 3;
    assert(rp_server_stats(server, player, &stats) == RP_ERROR_INVALID_ARGUMENT);
    assert(rp_server_player_address(server, player, text, sizeof text) > 10);

    assert(rp_client_close(client) == 0 && rp_server_close(server) == 0);
    assert(rp_client_close(client) == RP_ERROR_INVALID_HANDLE && rp_client_poll(client) == RP_ERROR_INVALID_HANDLE);
    assert(rp_server_send(server, player, large, 1) == RP_ERROR_INVALID_HANDLE);
    assert(rp_server_next_event(server, &event, large, sizeof large) == RP_ERROR_INVALID_HANDLE);
}

static void scans(void) {
    rp_scan scan;
    rp_scan_record record = {.size = sizeof record};
    rp_scan_config config = {.size = sizeof config, .timeout_ms = 200};
    char text[4096];
    assert(rp_scan_start("127.0.0.1:9", &config, &scan) == 0);
    assert(rp_scan_next(scan, NULL, text, sizeof text, 60000) == RP_ERROR_NULL_POINTER);
    assert(rp_scan_next(scan, &record, text, 10, 60000) == RP_ERROR_BUFFER_TOO_SMALL);
    assert(rp_scan_next(scan, &record, NULL, 10, 60000) == RP_ERROR_NULL_POINTER);
    assert(rp_scan_next(scan, &record, text, sizeof text, 60000) == 1);
    assert(record.kind == RP_SCAN_FAILED && strlen(record.error) > 0 && record.players == -1);
    assert(rp_scan_next(scan, &record, text, sizeof text, 60000) == 1 && record.kind == RP_SCAN_FINISHED);
    assert(rp_scan_next(scan, &record, text, sizeof text, 0) == 1 && record.kind == RP_SCAN_FINISHED);
    assert(rp_scan_close(scan) == 0 && rp_scan_next(scan, &record, text, sizeof text, 0) == RP_ERROR_INVALID_HANDLE);
}

static void keys(void) {
    uint8_t secret[RP_KEY_LENGTH], first[RP_KEY_LENGTH], second[RP_KEY_LENGTH];
    assert(rp_generate_key(secret) == 0);
    assert(rp_public_key(secret, first) == 0 && rp_public_key(secret, second) == 0);
    assert(memcmp(first, second, sizeof first) == 0 && memcmp(first, secret, sizeof first) != 0);
    assert(strlen(rp_version()) > 0 && strcmp(rp_error_text(-99), "an unknown error") == 0);
}

int main(void) {
    configurations();
    handles();
    scans();
    keys();
    printf("passed\n");
    return 0;
}
