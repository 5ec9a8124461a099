"""Keys by which clients recognise a server."""

import ctypes

from ._library import check, library

KEY_LENGTH = 32


def generate_key() -> bytes:
    """A new secret key for a server. Store it where only the server can read it."""
    key = ctypes.create_string_buffer(KEY_LENGTH)
    check(library.rp_generate_key(key))
    return key.raw


def public_key(secret_key: bytes) -> bytes:
    """The public half of a secret key: clients that know it accept no other server."""
    if len(secret_key) != KEY_LENGTH:
        raise ValueError("a key has %d bytes" % KEY_LENGTH)
    key = ctypes.create_string_buffer(KEY_LENGTH)
    check(library.rp_public_key(ctypes.create_string_buffer(secret_key, KEY_LENGTH), key))
    return key.raw
