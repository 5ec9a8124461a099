//! The C interface, driven by scripts of calls.

/// See `rallypoint::script`.
pub fn run(data: &[u8]) {
    rallypoint::script::run(data);
}
