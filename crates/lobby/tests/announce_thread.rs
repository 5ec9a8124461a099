//! A game announced with `AnnounceThread` is listed and updated, and is removed when the thread stops.

use crate::common;

use common::{Lobby, options};
use rallypoint_announce::{AnnounceConfig, AnnounceThread, Occupancy};

#[test]
fn an_announced_server_is_listed_updated_and_removed() {
    let lobby = Lobby::start(options());
    let mut config = AnnounceConfig::new("announced", 8_190.try_into().unwrap());
    config.list_id = common::LOBBY;
    config.lobbies = vec![lobby.addr().into()];
    let announce = AnnounceThread::start(config).unwrap();
    lobby.wait_until_listed(&["announced"]);
    announce.set_occupancy(Occupancy { slots: 99, ..Occupancy::default() });
    common::eventually("the change is listed", || {
        let list = lobby.lists().list(&common::LOBBY);
        list.servers().next().unwrap().block().occupancy.slots == 99
    });
    announce.stop();
    lobby.wait_until_listed(&[]);
    lobby.shutdown();
}
