/* The interface of `double` and `char*`, used as GameMaker uses it: one rpgm_handle_io per step. Arguments: a port for the
 * server, and the address of a lobby. */
#include <assert.h>
#include <math.h>
#include <rallypoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void step(void) {
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
    assert(rpgm_handle_io() >= 0);
}

/* The next event of this kind, within many steps. Others are passed over. */
static void await_event(double object, double kind) {
    for (int i = 0; i < 20000; i++) {
        double event = rpgm_next_event(object);
        if (event == kind) return;
        if (event <= 0) step();
    }
    fprintf(stderr, "event %g did not come: %s\n", kind, rpgm_error());
    abort();
}

/* The GML side can pass any number: what is out of range is an error with a sentence, never another number. */
static void numbers(double client, double server, double player) {
    const double wrong[] = {-1, NAN, -NAN, INFINITY, -INFINITY, 1e300, -1e300, 4294967296.0};
    char buffer[8] = "abcdefg";
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double number = wrong[i];
        assert(rpgm_host(number, "gm", 8) == RP_ERROR_INVALID_ARGUMENT && strncmp(rpgm_error(), "port is ", 8) == 0);
        assert(rpgm_host(0, "gm", number) == RP_ERROR_INVALID_ARGUMENT);
        assert(rpgm_announce("127.0.0.1:9", "gg2", "x", number, 0) == RP_ERROR_INVALID_ARGUMENT);
        assert(rpgm_announce("127.0.0.1:9", "gg2", "x", 8190, number) == RP_ERROR_INVALID_ARGUMENT);
        assert(rpgm_scan("127.0.0.1:9", number) == RP_ERROR_INVALID_ARGUMENT);
        assert(rpgm_send_buffer(client, 0, buffer, number) == RP_ERROR_INVALID_ARGUMENT);
        assert(rpgm_write_byte(number) == RP_ERROR_INVALID_ARGUMENT && rpgm_event_byte(number) == -1);
        assert(rpgm_event_copy(buffer, number) == RP_ERROR_INVALID_ARGUMENT && memcmp(buffer, "abcdefg", 8) == 0);
        assert(rpgm_set_occupancy(client, number, 0, 0, 0) == RP_ERROR_INVALID_ARGUMENT);
        assert(rpgm_set_occupancy(number, 1, 1, 1, 1) == RP_ERROR_INVALID_HANDLE);
        assert(rpgm_state(number) == RP_ERROR_INVALID_HANDLE && rpgm_close(number) == RP_ERROR_INVALID_HANDLE);
        assert(rpgm_disconnect(number, player) == RP_ERROR_INVALID_HANDLE);
        assert(rpgm_disconnect(server, number) == RP_ERROR_UNKNOWN_PLAYER);
        assert(rpgm_send_written(number, 0) == RP_ERROR_INVALID_HANDLE);
        assert(strcmp(rpgm_error(), "the handle is not valid") == 0);
    }
    assert(rpgm_write_byte(256) == RP_ERROR_INVALID_ARGUMENT);
    assert(rpgm_set_key(client, "map", NULL) == RP_ERROR_NULL_POINTER && rpgm_scan(NULL, 1) == RP_ERROR_NULL_POINTER);
    assert(rpgm_send_buffer(client, 0, NULL, 3) == RP_ERROR_NULL_POINTER);
    assert(rpgm_scan_number(NULL) == -1 && rpgm_scan_number("no such field") == -1 && strlen(rpgm_scan_text(NULL)) == 0);
}

static void sessions(double port) {
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%d", (int)port);
    double server = rpgm_host(port, "gm", 8);
    assert(server > 0);
    double client = rpgm_connect(address, "alice", "gm");
    assert(client > 0);
    await_event(server, RP_EVENT_CONNECTED);
    assert(strcmp(rpgm_event_text(), "alice") == 0);
    double player = rpgm_event_player();
    assert(player > 0);
    await_event(client, RP_EVENT_CONNECTED);
    assert(rpgm_state(client) == RP_STATE_CONNECTED);

    assert(rpgm_send_text(client, 0, "hello") == 0);
    await_event(server, RP_EVENT_MESSAGE);
    assert(rpgm_event_player() == player && strcmp(rpgm_event_text(), "hello") == 0);

    /* Bytes, zeros among them, without and with a buffer. */
    for (int i = 0; i < 4; i++) assert(rpgm_write_byte(i * 85) == 0);
    assert(rpgm_send_written(server, player) == 0);
    await_event(client, RP_EVENT_MESSAGE);
    char copy[8];
    assert(rpgm_event_length() == 4 && rpgm_event_byte(3) == 255 && rpgm_event_byte(4) == -1 && rpgm_event_byte(-1) == -1);
    assert(rpgm_event_copy(copy, 3) == RP_ERROR_BUFFER_TOO_SMALL);
    assert(rpgm_event_copy(copy, sizeof copy) == 4 && memcmp(copy, "\x00\x55\xaa\xff", 4) == 0);
    assert(rpgm_send_buffer(client, 0, copy, 4) == 0);
    await_event(server, RP_EVENT_MESSAGE);
    assert(rpgm_event_length() == 4);

    /* The GML side can pass any number. */
    const double wrong[] = {0, -1, 0.5, NAN, INFINITY, -INFINITY, 1e300, client + 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert(rpgm_send_text(wrong[i], 0, "x") == RP_ERROR_INVALID_HANDLE);
        assert(rpgm_next_event(wrong[i]) == RP_ERROR_INVALID_HANDLE);
        assert(rpgm_send_text(server, wrong[i], "x") == RP_ERROR_UNKNOWN_PLAYER);
    }
    numbers(client, server, player);
    assert(rpgm_send_text(client, 0, NULL) == RP_ERROR_NULL_POINTER);
    assert(strcmp(rpgm_error(), "a pointer is null") == 0);
    assert(rpgm_connect("\xff", "alice", "gm") == RP_ERROR_INVALID_TEXT && strlen(rpgm_error()) > 0);

    assert(rpgm_disconnect(server, player) == 0);
    await_event(client, RP_EVENT_DISCONNECTED);
    assert(rpgm_event_code() == RP_REASON_CLOSED_BY_PEER);
    assert(rpgm_close(client) == 0 && rpgm_close(client) == RP_ERROR_INVALID_HANDLE);
    assert(rpgm_close(server) == 0 && rpgm_handle_io() == 0);
}

/* A session with channels: which one is sent on is set before, which one a message came on is asked after. */
static void channels(double port) {
    static const char table[] = "reliable, sequenced";
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%d", (int)port);
    double server = rpgm_host_channels(port, "gm", 8, table);
    double client = rpgm_connect_channels(address, "alice", "gm", table);
    assert(server > 0 && client > 0);
    await_event(server, RP_EVENT_CONNECTED);
    double player = rpgm_event_player();
    await_event(client, RP_EVENT_CONNECTED);
    assert(rpgm_event_channel() == 0);

    for (int channel = 1; channel >= 0; channel--) {
        char text[8];
        snprintf(text, sizeof text, "to %d", channel);
        assert(rpgm_set_channel(channel) == 0 && rpgm_send_text(client, 0, text) == 0);
        await_event(server, RP_EVENT_MESSAGE);
        assert(rpgm_event_channel() == channel && rpgm_event_player() == player && strcmp(rpgm_event_text(), text) == 0);
        assert(rpgm_write_byte(channel) == 0 && rpgm_send_written(server, player) == 0);
        await_event(client, RP_EVENT_MESSAGE);
        assert(rpgm_event_channel() == channel && rpgm_event_length() == 1 && rpgm_event_byte(0) == channel);
    }
    /* Longer than a datagram. */
    static char large[65537];
    memset(large, 'x', sizeof large);
    assert(rpgm_send_buffer(server, player, large, 65536) == 0);
    await_event(client, RP_EVENT_MESSAGE);
    assert(rpgm_event_length() == 65536 && rpgm_event_byte(65535) == 'x');
    assert(rpgm_send_buffer(server, player, large, 65537) == RP_ERROR_TOO_LARGE);

    /* A channel that the table lacks, and tables that are wrong. */
    assert(rpgm_set_channel(2) == 0 && rpgm_send_text(client, 0, "x") < 0 && strlen(rpgm_error()) > 0);
    assert(rpgm_set_channel(32) == RP_ERROR_INVALID_ARGUMENT && rpgm_set_channel(NAN) == RP_ERROR_INVALID_ARGUMENT);
    assert(rpgm_set_channel(0) == 0);
    assert(rpgm_host_channels(0, "gm", 8, "reliable,fast") == RP_ERROR_INVALID_ARGUMENT);
    assert(strcmp(rpgm_error(), "channel 1 is \"fast\": use reliable, unordered, sequenced or expiring") == 0);
    assert(rpgm_host_channels(0, "gm", 8, " , ") == RP_ERROR_INVALID_ARGUMENT);
    assert(rpgm_host_channels(0, "gm", 8, NULL) == RP_ERROR_NULL_POINTER);
    assert(rpgm_connect_channels(address, "bob", "gm", "\xff") == RP_ERROR_INVALID_TEXT);

    /* Tables that differ: the login fails with a reason. */
    double other = rpgm_connect_channels(address, "bob", "gm", "reliable");
    assert(other > 0);
    await_event(other, RP_EVENT_LOGIN_FAILED);
    assert(strlen(rpgm_event_text()) > 0);
    assert(rpgm_close(other) == 0 && rpgm_close(client) == 0 && rpgm_close(server) == 0 && rpgm_handle_io() == 0);
}

static void lobby(const char *address) {
    double announcer = rpgm_announce(address, "gg2", "from GML", 8190, 0);
    assert(announcer > 0);
    assert(rpgm_set_occupancy(announcer, 16, 3, 0, 0) == 0 && rpgm_set_key(announcer, "map", "ctf_truefort") == 0);
    char target[128];
    snprintf(target, sizeof target, "lobby://%s/gg2", address);
    for (int i = 0; i < 1000; i++) {
        double scan = rpgm_scan(target, RP_DETAIL_LIST), event;
        assert(scan > 0);
        int found = 0;
        while ((event = rpgm_next_event(scan)) != RP_SCAN_FINISHED) {
            if (event == RP_SCAN_LISTED) {
                found = strcmp(rpgm_scan_text("name"), "from GML") == 0 && rpgm_scan_number("players") == 3;
                assert(!found || strcmp(rpgm_scan_text("map"), "ctf_truefort") == 0);
            }
            step();
        }
        assert(rpgm_close(scan) == 0);
        if (found) {
            printf("found\n");
            assert(rpgm_close(announcer) == 0);
            return;
        }
    }
    abort();
}

int main(int count, char **arguments) {
    assert(count == 3);
    sessions(atof(arguments[1]));
    channels(atof(arguments[1]));
    lobby(arguments[2]);
    return 0;
}
