//! Servers that do not answer when a watch begins: one line instead of hundreds.

use super::event::{WatchEvent, WatchEventKind};
use std::collections::BTreeMap;

/// Maximum number of silent servers that are reported one by one.
const MAX_SINGLE: usize = 3;

/// The silent servers of the first pass.
#[derive(Debug, Default)]
pub struct FirstSilences(Vec<WatchEvent>);

impl FirstSilences {
    /// Keeps an event if it is one of these; otherwise returns it.
    pub fn take(&mut self, event: WatchEvent) -> Option<WatchEvent> {
        match event.kind {
            WatchEventKind::Silent { at_first: true, .. } => {
                self.0.push(event);
                None
            }
            _ => Some(event),
        }
    }

    /// The lines about them: one for each server if there are few, otherwise one for all. `line` is the line about one.
    pub fn lines(&mut self, line: impl Fn(&WatchEvent) -> String) -> Vec<String> {
        let events = std::mem::take(&mut self.0);
        if events.len() <= MAX_SINGLE {
            return events.iter().map(line).collect();
        }
        let mut by_error: BTreeMap<&str, usize> = BTreeMap::new();
        for event in &events {
            if let WatchEventKind::Silent { error, .. } = &event.kind {
                *by_error.entry(error.code()).or_default() += 1;
            }
        }
        let counts: Vec<_> =
            by_error.iter().map(|(code, count)| format!("{count} {}", code.replace('_', " "))).collect();
        vec![format!("{} servers do not answer ({})", events.len(), counts.join(", "))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_query::{ProbeError, ScannedServer, Target};
    use std::time::Duration;

    fn silent(name: &str, error: ProbeError) -> WatchEvent {
        let Ok(Target::Server(server)) = format!("session://{name}").parse() else { panic!("{name}") };
        let server = ScannedServer { error: Some(error.clone()), ..ScannedServer::named(&server, 0) };
        WatchEvent { server: Some(server), target_index: 0, kind: WatchEventKind::Silent { error, at_first: true } }
    }

    #[test]
    fn many_are_reported_in_one_line_and_few_one_by_one() {
        let mut silences = FirstSilences::default();
        for n in 0..150 {
            assert!(silences.take(silent(&format!("h{n}"), ProbeError::TimedOut(Duration::from_secs(4)))).is_none());
        }
        for n in 0..50 {
            silences.take(silent(&format!("r{n}"), ProbeError::Refused));
        }
        assert_eq!(
            silences.lines(|event| event.line("a list")),
            ["200 servers do not answer (50 refused, 150 timed out)"]
        );
        assert!(silences.lines(|event| event.line("a list")).is_empty());
        silences.take(silent("h", ProbeError::Refused));
        let lines = silences.lines(|event| event.line("a list"));
        assert!(lines.len() == 1 && lines[0].starts_with("session://h: does not answer: refused"), "{lines:?}");
    }

    #[test]
    fn later_silences_are_not_kept() {
        let mut silences = FirstSilences::default();
        let mut event = silent("h", ProbeError::Refused);
        event.kind = WatchEventKind::Silent { error: ProbeError::Refused, at_first: false };
        assert!(silences.take(event).is_some());
    }
}
