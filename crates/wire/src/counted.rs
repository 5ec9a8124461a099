//! Sequences that begin with the number of their items.

use crate::{DecodeError, Reader};
use core::iter;

/// Iterates over `count` items. The inner result of `parse` is an item or its error; the outer error means that the start
/// of the next item is unknown, which ends the iteration. A missing count and bytes after the last item are errors, too.
pub(crate) fn counted<'a, T>(
    mut reader: Reader<'a>,
    count: Result<u32, DecodeError>,
    mut parse: impl FnMut(&mut Reader<'a>) -> Result<Result<T, DecodeError>, DecodeError>,
) -> impl Iterator<Item = Result<T, DecodeError>> {
    let mut left = Some(count);
    iter::from_fn(move || match left.take()? {
        Ok(0) => reader.finish("list").err().map(Err),
        Ok(count) => match parse(&mut reader) {
            Ok(item) => {
                left = Some(Ok(count - 1));
                Some(item)
            }
            Err(error) => Some(Err(error)),
        },
        Err(error) => Some(Err(error)),
    })
}
