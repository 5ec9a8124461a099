//! `rallypoint admin` bans, unlists and adds notes; the decisions persist across restarts and reloads.

use rallypoint_harness::{Lobby, Signal, rallypoint, run, stderr, stdout, wait_for};
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Output};

/// Starts a lobby with an admin token; also returns the URL of its web server.
fn start(home: &Path, token_file: &Path) -> (Lobby, String) {
    let setting = format!("web.admin_token_file={}", token_file.display());
    let lobby = Lobby::start_in(home, &["--http", "127.0.0.1:0", "--set", &setting]);
    let url = lobby.url();
    (lobby, url)
}

fn admin(home: &Path, url: &str, args: &[&str]) -> Output {
    let token = home.join("token");
    let mut command = rallypoint(home);
    command.args(["admin", "--url", url, "--token-file"]).arg(token).args(args);
    command.output().unwrap()
}

fn stdout_of(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    stdout(output)
}

fn new_token(home: &Path) -> std::path::PathBuf {
    let file = home.join("token");
    fs::write(&file, stdout_of(&run(home, ["admin", "token"]))).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

#[test]
fn decisions_take_effect_and_outlive_restart_and_reload() {
    let home = tempfile::tempdir().unwrap();
    let (home, token) = (home.path(), new_token(home.path()));
    let (lobby, url) = start(home, &token);
    lobby.register_port("Casino Royale", 8_190);
    lobby.register_port("Bacon Town", 8_191);
    lobby.wait_for_list("both are listed", |list| list.len() == 2);
    assert_eq!(stdout_of(&admin(home, &url, &["bans"])), "no bans\n");
    let text = stdout_of(&admin(home, &url, &["ban", "--name", "*casino*", "--reason", "advertising"]));
    assert_eq!(text, "banned: name *casino* permanently (ban 1)\n");
    lobby.wait_for_list("it is gone", |list| list.len() == 1 && list[0].name == "Bacon Town");
    assert_eq!(stdout_of(&admin(home, &url, &["note", "127.0.0.1", "said sorry"])), "note 2 added\n");
    lobby.process().signal(Signal::HUP);
    lobby.process().wait_for_log("configuration reloaded");
    lobby.register_port("Casino Royale", 8_190);
    lobby.process().signal(Signal::TERM);
    assert!(lobby.process().wait().status.success());

    let (lobby, url) = start(home, &token);
    lobby.register_port("Casino Royale", 8_190);
    lobby.register_port("Bacon Town", 8_191);
    lobby.wait_for_list("only one is listed", |list| list.len() == 1 && list[0].name == "Bacon Town");
    let table = stdout_of(&admin(home, &url, &["bans"]));
    assert!(table.contains("name *casino*") && table.contains("advertising"), "{table}");
    assert!(stdout_of(&admin(home, &url, &["notes", "127.0.0.1"])).contains("said sorry"));
    assert_eq!(stdout_of(&admin(home, &url, &["unban", "--name", "*casino*"])), "ban 1 removed: name *casino*\n");
    lobby.register_port("Casino Royale", 8_190);
    lobby.wait_for_list("both are listed", |list| list.len() == 2);
    let audit = stdout_of(&admin(home, &url, &["audit", "--json"]));
    let audit: serde_json::Value = serde_json::from_str(&audit).unwrap();
    let actions: Vec<_> = audit["entries"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["unban", "note", "ban"]);
}

#[test]
fn an_unlisted_server_is_listed_again_after_unban() {
    let home = tempfile::tempdir().unwrap();
    let (home, token) = (home.path(), new_token(home.path()));
    let (lobby, url) = start(home, &token);
    lobby.register_port("Bacon Town", 8_190);
    let line = lobby.process().wait_for_log("listed id=");
    let id = line.split("id=").nth(1).unwrap().split(' ').next().unwrap();
    // The API follows the log a moment later.
    wait_for("the API has the server", || stdout(&run(home, ["list", &*url])).contains("Bacon Town").then_some(()));
    let text = stdout_of(&admin(home, &url, &["unlist", id, "--reason", "wrong game"]));
    assert!(text.starts_with("\"Bacon Town\" is unlisted until "), "{text}");
    lobby.wait_for_list("it is gone", <[_]>::is_empty);
    let table = stdout_of(&admin(home, &url, &["bans"]));
    assert!(table.contains("server \"Bacon Town\"") && table.contains("wrong game"), "{table}");
    assert_eq!(stdout_of(&admin(home, &url, &["unban", id])), "ban 1 removed: server \"Bacon Town\"\n");
    lobby.register_port("Bacon Town", 8_190);
    lobby.wait_for_list("it is back", |list| list.len() == 1);
}

#[test]
fn ten_thousand_bans_are_printed_and_can_be_removed() {
    let home = tempfile::tempdir().unwrap();
    let (home, token) = (home.path(), new_token(home.path()));
    let ban = |number: u32| {
        let network = std::net::Ipv4Addr::from((198 << 24) + number);
        json!({ "id": number, "network": network, "reason": "x".repeat(500), "since": 0, "until": null })
    };
    let bans: Vec<_> = (1..=10_000).map(ban).collect();
    let data = home.join(".local/state/rallypoint");
    fs::create_dir_all(&data).unwrap();
    let record = json!({ "version": 1, "next": 10_001, "bans": bans, "notes": [] });
    fs::write(data.join("admin.json"), record.to_string()).unwrap();
    let (_lobby, url) = start(home, &token);
    let bans = stdout_of(&admin(home, &url, &["bans", "--json"]));
    let bans: serde_json::Value = serde_json::from_str(&bans).unwrap();
    assert_eq!(bans["bans"].as_array().unwrap().len(), 10_000);
    assert_eq!(bans["bans"][9_999]["id"], 10_000);
    assert_eq!(stdout_of(&admin(home, &url, &["unban", "198.0.39.16"])), "ban 10000 removed: 198.0.39.16\n");
}

#[test]
fn unban_accepts_any_notation_of_a_network() {
    let home = tempfile::tempdir().unwrap();
    let (home, token) = (home.path(), new_token(home.path()));
    let (_lobby, url) = start(home, &token);
    for (ban, unban) in [
        ("203.0.113.0/24", "203.0.113.7/24"),
        ("203.0.113.7", "::ffff:203.0.113.7"),
        ("2001:db8::/32", "2001:0DB8:0:0::1/32"),
    ] {
        stdout_of(&admin(home, &url, &["ban", ban]));
        stdout_of(&admin(home, &url, &["unban", unban]));
        assert_eq!(stdout_of(&admin(home, &url, &["bans"])), "no bans\n", "{ban}");
    }
}

#[test]
fn errors_are_one_sentence_with_the_right_exit_code() {
    let home = tempfile::tempdir().unwrap();
    let (home, token) = (home.path(), new_token(home.path()));
    let (lobby, url) = start(home, &token);
    let cases: [(&[&str], i32, &str); 5] = [
        (&["unban", "203.0.113.9"], 1, "no such ban"),
        (&["unban", "somebody"], 2, "expected an address"),
        (&["unlist", "0123456789abcdef0123456789abcdef"], 1, "no server with this ID"),
        (&["ban", "0.0.0.0/0"], 1, "too wide"),
        (&["ban", "everybody"], 2, "expected an address"),
    ];
    for (args, code, part) in cases {
        let output = admin(home, &url, args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{args:?}: {}", stderr(&output));
    }
    let output = run(home, ["admin", "--url", &url, "bans"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no admin token"), "{}", stderr(&output));
    let output = rallypoint(home)
        .args(["admin", "--url", &url, "bans"])
        .env("RALLYPOINT_ADMIN_TOKEN", "not-the-token-at-all")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("wrong admin token"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("not-the-token"), "a token is never repeated");
    let line = lobby.process().wait_for_log("wrong token for the admin API");
    assert!(line.contains("address=127.0.0.x") && line.contains("times=1"), "{line}");
    assert!(!line.contains("not-the-token"), "{line}");
    let output = admin(home, "http://127.0.0.1:1", &["bans"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
}

#[test]
fn a_token_is_never_shown() {
    let home = tempfile::tempdir().unwrap();
    let (home, secret) = (home.path(), "a-secret-of-some-length");
    let with = |value: &str, args: &[&str]| {
        rallypoint(home).arg("serve").args(args).env("RALLYPOINT_WEB_ADMIN_TOKEN", value).output().unwrap()
    };
    let printed = stdout_of(&with(secret, &["--print-config"]));
    assert!(!printed.contains(secret) && printed.contains("# admin_token = (set"), "{printed}");
    let wrong = with("too-short", &["--check-config"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(!stderr(&wrong).contains("too-short") && stderr(&wrong).contains("16 characters"), "{}", stderr(&wrong));
    fs::write(home.join("open"), secret).unwrap();
    fs::set_permissions(home.join("open"), fs::Permissions::from_mode(0o644)).unwrap();
    let setting = format!("web.admin_token_file={}", home.join("open").display());
    let checked = run(home, ["serve", "--check-config", "--set", &setting]);
    assert!(stdout_of(&checked).contains("warning: other users of this machine can read"), "{}", stdout(&checked));
    let both = with(secret, &["--check-config", "--set", &setting]);
    assert_eq!(both.status.code(), Some(2));
    assert!(stderr(&both).contains("web.admin_token is set as well"), "{}", stderr(&both));
}

/// For a lobby whose configuration is not in its default place.
#[test]
fn the_configuration_has_url_and_token() {
    let home = tempfile::tempdir().unwrap();
    let (home, token) = (home.path(), new_token(home.path()));
    let (_lobby, url) = start(home, &token);
    let config = home.join("node.toml");
    let listen = url.trim_start_matches("http://").trim_end_matches('/');
    let text = format!("[web]\nlisten = \"{listen}\"\nadmin_token_file = \"{}\"\n", token.display());
    fs::write(&config, text).unwrap();
    let bans = |config: &Path| rallypoint(home).args(["admin", "bans", "--config"]).arg(config).output().unwrap();
    assert_eq!(stdout_of(&bans(&config)), "no bans\n");
    let missing = bans(&home.join("missing.toml"));
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("missing.toml"), "{}", stderr(&missing));
}

#[test]
fn a_token_file_readable_by_others_causes_a_warning_on_both_sides() {
    let home = tempfile::tempdir().unwrap();
    let (home, token) = (home.path(), new_token(home.path()));
    let warning = "other users of this machine can read the admin token";
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let (lobby, url) = start(home, &token);
    lobby.process().wait_for_log(warning);
    let output = admin(home, &url, &["bans"]);
    assert_eq!(stdout_of(&output), "no bans\n");
    assert!(stderr(&output).contains(warning), "{}", stderr(&output));
    fs::set_permissions(&token, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(stderr(&admin(home, &url, &["bans"])), "", "a group may exist for this purpose");
}

#[test]
fn a_new_token_takes_effect_after_a_reload_and_is_logged() {
    let home = tempfile::tempdir().unwrap();
    let (home, token) = (home.path(), new_token(home.path()));
    let (lobby, url) = start(home, &token);
    new_token(home);
    assert_eq!(admin(home, &url, &["bans"]).status.code(), Some(1), "the old token is in force until the reload");
    lobby.process().signal(Signal::HUP);
    let line = lobby.process().wait_for_log("configuration reloaded");
    assert!(line.contains("changed=\"web.admin_token\""), "{line}");
    assert!(!line.contains(fs::read_to_string(&token).unwrap().trim()), "{line}");
    stdout_of(&admin(home, &url, &["bans"]));
}
