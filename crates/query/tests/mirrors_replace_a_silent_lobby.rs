//! When a lobby does not answer, its list is read from the first mirror with an acceptable copy, and its key is remembered
//! (W121, W122).

use rallypoint_harness::TcpPort;
use rallypoint_mirror::minisign::{SigningKey, TrustedComment};
use rallypoint_query::{
    ScanConfig, ScanEvent, Scanner,
    mirror::{FILE, KeyPins, MirrorConfig, MirrorEvent, PinnedKey},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

#[derive(Debug, Default)]
struct Pins(Mutex<HashMap<String, PinnedKey>>);

impl KeyPins for Pins {
    fn pinned(&self, lobby: &str) -> Option<PinnedKey> {
        self.0.lock().unwrap().get(lobby).copied()
    }

    fn pin(&self, lobby: &str, key: PinnedKey) {
        self.0.lock().unwrap().insert(lobby.into(), key);
    }
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed([seed; 32]).unwrap()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A copy with one server.
fn copy(key: &SigningKey, name: &str, age: u64) -> Vec<u8> {
    let document = format!(
        r#"{{"format":1,"hosts":[],"max_age":86400,"servers":[{{"name":"{name}","transport":"tcp",
        "list":"1ccf16b1-436d-856f-504d-cc1af306aaa7","addresses":{{"ipv4":"192.0.2.1:8190"}}}}]}}"#
    );
    let comment = TrustedComment { timestamp: now() - age, file: FILE.into() };
    [key.sign(document.as_bytes(), &comment).to_string().as_bytes(), document.as_bytes()].concat()
}

fn ok(body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// A mirror that answers requests for the signed file with these bytes, and those for the key with the key.
async fn mirror(key: &SigningKey, response: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/m/", listener.local_addr().unwrap());
    let public = ok(key.public().to_file().as_bytes());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let public = public.clone();
            let response = response.clone();
            tokio::spawn(async move {
                let mut request = [0; 4_096];
                let read = stream.read(&mut request).await.unwrap();
                let text = String::from_utf8_lossy(&request[..read]).into_owned();
                let is_key = text.starts_with("GET /m/rallypoint.pub ");
                assert!(is_key || text.starts_with("GET /m/servers.signed "), "{text}");
                let _ = stream.write_all(if is_key { &public } else { &response }).await;
                // A response without an end stays open.
                if response.is_empty() {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    url
}

struct Scan {
    names: Vec<String>,
    used: Vec<String>,
    failed: Vec<String>,
    list: String,
}

/// Scans a lobby that does not exist, with these mirrors.
async fn scan(target: &str, mirrors: &[&str], given: Option<&SigningKey>, pins: &Arc<Pins>) -> Scan {
    let config = ScanConfig { detail: None, timeout: Duration::from_millis(300), ..ScanConfig::default() };
    let mut scanner = Scanner::new(config, [target.parse().unwrap()]).unwrap();
    scanner.set_mirrors(Some(MirrorConfig {
        urls: mirrors.iter().map(|url| url.parse().unwrap()).collect(),
        key: given.map(SigningKey::public),
        max_age: None,
        pins: pins.clone(),
    }));
    let mut scan = Scan { names: Vec::new(), used: Vec::new(), failed: Vec::new(), list: String::new() };
    scanner
        .scan(|event| match event {
            ScanEvent::Listed { server, .. } => scan.names.push(server.name().to_owned()),
            ScanEvent::Mirror(0, event) => match *event {
                MirrorEvent::Used(list) => scan.used.push(format!("{} {:?}", list.age(), list.older_by())),
                MirrorEvent::Failed { error, .. } => scan.failed.push(error.to_string()),
            },
            ScanEvent::ListComplete(0, summary) => scan.list = format!("{} servers", summary.servers),
            ScanEvent::ListFailed(0, error) => scan.list = error.code().to_owned(),
            other => panic!("{other:?}"),
        })
        .await;
    scan
}

/// A port at which nothing listens.
fn closed_lobby() -> (TcpPort, String) {
    let port = TcpPort::closed("127.0.0.1");
    let lobby = format!("lobby://127.0.0.1:{}", port.number());
    (port, lobby)
}

#[tokio::test]
async fn w121_the_first_mirror_with_a_valid_copy_is_used() {
    let (_port, lobby) = closed_lobby();
    let pins = Arc::default();
    let good = mirror(&key(1), ok(&copy(&key(1), "Bacon Town", 180))).await;
    let unused = mirror(&key(1), ok(&copy(&key(1), "Other", 0))).await;
    let broken = mirror(&key(1), ok(b"nothing")).await;
    let missing = mirror(&key(1), b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec()).await;
    let scan = scan(&lobby, &[&broken, &missing, &good, &unused], None, &pins).await;
    assert_eq!((scan.names, scan.list), (vec!["Bacon Town".to_owned()], "1 servers".to_owned()));
    assert_eq!(scan.used, ["3 minutes None"]);
    assert!(scan.failed[0].contains("not a signature") && scan.failed[1].contains("404"), "{:?}", scan.failed);
}

#[tokio::test]
async fn w121_only_the_wanted_list_is_shown() {
    let (_port, lobby) = closed_lobby();
    let pins = Arc::default();
    let good = mirror(&key(1), ok(&copy(&key(1), "Bacon Town", 0))).await;
    let gg2 = scan(&format!("{lobby}/gg2"), &[&good], None, &pins).await;
    assert_eq!((gg2.names.len(), gg2.list), (1, "1 servers".to_owned()));
    let rooms = scan(&format!("{lobby}/rooms"), &[&good], None, &pins).await;
    assert_eq!((rooms.names.len(), rooms.list), (0, "0 servers".to_owned()));
}

#[tokio::test]
async fn w121_the_key_of_the_first_contact_counts() {
    let (_port, lobby) = closed_lobby();
    let pins = Arc::<Pins>::default();
    let first = mirror(&key(1), ok(&copy(&key(1), "Bacon Town", 0))).await;
    assert_eq!(scan(&lobby, &[&first], None, &pins).await.names, ["Bacon Town"]);
    let forged = mirror(&key(2), ok(&copy(&key(2), "Pirate Bay", 0))).await;
    let refused = scan(&lobby, &[&forged], None, &pins).await;
    assert_eq!((refused.names.len(), &*refused.list), (0, "refused"), "the error of the lobby itself");
    assert!(refused.failed[0].contains("but the key of this lobby was"), "{:?}", refused.failed);
    // A key that is given replaces the remembered one.
    assert_eq!(scan(&lobby, &[&forged], Some(&key(2)), &pins).await.names, ["Pirate Bay"]);
    assert_eq!(scan(&lobby, &[&forged], None, &pins).await.names, ["Pirate Bay"]);
    let other = scan(&lobby, &[&forged], Some(&key(1)), &pins).await;
    assert!(other.failed[0].contains("signed with the key"), "{:?}", other.failed);
}

#[tokio::test]
async fn w122_a_copy_older_than_one_seen_before_is_the_last_choice() {
    let (_port, lobby) = closed_lobby();
    let pins = Arc::<Pins>::default();
    let fresh = mirror(&key(1), ok(&copy(&key(1), "Fresh", 0))).await;
    let hour = mirror(&key(1), ok(&copy(&key(1), "Hour", 3_600))).await;
    let two_hours = mirror(&key(1), ok(&copy(&key(1), "Two hours", 7_200))).await;
    let minute = mirror(&key(1), ok(&copy(&key(1), "Minute", 60))).await;
    assert_eq!(scan(&lobby, &[&two_hours], None, &pins).await.used, ["2 hours None"]);
    assert_eq!(scan(&lobby, &[&fresh], None, &pins).await.names, ["Fresh"]);
    assert_eq!(scan(&lobby, &[&two_hours, &hour, &minute], None, &pins).await.names, ["Minute"], "caches differ");
    let old = scan(&lobby, &[&two_hours, &hour], None, &pins).await;
    assert_eq!(old.names, ["Hour"], "the newest of them");
    assert!(old.used[0].starts_with("60 minutes Some"), "{:?}", old.used);
}

#[tokio::test]
async fn hostile_mirrors_cost_a_bounded_time() {
    let (_port, lobby) = closed_lobby();
    let pins = Arc::default();
    let silent = mirror(&key(1), Vec::new()).await;
    let moved =
        mirror(&key(1), b"HTTP/1.1 302 Found\r\nLocation: /m/servers.signed\r\nContent-Length: 0\r\n\r\n".to_vec())
            .await;
    // A byte now and then, without an end.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let slow = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4_096]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                while stream.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            });
        }
    });
    let scan = scan(&lobby, &[&silent, &moved, &slow], Some(&key(1)), &pins).await;
    assert_eq!((scan.names.len(), &*scan.list), (0, "refused"));
    assert!(scan.failed[0].contains("no answer within"), "{:?}", scan.failed);
    assert!(scan.failed[1].contains("it has moved to"), "redirects are not followed: {:?}", scan.failed);
    assert!(scan.failed[2].contains("no answer within 4.5 s"), "{:?}", scan.failed);
}
