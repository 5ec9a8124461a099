/*
 * librallypoint: sessions, announcing, lists and queries. Guide: docs/c.md.
 *
 * Errors   A negative result is one of the RP_ERROR_* codes; rp_last_error has the sentence.
 * Handles  are numbers. One that is closed, of another kind or made up is an error, not a crash. 0 is never valid.
 * Memory   The caller owns every buffer. Nothing that a function is given is used after it returns. Texts are UTF-8.
 * Threads  Every function may be called from any thread. An object is used by one call at a time: a call that finds
 *          its object in use by another thread returns RP_ERROR_BUSY.
 *
 * This file is generated.
 */


#ifndef RALLYPOINT_H
#define RALLYPOINT_H

#include <stddef.h>
#include <stdint.h>

// Version of the interface that this header describes. It changes when a program that was compiled with an older header could
// no longer use the library; functions and fields at the end of structures are added without changing it.
#define RP_ABI_VERSION 1

// Success.
#define RP_OK 0

// A pointer is null that must not be.
#define RP_ERROR_NULL_POINTER -1

// The handle was closed, belongs to an object of another kind, or never existed.
#define RP_ERROR_INVALID_HANDLE -2

// The buffer is too small. Nothing is lost: the call can be repeated with a larger one.
#define RP_ERROR_BUFFER_TOO_SMALL -3

// A text is not UTF-8.
#define RP_ERROR_INVALID_TEXT -4

// A setting or an argument is out of range: `rp_last_error` names it.
#define RP_ERROR_INVALID_ARGUMENT -5

// Another thread is using the object at this moment.
#define RP_ERROR_BUSY -6

// A defect of the library. The object cannot be used any more and should be closed.
#define RP_ERROR_PANIC -7

// Too many objects are open.
#define RP_ERROR_LIMIT -8

// The system refused a socket, a thread or random bytes.
#define RP_ERROR_SYSTEM -9

// A name has no address.
#define RP_ERROR_NOT_FOUND -10

// The send window, or the queue of the channel, is full: `RP_EVENT_WRITABLE` follows when there is room again.
#define RP_ERROR_WOULD_BLOCK -11

// The message is longer than a message may be, or empty.
#define RP_ERROR_TOO_LARGE -12

// There is no session, or it is being closed.
#define RP_ERROR_NOT_CONNECTED -13

// The player does not exist, or no longer.
#define RP_ERROR_UNKNOWN_PLAYER -14

// Length of secret and public keys in bytes.
#define RP_KEY_LENGTH 32

// Client: the login succeeded. Server: a player has logged in; the buffer has the player's name.
#define RP_EVENT_CONNECTED 1

// A message: the buffer has its bytes, and `code` is its channel.
#define RP_EVENT_MESSAGE 2

// There is room again after `RP_ERROR_WOULD_BLOCK`.
#define RP_EVENT_WRITABLE 3

// The other side seems to have ended the session: `RP_EVENT_DISCONNECTED` follows, or the session continues.
#define RP_EVENT_CLOSING 4

// The session has ended: `code` and the text in the buffer say why. The text may come from the network.
#define RP_EVENT_DISCONNECTED 5

// Client: the login failed: `code` and the text in the buffer say why. The text may come from the network.
#define RP_EVENT_LOGIN_FAILED 6

// Server: a player has a new address, which the buffer has as a text.
#define RP_EVENT_MOVED 7

// Server with `rp_server_config.decides_logins`: a player wants to join; the buffer has the player's name. Call
// `rp_server_accept`, or `rp_server_disconnect` with a reason.
#define RP_EVENT_LOGIN_REQUEST 8

// The other side has read a message of a channel with receipts: `code` is the channel, and the buffer has the number that
// `rp_client_send_on` or `rp_server_send_on` has returned, a `uint64_t` of 8 bytes.
#define RP_EVENT_RECEIPT 9

// This side closed the session.
#define RP_REASON_CLOSED 1

// The other side closed the session.
#define RP_REASON_CLOSED_BY_PEER 2

// Nothing was received, or no answer to a login.
#define RP_REASON_TIMED_OUT 3

// The same client has logged in again.
#define RP_REASON_REPLACED 4

// The server refused the login.
#define RP_REASON_REFUSED 5

// Another reason: the text names it.
#define RP_REASON_OTHER 6

// Every message arrives, in order.
#define RP_CHANNEL_RELIABLE_ORDERED 0

// Every message arrives, as soon as it can.
#define RP_CHANNEL_RELIABLE_UNORDERED 1

// Only the newest message counts: an older one that is late is dropped.
#define RP_CHANNEL_SEQUENCED 2

// A message that is older than `max_age_ms` is dropped.
#define RP_CHANNEL_EXPIRING 3

// Maximum number of channels.
#define RP_MAX_CHANNELS 32

// Maximum length of a connect token in bytes.
#define RP_MAX_TOKEN 138

// Client: against eavesdroppers. Server: plain and encrypted logins are accepted.
#define RP_ENCRYPTION_DEFAULT 0

// No encryption: every host on the path can read the messages.
#define RP_ENCRYPTION_PLAIN 1

// Only encrypted sessions.
#define RP_ENCRYPTION_REQUIRED 2

// The login is not finished, or another one follows.
#define RP_STATE_CONNECTING 1

// Messages can be sent.
#define RP_STATE_CONNECTED 2

// The client is closed for good: when the events are read, there will be no further ones.
#define RP_STATE_CLOSED 3

// Players connect over UDP.
#define RP_TRANSPORT_UDP 0

// Players connect over TCP.
#define RP_TRANSPORT_TCP 1

// Length of a server's secret ID in bytes.
#define RP_SERVER_ID_LENGTH 16

// The scan is finished: nothing further follows.
#define RP_SCAN_FINISHED 0

// A list contains this server.
#define RP_SCAN_LISTED 1

// A server answered.
#define RP_SCAN_ANSWERED 2

// A server did not answer: `error` says why.
#define RP_SCAN_FAILED 3

// The list of the target with this index is complete; all of its servers were reported before.
#define RP_SCAN_LIST_COMPLETE 4

// The list of the target with this index could not be read: `error` says why.
#define RP_SCAN_LIST_FAILED 5

// Default level of detail: that of `RP_DETAIL_INFO`.
#define RP_DETAIL_DEFAULT 0

// Lists are read, and no server is queried.
#define RP_DETAIL_LIST 1

// Servers are asked for any reply: whether they are there.
#define RP_DETAIL_PRESENCE 2

// Servers are asked for their description.
#define RP_DETAIL_INFO 3

// Servers are asked for their description and their players.
#define RP_DETAIL_PLAYERS 4

// A channel. Its number is its position in the array. Mode, sizes and receipts have to be the same on both sides; the other
// fields are settings of the side that sends. Set `size` to the size of the structure, in every element of the array; a field
// that is zero has its default value.
typedef struct {
    // Size of this structure in bytes.
    uint32_t size;
    // One of `RP_CHANNEL_*`.
    uint32_t mode;
    // Maximum length in bytes of a message to the server: up to 16,777,215 in a reliable channel, otherwise 65,536. 0: there
    // are no messages in this direction.
    uint32_t max_to_server;
    // Maximum length in bytes of a message to a client, with the limits of `max_to_server`.
    uint32_t max_to_client;
    // Channels with a lower number are sent first, those with the same number take turns: 1 to 256; default 1 for sequenced and
    // expiring channels, and 2 for reliable ones.
    uint32_t priority;
    // Time in milliseconds for which a message of an expiring channel is of use: 1 to 60,000; default 250.
    uint32_t max_age_ms;
    // Maximum rate in bytes per second: at least 1,000; default 0: unlimited.
    uint32_t rate;
    // Number of bytes that may wait to be sent to a peer: at least 1,000; default 1,048,576.
    uint32_t queue;
    // Whether `RP_EVENT_RECEIPT` follows when the other side has read a message. Only in reliable channels.
    uint32_t receipts;
} rp_channel;

// Settings of a client. Set `size` to the size of the structure; a field that is zero has its default value.
typedef struct {
    // Size of this structure in bytes.
    uint32_t size;
    // One of `RP_ENCRYPTION_*`.
    uint32_t encryption;
    // The player's name, 1 to 127 bytes. Required.
    const char *username;
    // The game, at most 127 bytes. Required.
    const char *game;
    // The server's public key, `RP_KEY_LENGTH` bytes: no other server is accepted. May be null.
    const uint8_t *server_key;
    // Time in milliseconds after which an unanswered login fails: 500 to 60,000; default 5,000.
    uint32_t login_timeout_ms;
    // Whether to log in again when the connection is lost, or the server is full.
    uint32_t reconnect;
    // Maximum number of unacknowledged messages, the same on both sides: 64 to 16,384; default 4,096.
    uint32_t window;
    // Whether messages are delivered on arrival instead of in order.
    uint32_t unordered;
    // Time in milliseconds without a datagram after which the session ends: 3,000 to 300,000; default 10,000.
    uint32_t idle_timeout_ms;
    // Maximum length of a message in bytes if messages may be longer than a datagram, the same on both sides; default 0: a
    // message has to fit into a datagram, at most about 480 bytes (`rp_stats.max_message`).
    uint32_t max_stream_message;
    // The channels, the same as the server's: an array of `channel_count`. Without them, all messages are reliable, and
    // `rp_client_send` sends them.
    const rp_channel *channels;
    // Number of channels: 1 to `RP_MAX_CHANNELS`; 0: none.
    uint32_t channel_count;
    // Length of `token` in bytes.
    uint32_t token_length;
    // The token of the game's account service, if the server requires one. It needs `channels` and `server_key`.
    const uint8_t *token;
} rp_client_config;

// Handle of a session client.
typedef uint64_t rp_client;

// Something that happened to a client or a server.
typedef struct {
    // One of `RP_EVENT_*`.
    uint32_t kind;
    // Server: the player. Client: 0.
    uint32_t player;
    // Length of the message or the text in bytes.
    uint32_t length;
    // One of `RP_REASON_*` if the event has a reason; the channel of a message or a receipt; otherwise 0.
    uint32_t code;
} rp_event;

// Current round-trip time, loss and throughput of a connection, and its counters. Set `size` to the size of the structure.
typedef struct {
    // Size of this structure in bytes.
    uint32_t size;
    // Maximum length of a message in bytes.
    uint32_t max_message;
    // Round-trip time in microseconds, the median of the last ones; 0 if it is unknown.
    uint64_t rtt_us;
    // Share of recent datagrams with messages that were lost, copies and resends included, from 0 to 1.
    double loss;
    // Estimated capacity of the path in bytes per second.
    uint64_t rate;
    // Number of messages that are not acknowledged, unsent ones included.
    uint64_t unacked;
    // Messages sent.
    uint64_t messages_sent;
    // Messages received.
    uint64_t messages_received;
    // Bytes of all datagrams sent.
    uint64_t bytes_sent;
    // Bytes of all datagrams received.
    uint64_t bytes_received;
    // Messages sent again because they were lost, or appeared to be.
    uint64_t resends;
} rp_stats;

// Settings of a server. Set `size` to the size of the structure; a field that is zero has its default value.
typedef struct {
    // Size of this structure in bytes.
    uint32_t size;
    // One of `RP_ENCRYPTION_*`.
    uint32_t encryption;
    // Addresses to listen on, separated by commas, at most one IPv4 and one IPv6 address; port 0 is a free port. Default
    // "0.0.0.0:45555,[::]:45555".
    const char *listen;
    // The game that a login has to name, at most 127 bytes. Required.
    const char *game;
    // The secret key by which clients recognise this server, `RP_KEY_LENGTH` bytes. May be null.
    const uint8_t *secret_key;
    // Maximum number of players: 1 to 255; default 64.
    uint32_t max_players;
    // Maximum number of players from one address: 1 to 255; default 32.
    uint32_t max_per_address;
    // As in `rp_client_config`.
    uint32_t window;
    // As in `rp_client_config`.
    uint32_t unordered;
    // As in `rp_client_config`.
    uint32_t idle_timeout_ms;
    // As in `rp_client_config`.
    uint32_t max_stream_message;
    // The channels, the same as the clients': an array of `channel_count`. Without them, all messages are reliable, and
    // `rp_server_send` sends them.
    const rp_channel *channels;
    // Number of channels: 1 to `RP_MAX_CHANNELS`; 0: none.
    uint32_t channel_count;
    // Whether `RP_EVENT_LOGIN_REQUEST` is raised for each player, and the game decides. It needs `channels`.
    uint32_t decides_logins;
    // The channel of players whose client has no channels, plus 1: reliable and ordered. Default 0: such players are refused.
    uint32_t plain_channel;
    // Not used.
    uint32_t reserved;
    // The key of the game's account service, `RP_KEY_LENGTH` bytes: only players with a valid token may join. It needs
    // `channels` and `secret_key`. May be null.
    const uint8_t *token_key;
} rp_server_config;

// Handle of a session server.
typedef uint64_t rp_server;

// What a server answers queries with. Set `size` to the size of the structure. Texts may be null; a number that is negative is
// unknown.
typedef struct {
    // Size of this structure in bytes.
    uint32_t size;
    // Number of players.
    int32_t players;
    // Maximum number of players.
    int32_t max_players;
    // Number of bots.
    int32_t bots;
    // Whether a password is required: 1, 0, or -1.
    int32_t password;
    // Not used.
    uint32_t reserved;
    // Name of the server.
    const char *name;
    // Short name of the game.
    const char *game;
    // Game mode.
    const char *mode;
    // Current map.
    const char *map;
    // Names of the players, separated by line feeds. Without them, a query for players waits in vain for a list.
    const char *player_names;
} rp_server_info;

// A game server, and the lobbies to register it with. Set `size` to the size of the structure; a field that is zero has its
// default value.
typedef struct {
    // Size of this structure in bytes.
    uint32_t size;
    // Port that players connect to: 1 to 65,535. Required.
    uint32_t port;
    // One of `RP_TRANSPORT_*`.
    uint32_t transport;
    // Number of slots, players and bots, at most 65,535 each.
    uint32_t slots;
    // Number of players.
    uint32_t players;
    // Number of bots.
    uint32_t bots;
    // Whether a password is required.
    uint32_t password;
    // Not used.
    uint32_t reserved;
    // Name of the server in the list. Required.
    const char *name;
    // Lobbies, separated by commas: "lobby.example.org,[2001:db8::1]:29944". Required.
    const char *lobbies;
    // UUID or well-known name of the list in which the server appears; default "gg2".
    const char *lobby_id;
    // Secret ID by which lobbies recognise the server after a restart, `RP_SERVER_ID_LENGTH` bytes; default random.
    const uint8_t *server_id;
} rp_announcer_config;

// Handle of an announcer.
typedef uint64_t rp_announcer;

// Settings of a scan. Set `size` to the size of the structure; a field that is zero has its default value.
typedef struct {
    // Size of this structure in bytes.
    uint32_t size;
    // One of `RP_DETAIL_*`.
    uint32_t detail;
    // Time limit for a server, and for each pause while a list arrives, in milliseconds: 1 to 3,600,000; default 4,000.
    uint32_t timeout_ms;
    // Maximum number of datagrams sent per second: 1 to 10,000,000; default 2,000.
    uint32_t packets_per_second;
    // 4 or 6 restricts the scan to IPv4 or IPv6; default both.
    uint32_t ip_version;
    // Whether to connect to listed TCP servers to measure their round-trip time. They see a player that leaves at once.
    uint32_t connect_tcp;
} rp_scan_config;

// Handle of a scan.
typedef uint64_t rp_scan;

// Something that a scan found. Set `size` to the size of the structure. Numbers that are unknown are -1. Texts are in the
// caller's buffer, zero-terminated, never null, and empty if they are unknown; they have no control characters.
typedef struct {
    // Size of this structure in bytes.
    uint32_t size;
    // One of `RP_SCAN_*`.
    uint32_t kind;
    // Index of the target, in the order in which they were given.
    uint32_t target;
    // Number of players.
    int32_t players;
    // Maximum number of players.
    int32_t max_players;
    // Number of bots.
    int32_t bots;
    // Whether a password is required: 1, 0, or -1.
    int32_t password;
    // Round-trip time in microseconds, if the server answered.
    int32_t ping_us;
    // Address and port.
    const char *address;
    // Name of the server.
    const char *name;
    // Name of the game.
    const char *game;
    // Game mode.
    const char *mode;
    // Current map.
    const char *map;
    // Version of the game.
    const char *version;
    // Names of the players, separated by line feeds.
    const char *player_names;
    // Why there is no answer, as a sentence.
    const char *error;
} rp_scan_record;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the interface that the loaded library has: compare it with `RP_ABI_VERSION` before anything else is called.
// Never fails. Any thread.
uint32_t rp_abi_version(void);

// The version of the library, such as "0.1.0". The text is static. Never fails. Any thread.
const char *rp_version(void);

// The sentence about the last error of this thread, as a zero-terminated text that is cut off if the buffer is too small.
// Returns the length of the whole text without the zero byte; with a null pointer or a capacity of 0, that is all it does.
// Successful calls do not change the last error. Never fails. Any thread.
size_t rp_last_error(char *buffer,
                     size_t capacity);

// What an error code means in general. The text is static; it is never null. Never fails. Any thread.
const char *rp_error_text(int32_t code);

// Generates a secret key for a server, of `RP_KEY_LENGTH` bytes. Store it where only the server can read it. Any thread.
int32_t rp_generate_key(uint8_t *secret_key);

// The public half of a secret key: clients that know it accept no other server. Any thread.
int32_t rp_public_key(const uint8_t *secret_key, uint8_t *public_key);

// The public half of the secret key of an account service, with which servers verify its tokens (`rp_server_config.token_key`).
// The secret key is any `RP_KEY_LENGTH` random bytes, such as those of `rp_generate_key`. Any thread.
int32_t rp_token_key(const uint8_t *secret_key,
                     uint8_t *token_key);

// Signs a token with which `username` may log in to the server with this public key until `expires`, in seconds since 1970; for
// an account service. `data` is for the server, at most 64 bytes; anyone who has the token can read it. Returns the length of
// the token, at most `RP_MAX_TOKEN`. Any thread.
int32_t rp_token_issue(const uint8_t *secret_key,
                       const uint8_t *server_key,
                       const char *username,
                       uint64_t expires,
                       const uint8_t *data,
                       size_t length,
                       uint8_t *buffer,
                       size_t capacity);

// Starts to log in to a server, such as "play.example.org:45555"; `RP_EVENT_CONNECTED` or `RP_EVENT_LOGIN_FAILED` follows.
// Blocks while a name is resolved. The handle is written to `client`. Any thread.
int32_t rp_client_connect(const char *server,
                          const rp_client_config *config,
                          rp_client *client);

// Receives datagrams, handles timers, and sends what is due. Call it once per frame. Any thread, one at a time.
int32_t rp_client_poll(rp_client client);

// Waits until a datagram arrives, a timer expires, or this many milliseconds have passed, for loops without frames; then call
// `rp_client_poll`. Blocks. Any thread, one at a time.
int32_t rp_client_wait(rp_client client,
                       uint32_t timeout_ms);

// Sends the messages passed to `rp_client_send` now and not with the next `rp_client_poll`. Call it at the end of a frame. Any
// thread, one at a time.
int32_t rp_client_flush(rp_client client);

// Sends a message, reliably. `RP_ERROR_WOULD_BLOCK` if the window is full, `RP_ERROR_TOO_LARGE`, `RP_ERROR_NOT_CONNECTED`. Any
// thread, one at a time.
int32_t rp_client_send(rp_client client,
                       const uint8_t *data,
                       size_t length);

// Sends a message on a channel. Its number, by which `RP_EVENT_RECEIPT` names it, is written to `message`, which may be null.
// `RP_ERROR_WOULD_BLOCK` if the queue of the channel is full, `RP_ERROR_TOO_LARGE`, `RP_ERROR_NOT_CONNECTED`. Any thread, one at
// a time.
int32_t rp_client_send_on(rp_client client,
                          uint32_t channel,
                          const uint8_t *data,
                          size_t length,
                          uint64_t *message);

// Takes the next event. Returns 1 if there is one, 0 if not. Its message or text is copied into `buffer`, with a zero byte
// behind it if there is room. `RP_ERROR_BUFFER_TOO_SMALL`: `event->length` says how much is needed, and the event is kept. Any
// thread, one at a time.
int32_t rp_client_next_event(rp_client client,
                             rp_event *event,
                             uint8_t *buffer,
                             size_t capacity);

// One of `RP_STATE_*`. Any thread, one at a time.
int32_t rp_client_state(rp_client client);

// 1 if the server has acknowledged every message that was sent, 0 if not. Any thread, one at a time.
int32_t rp_client_is_delivered(rp_client client);

// Statistics of the connection. `RP_ERROR_NOT_CONNECTED` if there is none. Any thread, one at a time.
int32_t rp_client_stats(rp_client client, rp_stats *stats);

// Ends the session: the messages that are left are delivered, then the server is told. Call `rp_client_poll` until
// `rp_client_state` is `RP_STATE_CLOSED`: it takes a moment. Any thread, one at a time.
int32_t rp_client_disconnect(rp_client client);

// Frees the client. If its session has not ended, the server is told, and messages that are left are lost:
// `rp_client_disconnect` comes first. The handle is not valid any more.
// Any thread; if another one is using the client, it is freed when that call ends.
int32_t rp_client_close(rp_client client);

// Opens the sockets of a server; players can log in from then on. The handle is written to `server`. Any thread.
int32_t rp_server_bind(const rp_server_config *config, rp_server *server);

// Receives datagrams, handles timers, and sends what is due. Call it once per frame. Any thread, one at a time.
int32_t rp_server_poll(rp_server server);

// Waits until a datagram arrives, a timer expires, or this many milliseconds have passed, for loops without frames; then call
// `rp_server_poll`. Blocks. Any thread, one at a time.
int32_t rp_server_wait(rp_server server,
                       uint32_t timeout_ms);

// Sends the messages passed to `rp_server_send` now and not with the next `rp_server_poll`. Call it at the end of a frame. Any
// thread, one at a time.
int32_t rp_server_flush(rp_server server);

// Sends a message to a player, reliably. `RP_ERROR_UNKNOWN_PLAYER`; otherwise as `rp_client_send`. Any thread, one at a time.
int32_t rp_server_send(rp_server server,
                       uint32_t player,
                       const uint8_t *data,
                       size_t length);

// Sends a message to a player on a channel. `RP_ERROR_UNKNOWN_PLAYER`; otherwise as `rp_client_send_on`. Any thread, one at a
// time.
int32_t rp_server_send_on(rp_server server,
                          uint32_t player,
                          uint32_t channel,
                          const uint8_t *data,
                          size_t length,
                          uint64_t *message);

// Sends a message on a channel to all players, which share one copy of it. Returns the number of recipients: a player whose
// queue is full misses it. Any thread, one at a time.
int32_t rp_server_broadcast(rp_server server,
                            uint32_t channel,
                            const uint8_t *data,
                            size_t length);

// Accepts a player after `RP_EVENT_LOGIN_REQUEST`; `RP_EVENT_CONNECTED` follows. `rp_server_disconnect` refuses it, with a
// reason. `RP_ERROR_UNKNOWN_PLAYER` if there is no such request, or no longer. Any thread, one at a time.
int32_t rp_server_accept(rp_server server,
                         uint32_t player);

// The data that the game's account service has put into a player's token, from `RP_EVENT_LOGIN_REQUEST` on. Returns its length,
// 0 to 64; `RP_ERROR_NOT_FOUND` if there is no token. Any thread, one at a time.
int32_t rp_server_token_data(rp_server server,
                             uint32_t player,
                             uint8_t *buffer,
                             size_t capacity);

// Takes the next event: as `rp_client_next_event`. Any thread, one at a time.
int32_t rp_server_next_event(rp_server server, rp_event *event, uint8_t *buffer, size_t capacity);

// Ends a player's session with a reason, which may be null; `RP_EVENT_DISCONNECTED` follows. Any thread, one at a time.
int32_t rp_server_disconnect(rp_server server, uint32_t player, const char *reason);

// Statistics of a player's connection. Any thread, one at a time.
int32_t rp_server_stats(rp_server server, uint32_t player, rp_stats *stats);

// A player's address as a zero-terminated text, at most 64 bytes. Returns its length. Any thread, one at a time.
int32_t rp_server_player_address(rp_server server, uint32_t player, char *buffer, size_t capacity);

// The address that the server listens on, with its actual port, as a zero-terminated text; `index` is 0 or 1. Returns its
// length. Any thread, one at a time.
int32_t rp_server_local_address(rp_server server,
                                uint32_t index,
                                char *buffer,
                                size_t capacity);

// Sets what queries are answered with. Any thread, one at a time.
int32_t rp_server_set_info(rp_server server, const rp_server_info *info);

// Frees the server, without a farewell to the players: `rp_server_disconnect` comes first. The handle is not valid any more.
// Any thread; if another one is using the server, it is freed when that call ends.
int32_t rp_server_close(rp_server server);

// Starts to register a server with its lobbies. Call `rp_announcer_poll` once per frame or at least every few seconds. The
// handle is written to `announcer`. Does not block: names are resolved in the background. Any thread.
int32_t rp_announcer_start(const rp_announcer_config *config,
                           rp_announcer *announcer);

// Sends the registrations that are due. Returns the number of milliseconds until it has something to do again, at most 30,000.
// Any thread, one at a time.
int32_t rp_announcer_poll(rp_announcer announcer);

// Copies the text of the next event, such as a lobby that cannot be found, as a zero-terminated text for a log. Returns 1 if
// there is one, 0 if not. Reading events is optional. Any thread, one at a time.
int32_t rp_announcer_next_event(rp_announcer announcer,
                                char *buffer,
                                size_t capacity);

// Sets the current number of slots, players and bots, and whether a password is required. A change is sent with the next
// `rp_announcer_poll`, at most once per second. Any thread, one at a time.
int32_t rp_announcer_set_occupancy(rp_announcer announcer,
                                   uint32_t slots,
                                   uint32_t players,
                                   uint32_t bots,
                                   uint32_t password);

// Sets a key of the registration: "name", "map", "game", "x-...". The value is any bytes. If the registration would not be
// valid with it, nothing changes. Any thread, one at a time.
int32_t rp_announcer_set_key(rp_announcer announcer,
                             const char *key,
                             const uint8_t *value,
                             size_t length);

// Number of registrations that have left this machine. Whether they arrive, only the list of the lobby shows. Any thread, one
// at a time.
int32_t rp_announcer_registrations_sent(rp_announcer announcer);

// Unregisters the server and frees the announcer. The handle is not valid any more. A program that ends without it stays
// listed for up to 70 seconds. Any thread; if another one is using the announcer, both happen when that call ends.
int32_t rp_announcer_close(rp_announcer announcer);

// Starts to read lists and to query servers. `targets` are separated by white space or commas: "lobby://lobby.example.org/gg2"
// is a list, "play.example.org:6969" or "session://[2001:db8::1]" a server. `config` may be null. The handle is written to
// `scan`. Any thread.
int32_t rp_scan_start(const char *targets,
                      const rp_scan_config *config,
                      rp_scan *scan);

// Takes the next thing that the scan found, and waits for it up to this many milliseconds; with 0 it does not block. Returns 1
// if there is one, 0 if there is none yet; after the last one, each call returns 1 with `RP_SCAN_FINISHED`. Texts are placed in
// `buffer`, where the record points to them: 4,096 bytes are enough for nearly every server. `RP_ERROR_BUFFER_TOO_SMALL`: the
// record is kept for the next call. Any thread, one at a time.
int32_t rp_scan_next(rp_scan scan,
                     rp_scan_record *record,
                     char *buffer,
                     size_t capacity,
                     uint32_t timeout_ms);

// Ends the scan and frees it. The handle is not valid any more. Any thread; if another one is using the scan, it is freed when
// that call ends.
int32_t rp_scan_close(rp_scan scan);

// Receives and sends for everything that this thread has opened. Call it once per step. Returns the number of open objects.
double rpgm_handle_io(void);

// Takes the next event of a client, server, announcer or scan. Returns its kind: `RP_EVENT_*`, or `RP_SCAN_*` for a scan; 1 for
// an announcer, whose events are texts for a log. 0 if there is none, for a scan -100 if there is none yet. Other negative
// numbers are `RP_ERROR_*`.
double rpgm_next_event(double object);

// Closes a client, server, announcer or scan. An announcer unregisters its server; players of a server are not told.
double rpgm_close(double object);

// The sentence about the last error.
const char *rpgm_error(void);

// Logs in to a server, such as "play.example.org:45555". Returns a handle or an error; `RP_EVENT_CONNECTED` or
// `RP_EVENT_LOGIN_FAILED` follows.
double rpgm_connect(const char *server, const char *username, const char *game);

// Logs in to a server with these channels: as `rpgm_connect`. `channels` is the same text as the server's, see
// `rpgm_host_channels`.
double rpgm_connect_channels(const char *server, const char *username, const char *game, const char *channels);

// Opens a server on this port, for this game. Returns a handle or an error.
double rpgm_host(double port, const char *game, double max_players);

// Opens a server with channels: as `rpgm_host`. `channels` names the mode of each, separated by commas: "reliable", "unordered",
// "sequenced" or "expiring". A channel's number is its position, from 0. Messages have up to 65,536 bytes.
double rpgm_host_channels(double port,
                          const char *game,
                          double max_players,
                          const char *channels);

// Selects the channel on which this thread sends from now on, 0 at first. Objects without channels do not use it.
double rpgm_set_channel(double channel);

// One of `RP_STATE_*`, for a client.
double rpgm_state(double client);

// Sends a text, to a player of a server, or to the server of a client (then `player` is 0). It leaves with the next
// `rpgm_handle_io`.
double rpgm_send_text(double object, double player, const char *text);

// Sends this many bytes of a buffer, whose address engines pass as a `char*`: `buffer_get_address` in GameMaker Studio.
double rpgm_send_buffer(double object, double player, const char *data, double length);

// Adds a byte, 0 to 255, to the message that is being written, for engines without buffers.
double rpgm_write_byte(double value);

// Sends the message that was written, and begins a new one.
double rpgm_send_written(double object, double player);

// Ends the session of a player, or of a client (then `player` is 0).
double rpgm_disconnect(double object, double player);

// The player of the event that was taken last.
double rpgm_event_player(void);

// The reason of the event that was taken last: one of `RP_REASON_*`, or 0.
double rpgm_event_code(void);

// The channel of the message that was taken last; 0 if the event is no message, or the session has no channels.
double rpgm_event_channel(void);

// The length of the message or text of the event that was taken last.
double rpgm_event_length(void);

// The message or text of the event that was taken last, as a text.
const char *rpgm_event_text(void);

// A byte of the message of the event that was taken last; -1 beyond its end.
double rpgm_event_byte(double index);

// Copies the message of the event that was taken last into a buffer. Returns its length or an error.
double rpgm_event_copy(char *buffer, double capacity);

// Registers a server with lobbies. `list` is the UUID or the name of the list, such as "gg2"; `tcp` is 1 if players connect over
// TCP. Returns a handle or an error.
double rpgm_announce(const char *lobbies,
                     const char *list,
                     const char *name,
                     double port,
                     double tcp);

// Sets the current number of slots, players and bots of an announced server.
double rpgm_set_occupancy(double announcer, double slots, double players, double bots, double password);

// Sets a key of an announced server, such as "map", to a text.
double rpgm_set_key(double announcer, const char *key, const char *value);

// Reads lists and queries servers: as `rp_scan_start`, with one of `RP_DETAIL_*`. Returns a handle or an error.
double rpgm_scan(const char *targets, double detail);

// A number of the record that a scan returned last, by the name of its field in `rp_scan_record`: "players", "ping_us"; -1 if it
// is unknown.
double rpgm_scan_number(const char *field);

// A text of the record that a scan returned last, by the name of its field in `rp_scan_record`: "name", "address"; empty if it
// is unknown.
const char *rpgm_scan_text(const char *field);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RALLYPOINT_H */
