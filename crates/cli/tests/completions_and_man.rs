//! Shell completions and manual pages cover every command.

use rallypoint_harness::{run, stderr, stdout};

/// All commands, as listed by `--help`.
fn commands(home: &std::path::Path) -> Vec<String> {
    let help = stdout(&run(home, ["--help"]));
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn shells_complete_every_command() {
    let home = tempfile::tempdir().unwrap();
    let commands = commands(home.path());
    assert!(commands.len() > 10, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(home.path(), ["completions", shell]);
        assert!(script.status.success());
        let script = stdout(&script);
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell} does not complete {command}");
        }
    }
    assert_eq!(run(home.path(), ["completions", "dos"]).status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("man/man1");
    assert!(run(home.path(), ["man", "--dir", dir.to_str().unwrap()]).status.success());
    let program = std::fs::read_to_string(dir.join("rallypoint.1")).unwrap();
    for command in commands(home.path()) {
        let page = std::fs::read_to_string(dir.join(format!("rallypoint-{command}.1"))).unwrap();
        for part in [".SH NAME", ".SH SYNOPSIS", ".SH EXAMPLES", ".SH EXIT CODES"] {
            assert!(page.contains(part), "the page of {command} has no {part}");
        }
        let printed = stdout(&run(home.path(), ["man", &command]));
        assert_eq!(printed, page);
        assert!(program.contains(&format!("rallypoint\\-{command}(1)")), "{command}");
    }
    assert_eq!(stdout(&run(home.path(), ["man"])), program);
    let unknown = run(home.path(), ["man", "cook"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("there is no command \"cook\"; the commands are serve"), "{}", stderr(&unknown));
}
