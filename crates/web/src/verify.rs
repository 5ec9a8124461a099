//! Asks the servers that say how they can be asked (E1), and compares their answers with what they registered.

use crate::{
    Asker, Differences, Live, Told,
    book::{Row, Verified},
};
use rallypoint_lobby::{Origin, PublicId};
use rallypoint_query::{Answer, Outcome, Target};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, broadcast},
    time,
};

/// How often every server is asked.
const EVERY: Duration = Duration::from_secs(60);

/// So many are asked at once. Who finds no place is asked the next time.
const AT_ONCE: usize = 512;

/// Runs until the web server ends: asks new servers at once, and all of them once a minute.
pub(crate) async fn verify(live: Arc<Live>, asker: Asker) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let ask = |row: &Arc<Row>| {
        if row.targets().next().is_some()
            && let Ok(place) = Arc::clone(&places).try_acquire_owned()
        {
            let (row, live, asker) = (Arc::clone(row), Arc::clone(&live), asker.clone());
            tokio::spawn(async move {
                let told = find_out(&row, &live, &asker).await;
                let _ = live.telling().send(told).await;
                drop(place);
            });
        }
    };
    let mut newcomers = live.newcomers();
    let mut turns = time::interval(EVERY / live.snapshot().parts() as u32);
    turns.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    let mut part = 0;
    loop {
        tokio::select! {
            new = newcomers.recv() => match new {
                Ok(new) => {
                    let snapshot = live.snapshot();
                    new.iter().filter_map(|id| snapshot.row(*id)).for_each(ask);
                }
                // Their turn comes.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            },
            _ = turns.tick() => {
                let snapshot = live.snapshot();
                snapshot.part(part).for_each(ask);
                part = (part + 1) % snapshot.parts();
            }
        }
    }
}

/// Asks a server at each of its addresses until it answers.
async fn find_out(row: &Row, live: &Live, asker: &Asker) -> Told {
    for target in row.targets() {
        if let Outcome::Answered(answer) = asker.ask(target).await {
            return verdict(row.id, live, *answer);
        }
    }
    Told::new(row.id, Verified::Unreachable)
}

fn verdict(id: PublicId, live: &Live, answer: Answer) -> Told {
    let differences = live.snapshot().row(id).map_or_else(Differences::default, |row| {
        row.note_latency(answer.round_trip.time);
        Differences::between(row, &answer.info)
    });
    let verified = if differences.is_none() { Verified::Verified } else { Verified::Differs };
    Told { differences, info: Some(Arc::new(answer.info)), ..Told::new(id, verified) }
}

impl Row {
    /// How the lobby can ask it: at each address, if it says how (E1). Who is in the list because it answers is asked by
    /// whoever brought it there.
    fn targets(&self) -> impl Iterator<Item = Target> {
        let listing = self.listing.as_ref().filter(|_| self.origin == Origin::Registered);
        let x_query = listing.and_then(|listing| listing.block().table.get(b"x-query").map(<[u8]>::to_vec));
        self.addresses().filter_map(move |addr| Target::from_x_query(x_query.as_deref()?, addr))
    }

    /// How long it just took to answer. The list shows it when it looks at latencies again.
    fn note_latency(&self, latency: Duration) {
        if let Some(listing) = &self.listing {
            listing.set_latency(latency);
        }
    }
}
