//! The secret of a cluster comes from the environment or from a file; a mistake with it is reported in one sentence.

use rallypoint_harness::{CLUSTER_SECRET, GameServer, Lobby, RedisServer, rallypoint, stderr, stdout};
use std::fs;

/// A file of `openssl rand -hex 32` ends with a line break.
#[test]
fn a_node_reads_the_secret_from_a_file() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let first = Lobby::builder().node(&store.url(), "a").start();
    let second = Lobby::builder().file("secret", &format!("{CLUSTER_SECRET}\n")).set("cluster.secret_file=secret");
    let second = second.variable("RALLYPOINT_CLUSTER_URL", &store.url()).set("cluster.node=b").start();
    second.register(&GameServer::named("a"));
    first.wait_until_listed(&["a"]);
}

#[test]
fn a_wrong_secret_file_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let secret = format!("{CLUSTER_SECRET}\n");
    for (name, content) in [("good", secret.as_bytes()), ("empty", b""), ("blank", b" \n\n"), ("binary", &[0xff; 32])] {
        fs::write(home.path().join(name), content).unwrap();
    }
    fs::create_dir(home.path().join("directory")).unwrap();
    let serve = |file: &str, secret: Option<&str>| {
        let mut command = rallypoint(home.path());
        command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off"]);
        command.args(["--cluster", "redis://127.0.0.1:1", "--set", &format!("cluster.secret_file={file}")]);
        command.envs(secret.map(|secret| ("RALLYPOINT_CLUSTER_SECRET", secret)));
        command.output().unwrap()
    };
    for (file, secret, expected) in [
        ("good", Some(CLUSTER_SECRET), "cluster.secret is set as well; remove one of them"),
        ("missing", None, "cannot read the cluster's secret"),
        ("directory", None, "cannot read the cluster's secret"),
        ("binary", None, "cannot read the cluster's secret"),
        ("empty", None, "16 to 1024 bytes"),
        ("blank", None, "16 to 1024 bytes"),
    ] {
        let output = serve(file, secret);
        let text = stderr(&output);
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(2), ""), "{file}: {text}");
        // The first line says that the configuration is wrong, the second one what and why.
        assert_eq!(text.lines().count(), 2, "{file}: {text}");
        assert!(text.lines().last().is_some_and(|line| line.contains(expected)), "{file}: {text}");
        assert!(!text.contains(CLUSTER_SECRET), "{file}: {text}");
    }
}
