//! The test vectors of the wire crate.

/// Decodes hexadecimal digits, as written in the vector files.
///
/// # Panics
/// If the text has anything else than pairs of hexadecimal digits.
#[must_use]
pub fn hex(digits: &str) -> Vec<u8> {
    let pair = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(pair).collect()
}

/// The cases of `crates/wire/tests/vectors/NAME.json`.
///
/// # Panics
/// If there is no such file, or it is not a vector file.
#[must_use]
pub fn vectors(name: &str) -> Vec<serde_json::Value> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/wire/tests/vectors");
    let text = std::fs::read_to_string(format!("{directory}/{name}.json")).expect("the vector file");
    let file: serde_json::Value = serde_json::from_str(&text).expect("vector files are JSON");
    file["cases"].as_array().expect("a vector file has cases").clone()
}
