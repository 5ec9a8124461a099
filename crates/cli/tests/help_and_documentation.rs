//! The help texts are complete and have examples and exit codes; the pages in docs/ cover all settings and codes.

use rallypoint_harness::{run, stdout};
use rallypoint_query_proto::Protocol;
use std::fs;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");

fn help(args: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), args);
    assert!(output.status.success(), "{args:?}");
    stdout(&output)
}

/// All commands, as listed by `--help`.
fn verbs() -> Vec<String> {
    commands(&help(&["--help"]))
}

/// The commands that a help text lists.
fn commands(text: &str) -> Vec<String> {
    let commands = text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).filter(|verb| verb != "help").collect()
}

#[test]
fn every_help_has_examples_and_exit_codes_that_fit_into_a_terminal() {
    let verbs = verbs();
    assert!(verbs.len() >= 12, "{verbs:?}");
    let pages = verbs.iter().map(|verb| vec![&**verb, "--help"]).chain([vec!["--help"]]);
    for args in pages {
        let text = help(&args);
        for part in ["Usage: rallypoint", "Examples:", "Exit codes:"] {
            assert!(text.contains(part), "{args:?} has no {part:?}:\n{text}");
        }
        // The text before the examples is wrapped by clap.
        for line in text.lines().skip_while(|line| *line != "Examples:") {
            assert!(line.chars().count() <= 80, "{args:?} has a line that is too long: {line}");
        }
        for flag in ["--debug", "--capture", "--source", "--timeout"] {
            let scans = ["query", "ping", "list", "check", "browse", "watch", "doctor"].contains(&args[0]);
            assert!(!scans || text.contains(flag), "{args:?} has no {flag}");
        }
    }
}

/// The help of every command as a whole, so that a change of a text shows up in a review: `INSTA_UPDATE=always` rewrites
/// the snapshots.
#[test]
fn help_texts_are_reviewed_as_a_whole() {
    let mut pages = vec![("rallypoint".to_owned(), help(&["--help"]))];
    for verb in verbs() {
        let text = help(&[&verb, "--help"]);
        let subcommands = commands(&text);
        for subcommand in subcommands {
            pages.push((format!("{verb}_{subcommand}"), help(&[&verb, &subcommand, "--help"])));
        }
        pages.push((verb, text));
    }
    for (name, text) in pages {
        // clap indents empty lines of long help texts.
        let text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        let text = without_further_protocols(&text);
        insta::assert_snapshot!(format!("help_{name}"), text);
    }
}

/// Without the options of protocols that were added to the first two: they follow from the table of protocols.
fn without_further_protocols(text: &str) -> String {
    let options: Vec<_> = Protocol::ALL.iter().skip(2).map(|protocol| format!("--{protocol} <ADDR:PORT>")).collect();
    let is_kept = |part: &&str| !options.iter().any(|option| part.trim_start().starts_with(&**option));
    text.split("\n\n").filter(is_kept).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn every_command_is_in_the_documentation() {
    let page = |name: &str| fs::read_to_string(format!("{DOCS}{name}")).unwrap();
    let all = [
        "../README.md",
        "install.md",
        "querying.md",
        "announcing.md",
        "operating.md",
        "moderating.md",
        "several-nodes.md",
        "playing.md",
    ]
    .map(page)
    .concat();
    for verb in verbs() {
        let is_for_shells = matches!(&*verb, "completions" | "man" | "respond");
        assert!(is_for_shells || all.contains(&format!("rallypoint {verb} ")), "no page explains {verb}");
    }
}

#[test]
fn help_shows_defaults_and_variables() {
    let words = help(&["serve", "--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("[default: 0.0.0.0:29944 and [::]:29944]"), "{words}");
    assert!(help(&["announce", "--help"]).contains("RALLYPOINT_LOBBY"));
}

#[test]
fn every_setting_is_in_the_documentation() {
    let page = fs::read_to_string(format!("{DOCS}configuration.md")).unwrap();
    let mut section = String::new();
    let mut keys = 0;
    for line in help(&["serve", "--print-config"]).lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = format!("{name}.");
            assert!(page.contains(&format!("[{name}]")), "docs/configuration.md lacks the section [{name}]");
        } else if let Some((key, value)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            let row = if section == "lists.names." {
                format!("`{key}` = `{value}`")
            } else if section == "caps." && key == "memory" {
                // The default depends on the memory of the machine.
                format!("| `{section}{key}` | `\"2GiB\"` |")
            } else {
                format!("| `{section}{key}` | `{value}` |")
            };
            assert!(page.contains(&row), "docs/configuration.md lacks {row}");
            keys += 1;
        }
    }
    assert!(keys > 40, "{keys}");
}

#[test]
fn every_reason_code_is_in_the_documentation() {
    let page = fs::read_to_string(format!("{DOCS}moderating.md")).unwrap();
    let codes =
        rallypoint_lobby_proto::RegistrationOutcome::CODES.iter().chain(&rallypoint_lobby_proto::UnlistReason::CODES);
    for code in codes {
        assert!(page.contains(&format!("| `{code}` |")), "docs/moderating.md does not explain {code}");
    }
}

#[test]
fn the_systemd_unit_uses_existing_flags_and_directories() {
    let unit = fs::read_to_string(format!("{DOCS}../packaging/rallypoint.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/rallypoint serve\n"), "{unit}");
    for line in ["Type=notify", "ExecReload=", "StateDirectory=rallypoint", "DynamicUser=yes"] {
        assert!(unit.contains(line), "{line}");
    }
}

#[test]
fn the_version_names_commit_target_and_features() {
    let home = tempfile::tempdir().unwrap();
    let text = stdout(&run(home.path(), ["--version"]));
    let lines: Vec<_> = text.lines().collect();
    let version = concat!("rallypoint ", env!("CARGO_PKG_VERSION"));
    assert_eq!(lines[0], version);
    let keys: Vec<_> = lines[1..].iter().filter_map(|line| line.split_once(": ")).map(|(key, _)| key).collect();
    assert_eq!(keys, ["commit", "target", "features"], "{text}");
    assert_eq!(stdout(&run(home.path(), ["-V"])).trim(), version);
}
