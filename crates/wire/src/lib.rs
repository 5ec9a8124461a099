//! Bytes to values and back, for every protocol Rallypoint speaks.
