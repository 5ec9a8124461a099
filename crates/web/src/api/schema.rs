//! Parameters and schemas of the OpenAPI document that no type of the code has.
//!
//! Parameters are parsed by hand, for errors that name what was expected, and the list of servers is written by hand, for speed.
//! A test compares them with what is served. Everything else is described by the types that are serialized.
#![expect(dead_code, reason = "only the document uses the fields")]

use crate::{json::ServerView, words::VerificationResult};
use serde::Serialize;
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        RefOr,
        schema::{AnyOfBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type},
    },
};

/// Parameters of a list of servers.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParameters {
    /// Words that each have to occur in the name, map, game, version, address, or the name of a player. The first 16 count.
    #[param(max_length = 200, example = "bacon")]
    q: Option<String>,
    /// Only servers of this list: its UUID or its name. If there is no such list, the response is 404.
    #[param(example = "gg2")]
    list: Option<String>,
    /// Only this game, by its short or its full name.
    #[param(max_length = 200, example = "gg2")]
    game: Option<String>,
    /// Only maps whose name contains this.
    #[param(max_length = 200, example = "ctf_truefort")]
    map: Option<String>,
    /// Only versions that contain this.
    #[param(max_length = 200, example = "2.9")]
    version: Option<String>,
    /// Only servers with at least one player.
    #[param(inline, example = "1")]
    not_empty: Option<Switch>,
    /// Only servers with a free slot.
    #[param(inline, example = "1")]
    not_full: Option<Switch>,
    /// Only servers without a password.
    #[param(inline, example = "1")]
    no_password: Option<Switch>,
    /// Only servers that have an IPv4 and an IPv6 address.
    #[param(inline, example = "1")]
    both_families: Option<Switch>,
    /// Only servers with this result of verification.
    #[param(inline, example = "verified")]
    verified: Option<VerificationResult>,
    /// Only these servers: at most 500 public IDs, separated by commas.
    #[param(pattern = "^[0-9a-f]{32}(,[0-9a-f]{32}){0,499}$", example = "0123456789abcdef0123456789abcdef")]
    ids: Option<String>,
    /// The order: `id` (the default), `name`, `map`, `players`, `bots`, `slots`, `game`, `version`, `latency`, `age`, `password`,
    /// `verified`, `address`, `list` or `popularity` (average number of players of the week); with a `-` in front the largest
    /// first. Equal servers are ordered by players, the most first.
    #[param(
        pattern = "^-?(id|name|map|players|bots|slots|game|version|latency|age|password|verified|address|list|popularity)$",
        example = "-players"
    )]
    sort: Option<String>,
    /// Number of servers to skip.
    #[param(minimum = 0, default = 0, example = 0)]
    offset: Option<u64>,
    /// Maximum number of servers. Without a filter other than `list`, an order or a range, the response has all servers.
    /// Otherwise it has at most 1,000, and fewer if they have more than 4 MB: continue at `offset` + `count`.
    #[param(minimum = 1, maximum = 1000, example = 50)]
    limit: Option<u64>,
}

/// A condition that can be switched on.
#[derive(Serialize, ToSchema)]
enum Switch {
    #[serde(rename = "1")]
    One,
    #[serde(rename = "0")]
    Zero,
    #[serde(rename = "true")]
    True,
    #[serde(rename = "false")]
    False,
    #[serde(rename = "on")]
    On,
}

/// The public ID of a server in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct PublicIdPath {
    /// The public ID of a server.
    #[param(pattern = "^[0-9a-f]{32}$", example = "0123456789abcdef0123456789abcdef")]
    id: String,
}

/// The ID of a list in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ListUuid {
    /// The UUID or the name of a list.
    #[param(example = "1ccf16b1-436d-856f-504d-cc1af306aaa7")]
    id: String,
}

/// The number of a ban or note in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct EntryNumber {
    /// The number of the entry.
    #[param(pattern = "^(0|[1-9][0-9]{0,17})$", example = "1")]
    id: String,
}

/// A time in one of the forms that `export::parse_time` accepts.
struct HistoryTime;

impl utoipa::PartialSchema for HistoryTime {
    fn schema() -> RefOr<Schema> {
        let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
        let forms = AnyOfBuilder::new().item(text(KnownFormat::DateTime)).item(text(KnownFormat::Date)).item(seconds);
        Schema::AnyOf(forms.build()).into()
    }
}

impl ToSchema for HistoryTime {}

/// An IP address.
pub(crate) struct Address;

impl utoipa::PartialSchema for Address {
    fn schema() -> RefOr<Schema> {
        Schema::AnyOf(AnyOfBuilder::new().item(text(KnownFormat::Ipv4)).item(text(KnownFormat::Ipv6)).build()).into()
    }
}

impl ToSchema for Address {}

fn text(format: KnownFormat) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(format)))
}

/// Parameters of the outcomes of registrations.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct OutcomeParameters {
    /// The address; by default that of the client. Other addresses only if the operator allows it.
    #[param(inline, value_type = Option<Address>, example = "203.0.113.9")]
    address: Option<String>,
}

/// Parameters of a history.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryParameters {
    /// The start: a time (RFC 3339), a date, or seconds since 1970. Default: a day before the end.
    #[param(inline, value_type = Option<HistoryTime>, example = "2026-11-15T00:00:00Z")]
    from: Option<String>,
    /// The end, in the same forms. Default: now. If it is not after the start, there are no points.
    #[param(inline, value_type = Option<HistoryTime>, example = "2026-11-16")]
    to: Option<String>,
    /// The resolution. `auto` is minutes for up to two days, hours for up to 40 days, and days for longer ranges; it also applies
    /// to a range that has more than 50,000 points at the resolution that was requested. `step` is the one of the response.
    #[param(inline, example = "hour")]
    resolution: Option<ResolutionName>,
    /// JSON, or CSV with a header.
    #[param(inline, example = "csv")]
    format: Option<HistoryFormat>,
}

/// The resolution of a history.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ResolutionName {
    Auto,
    Minute,
    Hour,
    Day,
}

/// The format of a history.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum HistoryFormat {
    Json,
    Csv,
}

/// A part of the list of servers.
#[derive(ToSchema)]
#[schema(as = Servers)]
pub(super) struct ServerList<'a> {
    /// The last event that this list reflects: continue with /api/v1/events?after=…
    cursor: String,
    /// Number of servers that match the filter.
    total: u64,
    /// Number of servers skipped.
    offset: u64,
    /// Number of servers in this response.
    count: u64,
    /// The servers.
    servers: Vec<ServerView<'a>>,
}
