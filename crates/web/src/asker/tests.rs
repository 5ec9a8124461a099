//! Asking over loopback.

use super::*;
use rallypoint_query_proto::{Protocol, Responder, ResponderConfig, ServerInfo, ServerQuery};
use std::{collections::HashSet, net::SocketAddr};
use tokio::task::JoinHandle;

const SESSION: ServerQuery = Protocol::Session.info();

async fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.unwrap()
}

/// Begins to ask somebody.
fn begin(asker: &Asker, server: &UdpSocket, question: ServerQuery) -> JoinHandle<Option<ProbeOutcome>> {
    let (asker, target) = (asker.clone(), Probe::new(server.local_addr().unwrap(), question));
    tokio::spawn(async move { asker.ask(target, Whom::Claimed).await })
}

async fn next_question(server: &UdpSocket) -> (SocketAddr, Vec<u8>) {
    let mut buffer = [0; 64];
    let (length, from) = server.recv_from(&mut buffer).await.unwrap();
    (from, buffer[..length].to_vec())
}

/// Somewhere where nobody is: who asks there knows at once.
async fn nobody() -> Probe {
    Probe::new(socket().await.local_addr().unwrap(), Protocol::Bloodmasters.info())
}

#[tokio::test]
async fn w41_every_question_comes_from_a_port_of_its_own() {
    let (asker, server) = (Asker::default(), socket().await);
    let questions: Vec<_> = (0..8).map(|_| begin(&asker, &server, SESSION)).collect();
    let mut ports = HashSet::new();
    while ports.len() < questions.len() {
        ports.insert(next_question(&server).await.0.port());
    }
    questions.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn w41_nobody_else_can_answer() {
    let (asker, server, stranger) = (Asker::default(), socket().await, socket().await);
    let question = begin(&asker, &server, SESSION);
    let (from, query) = next_question(&server).await;
    for (who, name) in [(&stranger, "forged"), (&server, "genuine")] {
        let config = ResponderConfig { session: true, ..ResponderConfig::default() };
        let info = ServerInfo { name: Some(name.into()), ..ServerInfo::default() };
        let (mut responder, now, mut bytes) = (Responder::new(config, 7, &info).unwrap(), Instant::now(), Vec::new());
        responder.handle_datagram(now, from, &query);
        while responder.poll_transmit(now, &mut bytes).is_some() {
            who.send_to(&bytes, from).await.unwrap();
            bytes.clear();
        }
    }
    let Some(ProbeOutcome::Answered(answer)) = question.await.unwrap() else { panic!("an answer") };
    assert_eq!(answer.info.name.as_deref(), Some("genuine"));
    assert_eq!(asker.stats().complete, 1);
}

#[tokio::test]
async fn who_finds_no_place_is_not_asked_and_who_stops_waiting_gives_it_back() {
    let (asker, server) = (Asker::new(2), socket().await);
    let question = begin(&asker, &server, SESSION);
    next_question(&server).await;
    assert_eq!(asker.ask(nobody().await, Whom::Willing).await, None, "which says nothing about it");
    assert_eq!(
        asker.ask(nobody().await, Whom::Watched).await,
        Some(ProbeOutcome::Refused),
        "it has a place of its own"
    );
    question.abort();
    assert!(question.await.unwrap_err().is_cancelled());
    assert_eq!(asker.ask(nobody().await, Whom::Willing).await, Some(ProbeOutcome::Refused));
    assert_eq!(asker.stats().refused, 2);
}
