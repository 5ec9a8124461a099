//! Memory for received messages.

/// Size of a block in bytes: enough for the largest message.
pub(super) const BLOCK: usize = 504;

/// Position of a block in [`Blocks`].
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockIndex(u32);

/// Memory for messages, in blocks of the same size that are reused.
///
/// The slab crate would move a whole block in and out at each insertion and removal. Here a message is written directly into
/// a block that keeps its memory.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) blocks: Vec<[u8; BLOCK]>,
    /// A stack with room for every block, of which `free_count` are in use: nothing has to grow when a message is read.
    free: Vec<BlockIndex>,
    free_count: usize,
}

impl Blocks {
    /// Memory for this many messages.
    pub fn with_capacity(count: usize) -> Self {
        Self { blocks: Vec::with_capacity(count), free: Vec::with_capacity(count), free_count: 0 }
    }

    pub fn allocate(&mut self) -> BlockIndex {
        let index = BlockIndex(self.blocks.len() as u32);
        if let Some(top) = self.free_count.checked_sub(1) {
            self.free_count = top;
            return self.free.get(top).copied().unwrap_or(index);
        }
        self.blocks.push([0; BLOCK]);
        self.free.push(index);
        index
    }

    #[inline]
    pub fn free(&mut self, index: BlockIndex) {
        if let Some(top) = self.free.get_mut(self.free_count) {
            *top = index;
            self.free_count += 1;
        }
    }

    #[inline]
    pub fn get(&self, index: BlockIndex) -> Option<&[u8; BLOCK]> {
        self.blocks.get(index.0 as usize)
    }

    pub fn get_mut(&mut self, index: BlockIndex) -> Option<&mut [u8; BLOCK]> {
        self.blocks.get_mut(index.0 as usize)
    }

    pub fn has_free(&self) -> bool {
        self.free_count > 0
    }

    pub fn in_use(&self) -> usize {
        self.blocks.len() - self.free_count
    }
}
