//! Tests over real sockets and processes, all on loopback.

mod claim;
mod exact;
mod faults;
mod instants;
mod run;
mod serve;
mod sim;
mod tally;
