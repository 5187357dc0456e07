//! Owns what a peer says of its own run, against the ledger: its file of results is read as an audit
//! reads it.

use std::path::Path;

use measure::audit::{
    self,
    form::{Metric, Stat},
};

use crate::levels::{
    FIRST_P50, FIRST_P99, GAP_P50, GAP_P99, ONE_STREAM, SYSTEM, Values, above, off,
};
use crate::truth::{self, Truth};

/// The p99.
const P99: Stat = Stat::Quantile(99_000);

/// A peer's numbers against those of the ledger, its warm-up included; none where its file cannot
/// be read or states none.
pub fn errors(out: &Path, truth: &Truth) -> Values {
    let read = std::fs::read(out).ok();
    let Some(audit) = read.and_then(|bytes| audit::audit(&bytes).ok()) else {
        return Vec::new();
    };
    let stated = |metric, stat| {
        let numbers = audit.stated.iter().map(|stated| &stated.number);
        let mut found = numbers.filter(|n| n.metric == metric && n.stat == stat);
        found.find_map(|number| number.known())
    };
    let ms = |metric, stat| stated(metric, stat).map(|seconds| seconds * 1e3);
    let all = || truth.requests.iter();
    let (first, gaps) = (truth::first(all()), truth::gaps(all()));
    let tpot = stated(Metric::Tpot, Stat::Median);
    vec![
        (
            FIRST_P50,
            above(ms(Metric::Ttft, Stat::Median), first.at(50)),
        ),
        (FIRST_P99, above(ms(Metric::Ttft, P99), first.at(99))),
        (GAP_P50, above(ms(Metric::Itl, Stat::Median), gaps.at(50))),
        (GAP_P99, above(ms(Metric::Itl, P99), gaps.at(99))),
        (
            ONE_STREAM,
            off(tpot.map(|tpot| 1.0 / tpot), truth::per_stream(all())),
        ),
        (
            SYSTEM,
            off(
                stated(Metric::SystemOutput, Stat::Value),
                truth::whole(all()),
            ),
        ),
    ]
}
