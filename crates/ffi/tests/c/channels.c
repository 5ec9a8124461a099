/* A client and a server with channels: messages, receipts, a broadcast, tokens, the login decision, tables that differ. */
#include <assert.h>
#include <rallypoint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CHAT, POSITIONS, MAP, CHANNELS };

static const rp_channel TABLE[CHANNELS] = {
    {.size = sizeof(rp_channel), .max_to_server = 500, .max_to_client = 500, .receipts = 1},
    {.size = sizeof(rp_channel), .mode = RP_CHANNEL_SEQUENCED, .max_to_server = 50, .max_to_client = 50},
    {.size = sizeof(rp_channel), .mode = RP_CHANNEL_RELIABLE_UNORDERED, .max_to_client = 100000, .rate = 1000000},
};

static rp_client client;
static rp_server server;
static rp_event event;
static uint8_t buffer[100000];

/* Runs both sides until the server or the client has an event of this kind. */
static void wait_for(uint32_t kind, int at_server) {
    for (;;) {
        rp_event other;
        uint8_t text[600];
        assert(rp_client_flush(client) == 0 && rp_server_flush(server) == 0);
        assert(rp_server_wait(server, 1) == 0 && rp_server_poll(server) == 0 && rp_client_poll(client) == 0);
        int found = at_server ? rp_server_next_event(server, &event, buffer, sizeof buffer)
                              : rp_client_next_event(client, &event, buffer, sizeof buffer);
        if (found == 1 && event.kind == kind) return;
        assert(found >= 0);
        /* Events of the other side are of no interest here, except that they have to be taken. */
        if (at_server) while (rp_client_next_event(client, &other, text, sizeof text) == 1) {}
    }
}

static void refused(const char *username, const uint8_t *key, const rp_channel *table, const uint8_t *token,
                    uint32_t token_length, const char *address, const char *reason) {
    rp_client_config config = {.size = sizeof config, .username = username, .game = "tag", .server_key = key,
                               .channels = table, .channel_count = CHANNELS, .token = token,
                               .token_length = token_length, .login_timeout_ms = 60000};
    assert(rp_client_connect(address, &config, &client) == 0);
    wait_for(RP_EVENT_LOGIN_FAILED, 0);
    if (strstr((char *)buffer, reason) == NULL || event.code != RP_REASON_REFUSED) fprintf(stderr, "%s (%u)\n", buffer, event.code);
    assert(strstr((char *)buffer, reason) != NULL && event.code == RP_REASON_REFUSED);
    assert(rp_client_close(client) == 0);
}

static void configurations(void) {
    uint8_t key[RP_KEY_LENGTH] = {1};
    char text[200];
    rp_channel wrong[CHANNELS];
    memcpy(wrong, TABLE, sizeof wrong);
    wrong[2].mode = 9;
    rp_client_config config = {.size = sizeof config, .username = "alice", .game = "tag", .channels = wrong,
                               .channel_count = CHANNELS};
    assert(rp_client_connect("127.0.0.1:9", &config, &client) == RP_ERROR_INVALID_ARGUMENT);
    assert(rp_last_error(text, sizeof text) > 0 && strstr(text, "channel 2") != NULL);
    config.channels = TABLE;
    config.channel_count = 40;
    assert(rp_client_connect("127.0.0.1:9", &config, &client) == RP_ERROR_INVALID_ARGUMENT);
    config.channel_count = CHANNELS;
    config.token = key;
    config.token_length = 5; /* not a token */
    assert(rp_client_connect("127.0.0.1:9", &config, &client) == RP_ERROR_INVALID_ARGUMENT);
    config.token_length = 0;
    config.max_stream_message = 1000; /* another way to send large messages */
    assert(rp_client_connect("127.0.0.1:9", &config, &client) == RP_ERROR_INVALID_ARGUMENT);

    rp_server_config listen = {.size = sizeof listen, .game = "tag", .listen = "127.0.0.1:0", .decides_logins = 1};
    assert(rp_server_bind(&listen, &server) == RP_ERROR_INVALID_ARGUMENT);
    listen.channels = TABLE;
    listen.channel_count = CHANNELS;
    listen.token_key = key; /* needs a secret key */
    assert(rp_server_bind(&listen, &server) == RP_ERROR_INVALID_ARGUMENT);
    listen.token_key = NULL;
    listen.plain_channel = POSITIONS + 1; /* not reliable */
    assert(rp_server_bind(&listen, &server) == RP_ERROR_INVALID_ARGUMENT);

    assert(rp_token_key(NULL, key) == RP_ERROR_NULL_POINTER);
    assert(rp_token_issue(key, key, "alice", 0, NULL, 0, buffer, 20) == RP_ERROR_BUFFER_TOO_SMALL);
    assert(rp_token_issue(key, key, "alice", 0, buffer, 65, buffer, 200) == RP_ERROR_INVALID_ARGUMENT);
    assert(rp_token_issue(key, NULL, "alice", 0, NULL, 0, buffer, 200) == RP_ERROR_NULL_POINTER);

    /* A program that was compiled before there were channels. */
    rp_server_config old = {.size = offsetof(rp_server_config, channels), .game = "tag", .listen = "127.0.0.1:0"};
    assert(rp_server_bind(&old, &server) == 0);
    assert(rp_server_broadcast(server, CHAT, key, 1) == RP_ERROR_INVALID_ARGUMENT);
    assert(rp_server_accept(server, 0x100) == RP_ERROR_UNKNOWN_PLAYER && rp_server_close(server) == 0);
}

int main(void) {
    configurations();
    uint8_t secret[RP_KEY_LENGTH], key[RP_KEY_LENGTH], account[RP_KEY_LENGTH], token_key[RP_KEY_LENGTH];
    assert(rp_generate_key(secret) == 0 && rp_public_key(secret, key) == 0);
    assert(rp_generate_key(account) == 0 && rp_token_key(account, token_key) == 0);
    rp_server_config listen = {.size = sizeof listen, .game = "tag", .listen = "127.0.0.1:0", .secret_key = secret,
                               .channels = TABLE, .channel_count = CHANNELS, .token_key = token_key,
                               .decides_logins = 1};
    char address[64];
    assert(rp_server_bind(&listen, &server) == 0 && rp_server_local_address(server, 0, address, sizeof address) > 0);

    uint8_t token[RP_MAX_TOKEN], old[RP_MAX_TOKEN];
    uint64_t now = (uint64_t)time(NULL);
    int length = rp_token_issue(account, key, "alice", now + 3600, (const uint8_t *)"account 17", 10, token, sizeof token);
    int old_length = rp_token_issue(account, key, "alice", now - 10, NULL, 0, old, sizeof old);
    assert(length == 84 && old_length == 74);
    rp_channel other[CHANNELS];
    memcpy(other, TABLE, sizeof other);
    other[POSITIONS].max_to_client = 51;
    refused("alice", key, TABLE, NULL, 0, address, "requires a connect token");
    refused("alice", key, TABLE, old, (uint32_t)old_length, address, "has expired");
    refused("mallory", key, TABLE, token, (uint32_t)length, address, "not valid for this server and username");
    refused("alice", key, other, token, (uint32_t)length, address, "differ at channel 1");

    rp_client_config config = {.size = sizeof config, .username = "alice", .game = "tag", .server_key = key,
                               .channels = TABLE, .channel_count = CHANNELS, .token = token,
                               .token_length = (uint32_t)length, .login_timeout_ms = 60000};
    assert(rp_client_connect(address, &config, &client) == 0);
    assert(rp_client_send_on(client, CHAT, buffer, 1, NULL) == RP_ERROR_NOT_CONNECTED);
    wait_for(RP_EVENT_LOGIN_REQUEST, 1);
    uint32_t player = event.player;
    assert(event.length == 5 && memcmp(buffer, "alice", 6) == 0);
    assert(rp_server_token_data(server, player, buffer, 5) == RP_ERROR_BUFFER_TOO_SMALL);
    assert(rp_server_token_data(server, player, buffer, sizeof buffer) == 10 && memcmp(buffer, "account 17", 10) == 0);
    assert(rp_server_send_on(server, player, CHAT, buffer, 1, NULL) == RP_ERROR_NOT_CONNECTED);
    assert(rp_server_accept(server, player) == 0 && rp_server_accept(server, player) == RP_ERROR_UNKNOWN_PLAYER);
    wait_for(RP_EVENT_CONNECTED, 1);
    assert(event.player == player);
    wait_for(RP_EVENT_CONNECTED, 0);
    assert(rp_client_state(client) == RP_STATE_CONNECTED);

    /* Messages to the server, with a receipt. */
    uint64_t first = 99, second = 99;
    assert(rp_client_send(client, (const uint8_t *)"x", 1) == RP_ERROR_INVALID_ARGUMENT);
    assert(rp_client_send_on(client, MAP, buffer, 1, NULL) == RP_ERROR_INVALID_ARGUMENT); /* not in this direction */
    assert(rp_client_send_on(client, 7, buffer, 1, NULL) == RP_ERROR_INVALID_ARGUMENT);
    assert(rp_client_send_on(client, CHAT, buffer, 501, NULL) == RP_ERROR_TOO_LARGE);
    assert(rp_client_send_on(client, CHAT, NULL, 0, &first) == 0 && first == 0);
    assert(rp_client_send_on(client, CHAT, (const uint8_t *)"hello", 5, &second) == 0 && second == 1);
    wait_for(RP_EVENT_MESSAGE, 1);
    assert(event.code == CHAT && event.length == 0 && event.player == player);
    wait_for(RP_EVENT_MESSAGE, 1);
    assert(event.code == CHAT && event.length == 5 && memcmp(buffer, "hello", 5) == 0);
    wait_for(RP_EVENT_RECEIPT, 0);
    uint64_t number;
    assert(event.code == CHAT && event.length == sizeof number);
    memcpy(&number, buffer, sizeof number);
    assert(number == first);

    /* To the client: one that is larger than a datagram, and one to all players. */
    memset(buffer, 7, sizeof buffer);
    assert(rp_server_send_on(server, player, MAP, buffer, sizeof buffer, NULL) == 0);
    assert(rp_server_broadcast(server, POSITIONS, (const uint8_t *)"here", 4) == 1);
    int has_map = 0, has_position = 0;
    while (!has_map || !has_position) {
        wait_for(RP_EVENT_MESSAGE, 0);
        has_map |= event.code == MAP && event.length == sizeof buffer && buffer[sizeof buffer - 1] == 7;
        has_position |= event.code == POSITIONS && event.length == 4 && memcmp(buffer, "here", 4) == 0;
    }
    rp_stats stats = {.size = sizeof stats};
    assert(rp_client_stats(client, &stats) == 0 && stats.max_message == 464 && rp_client_is_delivered(client) == 1);
    assert(rp_server_stats(server, player, &stats) == 0 && stats.max_message == 480);
    assert(rp_server_player_address(server, player, address, sizeof address) > 0);
    assert(rp_server_disconnect(server, player, "the end") == 0);
    wait_for(RP_EVENT_DISCONNECTED, 0);
    assert(event.code == RP_REASON_CLOSED_BY_PEER && strstr((char *)buffer, "the end") != NULL);
    assert(rp_client_close(client) == 0 && rp_server_close(server) == 0);
    printf("passed\n");
    return 0;
}
