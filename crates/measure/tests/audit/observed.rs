//! Single requests of a file become traces, and the judge says what they support.

use measure::audit::observe::Observed;
use serde_json::{Value, json};

use crate::samples;
use crate::{faults, of, rules_of};

fn figure<'a>(observed: &'a Observed, metric: &str) -> &'a measure::audit::observe::ObservedFigure {
    let mut all = observed.figures.iter();
    all.find(|figure| figure.metric == metric)
        .expect("a figure")
}

fn only(value: &Value) -> Observed {
    of(value).observed.into_iter().next().expect("observed")
}

fn near(found: Option<f64>, wanted: f64) {
    let found = found.unwrap_or_else(|| panic!("no value for {wanted}"));
    assert!((found / wanted - 1.0).abs() < 1e-6, "{found} and {wanted}");
}

#[test]
fn stamps_rebuilt_from_first_and_gaps_give_the_streams_own_figures() {
    for value in [samples::vllm_detailed(), samples::servebench()] {
        let observed = only(&value);
        assert_eq!(observed.shapes.get("streamed"), Some(&400));
        near(figure(&observed, "ttft").median(), 0.1);
        near(figure(&observed, "generation_rate").median(), 100.0);
        near(figure(&observed, "e2e_rate").median(), 64.0 / 0.73);
        let held = observed.held.expect("starts and ends are in the file");
        assert!((7.9..=8.0).contains(&held), "{held}");
    }
    assert_eq!(faults(&of(&samples::vllm_detailed())), [""; 0]);
}

#[test]
fn a_burst_in_the_rows_falls_back_beside_what_the_tool_printed() {
    let mut value = samples::vllm_detailed();
    let each = |one: Value| Value::Array(vec![one; 400]);
    value["ttfts"] = each(json!(0.72));
    value["itls"] = each(json!(vec![0.000_01; 63]));
    let audit = of(&value);
    // The summary was left as it was, and is not that of these requests.
    let found = ["burst_rate", "ttft_is_e2e", "rows_disagree"];
    assert_eq!(faults(&audit), found);
    let observed = &audit.observed[0];
    assert_eq!(observed.shapes.get("buffered"), Some(&400));
    assert_eq!(observed.reasons.get("one_burst"), Some(&400));
    let withheld = figure(observed, "generation_rate").withheld.as_ref();
    assert_eq!(withheld.map(|why| why.code), Some("not_supported"));
    assert!(figure(observed, "e2e_rate").median().is_some());
    // What the tool printed is still there, as what it stated.
    assert!(
        audit
            .stated
            .iter()
            .any(|stated| stated.field == "mean_tpot_ms")
    );
}

#[test]
fn failed_and_empty_rows_are_no_successes() {
    let mut value = samples::vllm_detailed();
    value["errors"][0] = json!("timed out");
    value["ttfts"][0] = json!(0.0);
    value["output_lens"][1] = json!(0);
    let audit = of(&value);
    assert_eq!(faults(&audit), ["completed_empty", "failures_hidden"]);
    assert_eq!(
        (audit.observed[0].requests, audit.observed[0].ok),
        (400, 398)
    );
    let mut value = samples::vllm_detailed();
    value["ttfts"][0] = json!(0.0);
    assert_eq!(faults(&of(&value)), ["zero_latency"]);
}

#[test]
fn chunks_told_by_rate_and_latency_are_judged_as_far_as_they_go() {
    let sound: Vec<Value> = (0..40).map(samples::llmperf_row).collect();
    let observed = only(&Value::Array(sound.clone()));
    assert_eq!(observed.shapes.get("unproven"), Some(&40));
    assert!(figure(&observed, "generation_rate").median().is_some());
    // Two chunks, and one that brings all of 64 tokens a millisecond before the end.
    let mut some = sound;
    let row = |chunks: f64, latency: f64, ttft: f64, last: f64| {
        json!({
            "error_code": null, "ttft_s": ttft, "end_to_end_latency_s": latency,
            "inter_token_latency_s": last / 64.0, "number_output_tokens": 64,
            "request_output_throughput_token_per_s": chunks / latency,
            "number_total_tokens": 74, "number_input_tokens": 10
        })
    };
    some.push(row(2.0, 1.9, 1.2, 1.89));
    some.push(row(1.0, 1.9, 1.899, 1.899));
    let audit = of(&Value::Array(some));
    let observed = &audit.observed[0];
    assert_eq!(observed.shapes.get("buffered"), Some(&2));
    assert_eq!(observed.reasons.get("few_chunks"), Some(&2));
    assert_eq!(
        observed.reasons.get("one_burst"),
        None,
        "the file cannot tell"
    );
    let burst = &audit.findings[0];
    assert_eq!(burst.rule, "burst_rate");
    assert!(
        burst.text.contains("1 would print more than 4,000 tok/s"),
        "{}",
        burst.text
    );
    assert_eq!(figure(observed, "e2e_rate").kept, 42);
    assert_eq!(figure(observed, "generation_rate").kept, 40);
}

#[test]
fn a_field_that_counts_chunks_is_recomputed_from_tokens_and_time() {
    let rows: Vec<Value> = (0..40)
        .map(|index| {
            let mut row = samples::llmperf_row(index);
            let latency = row["end_to_end_latency_s"].as_f64().expect("a number");
            row["request_output_throughput_token_per_s"] = json!(16.0 / latency);
            row
        })
        .collect();
    let audit = of(&Value::Array(rows));
    assert_eq!(
        rules_of(&audit),
        ["chunks_as_tokens", "rate_off_tokens", "no_concurrency"]
    );
    assert!(
        audit.findings[1].text.starts_with("40 of 40"),
        "{}",
        audit.findings[1].text
    );
}

#[test]
fn warm_up_lines_and_cancelled_ones_are_kept_apart() {
    let mut lines: Vec<Value> = (0..40).map(samples::aiperf_row).collect();
    lines[0]["metadata"]["benchmark_phase"] = json!("warmup");
    lines[1]["metadata"]["was_cancelled"] = json!(true);
    let observed = only(&Value::Array(lines));
    assert_eq!((observed.requests, observed.ok), (39, 38));
}
