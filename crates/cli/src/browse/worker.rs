//! Asks, in a thread of its own, so that the keys are never slow.

use crate::{
    ask::{
        self, Asking, Target,
        survey::{News, Seen, Survey},
    },
    error::CommandError,
};
use std::{
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::JoinHandle,
};
use tokio::sync::mpsc;

/// The thread. Dropping it ends that.
pub struct Worker {
    orders: Option<mpsc::UnboundedSender<Order>>,
    /// What it has to say.
    pub told: Receiver<Told>,
    thread: Option<JoinHandle<Result<(), CommandError>>>,
}

/// What it is to do.
pub enum Order {
    /// Look at all places, and ask these servers too.
    Look(Vec<Seen>),
    /// Ask one server.
    Ask(Box<Seen>),
}

/// What it says.
pub enum Told {
    News(Box<News>),
    /// The look has ended.
    Looked,
}

/// How much may wait to be drawn.
const WAITING: usize = 4_096;

impl Worker {
    pub fn start(asking: &Asking, places: Vec<Target>) -> Result<Self, CommandError> {
        let (orders, receiver) = mpsc::unbounded_channel();
        let (sender, told) = sync_channel(WAITING);
        let asking = asking.clone();
        // Mistakes in the flags are to be told before the screen is taken.
        asking.validate()?;
        let thread = std::thread::Builder::new()
            .name("worker".into())
            .spawn(move || ask::block_on(work(asking, places, receiver, sender)))
            .map_err(|error| CommandError::failed(format!("cannot start a thread: {error}")))?;
        Ok(Self { orders: Some(orders), told, thread: Some(thread) })
    }

    pub fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    /// Ends the thread, and says whether something went wrong in it.
    pub fn end(mut self) -> Result<(), CommandError> {
        self.orders = None;
        // Whatever it wants to say, nobody listens any more.
        drop(std::mem::replace(&mut self.told, sync_channel(0).1));
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => {
                Err(CommandError::failed("a part of the program has failed; this is a fault of the program"))
            }
            Some(Ok(result)) => result,
            None => Ok(()),
        }
    }
}

async fn work(
    asking: Asking,
    places: Vec<Target>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    told: SyncSender<Told>,
) -> Result<(), CommandError> {
    let places = places.into_iter().map(Into::into).collect();
    let mut survey = Survey::new(&asking, places, true)?;
    while let Some(order) = orders.recv().await {
        tokio::select! {
            () = obey(&mut survey, order, &told) => {}
            // What is ordered meanwhile waits; that nobody is there any more does not.
            () = orders_closed(&orders) => break,
        }
    }
    Ok(())
}

async fn obey(survey: &mut Survey, order: Order, told: &SyncSender<Told>) {
    let tell = |news| drop(told.send(Told::News(Box::new(news))));
    match order {
        Order::Look(more) => {
            more.into_iter().for_each(|seen| survey.ask_again(seen));
            survey.look(tell).await;
            let _ = told.send(Told::Looked);
        }
        Order::Ask(seen) => {
            survey.ask_again(*seen);
            survey.finish(tell).await;
        }
    }
}

async fn orders_closed(orders: &mpsc::UnboundedReceiver<Order>) {
    while !orders.is_closed() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
