//! A part of a list that may be too long for one answer.

use crate::filter::BadParameter;
use serde::Serialize;
use serde_json::{Value, json};

/// The most that one answer has.
const MOST: usize = 1_000;

/// The most bytes of it: no client has to take more at once.
const MOST_BYTES: usize = 1 << 20;

/// Which part of a list is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    offset: usize,
    limit: usize,
}

impl Part {
    /// Reads the parameters of a list that can be asked for in parts, and has one more parameter perhaps.
    pub fn parse(query: Option<&str>, more: Option<&str>) -> Result<(Self, Option<String>), BadParameter> {
        let (mut part, mut found, mut seen) = (Self { offset: 0, limit: MOST }, None, Vec::new());
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if seen.contains(&name) {
                return Err(BadParameter::new(&name, "it is there twice: give it once"));
            }
            let number = |least, most| match value.parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(number),
                _ => Err(BadParameter::new(&name, &format!("expected a number from {least} to {most}"))),
            };
            match &*name {
                "offset" => part.offset = number(0, usize::MAX)?,
                "limit" => part.limit = number(1, MOST)?,
                name if Some(name) == more => found = Some(value.into_owned()).filter(|value| !value.is_empty()),
                _ => {
                    let known: Vec<_> = more.into_iter().chain(["offset", "limit"]).collect();
                    let expected = format!("there is no such parameter; there are {}", known.join(", "));
                    return Err(BadParameter::new(&name, &expected));
                }
            }
            seen.push(name);
        }
        Ok((part, found))
    }

    /// This part of all there is: at least one, if there is one, so that whoever asks on gets to the end.
    pub fn of<T: Serialize>(&self, name: &str, all: &[T]) -> Value {
        let rest = all.get(self.offset..).unwrap_or_default();
        let mut size = 0;
        let fits = |item: &&T| {
            size += serde_json::to_string(item).map_or(0, |json| json.len());
            size <= MOST_BYTES
        };
        let count = rest.iter().take(self.limit).take_while(fits).count().max(1).min(rest.len());
        json!({ "total": all.len(), "offset": self.offset, "count": count, name: rest[..count] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded_and_lead_to_the_end() {
        let all: Vec<_> = (0..2_500).map(|number| format!("{number}{}", "x".repeat(1_000))).collect();
        let (mut seen, mut parts) = (Vec::new(), 0);
        while seen.len() < all.len() {
            let part = Part { offset: seen.len(), limit: MOST }.of("texts", &all);
            assert_eq!((&part["total"], &part["offset"]), (&2_500.into(), &seen.len().into()));
            let texts: Vec<String> = serde_json::from_value(part["texts"].clone()).unwrap();
            assert_eq!(part["count"], texts.len());
            assert!(texts.iter().map(String::len).sum::<usize>() <= MOST_BYTES);
            seen.extend(texts);
            parts += 1;
        }
        assert_eq!((seen == all, parts), (true, 3));
        let beyond = Part { offset: 2_501, limit: 1 }.of("texts", &all);
        assert_eq!((&beyond["count"], &beyond["texts"]), (&0.into(), &json!([])));
        let giant = Part { offset: 0, limit: 1 }.of("texts", &["x".repeat(2 * MOST_BYTES)]);
        assert_eq!(giant["count"], 1);
    }

    #[test]
    fn what_else_is_asked_for_is_a_mistake() {
        assert_eq!(Part::parse(None, None), Ok((Part { offset: 0, limit: MOST }, None)));
        let asked = Part::parse(Some("limit=5&about=x&offset=7"), Some("about"));
        assert_eq!(asked, Ok((Part { offset: 7, limit: 5 }, Some("x".into()))));
        for wrong in ["limit=1&limit=2", "limit=0", "limit=1001", "limit=", "offset=-1", "about=x", "page=1"] {
            assert!(Part::parse(Some(wrong), None).is_err(), "{wrong}");
        }
    }
}
