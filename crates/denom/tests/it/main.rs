//! Tests over real sockets and processes, all on loopback.

mod claim;
mod exact;
mod instants;
mod run;
mod serve;
mod sim;
mod tally;
