//! Rallypoint in Bevy: a plugin whose systems poll the client before the update, and send after it. The server is in the same
//! program here, so that the example runs by itself.

use bevy::{app::ScheduleRunnerPlugin, prelude::*};
use rallypoint_session::{
    ClientEvent, ClientOptions, ONLY_CHANNEL, PolledClient, PolledServer, ServerEvent, ServerOptions,
};
use std::{error::Error, time::Duration};

/// Events from the network to the game.
#[derive(Message)]
enum Incoming {
    Connected,
    Data(Vec<u8>),
    Ended(String),
}

/// A message from the game to the network.
#[derive(Message)]
struct Outgoing(Vec<u8>);

#[derive(Resource)]
struct Client(PolledClient);

#[derive(Resource)]
struct Server(PolledServer);

/// Connects the client, which has to be inserted as a resource, to Bevy's messages.
struct RallypointPlugin;

impl Plugin for RallypointPlugin {
    fn build(&self, app: &mut App) {
        app.add_message::<Incoming>().add_message::<Outgoing>();
        app.add_systems(PreUpdate, receive).add_systems(PostUpdate, send);
    }
}

fn receive(mut client: ResMut<Client>, mut incoming: MessageWriter<Incoming>) {
    client.0.poll();
    while let Some(event) = client.0.next_event() {
        match event {
            ClientEvent::Connected => drop(incoming.write(Incoming::Connected)),
            ClientEvent::Message { bytes, .. } => drop(incoming.write(Incoming::Data(bytes.to_vec()))),
            ClientEvent::Disconnected(reason) => drop(incoming.write(Incoming::Ended(reason.to_string()))),
            ClientEvent::LoginFailed(error) => drop(incoming.write(Incoming::Ended(error.to_string()))),
            _ => {}
        }
    }
}

fn send(mut client: ResMut<Client>, mut outgoing: MessageReader<Outgoing>) {
    for Outgoing(message) in outgoing.read() {
        if let Err(error) = client.0.send(ONLY_CHANNEL, message) {
            eprintln!("not sent: {error}");
        }
    }
    client.0.flush();
}

/// The game of this client: it sends back each number plus one, up to ten.
fn play(mut incoming: MessageReader<Incoming>, mut outgoing: MessageWriter<Outgoing>, mut exit: MessageWriter<AppExit>) {
    for message in incoming.read() {
        match message {
            Incoming::Connected => drop(outgoing.write(Outgoing(vec![1]))),
            Incoming::Data(data) if data == &[10] => drop(exit.write(AppExit::Success)),
            Incoming::Data(data) => drop(outgoing.write(Outgoing(vec![data[0] + 1]))),
            Incoming::Ended(reason) => {
                println!("ended: {reason}");
                exit.write(AppExit::error());
            }
        }
    }
}

/// A server that echoes.
fn serve(mut server: ResMut<Server>) {
    server.0.poll();
    while let Some(event) = server.0.next_event() {
        if let ServerEvent::Message { player, channel, bytes } = event {
            let message = bytes.to_vec();
            println!("server: {message:?}");
            let _ = server.0.send(player, channel, &message);
        }
    }
    server.0.flush();
}

fn main() -> Result<AppExit, Box<dyn Error>> {
    let server = ServerOptions::new("count").listen("127.0.0.1:0".parse()?).bind_polled()?;
    let client = ClientOptions::new("alice", "count").connect_polled(server.local_addrs()[0])?;
    let mut app = App::new();
    app.add_plugins(MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(Duration::from_millis(16))));
    app.add_plugins(RallypointPlugin).insert_resource(Client(client)).insert_resource(Server(server));
    Ok(app.add_systems(Update, (serve, play)).run())
}
