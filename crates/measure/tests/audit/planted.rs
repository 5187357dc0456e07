//! Faults that are easy to plant: sums that cannot be, requests taken out, times of nothing.

use serde_json::{Value, json};

use crate::samples;
use crate::{faults, of};

fn changed(mut value: Value, changes: &[(&str, Value)]) -> Vec<&'static str> {
    for (key, new) in changes {
        value[*key] = new.clone();
    }
    faults(&of(&value))
}

#[test]
fn a_sum_that_cannot_be_is_found_beside_the_rate_it_is_said_to_make() {
    for (key, sum) in [
        ("duration", json!(0.0)),
        ("duration", json!(-36.5)),
        ("duration", json!(1e300)),
        ("total_output_tokens", json!(1e30)),
        ("total_output_tokens", json!(-25_600)),
    ] {
        let found = changed(samples::vllm(), &[(key, sum.clone())]);
        assert_eq!(found, ["rate_off_tokens"], "{key} {sum}");
    }
    let audit = of(&{
        let mut value = samples::vllm();
        value["duration"] = json!(1e300);
        value
    });
    assert!(audit.findings[0].text.contains("duration of 1e300"));
}

#[test]
fn a_rate_of_requests_is_held_against_their_number_and_the_time() {
    let rate = |rate: f64| {
        let cap = ("max_concurrency", Value::Null);
        changed(samples::vllm(), &[("request_throughput", json!(rate)), cap])
    };
    assert_eq!(rate(21.9), ["rate_off_tokens"]);
    assert_eq!(rate(12.2), ["rate_off_tokens"]);
    assert_eq!(rate(11.9), [""; 0]);
    let none = [("completed", json!(0)), ("num_prompts", json!(0))];
    assert_eq!(changed(samples::vllm(), &none), ["rate_off_tokens"]);
}

#[test]
fn times_of_nothing_are_zero_latencies_in_rows_and_summaries() {
    let rows = |change: &dyn Fn(&mut Value)| {
        let mut rows: Vec<Value> = (0..40).map(samples::llmperf_row).collect();
        rows.iter_mut().for_each(change);
        of(&Value::Array(rows))
    };
    let zero = rows(&|row| {
        row["ttft_s"] = json!(0);
        row["end_to_end_latency_s"] = json!(0);
    });
    assert_eq!(faults(&zero)[0], "zero_latency");
    let figures = &zero.observed[0].figures;
    let e2e = figures.iter().find(|figure| figure.metric == "e2e");
    let e2e = e2e.expect("a figure");
    assert_eq!((e2e.kept, e2e.withheld.is_some()), (0, true));
    let failed = rows(&|row| {
        row["error_code"] = json!(500);
        row["ttft_s"] = json!(0);
        row["end_to_end_latency_s"] = json!(0);
        row["number_output_tokens"] = json!(0);
    });
    assert_eq!(faults(&failed), ["zero_latency"]);
    assert!(failed.findings[0].text.contains("no request completed"));
    let negative = rows(&|row| row["ttft_s"] = json!(-0.1));
    assert_eq!(faults(&negative), ["zero_latency"]);
    let summary = [
        ("mean_ttft_ms", json!(-100.0)),
        ("median_ttft_ms", json!(-100.0)),
    ];
    assert_eq!(changed(samples::vllm(), &summary)[0], "zero_latency");
}

#[test]
fn errors_of_single_requests_show_whatever_the_summary_counts() {
    let mut value = samples::vllm_detailed();
    for index in 0..60 {
        value["errors"][index] = json!("timed out");
        value["ttfts"][index] = json!(0.0);
    }
    // Their tokens stay in the lists: only the books are wrong.
    assert!(faults(&of(&value)).contains(&"failures_hidden"));
    value.as_object_mut().expect("an object").remove("failed");
    assert!(faults(&of(&value)).contains(&"failures_hidden"));
}

#[test]
fn a_summary_of_other_requests_than_the_files_own_is_found() {
    let with = |key: &str, new: Value| {
        let value = samples::vllm_detailed();
        changed(value, &[(key, new)])
    };
    assert_eq!(with("label", json!("sound")), [""; 0]);
    let half = Value::Array(vec![json!(32); 400]);
    assert!(with("output_lens", half).contains(&"rows_disagree"));
    let third = [
        ("mean_ttft_ms", json!(33.0)),
        ("median_ttft_ms", json!(33.0)),
    ];
    let found = changed(samples::vllm_detailed(), &third);
    assert!(found.contains(&"rows_disagree"), "{found:?}");
    let mut value = samples::servebench();
    let rows = value["levels"][0]["requests"].as_array_mut();
    rows.expect("a list").pop();
    assert_eq!(faults(&of(&value)), ["rows_disagree"]);
}

#[test]
fn a_high_quantile_of_a_time_below_its_median_is_none() {
    for (p99, found) in [(60.0, vec!["inverted_spread"]), (100.0, vec![])] {
        let p99 = [("p99_ttft_ms", json!(p99))];
        assert_eq!(changed(samples::vllm(), &p99), found);
    }
}

#[test]
fn answers_of_one_token_are_no_burst() {
    let mut value = samples::vllm_detailed();
    value["output_lens"] = Value::Array(vec![json!(1); 400]);
    value["itls"] = Value::Array(vec![json!([]); 400]);
    for (key, new) in [
        ("total_output_tokens", 400.0),
        ("output_throughput", 10.958_904),
        ("total_token_throughput", 120.547_9),
        ("mean_tpot_ms", 0.0),
        ("median_tpot_ms", 0.0),
        ("p99_tpot_ms", 0.0),
        ("mean_itl_ms", 0.0),
        ("median_itl_ms", 0.0),
        ("p99_itl_ms", 0.0),
        ("mean_e2el_ms", 100.0),
        ("median_e2el_ms", 100.0),
        ("p99_e2el_ms", 100.0),
    ] {
        value[key] = json!(new);
    }
    value["max_concurrency"] = Value::Null;
    assert_eq!(faults(&of(&value)), [""; 0]);
}
