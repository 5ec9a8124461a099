//! Rallypoint in Godot: a node that logs in to a server and turns its events into signals, once per frame.

use godot::prelude::*;
use rallypoint_session::{ClientEvent, ClientOptions, ONLY_CHANNEL, PolledClient};

struct RallypointExtension;

// SAFETY: required by Godot's loader; nothing in this library is called before Godot has initialised it.
#[gdextension]
unsafe impl ExtensionLibrary for RallypointExtension {}

/// A session client.
#[derive(GodotClass)]
#[class(base = Node)]
struct RallypointClient {
    client: Option<PolledClient>,
    error: String,
    base: Base<Node>,
}

/// What the handlers of a frame are told.
enum Incoming {
    Joined,
    Message(PackedByteArray),
    Ended(String),
}

#[godot_api]
impl INode for RallypointClient {
    fn init(base: Base<Node>) -> Self {
        Self { client: None, error: String::new(), base }
    }

    fn process(&mut self, _delta: f64) {
        let mut events = Vec::new();
        if let Some(client) = &mut self.client {
            // What the game has sent since the last frame leaves here, too.
            client.poll();
            while let Some(event) = client.next_event() {
                events.extend(match event {
                    ClientEvent::Connected => Some(Incoming::Joined),
                    ClientEvent::Message { bytes, .. } => Some(Incoming::Message(PackedByteArray::from(bytes))),
                    ClientEvent::Disconnected(reason) => Some(Incoming::Ended(reason.to_string())),
                    ClientEvent::LoginFailed(error) => Some(Incoming::Ended(error.to_string())),
                    _ => None,
                });
            }
        }
        // A handler may call this node again, so the client is not borrowed meanwhile.
        for event in events {
            match event {
                Incoming::Joined => self.signals().joined().emit(),
                Incoming::Message(data) => self.signals().message().emit(&data),
                Incoming::Ended(reason) => self.signals().ended().emit(&GString::from(&reason)),
            }
        }
    }
}

#[godot_api]
impl RallypointClient {
    /// The login succeeded.
    #[signal]
    fn joined();

    /// A message arrived.
    #[signal]
    fn message(data: PackedByteArray);

    /// The session has ended, or the login failed.
    #[signal]
    fn ended(reason: GString);

    /// Starts to log in to a server such as `play.example.org:45555`. Returns false if that cannot work: see `error`.
    #[func]
    fn connect_to(&mut self, server: String, username: String, game: String) -> bool {
        match PolledClient::connect(server, ClientOptions::new(&username, &game)) {
            Ok(client) => self.client = Some(client),
            Err(error) => self.error = error.to_string(),
        }
        self.client.is_some()
    }

    /// Sends a message, reliably. Returns false if it was not sent: see `error`.
    #[func]
    fn send(&mut self, message: PackedByteArray) -> bool {
        let Some(client) = &mut self.client else { return false };
        let sent = client.send(ONLY_CHANNEL, message.as_slice());
        self.error = sent.err().map(|error| error.to_string()).unwrap_or_default();
        sent.is_ok()
    }

    /// Why the last call failed.
    #[func]
    fn error(&self) -> String {
        self.error.clone()
    }

    /// Ends the session; messages that are left are delivered in the next frames.
    #[func]
    fn disconnect_from_server(&mut self) {
        self.client.iter_mut().for_each(PolledClient::close);
    }
}
