//! The single-file clients in Python and C register, refresh, unregister and list, and write the golden datagrams.

use rallypoint_harness::{GameServer, Lobby, Process, hex, skip, stderr, stdout, vectors};
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/wire/tests/vectors/lobby.json");

fn client(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../clients")).join(path)
}

/// A command that runs this version of Python, if there is one.
fn python(version: &str) -> Option<Command> {
    let names = [format!("python{version}"), format!("python{}", &version[..1])];
    names.iter().find_map(|name| {
        let new = || {
            let mut command = Command::new(name);
            // Several versions may be installed side by side, with one of them chosen by this variable.
            command.env("PYENV_VERSION", version).args(["-B"]);
            command
        };
        new().arg("--version").output().ok().filter(|output| output.status.success())?;
        Some(new())
    })
}

/// Every installed Python of interest, with its name.
fn pythons() -> Vec<(&'static str, Command)> {
    let found = ["2.7", "3"].map(|version| (version, python(version)));
    for (version, _) in found.iter().filter(|(_, command)| command.is_none()) {
        skip(&format!("Python {version} is not installed"));
    }
    found.into_iter().filter_map(|(version, command)| Some((version, command?))).collect()
}

#[test]
fn the_python_file_writes_and_reads_the_golden_datagrams() {
    for (version, mut python) in pythons() {
        let output = python.arg(client("python/test_rallypoint_lobby.py")).arg(VECTORS).output().unwrap();
        assert!(output.status.success(), "Python {version}: {}", stderr(&output));
    }
}

#[test]
fn the_python_file_registers_lists_and_unregisters() {
    for (version, _) in pythons() {
        let lobby = Lobby::start();
        let (host, port) = (lobby.v4().ip().to_string(), lobby.v4().port());
        let file = client("python/rallypoint_lobby.py");
        let address = format!("{host}:{port}");
        let game = Process::spawn(python(version).unwrap().arg(&file).args([
            &address,
            "--register",
            "Größe 七",
            "--udp",
            "--port",
            "8190",
        ]));
        lobby.wait_until_listed(&["Größe 七"]);
        game.wait_for_line("listed");
        let list = python(version).unwrap().arg(&file).arg(&address).output().unwrap();
        assert_eq!(stdout(&list), "0/0  Größe 七  127.0.0.1 port 8190\n", "Python {version}: {}", stderr(&list));
        game.signal(rallypoint_harness::Signal::INT);
        assert!(game.wait().status.success(), "Python {version}: {}", game.stderr());
        lobby.wait_until_listed(&[]);
    }
}

/// Compiles a C program of the clients, or reports that this machine has no C compiler.
fn compile(source: &str, directory: &Path) -> Option<PathBuf> {
    let program = directory.join("program");
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-g", "-O1", "-o"]).arg(&program).arg(client(source));
    let Ok(output) = compiler.output() else {
        skip("there is no C compiler");
        return None;
    };
    assert!(output.status.success(), "{}", stderr(&output));
    Some(program)
}

#[test]
fn the_c_header_writes_and_reads_the_golden_datagrams() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compile("c/golden.c", directory.path()) else { return };
    let cases = vectors("lobby");
    let find = |kind: &'static str| cases.iter().filter(move |case| case["kind"] == kind);
    let bytes = |kind| find(kind).next().unwrap()["bytes"].as_str().unwrap();
    let output = Command::new(&program).arg("register").output().unwrap();
    assert!(output.status.success());
    assert_eq!(stdout(&output), format!("{}\n{}\n", bytes("register"), bytes("unregister")));
    for case in find("list_reply") {
        let mut child =
            Command::new(&program).arg("list").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&hex(case["bytes"].as_str().unwrap())).unwrap();
        let output = child.wait_with_output().unwrap();
        let Some(servers) = case.get("value") else {
            assert!(!output.status.success(), "{case}");
            continue;
        };
        let port = |server: &serde_json::Value, family: &str| {
            server[family].as_str().map_or("0", |text| text.rsplit(':').next().unwrap()).to_owned()
        };
        let expected: String = servers
            .as_array()
            .unwrap()
            .iter()
            .map(|server| {
                let name = server["entries"][0][1].as_str().unwrap();
                let (players, slots) = (&server["players"], &server["slots"]);
                format!("{players}/{slots} {} {} {name}\n", port(server, "ipv4"), port(server, "ipv6"))
            })
            .collect();
        assert_eq!((output.status.success(), stdout(&output)), (true, expected), "{case}");
    }
}

#[test]
fn the_c_header_registers_refreshes_lists_and_unregisters() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compile("c/example.c", directory.path()) else { return };
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("other").port(8191));
    lobby.wait_until_listed(&["other"]);
    let address = [lobby.v4().ip().to_string(), lobby.v4().port().to_string()];
    let game = Process::spawn_interactive(Command::new(&program).args(&address).args(["register", "from C", "8190"]));
    lobby.wait_for_list("the server is listed", |servers| servers.len() == 2);
    game.write_line("");
    lobby.wait_for_list("the player is counted", |servers| servers.iter().any(|server| server.occupancy.players == 1));
    let list = Command::new(&program).args(&address).output().unwrap();
    let lines: Vec<_> = stdout(&list).lines().map(str::to_owned).collect();
    assert!(lines.contains(&"1/16  from C  127.0.0.1:8190".to_owned()), "{lines:?}");
    game.close_stdin();
    assert!(game.wait().status.success());
    lobby.wait_until_listed(&["other"]);
}
