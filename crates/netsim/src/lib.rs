//! A seeded virtual network and clock for state machines.
