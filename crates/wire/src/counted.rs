//! What a reply holds that begins with how many there are.

use crate::{DecodeError, Reader};
use core::iter;

/// What `parse` reads, as often as `count` says. It gives an item or what is wrong with it, or fails if it cannot tell
/// where the next one begins: that is the end, as is a count that is not there. So are bytes behind the last item.
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
