//! The form of a ban in JSON: in the operator's file and in the API.

use rallypoint_wire::lobby::Transport;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// [`Transport`] by its name in lower case.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Transport", rename_all = "snake_case")]
pub(super) enum TransportCode {
    Tcp,
    Udp,
}

/// Values in the form of their `Display` and `FromStr`.
pub(super) mod as_text {
    use super::{Deserialize, Deserializer, Error, Serializer};
    use std::{fmt::Display, str::FromStr};

    pub fn serialize<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A shared string as a plain one.
pub(super) mod shared_text {
    use super::{Deserialize, Deserializer, Serializer};
    use std::sync::Arc;

    pub fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        Ok(String::deserialize(deserializer)?.into())
    }
}

/// A time as whole seconds since 1970; 0 if it is earlier.
pub(super) mod unix_seconds {
    use super::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::{Duration, SystemTime};

    /// The end of the year 9999, which every system's clock can represent.
    const LAST: Duration = Duration::from_secs(253_402_300_799);

    pub fn serialize<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
        let seconds = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        time.map(seconds).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SystemTime>, D::Error> {
        let seconds = Option::<u64>::deserialize(deserializer)?;
        let time = |seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        Ok(seconds.map(|seconds| time(seconds).unwrap_or(SystemTime::UNIX_EPOCH + LAST)))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Ban, BanSubject, PublicId, UnlistedServer};
    use rallypoint_wire::lobby::Transport;
    use std::time::{Duration, SystemTime};

    #[test]
    fn bans_survive_a_round_trip_through_json() {
        let server = UnlistedServer {
            id: PublicId::from_bytes([7; 16]),
            name: "Bacon Town".into(),
            transport: Transport::Udp,
            addresses: vec!["203.0.113.9:8190".parse().unwrap(), "[2001:db8::9]:8190".parse().unwrap()],
        };
        for (subject, start, until) in [
            (BanSubject::Network("203.0.113.0/24".parse().unwrap()), r#"{"network":"203.0.113.0/24","#, Some(7)),
            (BanSubject::Network("203.0.113.9".parse().unwrap()), r#"{"network":"203.0.113.9","#, None),
            (BanSubject::name("casino").unwrap(), r#"{"name":"casino","#, Some(7)),
            (BanSubject::Server(server), r#"{"server":{"id":"0707"#, Some(u64::MAX >> 1)),
        ] {
            let time = until.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
            let ban = Ban { subject, reason: "test".into(), until: time };
            let json = serde_json::to_string(&ban).unwrap();
            let end = format!(r#""reason":"test","until":{}}}"#, serde_json::to_string(&until).unwrap());
            assert!(json.starts_with(start) && json.ends_with(&end), "{json}");
            assert_eq!(serde_json::from_str::<Ban>(&json).unwrap(), ban);
        }
    }

    #[test]
    fn a_ban_needs_a_subject_but_no_end() {
        assert!(serde_json::from_str::<Ban>(r#"{"reason":"","until":null}"#).is_err());
        assert_eq!(serde_json::from_str::<Ban>(r#"{"name":"casino","reason":""}"#).unwrap().until, None);
        let far = format!(r#"{{"name":"casino","reason":"","until":{}}}"#, u64::MAX);
        assert!(serde_json::from_str::<Ban>(&far).unwrap().is_in_force(SystemTime::now()));
    }
}
