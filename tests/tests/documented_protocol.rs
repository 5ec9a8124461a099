//! The Python program in docs/protocols.md registers a server.

use rallypoint_harness::{Lobby, skip, stderr};
use std::process::{Command, Stdio};

const CHAPTER: &str = include_str!("../../docs/protocols.md");

#[test]
fn the_documented_program_registers_a_server() {
    if !Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        skip("Python 3 is not installed");
        return;
    }
    let lobby = Lobby::start();
    let (_, block) = CHAPTER.split_once("```python\n").expect("the chapter has a program");
    let program = block.split("```").next().unwrap();
    let call = format!("{program}\nregister((\"127.0.0.1\", {}), b\"0123456789abcdef\", 8190)\n", lobby.v4().port());
    let output = Command::new("python3").args(["-c", &call]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    lobby.wait_until_listed(&["Bacon Town 24/7"]);
}
