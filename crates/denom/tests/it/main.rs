//! Tests over real sockets and processes, all on loopback.

mod run;
mod serve;
mod sim;
