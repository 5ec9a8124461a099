//! Files of golden vectors: each case is a test.

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

/// The tests of a file, which has a list `cases`. `run` runs one of them.
pub fn trials(file: &str, content: &str, run: fn(&Value) -> Result<(), Failed>) -> Vec<Trial> {
    let content: Value = serde_json::from_str(content).expect("the vectors are JSON");
    let cases = content["cases"].as_array().expect("the vectors have cases");
    let trial = |case: &Value| {
        let case = case.clone();
        Trial::test(format!("{file}: {}", text_of(&case["name"])), move || run(&case))
    };
    cases.iter().map(trial).collect()
}

pub fn equal<T: PartialEq + std::fmt::Debug>(got: &T, expected: &T) -> Result<(), Failed> {
    if got == expected { Ok(()) } else { Err(format!("got {got:?}\nexpected {expected:?}").into()) }
}

pub fn text_of(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The bytes of a text of hexadecimal digits.
pub fn hex(value: &Value) -> Vec<u8> {
    let digits = text_of(value);
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex digits")).collect()
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
