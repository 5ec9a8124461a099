//! The bodies of admin requests in the OpenAPI document, as exact as the checks of the handlers.
//!
//! A derived schema cannot express which fields exclude each other, so these are built by hand.

use super::handlers::{BanRequest, NoteRequest};
use crate::api::schema::Address;
use rallypoint_lobby_proto::MAX_OPERATOR_TEXT;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, Type,
        schema::{AdditionalProperties, AnyOfBuilder},
    },
};

/// Maximum duration of a ban in seconds: a year.
pub(super) const MAX_DURATION: u64 = 366 * 24 * 60 * 60;

/// Characters that `text::sanitize` replaces, and the joiners that it replaces unless they follow a visible character.
const INVISIBLE: &str = "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}";

/// A network as `address/prefix`, at least /8 (IPv4) or /16 (IPv6). IPv6 addresses can be shortened as well.
const NETWORK_V4: &str = "^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])/([89]|[12][0-9]|3[0-2])$";
const NETWORK_V6: &str = "^[1-9a-f][0-9a-f]{0,3}(:[0-9a-f]{1,4}){7}/(1[6-9]|[2-9][0-9]|1[01][0-9]|12[0-8])$";

impl ToSchema for BanRequest {}

impl PartialSchema for BanRequest {
    fn schema() -> RefOr<Schema> {
        let subjects: [(&str, RefOr<Schema>); 3] =
            [("address", Address::schema()), ("network", Network::schema()), ("name", name_pattern())];
        let mut variants = AnyOfBuilder::new().description(Some(
            "A request for a ban: one of `address`, `network` and `name`, and at most one of `until` and `seconds`.",
        ));
        for (field, subject) in subjects {
            for (end_field, end) in [("until", end()), ("seconds", seconds_schema().into())] {
                let variant = ObjectBuilder::new()
                    .property(field, subject.clone())
                    .required(field)
                    .property("reason", operator_text_schema())
                    .property(end_field, end)
                    .additional_properties(Some(AdditionalProperties::FreeForm(false)));
                variants = variants.item(variant);
            }
        }
        Schema::AnyOf(variants.build()).into()
    }
}

/// An address, or a network as `address/prefix`.
pub(super) struct Network;

impl ToSchema for Network {}

impl PartialSchema for Network {
    fn schema() -> RefOr<Schema> {
        let forms = addresses().item(pattern(NETWORK_V4)).item(pattern(NETWORK_V6));
        let text = "An address, or a network of at least /8 (IPv4) or /16 (IPv6).";
        Schema::AnyOf(forms.description(Some(text)).build()).into()
    }
}

/// The subject of a note.
pub(super) struct NoteSubject;

impl ToSchema for NoteSubject {}

impl PartialSchema for NoteSubject {
    fn schema() -> RefOr<Schema> {
        let forms = addresses().item(pattern(NETWORK_V4)).item(pattern(NETWORK_V6)).item(pattern("^[0-9a-f]{32}$"));
        let text = "The public ID of a server, an address or a network.";
        Schema::AnyOf(forms.description(Some(text)).build()).into()
    }
}

/// The schema of a text of the operator, which may be empty.
pub(super) fn operator_text_schema() -> Schema {
    let text = pattern(&format!("^[^{INVISIBLE}]*$")).max_length(Some(MAX_OPERATOR_TEXT));
    let about = "The reason, which the owner of a server can read: one line of visible characters.";
    Schema::Object(text.description(Some(about)).build())
}

impl ToSchema for NoteRequest {}

impl PartialSchema for NoteRequest {
    fn schema() -> RefOr<Schema> {
        let text = pattern(&format!("^[^{INVISIBLE}]*[^\\s{INVISIBLE}][^{INVISIBLE}]*$"));
        let text = text.max_length(Some(MAX_OPERATOR_TEXT)).description(Some("One line of visible characters."));
        let request = ObjectBuilder::new()
            .description(Some("A request for a note."))
            .property("about", NoteSubject::schema())
            .required("about")
            .property("text", text)
            .required("text")
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        Schema::Object(request.build()).into()
    }
}

/// The schema of the duration of a ban.
pub(super) fn seconds_schema() -> Schema {
    let seconds = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(1))
        .maximum(Some(MAX_DURATION as f64))
        .description(Some("The duration in seconds, at most a year."));
    Schema::Object(seconds.build())
}

/// A pattern of names with at least three characters besides wildcards and spaces.
fn name_pattern() -> RefOr<Schema> {
    let text = pattern(&format!("^([*? ]*[^*?\\s{INVISIBLE}]){{3}}[^{INVISIBLE}]*$"));
    let text = text.max_length(Some(MAX_OPERATOR_TEXT)).description(Some(
        "A pattern of names: `*` matches any text, `?` one character; it needs at least three other characters.",
    ));
    Schema::Object(text.build()).into()
}

/// The end of a ban.
fn end() -> RefOr<Schema> {
    let format =
        |format| ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(format)));
    let forms = AnyOfBuilder::new()
        .item(format(KnownFormat::DateTime))
        .item(format(KnownFormat::Date))
        .item(pattern("^[0-9]{1,11}$"))
        .description(Some(
            "The end, in the future: a date, a time (RFC 3339), or seconds since 1970. Without it the ban is permanent.",
        ));
    Schema::AnyOf(forms.build()).into()
}

fn addresses() -> AnyOfBuilder {
    let format =
        |format| ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(format)));
    AnyOfBuilder::new().item(format(KnownFormat::Ipv4)).item(format(KnownFormat::Ipv6))
}

fn pattern(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern))
}
