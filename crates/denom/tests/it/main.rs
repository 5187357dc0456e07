//! Tests over real sockets and processes, all on loopback.

mod serve;
mod sim;
