//! Requests to a master list: the query string of the URL.
//!
//! ```text
//! (nothing)                          requests the list
//! action=update&port=P&time=T        announces a server at the sender's address and this port (L17)
//! ```

use crate::{DecodeError, DecodeErrorKind, Writer};
use alloc::vec::Vec;
use core::{fmt, num::NonZeroU16};

/// A request to a master list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A client requests the list.
    List,
    /// Announcement of a server.
    Update(Update),
}

/// Announcement of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// UDP port for queries. The address is the sender's.
    pub port: NonZeroU16,
    /// The server's clock. It only defeats caches, and is optional (W6).
    pub time: Option<i64>,
}

impl Request {
    /// Parses the query string without its question mark. Parameters may be in any order, the last of a kind counts, and
    /// unknown ones are ignored; without an action the list is requested (W6).
    pub fn parse(query: &str) -> Result<Self, DecodeError> {
        let mut action = None;
        let mut port = None;
        let mut time = None;
        for parameter in query.split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "action" => action = Some(value),
                "port" => port = Some(value),
                "time" => time = Some(value),
                _ => {}
            }
        }
        match action {
            None => Ok(Self::List),
            Some("update") => {
                let port: u16 = port
                    .ok_or(DecodeError::new("port", DecodeErrorKind::Missing))?
                    .parse()
                    .map_err(|_| DecodeError::new("port", DecodeErrorKind::Invalid))?;
                let port = NonZeroU16::new(port).ok_or(DecodeError::new("port", DecodeErrorKind::Zero))?;
                Ok(Self::Update(Update { port, time: time.and_then(|time| time.parse().ok()) }))
            }
            Some(_) => Err(DecodeError::new("action", DecodeErrorKind::Unknown)),
        }
    }

    /// Appends the query string, without a question mark.
    pub fn emit(&self, out: &mut Vec<u8>) {
        Writer::new(out).display(format_args!("{self}"));
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List => Ok(()),
            Self::Update(Update { port, time: None }) => write!(f, "action=update&port={port}"),
            Self::Update(Update { port, time: Some(time) }) => write!(f, "action=update&port={port}&time={time}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn update(port: u16, time: Option<i64>) -> Request {
        Request::Update(Update { port: port.try_into().unwrap(), time })
    }

    #[test]
    fn l17_a_server_announces_its_port() {
        let text = "action=update&port=6969&time=123456";
        assert_eq!(Request::parse(text), Ok(update(6969, Some(123_456))));
        let mut bytes = Vec::new();
        update(6969, Some(123_456)).emit(&mut bytes);
        assert_eq!(bytes, text.as_bytes());
        assert_eq!(update(1, None).to_string(), "action=update&port=1");
    }

    #[test]
    fn l17_without_parameters_the_list_is_requested() {
        assert_eq!(Request::parse(""), Ok(Request::List));
        assert_eq!(Request::List.to_string(), "");
    }

    #[test]
    fn w6_order_unknown_parameters_and_the_time_do_not_matter() {
        assert_eq!(Request::parse("time=-5&x&port=1&action=update&y=2"), Ok(update(1, Some(-5))));
        assert_eq!(Request::parse("action=update&port=1&port=2&time=soon"), Ok(update(2, None)));
        assert_eq!(Request::parse("time=5"), Ok(Request::List));
    }

    #[test]
    fn l17_errors_name_the_invalid_parameter() {
        for (query, error) in [
            ("action=delete&port=1", "unknown action"),
            ("action=update", "no port"),
            ("action=update&port=0", "port is 0"),
            ("action=update&port=65536", "port is not valid"),
            ("action=update&port=%31", "port is not valid"),
        ] {
            assert_eq!(Request::parse(query).unwrap_err().to_string(), error, "{query}");
        }
    }
}
