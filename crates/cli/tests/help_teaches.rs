//! The help says what there is, with examples and exit codes; and the pages in docs/ leave nothing out.

mod common;

use common::{run, stdout};
use std::fs;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");

fn help(args: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), args);
    assert!(output.status.success(), "{args:?}");
    stdout(&output)
}

#[test]
fn every_help_has_examples_defaults_and_exit_codes() {
    for args in [&["--help"][..], &["serve", "--help"], &["announce", "--help"]] {
        let text = help(args);
        for part in ["Usage: rallypoint", "Examples:", "Exit codes:"] {
            assert!(text.contains(part), "{args:?} has no {part:?}:\n{text}");
        }
    }
    let words = help(&["serve", "--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("[default: 0.0.0.0:29944 and [::]:29944]"), "{words}");
    assert!(help(&["announce", "--help"]).contains("RALLYPOINT_LOBBY"));
    assert_eq!(help(&["--version"]), format!("rallypoint {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_setting_is_in_the_documentation() {
    let page = fs::read_to_string(format!("{DOCS}configuration.md")).unwrap();
    let mut section = String::new();
    let mut keys = 0;
    for line in help(&["serve", "--print-config"]).lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = format!("{name}.");
            assert!(page.contains(&format!("[{name}]")), "docs/configuration.md does not have the section [{name}]");
        } else if let Some((key, value)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            let row = if section == "lobby.names." {
                format!("`{key}` = `{value}`")
            } else {
                format!("| `{section}{key}` | `{value}` |")
            };
            assert!(page.contains(&row), "docs/configuration.md does not have {row}");
            keys += 1;
        }
    }
    assert!(keys > 40, "{keys}");
}

#[test]
fn every_reason_code_is_in_the_documentation() {
    let page = fs::read_to_string(format!("{DOCS}operating.md")).unwrap();
    let codes = rallypoint_lobby::Outcome::CODES.iter().chain(&rallypoint_lobby::Gone::CODES);
    for code in codes {
        assert!(page.contains(&format!("| `{code}` |")), "docs/operating.md does not explain {code}");
    }
}

#[test]
fn the_unit_uses_flags_and_folders_that_exist() {
    let unit = fs::read_to_string(format!("{DOCS}../packaging/rallypoint.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/rallypoint serve\n"), "{unit}");
    for line in ["Type=notify", "ExecReload=", "StateDirectory=rallypoint", "DynamicUser=yes"] {
        assert!(unit.contains(line), "{line}");
    }
}
