//! Lists in the bytes of a door that has few clients: rendered when a client requests one, once per published version.

use crate::PublishedList;
use arc_swap::ArcSwapOption;
use std::{
    sync::{Arc, Mutex, PoisonError, TryLockError},
    time::{Duration, Instant},
};

/// Bytes of a list per millisecond of the pause after it was rendered. Rendering reads some megabytes per millisecond, so it takes
/// a few percent of the time at most, however many servers there are and however often they change.
const BYTES_PER_MILLISECOND: usize = 100_000;

/// What was rendered from a published list, for all clients.
#[derive(Debug)]
pub(crate) struct Rendered<T> {
    latest: ArcSwapOption<T>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Version of the list.
    version: u64,
    /// The end of the pause after rendering.
    not_before: Option<Instant>,
}

impl<T> Default for Rendered<T> {
    fn default() -> Self {
        Self { latest: ArcSwapOption::empty(), state: Mutex::default() }
    }
}

impl<T> Rendered<T> {
    /// What `render` makes of the list and of its previous result. While another thread renders, and during the pause after it,
    /// this is the result for the version before.
    pub fn get(
        &self,
        now: Instant,
        list: &PublishedList,
        render: impl FnOnce(&PublishedList, Option<&T>) -> T,
    ) -> Arc<T> {
        let mut state = match (self.latest.load_full(), self.state.try_lock()) {
            (_, Ok(state)) => state,
            (_, Err(TryLockError::Poisoned(poisoned))) => poisoned.into_inner(),
            (Some(latest), Err(TryLockError::WouldBlock)) => return latest,
            (None, Err(TryLockError::WouldBlock)) => self.state.lock().unwrap_or_else(PoisonError::into_inner),
        };
        let latest = self.latest.load_full();
        if let Some(latest) = &latest
            && (state.version == list.version() || state.not_before.is_some_and(|at| now < at))
        {
            return Arc::clone(latest);
        }
        let rendered = Arc::new(render(list, latest.as_deref()));
        self.latest.store(Some(Arc::clone(&rendered)));
        state.version = list.version();
        state.not_before = Some(now + Duration::from_millis((list.size() / BYTES_PER_MILLISECOND) as u64));
        rendered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::test_list;

    #[test]
    fn a_version_is_rendered_once_and_a_large_list_pauses() {
        let now = Instant::now();
        let rendered = Rendered::default();
        let get = |now, version: u64, size| *rendered.get(now, &test_list(version, size), |list, _| list.version());
        assert_eq!(get(now, 1, 10), 1);
        let same = *rendered.get(now, &test_list(1, 10), |_, _| panic!("it was rendered"));
        assert_eq!(same, 1);
        assert_eq!(get(now, 2, 1_000_000), 2, "a small list causes no pause");
        let later = now + Duration::from_millis(10);
        assert_eq!((get(now, 3, 10), get(later, 3, 10)), (2, 3));
    }
}
