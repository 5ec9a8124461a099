/* Calls from several threads, from threads that are ending, and without descriptors: error codes, never undefined behaviour. */
#include <assert.h>
#include <pthread.h>
#include <rallypoint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { THREADS = 4, ROUNDS = 10 };

static rp_client client;
static rp_server server;
static rp_scan scan;

static void open_all(void) {
    rp_server_config listen = {.size = sizeof listen, .game = "tag", .listen = "127.0.0.1:0"};
    rp_client_config config = {.size = sizeof config, .username = "alice", .game = "tag"};
    rp_scan_config query = {.size = sizeof query, .timeout_ms = 50};
    char address[64];
    assert(rp_server_bind(&listen, &server) == 0);
    assert(rp_server_local_address(server, 0, address, sizeof address) > 0);
    assert(rp_client_connect(address, &config, &client) == 0);
    assert(rp_scan_start(address, &query, &scan) == 0);
}

static int is_expected(int result) {
    return result >= 0 || result == RP_ERROR_BUSY || result == RP_ERROR_INVALID_HANDLE || result == RP_ERROR_NOT_CONNECTED ||
           result == RP_ERROR_UNKNOWN_PLAYER || result == RP_ERROR_WOULD_BLOCK;
}

/* Uses the same objects as the other threads. One of the threads closes them meanwhile. */
static void *use(void *argument) {
    rp_event event;
    rp_scan_record record = {.size = sizeof record};
    uint8_t buffer[4096] = {0};
    size_t *closed = argument;
    for (int i = 0; i < 25; i++) {
        assert(is_expected(rp_server_wait(server, 1)) && is_expected(rp_client_wait(client, 1)));
        assert(is_expected(rp_server_poll(server)) && is_expected(rp_client_poll(client)));
        assert(is_expected(rp_server_next_event(server, &event, buffer, sizeof buffer)));
        assert(is_expected(rp_client_send(client, buffer, 20)));
        assert(is_expected(rp_client_next_event(client, &event, buffer, sizeof buffer)));
        assert(is_expected(rp_scan_next(scan, &record, (char *)buffer, sizeof buffer, 1)));
    }
    *closed += rp_client_close(client) == 0;
    *closed += rp_scan_close(scan) == 0;
    *closed += rp_server_close(server) == 0;
    return NULL;
}

static void shared_objects(void) {
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        size_t closed[THREADS] = {0}, total = 0;
        open_all();
        for (int i = 0; i < THREADS; i++) assert(pthread_create(&threads[i], NULL, use, &closed[i]) == 0);
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            total += closed[i];
        }
        assert(total == 3); /* each is closed once */
    }
}

/* Runs when the thread's own variables, the last error among them, are gone. */
static void call_at_the_end(void *argument) {
    char text[64];
    assert(argument == &client);
    assert(rp_client_poll(client) == 0 && rp_client_poll(7) == RP_ERROR_INVALID_HANDLE);
    assert(rp_last_error(text, sizeof text) <= 1000);
    assert(rp_server_close(server) == 0 && rp_client_close(client) == 0);
    assert(rpgm_handle_io() <= 0 && rpgm_next_event(7) < 0 && rpgm_write_byte(1) <= 0 && strlen(rpgm_error()) == 0);
    assert(rpgm_connect("127.0.0.1:9", "alice", "tag") != 0 && strlen(rpgm_event_text()) == 0);
}

static void *end(void *argument) {
    pthread_key_t *key = argument;
    assert(rp_client_poll(7) == RP_ERROR_INVALID_HANDLE && rpgm_close(7) < 0); /* both have state of this thread now */
    pthread_setspecific(*key, &client);
    return NULL;
}

static void ending_thread(void) {
    pthread_key_t key;
    pthread_t thread;
    open_all();
    assert(pthread_key_create(&key, call_at_the_end) == 0);
    assert(pthread_create(&thread, NULL, end, &key) == 0);
    pthread_join(thread, NULL);
    assert(rp_client_close(client) == RP_ERROR_INVALID_HANDLE && rp_scan_close(scan) == 0);
}

static void without_descriptors(void) {
    struct rlimit limit, few = {40, 40};
    getrlimit(RLIMIT_NOFILE, &limit);
    few.rlim_max = limit.rlim_max;
    assert(setrlimit(RLIMIT_NOFILE, &few) == 0);
    rp_client_config config = {.size = sizeof config, .username = "alice", .game = "tag"};
    rp_announcer_config game = {.size = sizeof game, .name = "a game", .lobbies = "127.0.0.1:9", .port = 8190};
    rp_client clients[60];
    rp_scan one;
    rp_announcer announcer;
    int opened = 0, result;
    while ((result = rp_client_connect("127.0.0.1:9", &config, &clients[opened])) == 0) assert(++opened < 60);
    assert(result == RP_ERROR_SYSTEM && opened > 5);
    assert(rp_scan_start("127.0.0.1:9", NULL, &one) == RP_ERROR_SYSTEM);
    assert(rp_announcer_start(&game, &announcer) < 0 || rp_announcer_close(announcer) == 0);
    while (opened > 0) assert(rp_client_close(clients[--opened]) == 0);
    assert(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    assert(rp_scan_start("127.0.0.1:9", NULL, &one) == 0 && rp_scan_close(one) == 0);
}

int main(void) {
    shared_objects();
    ending_thread();
    without_descriptors();
    printf("passed\n");
    return 0;
}
