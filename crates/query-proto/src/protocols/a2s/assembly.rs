//! Puts the parts of long replies together.

use crate::exchange::Context;
use bzip2::{Decompress, Status};
use rallypoint_wire::{
    DecodeError,
    query::a2s::{Compressed, Fragment, MAX_MESSAGE, Response, SplitForm},
};
use std::{borrow::Cow, collections::VecDeque};

/// Parts of replies that are not complete.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// The oldest one first.
    messages: VecDeque<Message>,
    /// Hashes of the parts of messages that were put together: they may arrive again.
    taken: Vec<u64>,
    /// Number of parts accepted.
    parts: u16,
    /// Number of messages decompressed.
    decompressed: u8,
    /// Whether the server gives several messages the same ID: what was put together has to tell whether its parts belong together.
    is_mixed: bool,
}

/// The parts of one message that have arrived.
#[derive(Debug)]
struct Message {
    id: u32,
    /// Known once the first part has arrived.
    form: Option<SplitForm>,
    /// Datagrams, in order of arrival.
    parts: Vec<Box<[u8]>>,
}

/// A message that was put together. Kept compressed if it was: otherwise a small reply could take much memory.
#[derive(Debug)]
pub(super) struct Assembled {
    bytes: Vec<u8>,
    is_compressed: bool,
}

/// Maximum number of messages that are being put together: the replies to the players and the rules, of several attempts.
const MAX_MESSAGES: usize = 8;

/// Maximum number of parts of a probe. With them, the work for one part is bounded, too.
const MAX_PARTS: u16 = 512;

/// Maximum number of decompressions of a probe: each takes up to some milliseconds.
const MAX_DECOMPRESSED: u8 = 8;

impl Assembly {
    /// Takes in a part. `None` if it adds nothing; otherwise the message that it completes, if it does.
    ///
    /// # Errors
    /// If the datagram is no part of a message, or completes one that is damaged.
    pub fn add(&mut self, datagram: &[u8], context: &Context<'_>) -> Result<Option<Option<Assembled>>, DecodeError> {
        let fragment = Fragment::parse(datagram)?;
        if self.parts == MAX_PARTS || self.taken.contains(&context.hash(datagram)) {
            return Ok(None);
        }
        let index = match self.messages.iter().position(|message| message.id == fragment.id) {
            Some(index) => index,
            None => self.begin(fragment.id),
        };
        let message = &mut self.messages[index];
        let Some(is_replacing) = message.add(fragment, datagram) else { return Ok(None) };
        self.parts += 1;
        self.is_mixed |= is_replacing;
        let Some(payload) = message.payload() else { return Ok(Some(None)) };
        let is_compressed = message.form.is_some_and(|form| form.is_compressed);
        if is_compressed {
            if self.decompressed == MAX_DECOMPRESSED {
                return Ok(None);
            }
            self.decompressed += 1;
        }
        let assembled = Assembled { bytes: payload, is_compressed };
        if self.is_mixed && !Response::parse(&assembled.message()?)?.is_exact() {
            // The latest part is the one that most probably belongs to what comes next.
            message.parts.drain(..message.parts.len() - 1);
            message.form = fragment.form();
            return Ok(Some(None));
        }
        self.taken.extend(message.parts.iter().map(|part| context.hash(part)));
        self.messages.remove(index);
        Ok(Some(Some(assembled)))
    }

    fn begin(&mut self, id: u32) -> usize {
        if self.messages.len() == MAX_MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back(Message { id, form: None, parts: Vec::new() });
        self.messages.len() - 1
    }
}

impl Message {
    /// Adds a part. `None` if it is known, or is none in the form of the others; otherwise whether it replaces others.
    fn add(&mut self, fragment: Fragment<'_>, datagram: &[u8]) -> Option<bool> {
        self.form = fragment.form().or(self.form);
        let is_possible = self.form.is_none_or(|form| fragment.position(form).is_some());
        if !is_possible || self.parts.iter().any(|part| **part == *datagram) {
            return None;
        }
        self.parts.push(datagram.into());
        let before = self.parts.len();
        if let Some(form) = self.form {
            self.remove_replaced(form);
        }
        Some(self.parts.len() < before)
    }

    /// Removes parts that do not belong to the same message as the latest one: those with another total, and those that were
    /// replaced by a later one with the same number. Some servers give all messages the same ID.
    fn remove_replaced(&mut self, form: SplitForm) {
        let position = |part: &[u8]| Fragment::parse(part).ok()?.position(form);
        let total_of = |part: &[u8]| position(part).map(|(_, total)| total);
        let total = self.parts.last().and_then(|part| total_of(part));
        let mut is_known = [false; 256];
        for index in (0..self.parts.len()).rev() {
            let is_current = position(&self.parts[index]).is_some_and(|(number, of)| {
                Some(of) == total && !std::mem::replace(&mut is_known[usize::from(number)], true)
            });
            if !is_current {
                self.parts.remove(index);
            }
        }
    }

    /// The payloads of all parts, in order, if they have arrived.
    fn payload(&self) -> Option<Vec<u8>> {
        let form = self.form?;
        let (_, total) = Fragment::parse(self.parts.last()?).ok()?.position(form)?;
        // No two have the same number.
        if self.parts.len() != usize::from(total) {
            return None;
        }
        let mut ordered = vec![&[][..]; self.parts.len()];
        for part in &self.parts {
            let fragment = Fragment::parse(part).ok()?;
            let (number, _) = fragment.position(form)?;
            *ordered.get_mut(usize::from(number))? = fragment.payload(form);
        }
        Some(ordered.concat())
    }
}

impl Assembled {
    /// The message.
    ///
    /// # Errors
    /// If it is not what was compressed, or too large.
    pub fn message(&self) -> Result<Cow<'_, [u8]>, DecodeError> {
        if !self.is_compressed {
            return Ok(Cow::Borrowed(&self.bytes));
        }
        let compressed = Compressed::parse(&self.bytes)?;
        let size = compressed.size as usize;
        if size > MAX_MESSAGE {
            return Err(compressed.too_large());
        }
        // No more than the size that is announced, whatever the data would become; one byte more tells whether it is more.
        let mut message = Vec::with_capacity(size + 1);
        let mut decompress = Decompress::new(false);
        let status = decompress.decompress_vec(compressed.data, &mut message);
        let is_whole = matches!(status, Ok(Status::StreamEnd)) && compressed.is(&message);
        if is_whole { Ok(Cow::Owned(message)) } else { Err(compressed.damaged()) }
    }
}
