//! Asks the servers that say how they can be asked (E1), and compares their answers with what they registered.

mod agenda;

use crate::{
    Asker, Differences, Live, Told,
    asker::Whom,
    book::{Row, Verified},
};
use agenda::Agenda;
use rallypoint_lobby_proto::{ListingOrigin, PublicId};
use rallypoint_query_proto::{Probe, ProbeOutcome, QueryReply};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::broadcast, time};

/// How often every server is asked.
const EVERY: Duration = Duration::from_secs(60);

/// Runs until the web server ends: asks new servers at once, and all of them once a minute. The seed has to be one that nobody
/// can guess.
pub(crate) async fn verify(live: Arc<Live>, asker: Asker, seed: u128) {
    let mut agenda = Agenda::new(seed);
    let mut ask = |row: &Arc<Row>| {
        let targets: Vec<_> = row.targets().collect();
        let ips = targets.iter().map(|target| target.address.ip());
        if let Some(places) = agenda.begin(Instant::now(), row.id, ips) {
            let (row, live, asker) = (Arc::clone(row), Arc::clone(&live), asker.clone());
            tokio::spawn(async move {
                if let Some(told) = find_out(&row, &targets, &live, &asker).await {
                    let _ = live.telling().send(told).await;
                }
                drop(places);
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
                    new.iter().filter_map(|id| snapshot.row(*id)).for_each(&mut ask);
                }
                // Their turn comes.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            },
            _ = turns.tick() => {
                let snapshot = live.snapshot();
                snapshot.part(part).for_each(&mut ask);
                part = (part + 1) % snapshot.parts();
            }
        }
    }
}

/// Asks a server at each of its addresses until it answers. Nothing, if it could not be asked.
async fn find_out(row: &Row, targets: &[Probe], live: &Live, asker: &Asker) -> Option<Told> {
    let has_answered = matches!(row.verified, Verified::Verified | Verified::Differs);
    let whom = if has_answered { Whom::Willing } else { Whom::Claimed };
    let mut was_asked = false;
    for target in targets {
        match asker.ask(*target, whom).await {
            Some(ProbeOutcome::Answered(answer)) => return Some(verdict(row.id, live, *answer)),
            outcome => was_asked |= outcome.is_some(),
        }
    }
    was_asked.then(|| Told::new(row.id, Verified::Unreachable))
}

fn verdict(id: PublicId, live: &Live, answer: QueryReply) -> Told {
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
    fn targets(&self) -> impl Iterator<Item = Probe> {
        let listing = self.listing.as_ref().filter(|_| self.origin == ListingOrigin::Registered);
        let asked = listing.and_then(|listing| Some((listing, listing.block().table.get(b"x-query")?.to_vec())));
        self.addresses().filter_map(move |listed| {
            let (listing, x_query) = asked.as_ref()?;
            Probe::from_x_query(x_query, listing.internal_addr(listed))
        })
    }

    /// How long it just took to answer. The list shows it when it looks at latencies again.
    fn note_latency(&self, latency: Duration) {
        if let Some(listing) = &self.listing {
            listing.set_latency(latency);
        }
    }
}
