//! All cases of vectors/bloodmasters.json and vectors/bloodmasters-captures.json, one test each.

mod vector_file;

use libtest_mimic::{Arguments, Failed};
use rallypoint_wire::bloodmasters::{Echo, Reply, messages, queries};
use serde_json::{Value, json};
use std::process::ExitCode;
use vector_file::{equal, hex, text_of, to_hex, trials};

const MADE_BY_HAND: &str = include_str!("vectors/bloodmasters.json");
const CAPTURES: &str = include_str!("vectors/bloodmasters-captures.json");

fn main() -> ExitCode {
    let mut tests = trials("bloodmasters", MADE_BY_HAND, made_by_hand);
    tests.extend(trials("bloodmasters-captures", CAPTURES, capture));
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

fn made_by_hand(case: &Value) -> Result<(), Failed> {
    let bytes = hex(&case["bytes"]);
    let mut again = Vec::new();
    let value = match text_of(&case["kind"]) {
        "query" => {
            equal(&messages(&bytes).count(), &1)?;
            let query = queries(&bytes).next().ok_or("no query")?;
            query.emit(&mut again);
            json!({ "echo": to_hex(&query.echo.0) })
        }
        "reply" => {
            let reply = Reply::parse(&bytes)?;
            equal(&reply.warning(), &None)?;
            reply.emit(&mut again);
            reply_value(&reply)
        }
        kind => return Err(format!("no test for {kind}").into()),
    };
    equal(&value, &case["value"])?;
    equal(&again, &bytes)
}

/// The request yields as many queries as the real server answered, with the same echoes; and the replies of the real server
/// parse completely.
fn capture(case: &Value) -> Result<(), Failed> {
    let request = hex(&case["request"]);
    let replies: Vec<Vec<u8>> = case["replies"].as_array().ok_or("no replies")?.iter().map(hex).collect();
    let ours: Vec<Echo> = queries(&request).map(|query| query.echo).collect();
    let mut theirs = Vec::new();
    for bytes in &replies {
        let reply = Reply::parse(bytes)?;
        equal(&reply.warning(), &None)?;
        theirs.push(reply.echo());
        let mut again = Vec::new();
        reply.emit(&mut again);
        equal(&again, bytes)?;
    }
    equal(&ours, &theirs)
}

fn reply_value(reply: &Reply<'_>) -> Value {
    let info = reply.info();
    let mut value = json!({
        "echo": to_hex(&reply.echo().0),
        "title": text(info.title),
        "locked": info.locked,
        "website": text(info.website),
        "max_clients": info.max_clients,
        "max_players": info.max_players,
        "game_type": info.game_type.0,
        "map_name": text(info.map_name),
        "clients": reply.clients().count(),
        "players": info.players,
        "protocol": info.protocol,
    });
    if let Some(rules) = reply.rules() {
        value["score_limit"] = rules.score_limit.into();
        value["time_limit"] = rules.time_limit.into();
        value["join_smallest"] = rules.join_smallest.into();
        let clients = reply.clients().iter().map(|client| {
            json!({
                "name": text(client.name),
                "team": client.team.0,
                "spectator": client.spectator,
                "ping": client.ping,
            })
        });
        value["client_list"] = clients.collect();
    }
    if let Some(build) = reply.build() {
        value["build"] = text(build).into();
    }
    value
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the vectors are in ASCII")
}
