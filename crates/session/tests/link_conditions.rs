//! Messages arrive over a simulated bad network.

use crate::common;

use common::{Pair, client_options, server_options};
use rallypoint_session::{Client, Encryption, LinkConditions, ONLY_CHANNEL, Server};
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
    let mut server = server_options();
    server.link_conditions = Some(BAD_NETWORK);
    let mut client = client_options(Encryption::Encrypted);
    client.link_conditions = Some(LinkConditions { seed: 8, ..BAD_NETWORK });
    let mut pair = Pair::new(server, client);
    for number in 0..300u16 {
        pair.client.send(ONLY_CHANNEL, &number.to_be_bytes()).unwrap();
        pair.server.send(pair.player, ONLY_CHANNEL, &number.to_be_bytes()).unwrap();
    }
    for number in 0..300u16 {
        assert_eq!(pair.server_recv(), number.to_be_bytes());
        assert_eq!(pair.client_recv(), number.to_be_bytes());
    }
    let stats = pair.client.stats().unwrap();
    assert!(stats.rtt.unwrap() >= 2 * BAD_NETWORK.delay && stats.duplicates > 0 && stats.resends > 0, "{stats:?}");
    pair.client.set_link_conditions(None);
    pair.server.set_link_conditions(None);
    pair.client.send(ONLY_CHANNEL, b"undisturbed").unwrap();
    assert_eq!(pair.server_recv(), b"undisturbed");
}

#[tokio::test]
async fn all_messages_arrive_in_order_with_the_async_api() {
    let mut options = server_options();
    options.link_conditions = Some(BAD_NETWORK);
    let server = Server::bind(options).await.unwrap();
    let options = client_options(Encryption::Plain);
    let client = Client::connect(server.local_addrs()[0], options).await.unwrap();
    let player = server.accept().await.unwrap().player;
    let mut message = Vec::new();
    for number in 0..300u16 {
        client.send(ONLY_CHANNEL, &number.to_be_bytes()).await.unwrap();
    }
    for number in 0..300u16 {
        let (_, bytes) = server.recv(player, &mut message).await.unwrap().unwrap();
        assert_eq!(bytes, number.to_be_bytes());
    }
    assert!(server.stats(player).unwrap().duplicates > 0);
}
