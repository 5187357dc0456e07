//! Owns k6's end-of-test summary.

use serde_json::Value;

use super::fields::{as_num, first_num, has, kind, millis, num};
use crate::audit::definition as means;
use crate::audit::form::{Metric, Run, Stat, Tool};

/// Whether a value is a summary.
pub fn claims(value: &Value) -> Option<Tool> {
    let is = has(value, "/metrics/http_reqs") && has(value, "/metrics/http_req_duration");
    is.then_some(Tool::K6)
}

/// One run a value.
pub fn import(values: &[Value]) -> Vec<Run> {
    values.iter().map(run).collect()
}

fn run(value: &Value) -> Run {
    let mut run = Run::new();
    run.config.concurrency = first_num(
        value,
        &[
            "/metrics/vus_max/values/max",
            "/metrics/vus_max/max",
            "/metrics/vus/values/max",
            "/metrics/vus/max",
        ],
    );
    run.config.unlimited = true;
    let requests = first_num(
        value,
        &[
            "/metrics/http_reqs/values/count",
            "/metrics/http_reqs/count",
        ],
    );
    let failed = first_num(
        value,
        &[
            "/metrics/http_req_failed/values/rate",
            "/metrics/http_req_failed/value",
        ],
    );
    run.books.error_rate = failed;
    run.books.failed = requests
        .zip(failed)
        .map(|(all, share)| (all * share).round());
    run.books.completed = requests
        .zip(run.books.failed)
        .map(|(all, failed)| all - failed);
    run.books.failed_checks = checks(value);
    run.totals.duration = num(value, "/state/testRunDurationMs").map(|millis| millis / 1e3);
    let rate = first_num(
        value,
        &["/metrics/http_reqs/values/rate", "/metrics/http_reqs/rate"],
    );
    run.state(
        kind(Metric::Requests, means::REQUESTS_ALL),
        Stat::Value,
        "metrics.http_reqs.rate",
        rate,
    );
    let e2e = millis(Metric::E2e, means::E2E_ITERATION);
    let ttfb = millis(Metric::Ttft, means::TTFT_BYTE);
    for (name, of) in [("http_req_duration", e2e), ("http_req_waiting", ttfb)] {
        run.family(value, &format!("/metrics/{name}"), of);
        run.family(value, &format!("/metrics/{name}/values"), of);
    }
    own_rates(&mut run, value);
    run
}

/// Counters that the test itself defines: their rate is of the whole system.
fn own_rates(run: &mut Run, value: &Value) {
    const BUILT_IN: [&str; 8] = [
        "data_received",
        "data_sent",
        "http_reqs",
        "iterations",
        "checks",
        "vus",
        "vus_max",
        "dropped_iterations",
    ];
    let metrics = value.get("metrics").and_then(Value::as_object);
    for (name, metric) in metrics.into_iter().flatten() {
        let counter = metric.get("type").and_then(Value::as_str) == Some("counter");
        if counter && !BUILT_IN.contains(&name.as_str()) && !name.contains('{') {
            let rate = metric.pointer("/values/rate").and_then(as_num);
            run.state(
                kind(Metric::OtherRate, means::OTHER_RATE),
                Stat::Value,
                &format!("metrics.{name}.values.rate"),
                rate,
            );
        }
    }
}

/// Checks that failed, of all.
fn checks(value: &Value) -> Option<(f64, f64)> {
    let at = |name: &str| {
        first_num(
            value,
            &[
                &format!("/metrics/checks/values/{name}"),
                &format!("/metrics/checks/{name}"),
            ],
        )
    };
    let (passes, fails) = (at("passes")?, at("fails")?);
    Some((fails, passes + fails))
}
