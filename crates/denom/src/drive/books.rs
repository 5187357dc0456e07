//! Owns the driver's side of the books: its own running integral of requests in flight.

use measure::time::{Instant, Length};

/// Requests in flight over time, integrated from the driver's own clock reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Books {
    issued: u64,
    in_flight: u64,
    since: Instant,
    integral: Length,
}

impl Books {
    /// Empty, from `at` on.
    pub fn open(at: Instant) -> Self {
        Books {
            issued: 0,
            in_flight: 0,
            since: at,
            integral: Length::ZERO,
        }
    }

    /// A request was taken up at `at`.
    pub fn begin(&mut self, at: Instant) {
        self.advance(at);
        self.issued += 1;
        self.in_flight += 1;
    }

    /// A request was done with at `at`.
    pub fn end(&mut self, at: Instant) {
        self.advance(at);
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn advance(&mut self, at: Instant) {
        let step = at
            .since_or_zero(self.since)
            .nanos()
            .saturating_mul(self.in_flight);
        self.integral += Length::from_nanos(step);
        self.since = self.since.max(at);
    }

    /// Requests issued, and the integral.
    pub fn totals(&self) -> (u64, Length) {
        (self.issued, self.integral)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integral_is_the_sum_of_the_stays() {
        let at = Instant::from_nanos;
        let mut books = Books::open(at(0));
        books.begin(at(10));
        books.begin(at(20));
        books.end(at(50));
        books.end(at(55));
        books.begin(at(60));
        books.end(at(61));
        assert_eq!(books.totals(), (3, Length::from_nanos(40 + 35 + 1)));
    }
}
