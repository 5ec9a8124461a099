//! A validator for the part of JSON Schema that the OpenAPI document uses. An unsupported keyword panics, so that no part of
//! the document is left unchecked.

use serde_json::Value;
use std::collections::BTreeSet;

/// Panics if a value does not match a schema of the document, or has a key that the schema does not name.
pub fn check(document: &Value, schema: &Value, value: &Value, at: &str) {
    check_part(document, schema, value, at);
    if let Some(known) = keys(document, schema) {
        for key in value.as_object().into_iter().flat_map(|object| object.keys()) {
            assert!(known.contains(key), "{at}: the schema does not name {key}");
        }
    }
}

/// Checks one schema of several that apply to the value, which may have keys of the others.
fn check_part(document: &Value, schema: &Value, value: &Value, at: &str) {
    for (keyword, expected) in schema.as_object().unwrap_or_else(|| panic!("{at}: {schema} is not a schema")) {
        let holds = match keyword.as_str() {
            "description" | "example" | "examples" | "default" => true,
            "$ref" => {
                check_part(document, resolve(document, expected), value, at);
                true
            }
            // In this document: null, or one schema.
            "oneOf" => {
                let other = expected.as_array().unwrap().iter().filter(|schema| schema["type"] != "null");
                other.filter(|_| !value.is_null()).for_each(|schema| check(document, schema, value, at));
                true
            }
            "allOf" => {
                expected.as_array().unwrap().iter().for_each(|schema| check_part(document, schema, value, at));
                true
            }
            "type" => match expected {
                Value::Array(types) => types.iter().any(|one| has_type(one, value)),
                one => has_type(one, value),
            },
            "enum" => expected.as_array().unwrap().contains(value),
            "const" => expected == value,
            "pattern" => value.as_str().is_none_or(|text| matches_pattern(expected.as_str().unwrap(), text)),
            "format" => value.as_str().is_none_or(|text| is_format(expected.as_str().unwrap(), text)),
            "minimum" => value.as_f64().is_none_or(|number| number >= expected.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= expected.as_f64().unwrap()),
            "required" => value.as_object().is_none_or(|object| {
                expected.as_array().unwrap().iter().all(|key| object.contains_key(key.as_str().unwrap()))
            }),
            "properties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = expected.get(key) {
                        check(document, schema, value, &format!("{at}.{key}"));
                    }
                }
                true
            }
            "additionalProperties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    if schema["properties"].get(key).is_none() && expected.is_object() {
                        check(document, expected, value, &format!("{at}.{key}"));
                    }
                }
                true
            }
            "items" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, expected, value, &format!("{at}[{index}]"));
                }
                true
            }
            "propertyNames" => {
                for name in value.as_object().into_iter().flat_map(|object| object.keys()) {
                    check(document, expected, &Value::String(name.clone()), &format!("{at} (key)"));
                }
                true
            }
            "maxLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 <= expected.as_u64().unwrap()),
            unknown => panic!("{at}: unsupported keyword {unknown}"),
        };
        assert!(holds, "{at}: {keyword} {expected} does not hold for {value}");
    }
}

/// All keys that a schema names; `None` if it allows others.
fn keys(document: &Value, schema: &Value) -> Option<BTreeSet<String>> {
    if schema.get("additionalProperties").is_some() {
        return None;
    }
    if let Some(name) = schema.get("$ref") {
        return keys(document, resolve(document, name));
    }
    let mut all: BTreeSet<_> =
        schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        all.extend(keys(document, part)?);
    }
    (!all.is_empty()).then_some(all)
}

fn resolve<'a>(document: &'a Value, name: &Value) -> &'a Value {
    &document["components"]["schemas"][name.as_str().unwrap().rsplit('/').next().unwrap()]
}

fn has_type(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        unknown => panic!("unsupported type {unknown}"),
    }
}

fn matches_pattern(pattern: &str, text: &str) -> bool {
    match pattern {
        "^[0-9a-f]{32}$" => text.len() == 32 && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte)),
        unknown => panic!("unsupported pattern {unknown}"),
    }
}

fn is_format(format: &str, text: &str) -> bool {
    match format {
        "date-time" => text.ends_with('Z') && rallypoint_history::export::parse_time(text).is_ok(),
        "uuid" => text.parse::<rallypoint_wire::lobby::ListId>().is_ok(),
        "int32" | "int64" | "double" => true,
        unknown => panic!("unsupported format {unknown}"),
    }
}
