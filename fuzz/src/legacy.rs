//! The legacy lobby: registrations, requests and replies.

use rallypoint_wire::legacy::{Info, ListReader, ListRequest, Registration, emit_list, entries};

/// The first byte is the size of the pieces; the rest is parsed as each kind of message.
pub fn run(data: &[u8]) {
    let Some((&size, data)) = data.split_first() else { return };
    let mut emitted = Vec::new();

    if let Ok(message) = Registration::parse(data) {
        message.emit(&mut emitted);
        let again = Registration::parse(&emitted).expect("emitted bytes can be parsed");
        let mut twice = Vec::new();
        again.emit(&mut twice);
        assert_eq!(twice, emitted, "emitting settles");
    }
    if let Ok(request) = ListRequest::parse(data) {
        emitted.clear();
        request.emit(&mut emitted);
        assert_eq!(ListRequest::parse(&emitted), Ok(request));
    }
    emitted.clear();
    Info::parse(data).emit(&mut emitted);
    assert!(emitted.len() <= 255);

    let whole: Vec<_> = entries(data).collect();
    let mut reader = ListReader::new();
    let mut count = 0;
    for piece in data.chunks(usize::from(size).max(1)) {
        reader.push(piece);
        while let Some(entry) = reader.next_entry() {
            assert_eq!(whole.get(count), Some(&entry));
            count += 1;
        }
    }
    emitted.clear();
    emit_list(whole.iter().copied().filter_map(Result::ok), &mut emitted);
    assert!(entries(&emitted).all(|entry| entry.is_ok()));
}
