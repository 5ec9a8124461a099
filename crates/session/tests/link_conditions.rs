//! Messages arrive over a simulated bad network.

use crate::common;

use common::{Pair, client_options, server_options};
use rallypoint_session::{ClientOptions, Encryption, LinkConditions, ServerOptions, SessionClient, SessionServer};
use std::time::Duration;

const BAD_NETWORK: LinkConditions = LinkConditions {
    loss: 0.1,
    delay: Duration::from_millis(5),
    jitter: Duration::from_millis(3),
    duplicate: 0.1,
    reorder: 0.1,
    reorder_by: Duration::from_millis(4),
    seed: 7,
};

#[test]
fn all_messages_arrive_in_order_with_the_polled_api() {
    let server = ServerOptions { link_conditions: Some(BAD_NETWORK), ..server_options() };
    let client = ClientOptions {
        link_conditions: Some(LinkConditions { seed: 8, ..BAD_NETWORK }),
        ..client_options(Encryption::Encrypted)
    };
    let mut pair = Pair::new(server, client);
    for number in 0..300u16 {
        pair.client.send(&number.to_be_bytes()).unwrap();
        pair.server.send(pair.player, &number.to_be_bytes()).unwrap();
    }
    for number in 0..300u16 {
        assert_eq!(pair.server_recv(), number.to_be_bytes());
        assert_eq!(pair.client_recv(), number.to_be_bytes());
    }
    let stats = pair.client.stats().unwrap();
    assert!(stats.rtt.unwrap() >= 2 * BAD_NETWORK.delay && stats.duplicates > 0 && stats.resends > 0, "{stats:?}");
    pair.client.set_link_conditions(None);
    pair.server.set_link_conditions(None);
    pair.client.send(b"undisturbed").unwrap();
    assert_eq!(pair.server_recv(), b"undisturbed");
}

#[tokio::test]
async fn all_messages_arrive_in_order_with_the_async_api() {
    let server =
        SessionServer::bind(ServerOptions { link_conditions: Some(BAD_NETWORK), ..server_options() }).await.unwrap();
    let options = client_options(Encryption::Plain);
    let client = SessionClient::connect(server.local_addrs()[0], options).await.unwrap();
    let player = server.accept().await.player;
    let mut message = Vec::new();
    for number in 0..300u16 {
        client.send(&number.to_be_bytes()).await.unwrap();
    }
    for number in 0..300u16 {
        assert!(server.recv(player, &mut message).await);
        assert_eq!(message, number.to_be_bytes());
    }
    assert!(server.stats(player).unwrap().duplicates > 0);
}
