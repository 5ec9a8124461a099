//! A game that depends on `rallypoint-announce` and `rallypoint-session` compiles nothing of the lobby service, the web
//! server or the history.

use serde_json::Value;
use std::{
    collections::{BTreeSet, HashMap},
    process::Command,
};

/// The target triple of this machine, as the compiler names it.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(output.stdout).unwrap();
    version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

/// Names of all packages that the given ones are built from, without those for tests only.
fn dependencies_of(roots: &[&str]) -> BTreeSet<String> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    // Packages for other platforms may not have been downloaded.
    let platform = host();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--manifest-path", manifest])
        .args(["--filter-platform", &platform])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let names: HashMap<_, _> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (text(&package["id"]), text(&package["name"])))
        .collect();
    // Cargo writes `null` for the kind of a normal dependency.
    let is_built = |dependency: &&Value| {
        dependency["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].as_str() != Some("dev"))
    };
    let dependencies: HashMap<_, Vec<_>> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| {
            let built = node["deps"].as_array().unwrap().iter().filter(is_built);
            (text(&node["id"]), built.map(|dependency| text(&dependency["pkg"])).collect())
        })
        .collect();
    let mut found = BTreeSet::new();
    let is_root = |id: &&String| roots.contains(&names[*id].as_str());
    let mut pending: Vec<_> = names.keys().filter(is_root).cloned().collect();
    assert_eq!(pending.len(), roots.len());
    while let Some(id) = pending.pop() {
        if found.insert(id.clone()) {
            pending.extend(dependencies[&id].iter().cloned());
        }
    }
    found.iter().map(|id| names[id].clone()).collect()
}

#[test]
fn a_game_compiles_nothing_of_the_lobby_the_web_server_or_the_history() {
    let dependencies = dependencies_of(&["rallypoint-announce", "rallypoint-session"]);
    let ours: Vec<_> = dependencies.iter().filter(|name| name.starts_with("rallypoint")).collect();
    for part in ["lobby", "web", "history", "rallypoint-query", "netsim"] {
        let is_part = |name: &&&String| name.ends_with(part) || name.ends_with(&format!("{part}-proto"));
        let found: Vec<_> = ours.iter().filter(is_part).filter(|name| **name != "rallypoint-query-proto").collect();
        assert!(found.is_empty(), "{part}: {ours:?}");
    }
    for library in ["axum", "hyper", "rusqlite", "clap"] {
        assert!(!dependencies.contains(library), "{library}");
    }
}

#[test]
fn announcing_needs_only_the_codec_and_the_sockets() {
    let dependencies = dependencies_of(&["rallypoint-announce"]);
    let ours: Vec<_> = dependencies.iter().filter(|name| name.starts_with("rallypoint")).map(String::as_str).collect();
    assert_eq!(ours, ["rallypoint-announce", "rallypoint-machine", "rallypoint-udp", "rallypoint-wire"]);
}
