//! The program `rallypoint`.
fn main() {}
