//! `--mirror` reads the list of a lobby that is gone, from a plain web server, if the lobby has signed it (W121, W122).

use rallypoint_harness::{GameServer, Lobby, Process, StaticFiles, eventually, http_get, run, skip, stderr, stdout};
use rallypoint_query::list_names;
use serde_json::Value;
use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Output},
};

/// A lobby with two lists, its copy, and a web server for the copy.
struct Mirrored {
    lobby: Lobby,
    copy: tempfile::TempDir,
    mirror: StaticFiles,
}

impl Mirrored {
    fn start(settings: &[&str]) -> Self {
        let copy = tempfile::tempdir().unwrap();
        let directory = format!("export.directory={}", copy.path().display());
        let lobby = Lobby::with(&[&[&*directory, "export.interval=1s"], settings].concat());
        lobby.register(&GameServer::named("Bacon Town").port(9_001));
        lobby.register(&GameServer::named("Tea room").port(9_002).in_lobby(list_names::find("rooms").unwrap()));
        // The page is written last.
        let is_exported =
            |name| fs::read_to_string(copy.path().join("index.html")).is_ok_and(|page| page.contains(name));
        eventually("both are exported", || is_exported("Bacon Town") && is_exported("Tea room"));
        let mirror = StaticFiles::serve(copy.path());
        Self { lobby, copy, mirror }
    }

    fn key(&self) -> String {
        let file = fs::read_to_string(self.copy.path().join("rallypoint.pub")).unwrap();
        file.lines().nth(1).unwrap().to_owned()
    }

    /// Lists the lobby with its mirror, as the user of this directory.
    fn list(&self, home: &Path, more: &[&str]) -> Output {
        self.list_from(home, &self.mirror.url(), more)
    }

    fn list_from(&self, home: &Path, mirror: &str, more: &[&str]) -> Output {
        let lobby = self.lobby.v4().to_string();
        run(home, [&["list", &*lobby, "--timeout", "1s", "--sort", "name", "--mirror", mirror], more].concat())
    }
}

#[test]
fn w121_the_list_survives_its_lobby() {
    let home = tempfile::tempdir().unwrap();
    let mirrored = Mirrored::start(&[]);
    let live = mirrored.list(home.path(), &[]);
    assert_eq!((live.status.code(), &*stderr(&live)), (Some(0), ""), "the lobby itself comes first");
    mirrored.lobby.kill();
    let copied = mirrored.list(home.path(), &[]);
    assert_eq!((copied.status.code(), stdout(&copied)), (Some(0), stdout(&live)), "{}", stderr(&copied));
    let text = stderr(&copied);
    let (lobby, url) = (mirrored.lobby.v4(), mirrored.mirror.url());
    assert!(text.starts_with(&format!("{lobby} does not answer; showing its list of ")), "{text}");
    assert!(text.contains(&format!(" ago, from {url}\n")) && text.contains(&mirrored.key()), "{text}");
    let again = stderr(&mirrored.list(home.path(), &[]));
    assert!(!again.contains("note:") && again.lines().count() == 1, "the key is known now: {again}");
    let known = fs::read_to_string(home.path().join(".local/share/rallypoint/known_lobbies")).unwrap();
    assert!(known.starts_with(&format!("{lobby} {} ", mirrored.key())), "{known}");
    // One list only, and as JSON.
    let rooms = mirrored.list(home.path(), &["--list", "rooms", "--json"]);
    let document: Value = serde_json::from_str(&stdout(&rooms)).unwrap();
    assert_eq!(document["servers"].as_array().unwrap().len(), 1);
    assert_eq!(document["lists"][0]["copy"]["mirror"], url);
    assert!(document["lists"][0]["copy"]["age_s"].is_u64(), "{document}");
}

#[test]
fn w121_a_changed_copy_is_not_shown() {
    let home = tempfile::tempdir().unwrap();
    let mirrored = Mirrored::start(&[]);
    mirrored.lobby.kill();
    let file = mirrored.copy.path().join("servers.signed");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("Bacon Town", "Pirate Bay")).unwrap();
    let output = mirrored.list(home.path(), &[]);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(4), ""), "as if there were no mirror");
    let lines = stderr(&output);
    assert!(lines.contains("the copy is not used: its signature is not valid"), "{lines}");
    assert!(lines.contains("refused: nothing listens"), "{lines}");
    let output = mirrored.list(home.path(), &["--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = &document["errors"][0];
    assert_eq!((&error["error"], &error["target"]), (&"mirror".into(), &mirrored.mirror.url().into()), "{document}");
    // The next mirror is tried.
    let good = tempfile::tempdir().unwrap();
    fs::write(good.path().join("servers.signed"), text).unwrap();
    let second = StaticFiles::serve(good.path());
    let output = mirrored.list(home.path(), &["--mirror", &second.url(), "--mirror-key", &mirrored.key()]);
    assert!(stdout(&output).contains("Bacon Town"), "{}", stderr(&output));
}

#[test]
fn w121_a_mirror_is_not_listed_as_a_lobby() {
    let home = tempfile::tempdir().unwrap();
    let mirrored = Mirrored::start(&[]);
    let output = run(home.path(), ["list", &mirrored.mirror.url()]);
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output);
    assert!(text.contains("it is a static copy of a lobby's list") && text.contains("--mirror URL"), "{text}");
}

#[test]
fn w121_another_key_is_refused_until_it_is_given() {
    let home = tempfile::tempdir().unwrap();
    let first = Mirrored::start(&[]);
    let second = Mirrored::start(&[]);
    first.lobby.kill();
    assert_eq!(first.list(home.path(), &[]).status.code(), Some(0));
    let refused = first.list_from(home.path(), &second.mirror.url(), &[]);
    let text = stderr(&refused);
    assert_eq!((refused.status.code(), &*stdout(&refused)), (Some(4), ""), "{text}");
    assert!(text.contains("but the key of this lobby was") && text.contains("--mirror-key"), "{text}");
    let given = first.list_from(home.path(), &second.mirror.url(), &["--mirror-key", &second.key()]);
    assert_eq!(given.status.code(), Some(0), "{}", stderr(&given));
    let wrong = first.list(home.path(), &["--mirror-key", "RWnonsense"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("expected a public key of minisign"), "{}", stderr(&wrong));
}

#[test]
fn w121_the_key_is_taken_from_a_lobby_that_answers() {
    let home = tempfile::tempdir().unwrap();
    let mirrored = Mirrored::start(&[]);
    let page = mirrored.lobby.url();
    let output = run(home.path(), ["list", &page, "--mirror", &mirrored.mirror.url()]);
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    let known = fs::read_to_string(home.path().join(".local/share/rallypoint/known_lobbies")).unwrap();
    assert_eq!(known, format!("{} {} 0\n", mirrored.lobby.http(), mirrored.key()));
    // A forger at the mirror comes too late.
    let forger = Mirrored::start(&[]);
    mirrored.lobby.kill();
    let output = run(home.path(), ["list", &page, "--timeout", "1s", "--mirror", &forger.mirror.url()]);
    assert!(stderr(&output).contains("but the key of this lobby was"), "{}", stderr(&output));
    let output = run(home.path(), ["list", &page, "--timeout", "1s", "--mirror", &mirrored.mirror.url()]);
    assert!(stdout(&output).contains("Bacon Town"), "{}", stderr(&output));
}

#[test]
fn w121_the_copy_of_another_lobby_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mirrored = Mirrored::start(&["export.hosts=lobby.example.org"]);
    mirrored.lobby.kill();
    let output = mirrored.list(home.path(), &[]);
    assert!(stderr(&output).contains("it is a copy of lobby.example.org"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(4));
    assert!(!home.path().join(".local/share/rallypoint/known_lobbies").exists(), "its key is not remembered");
}

#[test]
fn w122_an_old_copy_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mirrored = Mirrored::start(&[]);
    mirrored.lobby.kill();
    eventually("the copy is older than a second", || {
        let output = mirrored.list(home.path(), &["--mirror-max-age", "1s"]);
        stderr(&output).contains("old, and copies are used for at most 1 second; --mirror-max-age allows more")
    });
    assert_eq!(mirrored.list(home.path(), &["--mirror-max-age", "7d"]).status.code(), Some(0));
}

#[test]
fn w121_a_monitor_is_warned_while_only_the_copy_is_left() {
    let home = tempfile::tempdir().unwrap();
    let mirrored = Mirrored::start(&[]);
    let target = format!("lobby://{}", mirrored.lobby.v4());
    let mirror = mirrored.mirror.url();
    let check = |more: &[&str]| {
        let output = run(home.path(), [&["check", &*target, "--timeout", "1s", "--mirror", &*mirror], more].concat());
        (output.status.code(), stdout(&output))
    };
    let (code, text) = check(&[]);
    assert!(code == Some(0) && text.starts_with(&format!("RALLYPOINT OK - {target}, 2 servers, ")), "{text}");
    mirrored.lobby.kill();
    let (code, text) = check(&["--warn-players", "1:", "--crit-ping", "100"]);
    assert!(code == Some(1) && text.starts_with(&format!("RALLYPOINT WARNING - {target}: refused: ")), "{text}");
    assert!(text.contains(&format!(" ago is at {mirror}, 2 servers")) && text.contains("| servers=2;;;0;\n"), "{text}");
    let (code, text) = check(&["--crit-servers", "3:"]);
    assert!(code == Some(2) && text.contains("servers 2"), "the thresholds hold: {text}");
    fs::write(mirrored.copy.path().join("servers.signed"), "nothing").unwrap();
    let (code, text) = check(&[]);
    assert!(code == Some(2) && text.contains(&format!("; {mirror}: the copy is not used: ")), "{text}");
}

#[test]
fn w121_watch_continues_with_the_copy() {
    let home = tempfile::tempdir().unwrap();
    let mirrored = Mirrored::start(&[]);
    mirrored.lobby.kill();
    let target = format!("lobby://{}", mirrored.lobby.v4());
    let mirror = mirrored.mirror.url();
    let args = ["watch", &*target, "--jsonl", "--passes", "2", "-i", "1ms", "--timeout", "1s", "--mirror", &*mirror];
    let output = run(home.path(), args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let events: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    let copied = named("list_copied");
    assert_eq!((copied.len(), &copied[0]["error"], &copied[0]["mirror"]), (1, &"refused".into(), &mirror.into()));
    assert!(copied[0]["age_s"].is_u64() && copied[0]["list"] == *target, "{copied:?}");
    assert_eq!((named("appeared").len(), named("list_failed").len(), named("gone").len()), (2, 0, 0));
}

/// The block for nginx in docs/mirrors.md publishes a copy as it is.
#[test]
fn w121_nginx_publishes_a_copy() {
    if Command::new("nginx").arg("-v").output().is_err() {
        return skip("nginx is not installed");
    }
    let mirrored = Mirrored::start(&[]);
    mirrored.lobby.kill();
    let docs = include_str!("../../../docs/mirrors.md");
    let block = docs.split("```nginx\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(block.matches("/var/www/lobby/").count(), 1, "{block}");
    let block = block.replace("/var/www/lobby/", &format!("{}/", mirrored.copy.path().display()));
    let home = tempfile::tempdir().unwrap();
    let (dir, port) = (home.path().display(), free_port());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {dir}/{kind};\n"))
        .collect();
    let config = format!(
        "daemon off;\nmaster_process off;\nerror_log stderr crit;\npid {dir}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n\
         {temporary}server {{\nlisten 127.0.0.1:{port};\n{block}}}\n}}\n"
    );
    fs::write(home.path().join("nginx.conf"), config).unwrap();
    let mut command = Command::new("nginx");
    let _nginx = Process::spawn(command.arg("-p").arg(home.path()).arg("-c").arg(home.path().join("nginx.conf")));
    eventually("nginx listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let output = mirrored.list_from(home.path(), &format!("http://127.0.0.1:{port}/lobby/"), &[]);
    assert!(stdout(&output).contains("Bacon Town"), "{}", stderr(&output));
    let (status, page) = http_get(([127, 0, 0, 1], port).into(), "/lobby/index.html");
    assert!(status == 200 && page.contains("static copy"), "{page}");
}

/// A port that is free now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
