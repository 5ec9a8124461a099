//! Handles to objects: numbers that are checked, instead of addresses that are trusted.

use crate::failure::{Failure, RP_ERROR_BUSY, RP_ERROR_INVALID_HANDLE, RP_ERROR_LIMIT, RP_ERROR_PANIC};
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};

/// The type of object that a handle refers to. Part of the handle, so that a server's is not taken for a client's.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Kind {
    Client = 1,
    Server = 2,
    Announcer = 3,
    Scan = 4,
}

impl Kind {
    /// The kind in a handle, whether there is such an object or not.
    pub(crate) fn of(handle: u64) -> Option<Self> {
        [Self::Client, Self::Server, Self::Announcer, Self::Scan]
            .into_iter()
            .find(|kind| handle >> 48 == u64::from(*kind as u8))
    }
}

/// Maximum number of open objects of one kind.
const MAX_OBJECTS: usize = 1 << 16;

/// All open objects of one kind.
///
/// ```text
/// handle: | 0 (8 bits) | kind (8) | generation (32) | slot (16) |
/// ```
///
/// The generation of a slot grows with each object that it holds, so that a handle is never used twice. All handles are below
/// 2^53: engines that know only floating-point numbers can hold them.
pub(crate) struct HandleTable<T> {
    kind: Kind,
    slots: RwLock<Slots<T>>,
}

struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u16>,
}

struct Slot<T> {
    generation: u32,
    object: Option<Arc<Mutex<T>>>,
}

impl<T> HandleTable<T> {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self { kind, slots: RwLock::new(Slots { slots: Vec::new(), free: Vec::new() }) }
    }

    /// Adds an object and returns its handle, which is never 0.
    pub(crate) fn insert(&self, object: T) -> Result<u64, Failure> {
        let Slots { slots, free } = &mut *self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let index = match free.pop() {
            Some(index) => index,
            None => {
                let index = u16::try_from(slots.len()).map_err(|_| Failure::of(RP_ERROR_LIMIT))?;
                debug_assert!(slots.len() < MAX_OBJECTS);
                slots.push(Slot { generation: 0, object: None });
                index
            }
        };
        let slot = &mut slots[usize::from(index)];
        slot.generation += 1;
        slot.object = Some(Arc::new(Mutex::new(object)));
        Ok(self.handle(index, slot.generation))
    }

    /// Calls a function with an object, unless another thread is using it.
    #[inline]
    pub(crate) fn with<R>(&self, handle: u64, call: impl FnOnce(&mut T) -> Result<R, Failure>) -> Result<R, Failure> {
        let object = {
            let table = self.slots.read().unwrap_or_else(PoisonError::into_inner);
            let slot = table.slots.get(usize::from(handle as u16));
            let slot = slot.filter(|slot| self.handle(handle as u16, slot.generation) == handle);
            slot.and_then(|slot| slot.object.clone()).ok_or_else(|| Failure::of(RP_ERROR_INVALID_HANDLE))?
        };
        // The table is not locked meanwhile: a call may wait, and others must be able to open and close objects.
        let mut object = object.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Failure::of(RP_ERROR_BUSY),
            TryLockError::Poisoned(_) => Failure::of(RP_ERROR_PANIC),
        })?;
        call(&mut object)
    }

    /// Calls a function that cannot fail with an object, unless another thread is using it. Returns 0, as functions of the
    /// interface do that have no other result.
    #[inline]
    pub(crate) fn run(&self, handle: u64, call: impl FnOnce(&mut T)) -> Result<i32, Failure> {
        self.with(handle, |object| {
            call(object);
            Ok(0)
        })
    }

    /// Takes an object out of the table. The handle is not valid from then on; if another thread is using the object, that
    /// thread drops it.
    pub(crate) fn remove(&self, handle: u64) -> Result<Arc<Mutex<T>>, Failure> {
        let Slots { slots, free } = &mut *self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let index = handle as u16;
        let slot = slots.get_mut(usize::from(index));
        let slot = slot.filter(|slot| self.handle(index, slot.generation) == handle);
        let (generation, object) = slot
            .and_then(|slot| Some((slot.generation, slot.object.take()?)))
            .ok_or_else(|| Failure::of(RP_ERROR_INVALID_HANDLE))?;
        // A slot without a further generation stays empty.
        if generation < u32::MAX {
            free.push(index);
        }
        Ok(object)
    }

    fn handle(&self, index: u16, generation: u32) -> u64 {
        u64::from(self.kind as u8) << 48 | u64::from(generation) << 16 | u64::from(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T, Failure>) -> i32 {
        result.err().map_or(0, |failure| failure.code)
    }

    #[test]
    fn a_handle_is_valid_until_it_is_closed_and_never_again() {
        let table = HandleTable::new(Kind::Client);
        let first = table.insert(1).unwrap();
        assert_eq!(table.with(first, |value| Ok(*value)).unwrap(), 1);
        assert_eq!(code(table.remove(first)), 0);
        let second = table.insert(2).unwrap();
        assert_ne!(first, second);
        assert_eq!(second as u16, first as u16, "the slot is used again");
        assert_eq!(code(table.with(first, |_| Ok(()))), RP_ERROR_INVALID_HANDLE);
        assert_eq!(code(table.remove(first)), RP_ERROR_INVALID_HANDLE);
        assert_eq!(table.with(second, |value| Ok(*value)).unwrap(), 2);
    }

    #[test]
    fn handles_of_other_kinds_and_made_up_ones_are_refused() {
        let clients = HandleTable::new(Kind::Client);
        let servers = HandleTable::new(Kind::Server);
        let client = clients.insert(()).unwrap();
        servers.insert(()).unwrap();
        for handle in [client, 0, 1, u64::MAX, client ^ 1 << 60, client + 1] {
            assert_eq!(code(servers.with(handle, |_| Ok(()))), RP_ERROR_INVALID_HANDLE, "{handle:x}");
        }
        assert!(client < 1 << 53, "{client:x}");
    }

    #[test]
    fn an_object_in_use_is_busy_and_can_be_closed() {
        let table = HandleTable::new(Kind::Server);
        let handle = table.insert(7).unwrap();
        let value = table.with(handle, |value| {
            assert_eq!(code(table.with(handle, |_| Ok(()))), RP_ERROR_BUSY);
            assert_eq!(code(table.remove(handle)), 0);
            assert_eq!(code(table.with(handle, |_| Ok(()))), RP_ERROR_INVALID_HANDLE);
            Ok(*value)
        });
        assert_eq!(value.unwrap(), 7);
    }

    #[test]
    fn an_object_that_panicked_can_only_be_closed() {
        let table = HandleTable::new(Kind::Scan);
        let handle = table.insert(()).unwrap();
        let panicking = || crate::failure::guard(|| table.with(handle, |_| panic!("a defect")));
        assert_eq!(panicking(), RP_ERROR_PANIC);
        assert_eq!(code(table.with(handle, |_| Ok(()))), RP_ERROR_PANIC);
        assert_eq!(code(table.remove(handle)), 0);
    }

    #[test]
    fn the_number_of_objects_is_bounded() {
        let table = HandleTable::new(Kind::Announcer);
        for _ in 0..MAX_OBJECTS {
            table.insert(()).unwrap();
        }
        assert_eq!(code(table.insert(())), RP_ERROR_LIMIT);
    }
}
