//! At level info the log contains masked addresses only, and no server ID (L13).

use crate::common;

use common::{Lobby, eventually, options, server, unregistration};
use std::sync::{Arc, Mutex};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Collects the log messages up to level info.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn l13_the_log_contains_no_complete_address_and_no_server_id() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let lobby = Lobby::start(options());
    lobby.send(&server("one"));
    lobby.wait_until_listed(&["one"]);
    lobby.send(&unregistration("one"));
    let has = |message: &str| log.0.lock().unwrap().iter().any(|line| line.contains(&format!("message={message} ")));
    eventually("both events are logged", || has("listed") && has("unlisted"));
    lobby.shutdown();
    let lines = log.0.lock().unwrap();
    let about_servers = || lines.iter().filter(|line| line.contains("listed"));
    assert!(about_servers().all(|line| line.contains("127.0.0.x") && !line.contains("127.0.0.1")), "{lines:#?}");
    // The ID of this server is its name, padded with zeros.
    let id = "6f6e65";
    assert!(!lines.iter().any(|line| line.contains(id) || line.contains("[111, 110, 101")), "{lines:#?}");
}
