"""Keys by which clients recognise a server, and tokens by which a server recognises players."""

import ctypes

from ._library import check, encode, library

KEY_LENGTH = 32
MAX_TOKEN = 138


def generate_key() -> bytes:
    """A new secret key for a server. Store it where only the server can read it."""
    key = ctypes.create_string_buffer(KEY_LENGTH)
    check(library.rp_generate_key(key))
    return key.raw


def _checked(key: bytes) -> bytes:
    if len(key) != KEY_LENGTH:
        raise ValueError("a key has %d bytes" % KEY_LENGTH)
    return key


def public_key(secret_key: bytes) -> bytes:
    """The public half of a secret key: clients that know it accept no other server."""
    key = ctypes.create_string_buffer(KEY_LENGTH)
    check(library.rp_public_key(_checked(secret_key), key))
    return key.raw


def token_key(secret_key: bytes) -> bytes:
    """The public half of the secret key of an account service: servers verify tokens with it."""
    key = ctypes.create_string_buffer(KEY_LENGTH)
    check(library.rp_token_key(_checked(secret_key), key))
    return key.raw


def issue_token(secret_key: bytes, *, server_key: bytes, username: str, expires: int, data: bytes = b"") -> bytes:
    """A token with which a player may join a server until a time, in seconds since 1970; for an account service."""
    token = ctypes.create_string_buffer(MAX_TOKEN)
    length = check(
        library.rp_token_issue(
            _checked(secret_key), _checked(server_key), encode(username), expires, data, len(data), token, len(token)
        )
    )
    return token.raw[:length]
