//! BLAKE2b-512 without a key (RFC 7693), the hash that minisign signs. Written here, because nothing else of the project needs it,
//! and a library for it brings eight crates of traits.

/// Bytes that are compressed at once.
const BLOCK: usize = 128;

const ROUNDS: usize = 12;

/// The initial state: the fractional parts of the square roots of the first eight primes, as in SHA-512.
const IV: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// The order of the words of a block in each round; it repeats after ten.
const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

/// The words that each of the eight steps of a round mixes: first the columns, then the diagonals.
const MIXES: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

/// The hash of a text.
pub fn hash(text: &[u8]) -> [u8; 64] {
    let mut state = IV;
    // Length of the hash, no key, fan-out and depth of 1.
    state[0] ^= 0x0101_0000 ^ 64;
    let mut blocks = text.chunks(BLOCK);
    // The last block is compressed differently, and a text without bytes has one of zeros.
    let last = blocks.next_back().unwrap_or_default();
    let mut length = 0;
    for block in blocks {
        length += BLOCK as u128;
        compress(&mut state, block, length, false);
    }
    compress(&mut state, last, length + last.len() as u128, true);
    let mut hash = [0; 64];
    for (bytes, word) in hash.chunks_exact_mut(8).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    hash
}

/// Mixes a block, padded with zeros, into the state; `length` counts the bytes up to its end.
fn compress(state: &mut [u64; 8], block: &[u8], length: u128, is_last: bool) {
    let mut padded = [0; BLOCK];
    padded[..block.len()].copy_from_slice(block);
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(padded.chunks_exact(8)) {
        *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    let mut v = [0; 16];
    v[..8].copy_from_slice(state);
    v[8..].copy_from_slice(&IV);
    v[12] ^= length as u64;
    v[13] ^= (length >> 64) as u64;
    if is_last {
        v[14] = !v[14];
    }
    for round in 0..ROUNDS {
        let order = &SIGMA[round % SIGMA.len()];
        for (mixed, pair) in MIXES.iter().zip(order.chunks_exact(2)) {
            mix(&mut v, mixed, words[pair[0]], words[pair[1]]);
        }
    }
    for (i, word) in state.iter_mut().enumerate() {
        *word ^= v[i] ^ v[i + 8];
    }
}

/// The function G of the RFC.
fn mix(v: &mut [u64; 16], &[a, b, c, d]: &[usize; 4], x: u64, y: u64) {
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(32);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(24);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(63);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_example_of_the_rfc() {
        let expected = "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1\
                        7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923";
        assert_eq!(hex(&hash(b"abc")), expected);
    }

    /// Of another implementation: the first 16 bytes of the hashes of `i * 7 % 251` for all `i` below the length.
    #[test]
    fn texts_around_the_length_of_a_block() {
        for (length, expected) in [
            (0_usize, "786a02f742015903c6c6fd852552d272"),
            (1_usize, "2fa3f686df876995167e7c2e5d74c4c7"),
            (127_usize, "ec2b4ebd83459a83ba49bdfaea2cf0df"),
            (128_usize, "3c2d4866bfb0691d821b7c8ff0bca555"),
            (129_usize, "2298fdc7acc41f58a2833279c6e4439a"),
            (255_usize, "cbef65fb62b4d72781646534eefa7b20"),
            (256_usize, "b0087fc9e88e473ae9da7b28e54f4840"),
            (257_usize, "a909eb307c09fc5b0b774c366bb6466b"),
            (1000_usize, "b611add97bcaee5ccef087e5afe33b18"),
        ] {
            let text: Vec<u8> = (0..length).map(|i| (i * 7 % 251) as u8).collect();
            assert_eq!(hex(&hash(&text)[..16]), expected, "{length} bytes");
        }
    }
}
