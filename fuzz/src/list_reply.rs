//! A list reply is parsed to the same result as a whole and in pieces, and a client never buffers more than it received.

use rallypoint_wire::lobby::{ListBlock, ListReader, blocks, emit_list};

/// The first byte is the size of the pieces, the rest the reply.
pub fn run(data: &[u8]) {
    let Some((&size, reply)) = data.split_first() else { return };
    let whole: Vec<_> = blocks(reply).collect();

    let mut reader = ListReader::new();
    let mut count = 0;
    for piece in reply.chunks(usize::from(size).max(1)) {
        reader.push(piece);
        while let Some(block) = reader.next_block() {
            assert_eq!(whole.get(count), Some(&block));
            count += 1;
        }
    }
    let ended_well = reader.finish().is_ok();
    // As a whole, a reply with an invalid end has one more item: the error.
    assert_eq!(whole.len(), count + usize::from(!ended_well && whole.len() > count));

    let good: Vec<ListBlock<'_>> = whole.into_iter().filter_map(Result::ok).collect();
    let mut emitted = Vec::new();
    emit_list(good.iter().copied(), &mut emitted);
    assert!(emitted.len() <= reply.len().max(4));
    assert!(blocks(&emitted).map(Result::unwrap).eq(good), "what was emitted means the same");
}
