use super::*;
use Flavour::{AssaultCube, Sauerbraten};
use alloc::string::ToString;

const TOKEN: Token = Token([1, 2, 3, 4, 5, 6, 7]);

fn parse(query: Query, flavour: Flavour, reply: &[u8]) -> Result<alloc::string::String, &'static str> {
    let mut datagram = Vec::new();
    query.emit(flavour, TOKEN, &mut datagram);
    datagram.extend_from_slice(reply);
    let parsed = Response::parse(flavour, &datagram).map_err(|error| error.field)?;
    assert_eq!(parsed.token, &TOKEN.0[..parsed.token.len()]);
    Ok(alloc::format!("{:?}", parsed.body))
}

#[test]
fn descriptions_have_five_attributes_or_more() {
    let with = |attributes: &[u8]| {
        let reply = [b"\x03", attributes, b"m\0n\0"].concat();
        let mut datagram = Vec::new();
        Query::Info.emit(Sauerbraten, TOKEN, &mut datagram);
        datagram.extend_from_slice(&reply);
        match Response::parse(Sauerbraten, &datagram).map(|response| response.body) {
            Ok(Body::Info(info)) => {
                Ok((info.mode, info.has_password, info.pace, info.map.to_string(), info.name.to_string()))
            }
            Ok(_) => Err("another reply"),
            Err(error) => Err(error.field),
        }
    };
    let expected = |pace| Ok((12, true, pace, "m".to_string(), "n".to_string()));
    assert_eq!(with(b"\x05\x05\x0c\x07\x08\x04"), expected(None));
    assert_eq!(with(b"\x06\x05\x0c\x07\x08\x04\x63"), expected(None));
    assert_eq!(with(b"\x07\x05\x0c\x07\x08\x04\x01\x64"), expected(Some((true, 100))));
    assert_eq!(with(b"\x09\x05\x0c\x07\x08\x04\x01\x64\x05\x80\x01\x01"), expected(Some((true, 100))));
    for attributes in [&b"\x04\x05\x0c\x07\x08"[..], b"\x81\xff\xff\xff\x7f", b"\xff"] {
        assert_eq!(with(attributes), Err("attributes"));
    }
    assert_eq!(with(b"\x05\x05\x0c\x07\xff\x04"), Err("maximum of clients"));
}

#[test]
fn assault_cube_has_another_order() {
    let mut datagram = Vec::new();
    Query::Info.emit(AssaultCube, TOKEN, &mut datagram);
    assert_eq!(datagram, b"\x81\x01\x02\x03\x04\0");
    datagram.extend_from_slice(b"\x80\xb1\x04\x05\x03\x0a\x61\x63\0\x0c1n\0\x10\x41\0");
    let Ok(Body::Info(info)) = Response::parse(AssaultCube, &datagram).map(|response| response.body) else {
        panic!("no info")
    };
    assert_eq!((info.protocol, info.mode, info.clients, info.time_left, info.max_clients), (1201, 5, 3, 10, 16));
    assert_eq!(
        (info.has_password, info.master_mode, info.map.to_string(), info.name.to_string()),
        (true, 1, "ac".into(), "n".into())
    );
}

#[test]
fn scores_have_bases_or_flags() {
    let teams = |flavour, reply: &[u8]| {
        let mut datagram = Vec::new();
        Query::Teams.emit(flavour, TOKEN, &mut datagram);
        datagram.extend_from_slice(reply);
        let Ok(Body::Teams(teams)) = Response::parse(flavour, &datagram).map(|response| response.body) else {
            panic!("no teams")
        };
        let score = |team: TeamScore<'_>| (team.name.to_string(), team.score);
        let list: Vec<_> = teams.iter().map(|team| team.map(score).map_err(|error| error.field)).collect();
        (teams.has_teams, list)
    };
    let good = || Ok(("good".to_string(), 7));
    assert_eq!(
        teams(Sauerbraten, b"\xff\x69\0\x0c\0good\0\x07\x02\x05\x06evil\0\xff\xff"),
        (true, vec_of([good(), Ok(("evil".into(), -1))]))
    );
    assert_eq!(
        teams(Sauerbraten, b"\xff\x69\0\x0c\0good\0\x07\xffevil\0\x01\x81\xff\xff\xff\x7f"),
        (true, vec_of([good(), Err("base")]))
    );
    assert_eq!(teams(Sauerbraten, b"\xff\x69\x01\0\0"), (false, Vec::new()));
    assert_eq!(
        teams(AssaultCube, b"\xff\x68\0\x05\x03CLA\0\x0a\x02\xffRVSF\0\x09\xff\xff"),
        (true, vec_of([Ok(("CLA".into(), 2)), Ok(("RVSF".into(), 9))]))
    );
}

fn vec_of<T, const N: usize>(items: [T; N]) -> Vec<T> {
    items.into()
}

#[test]
fn replies_that_are_none_are_errors() {
    let error = |datagram: &[u8]| Response::parse(Sauerbraten, datagram).unwrap_err().field;
    assert_eq!(
        [error(b""), error(b"\x02"), error(b"\x81\x01"), error(b"\0")],
        ["datagram", "query", "token", "command"]
    );
    assert_eq!(parse(Query::Uptime, Sauerbraten, b"\x01"), Err("confirmation"));
    assert_eq!(parse(Query::Players, Sauerbraten, b"\xff\x69\x01"), Err("error"));
    assert_eq!(parse(Query::Players, Sauerbraten, b"\xff\x69\0\xf4"), Err("kind"));
    assert_eq!(parse(Query::Players, Sauerbraten, b"\xff\x69\0\xf5\x01\x30Ada\0good\0\x01\x02"), Err("statistics"));
    assert_eq!(parse(Query::Players, Sauerbraten, b"\xff\x69\0\xf6\x01\x80\x81\0\x05"), Ok("PlayerCount(3)".into()));
    assert_eq!(
        parse(Query::Uptime, Sauerbraten, b"\xff\x69\x04"),
        Ok("Uptime { seconds: 4, modification: None }".into())
    );
    let modified = Ok("Uptime { seconds: 4, modification: Some(-8) }".into());
    assert_eq!(parse(Query::Uptime, Sauerbraten, b"\xff\x69\x04\xf8"), modified);
    let mut unknown = b"\0\x03".to_vec();
    unknown.extend_from_slice(b"1234567\xff\x69");
    assert_eq!(error(&unknown), "command");
}
