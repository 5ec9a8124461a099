//! A game attaches values to its players.

use crate::common;

use common::{Pair, client_options, server_options, until};
use rallypoint_session::{Encryption, Server, ServerEvent};
use std::sync::Arc;

#[test]
fn a_value_is_kept_until_the_end_of_the_session_was_handled() {
    let mut pair = Pair::new(server_options(), client_options(Encryption::Plain));
    let Pair { server, client, player } = &mut pair;
    let value = Arc::new(5);
    assert!(server.set_data(*player, value.clone()));
    assert_eq!(server.data::<Arc<i32>>(*player), Some(&value));
    assert_eq!(server.data::<String>(*player), None, "a value of another type");
    assert!(server.set_data(*player, (value.clone(), 1_u32)));
    server.data_mut::<(Arc<i32>, u32)>(*player).unwrap().1 += 1;
    client.close();
    until("the player has left", || {
        client.poll();
        server.poll();
        matches!(server.next_event(), Some(ServerEvent::Disconnected(..)))
    });
    assert_eq!(server.data::<(Arc<i32>, u32)>(*player).map(|data| data.1), Some(2));
    assert_eq!(server.next_event(), None);
    assert_eq!(Arc::strong_count(&value), 1, "the value is dropped");
    assert!(!server.set_data(*player, 7), "there is no such player any more");
}

#[tokio::test]
async fn async_programs_have_the_same_values() {
    let server = Server::bind(server_options()).await.unwrap();
    let _client = client_options(Encryption::Plain).connect(server.local_addrs()[0]).await.unwrap();
    let player = server.accept().await.unwrap().player;
    assert!(server.set_data(player, 1_u64));
    assert_eq!(server.with_data(player, |score: &mut u64| std::mem::replace(score, 2)), Some(1));
    assert_eq!(server.with_data(player, |score: &mut u64| *score), Some(2));
}
