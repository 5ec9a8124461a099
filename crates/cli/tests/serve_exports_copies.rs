//! With `--export`, a lobby writes signed copies of its page and lists into a directory (W120).

use rallypoint_harness::{GameServer, Lobby, eventually, http_get, program, rallypoint, run, skip, stderr};
use rallypoint_query::list_names;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A lobby that exports into a directory.
fn exporting(directory: &Path) -> Lobby {
    let directory = format!("export.directory={}", directory.display());
    Lobby::with(&[&directory, "export.interval=1s", "export.page_url=https://lobby.example.org/"])
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(text) = fs::read(directory.join("servers.json")) else { return Vec::new() };
    let document: Value = serde_json::from_slice(&text).expect("never half-written");
    let servers = document["servers"].as_array().expect("a list");
    let mut names: Vec<_> = servers.iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// All files of the copy, relative to the directory.
fn files(directory: &Path) -> Vec<String> {
    let list =
        |path: PathBuf| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<_> = list(directory.to_owned()).filter(|name| name != "lists").collect();
    files.extend(list(directory.join("lists")).map(|name| format!("lists/{name}")));
    files.sort();
    files
}

#[test]
fn w120_page_lists_and_signatures_are_written_at_each_change() {
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("www/lobby");
    let lobby = exporting(&copy);
    let rooms = list_names::find("rooms").unwrap();
    let id = *b"secret server ID";
    let bacon = GameServer::named("<b>Bacon</b> Town").with_id(id).port(9_001);
    let tea = GameServer::named("Tea room").port(9_002).in_lobby(rooms);
    lobby.register(&bacon);
    lobby.register(&tea);
    eventually("both are exported", || names(&copy) == ["<b>Bacon</b> Town", "Tea room"]);
    eventually("the page follows", || {
        fs::read_to_string(copy.join("index.html")).is_ok_and(|page| page.contains("Tea room"))
    });
    let expected = [
        "index.html",
        "index.html.minisig",
        "lists/gg2.bin",
        "lists/gg2.bin.minisig",
        "lists/rooms.bin",
        "lists/rooms.bin.minisig",
        "rallypoint.pub",
        "servers.json",
        "servers.json.minisig",
        "servers.signed",
    ];
    eventually("nothing else is there", || files(&copy) == expected);
    // The raw list is what TCP sends.
    assert_eq!(fs::read(copy.join("lists/gg2.bin")).unwrap(), lobby.list_reply());
    let page = fs::read_to_string(copy.join("index.html")).unwrap();
    assert!(page.contains("This is a static copy of the list, made at"), "{page}");
    assert!(page.contains("href=\"https://lobby.example.org/\"") && !page.contains("<script"), "{page}");
    assert!(!page.contains("<b>Bacon"), "names are escaped: {page}");
    for file in files(&copy) {
        let bytes = fs::read(copy.join(&file)).unwrap();
        assert!(!bytes.windows(id.len()).any(|window| window == id), "L13: {file}");
    }
    // One object for clients: always of one age.
    let signed = fs::read(copy.join("servers.signed")).unwrap();
    assert!(signed.starts_with(b"untrusted comment: ") && signed.ends_with(b"]}\n"));
    lobby.unregister(&tea);
    eventually("a list without servers is removed", || !copy.join("lists/rooms.bin").exists());
    eventually("with its signature", || !copy.join("lists/rooms.bin.minisig").exists());
    assert_eq!(names(&copy), ["<b>Bacon</b> Town"]);
}

#[cfg(unix)]
#[test]
fn w120_a_web_server_can_read_the_files_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("www/lobby");
    // The umask of the systemd unit.
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077 && exec \"$0\" \"$@\""]).arg(program());
    command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--export"]).arg(&copy);
    command.env_clear().env("HOME", home.path()).stdin(Stdio::null());
    let lobby = Lobby::spawn(&mut command, 1);
    lobby.register_port("Bacon Town", 9_001);
    eventually("it is exported", || names(&copy) == ["Bacon Town"]);
    lobby.stop();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for directory in [copy.parent().unwrap(), &copy, &copy.join("lists")] {
        assert_eq!(mode(directory), 0o755, "{}", directory.display());
    }
    for file in files(&copy) {
        assert_eq!(mode(&copy.join(&file)), 0o644, "{file}");
    }
}

#[test]
fn w120_minisign_verifies_every_file() {
    if Command::new("minisign").arg("-v").output().is_err() {
        return skip("minisign is not installed");
    }
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("copy");
    let lobby = exporting(&copy);
    lobby.register_port("Bacon Town", 9_001);
    eventually("it is exported", || names(&copy) == ["Bacon Town"]);
    // The files must not change meanwhile.
    lobby.stop();
    let verify = |file: &Path| {
        let output = Command::new("minisign").arg("-Vm").arg(file).arg("-p").arg(copy.join("rallypoint.pub")).output();
        let output = output.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    };
    for file in ["index.html", "servers.json", "lists/gg2.bin"] {
        let (is_valid, text) = verify(&copy.join(file));
        assert!(is_valid && text.contains("timestamp:"), "{file}: {text}");
    }
    // As docs/mirrors.md splits it.
    let signed = fs::read(copy.join("servers.signed")).unwrap();
    let head: usize = signed.split_inclusive(|byte| *byte == b'\n').take(4).map(<[u8]>::len).sum();
    fs::write(home.path().join("split.minisig"), &signed[..head]).unwrap();
    fs::write(home.path().join("split"), &signed[head..]).unwrap();
    assert!(verify(&home.path().join("split")).0);
    fs::write(home.path().join("split"), &signed[head + 1..]).unwrap();
    assert!(!verify(&home.path().join("split")).0, "a changed file");
}

#[test]
fn w120_the_key_stays_the_same_and_the_api_states_it() {
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("copy");
    let mut lobby = exporting(&copy);
    let key = |lobby: &Lobby| {
        let (status, body) = http_get(lobby.http(), "/api/v1/lists");
        assert_eq!(status, 200);
        serde_json::from_str::<Value>(&body).unwrap()["export_key"].as_str().unwrap().to_owned()
    };
    let first = key(&lobby);
    assert!(fs::read_to_string(copy.join("rallypoint.pub")).unwrap().contains(&first));
    assert!(lobby.log().contains(&first), "{}", lobby.log());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(lobby.data("export.key")), 0o600);
        assert_eq!(mode(copy.join("rallypoint.pub")) & 0o044, 0o044, "a web server can read it");
    }
    lobby.stop();
    lobby.restart();
    assert_eq!(key(&lobby), first);
    let without = Lobby::start();
    let (_, body) = http_get(without.http(), "/api/v1/lists");
    assert!(serde_json::from_str::<Value>(&body).unwrap()["export_key"].is_null());
}

#[test]
fn w120_the_page_shows_the_key_and_the_command_for_mirrors() {
    let home = tempfile::tempdir().unwrap();
    let directory = format!("export.directory={}", home.path().join("copy").display());
    let lobby = Lobby::with(&[&directory]);
    let key = fs::read_to_string(home.path().join("copy/rallypoint.pub")).unwrap();
    let key = key.lines().nth(1).unwrap().to_owned();
    let page = |lobby: &Lobby| http_get(lobby.http(), "/lists").1;
    assert!(page(&lobby).contains(&format!("<pre class=\"snippet\">{key}</pre>")), "{}", page(&lobby));
    let mirrors = "export.mirrors=https://a.example/m/,https://b.example/";
    let lobby = Lobby::with(&[&directory, mirrors, "export.hosts=lobby.example.org"]);
    let page = page(&lobby).replace("<span class=\"option\">", "").replace("</span>", "");
    // Each lobby of this test has a key of its own.
    let command = "<pre class=\"snippet\">rallypoint list lobby.example.org --mirror https://a.example/m/ --mirror https://b.example/ --mirror-key RW";
    assert!(page.contains(command), "{page}");
    assert!(!http_get(Lobby::start().http(), "/lists").1.contains("mirror"), "only if copies are written");
}

#[test]
fn w120_a_stopped_lobby_leaves_its_last_list_and_an_empty_start_keeps_it() {
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("copy");
    let directory = format!("export.directory={}", copy.display());
    // The interval does not end during the test: only the shutdown can write the second server.
    let lobby = Lobby::with(&[&directory, "export.interval=1h"]);
    lobby.register_port("Bacon Town", 9_001);
    eventually("it is exported", || names(&copy) == ["Bacon Town"]);
    lobby.register_port("Tea room", 9_002);
    // The table follows the list with a delay.
    eventually("the page has it", || http_get(lobby.http(), "/api/v1/servers").1.contains("Tea room"));
    lobby.stop();
    assert_eq!(names(&copy), ["Bacon Town", "Tea room"]);
    // Another lobby without a saved list: its empty list does not replace the copy at once.
    let empty = Lobby::with(&[&directory, "export.interval=1s"]);
    eventually("its list is loaded", || http_get(empty.http(), "/readyz").0 == 200);
    empty.stop();
    assert_eq!(names(&copy), ["Bacon Town", "Tea room"]);
}

#[test]
fn w120_a_first_start_without_servers_writes_a_copy() {
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("copy");
    let lobby = exporting(&copy);
    eventually("an empty copy is written", || copy.join("index.html").exists() && copy.join("servers.signed").exists());
    assert_eq!(names(&copy), [""; 0]);
    lobby.stop();
}

#[test]
fn w120_a_failure_keeps_the_last_copy_and_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("copy");
    let lobby = exporting(&copy);
    lobby.register_port("Bacon Town", 9_001);
    eventually("it is exported", || names(&copy) == ["Bacon Town"]);
    // The page is written last.
    eventually("completely", || {
        fs::read_to_string(copy.join("index.html")).is_ok_and(|page| page.contains("Bacon Town"))
    });
    // A file that cannot be written: a directory is in its place.
    let obstacle = copy.join("servers.signed.new");
    fs::create_dir(&obstacle).unwrap();
    lobby.register_port("Tea room", 9_002);
    lobby.wait_until_logged("cannot write the copy of the list for mirrors");
    let ready = || http_get(lobby.http(), "/readyz").1;
    assert!(ready().contains("\"export\":\"failing\""), "{}", ready());
    assert_eq!(names(&copy), ["Bacon Town"], "nothing was replaced");
    fs::remove_dir(&obstacle).unwrap();
    eventually("it recovers", || names(&copy) == ["Bacon Town", "Tea room"]);
    eventually("and says so", || ready().contains("\"export\":\"writing\""));
    let metrics = http_get(lobby.http(), "/metrics").1;
    assert!(
        metrics.contains("rallypoint_export_failing 0") && metrics.contains("rallypoint_export_written_total"),
        "{metrics}"
    );
}

#[test]
fn w120_the_page_of_something_else_is_not_replaced() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("index.html"), "my home page").unwrap();
    let args = ["serve", "--legacy", "off", "--http", "off", "--lobby", "127.0.0.1:0", "--export", "."];
    let output = run(home.path(), args);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("contains a page of something else"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(home.path().join("index.html")).unwrap(), "my home page");
    fs::write(home.path().join("bad.key"), "short").unwrap();
    let mut command = rallypoint(home.path());
    command.args(&args[..7]).args(["--export", "new", "--set", "export.key_file=bad.key"]);
    let output = command.output().unwrap();
    assert!(stderr(&output).contains("it is not 32 bytes long"), "{}", stderr(&output));
}
