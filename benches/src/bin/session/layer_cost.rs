//! What a channel adds to the instructions of a message.

use crate::ops::{Layer, Messages, RECEIVER, SENDER};
use rallypoint_bench::{Goals, Table, instructions_per_operation, instructions_within};
use rallypoint_session_proto::ChannelMode::{Expiring, ReliableOrdered, ReliableUnordered, Sequenced};

/// Number of messages, after as many that are not counted.
const ITERATIONS: u64 = 4_096;

/// A layer may cost this much more than none.
const LIMIT: f64 = 1.05;

/// Messages of at least this size are alone in their datagram.
const MIN_ALONE: usize = 250;

/// Kinds of messages without a goal: further datagrams confirm each message, or its bytes are shared by many players.
const OTHERS: [(&str, Messages); 4] = [
    ("400 bytes, reliable ordered, with receipts", Messages::new(Layer::Receipts, 400)),
    ("400 bytes, reliable ordered, broadcast to one player", Messages::new(Layer::Broadcast, 400)),
    ("32 bytes, reliable ordered, with receipts", Messages::new(Layer::Receipts, 32)),
    ("32 bytes, reliable ordered, broadcast to one player", Messages::new(Layer::Broadcast, 32)),
];

/// Kinds of messages that the goals name: messages that are alone in their datagram, and small ones, which share one.
const GOALS: [(&str, Messages); 5] = [
    ("400 bytes, reliable ordered", Messages::new(Layer::Channel(ReliableOrdered), 400)),
    ("400 bytes, reliable unordered", Messages::new(Layer::Channel(ReliableUnordered), 400)),
    ("400 bytes, expiring", Messages::new(Layer::Channel(Expiring), 400)),
    ("400 bytes, sequenced, one per frame", Messages::single(Layer::Channel(Sequenced), 400)),
    ("32 bytes, reliable ordered", Messages::new(Layer::Channel(ReliableOrdered), 32)),
];

/// Adds the goals, if there is a valgrind.
pub fn add_goals(goals: &mut Goals) {
    for (name, messages) in GOALS {
        if let (Some(layer), Some(bare)) = (count(messages), count(messages.without_layer())) {
            // Channels pack small messages, as streams do, and a session without a layer does not.
            let stream = count(messages.with_layer(Layer::Stream)).filter(|_| messages.size < MIN_ALONE);
            let in_stream = stream.map_or_else(String::new, |stream| format!(", in a stream {stream:.0}"));
            goals.add(
                &format!("instructions of both sides per message of a channel, {name} (without channels)"),
                format!("{layer:.0} ({bare:.0}{in_stream}), {:+.1} %", percent(layer, bare)),
                "at most +5 %",
                layer <= LIMIT * bare,
            );
        }
    }
}

/// What has no goal, for both sides and for each, if there is a valgrind.
pub fn others() -> String {
    let mut table = Table::new(&["instructions per message (without channels)", "both sides", "sender", "receiver"]);
    for (name, messages) in OTHERS {
        let [_, both, sender, receiver] = row(messages);
        table.row([name.to_owned(), both, sender, receiver]);
    }
    table.to_string()
}

/// Modes, sizes, directions and protections, for both sides and for each.
pub fn table() -> String {
    let mut table = Table::new(&["messages", "both sides", "sender", "receiver"]);
    let modes = [ReliableOrdered, ReliableUnordered, Expiring, Sequenced].map(Layer::Channel);
    for size in [32, 100, 200, 300, 400, 480] {
        for batch in [64, 8, 1] {
            for layer in modes.into_iter().filter(|layer| batch == 1 || *layer != Layer::Channel(Sequenced)) {
                for (is_from_client, is_encrypted) in [(false, false), (true, false), (false, true)] {
                    let messages = Messages { layer, size, batch, is_from_client, is_encrypted };
                    // Encrypted messages have 16 bytes less, and those to a server another 20.
                    if size == 480 && (is_from_client || is_encrypted) {
                        continue;
                    }
                    eprintln!("{messages}");
                    table.row(row(messages));
                }
            }
        }
    }
    table.to_string()
}

fn row(messages: Messages) -> [String; 4] {
    let cell = |count: &dyn Fn(Messages) -> Option<f64>| match (count(messages), count(messages.without_layer())) {
        (Some(layer), Some(bare)) => format!("{layer:.0} ({bare:.0}) {:+.1} %", percent(layer, bare)),
        _ => "-".to_owned(),
    };
    let within =
        |function| move |messages: Messages| instructions_within(function, &messages.to_string(), ITERATIONS).ok();
    [messages.to_string(), cell(&count), cell(&within(SENDER)), cell(&within(RECEIVER))]
}

fn count(messages: Messages) -> Option<f64> {
    instructions_per_operation(&messages.to_string(), ITERATIONS).ok()
}

fn percent(layer: f64, bare: f64) -> f64 {
    100.0 * (layer / bare - 1.0)
}
