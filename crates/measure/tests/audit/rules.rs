//! Each rule finds its fault in a sound file that was broken at one place, and nothing else.

use serde_json::{Value, json};

use crate::samples;
use crate::{faults, of, rules_of};

/// A sample with some of its fields, by pointer, set to other values. A flat p99 beside a changed
/// mean or median goes: it would be of other requests.
fn with(mut value: Value, changes: &[(&str, Value)]) -> Value {
    for (path, new) in changes {
        let (parent, key) = path.rsplit_once('/').expect("a pointer");
        let place = value.pointer_mut(parent).expect("its parent");
        match place {
            Value::Array(list) => list[key.parse::<usize>().expect("an index")] = new.clone(),
            other => {
                other[key] = new.clone();
                let family = key.strip_prefix("mean_").or(key.strip_prefix("median_"));
                if let (Some(family), Value::Object(members)) = (family, other) {
                    members.remove(&format!("p99_{family}"));
                }
            }
        }
    }
    value
}

fn vllm(changes: &[(&str, Value)]) -> Vec<&'static str> {
    faults(&of(&with(samples::vllm(), changes)))
}

#[test]
fn a_burst_shows_in_times_in_rates_and_in_requests() {
    let burst = [
        ("/mean_tpot_ms", json!(0.0009)),
        ("/median_tpot_ms", json!(0.0009)),
        ("/mean_itl_ms", json!(0.0009)),
        ("/median_itl_ms", json!(0.0009)),
        ("/mean_ttft_ms", json!(729.9)),
        ("/median_ttft_ms", json!(729.9)),
    ];
    assert_eq!(vllm(&burst), ["burst_rate", "ttft_is_e2e"]);
    // Half of the gaps are none, and the mean is right: a role chunk, then everything at once.
    assert_eq!(vllm(&[("/median_itl_ms", json!(0.0))]), ["burst_rate"]);
    let fast = with(
        samples::genai_bench(),
        &[(
            "/aggregated_metrics/stats/output_throughput/mean",
            json!(75_229.0),
        )],
    );
    assert_eq!(faults(&of(&fast))[0], "burst_rate");
}

#[test]
fn the_limits_of_a_burst_are_those_of_an_arrival() {
    assert_eq!(vllm(&[("/median_itl_ms", json!(0.2))]), ["burst_rate"]);
    assert_eq!(vllm(&[("/median_itl_ms", json!(0.21))]), [""; 0]);
}

#[test]
fn gaps_of_several_tokens_are_chunks_but_stalls_are_not() {
    let chunks = [
        ("/mean_itl_ms", json!(39.0)),
        ("/median_itl_ms", json!(40.0)),
    ];
    assert_eq!(vllm(&chunks), ["chunks_as_tokens", "gap_disagrees"]);
    // One long stall lifts the mean alone.
    assert_eq!(vllm(&[("/mean_itl_ms", json!(39.0))]), [""; 0]);
    let steady = [("/steady_state", json!({ "output_throughput": 176.0 }))];
    assert_eq!(vllm(&steady), ["chunks_as_tokens"]);
}

#[test]
fn short_answers_that_dominate_a_mean_of_ratios_are_no_fault() {
    // The mean of times per token is far above the time after the first over the tokens after it.
    let trap = [
        ("/mean_tpot_ms", json!(30.0)),
        ("/std_tpot_ms", json!(80.0)),
    ];
    assert_eq!(vllm(&trap), [""; 0]);
    let other_side = [
        ("/mean_tpot_ms", json!(5.0)),
        ("/median_tpot_ms", json!(5.0)),
    ];
    assert!(vllm(&other_side).contains(&"gap_disagrees"));
}

#[test]
fn a_prediction_far_below_the_latency_leaves_time_unexplained() {
    let slow = [
        ("/mean_e2el_ms", json!(1_000.0)),
        ("/max_concurrency", json!(11)),
    ];
    assert!(vllm(&slow).contains(&"prediction_below_e2e"));
    let near = [
        ("/mean_e2el_ms", json!(960.0)),
        ("/max_concurrency", json!(11)),
    ];
    assert!(!vllm(&near).contains(&"prediction_below_e2e"));
}

#[test]
fn a_first_token_at_the_end_is_one_only_with_more_than_one_token() {
    let late = [("/median_ttft_ms", json!(716.0))];
    assert_eq!(vllm(&late), ["ttft_is_e2e"]);
    let single = [
        ("/median_ttft_ms", json!(716.0)),
        ("/total_output_tokens", json!(400)),
        ("/output_throughput", json!(10.958_904)),
    ];
    assert!(!vllm(&single).contains(&"ttft_is_e2e"));
    let byte = with(
        samples::k6(),
        &[("/metrics/http_req_waiting/values/med", json!(730.0))],
    );
    assert_eq!(faults(&of(&byte)), [""; 0]);
}

#[test]
fn a_peak_below_the_mean_counts_chunks_or_lacks_a_whole_second() {
    let peak = [("/max_output_tokens_per_s", json!(176.0))];
    assert_eq!(vllm(&peak), ["peak_below_mean", "chunks_as_tokens"]);
    let short = [
        ("/max_output_tokens_per_s", json!(75.0)),
        ("/duration", json!(1.37)),
        ("/total_output_tokens", json!(961)),
        ("/completed", json!(15)),
        ("/num_prompts", json!(15)),
    ];
    assert_eq!(vllm(&short), ["peak_below_mean"]);
}

#[test]
fn what_is_counted_as_output_must_be_output() {
    let stated = |rate: f64| {
        vllm(&[
            ("/output_throughput", json!(rate)),
            ("/max_output_tokens_per_s", Value::Null),
        ])
    };
    assert_eq!(stated(810.96), ["total_as_output"]);
    assert_eq!(stated(900.0), ["rate_off_tokens"]);
    let again = [("/total_output_tokens_retokenized", json!(12_000))];
    let requested = with(samples::sglang(), &again);
    assert_eq!(faults(&of(&requested)), ["requested_length"]);
    let gpu = [
        ("/tput_per_gpu", json!(234.4)),
        ("/output_tput_per_gpu", json!(26.0)),
        ("/input_tput_per_gpu", json!(208.4)),
    ];
    assert_eq!(
        faults(&of(&with(samples::inference_x(), &gpu))),
        ["total_as_output"]
    );
}

#[test]
fn empty_answers_and_those_over_the_limit_are_found() {
    let empty = [("/successes/output_len/min", json!(0.0))];
    assert_eq!(
        faults(&of(&with(samples::inference_perf(), &empty))),
        ["completed_empty"]
    );
    let over = [("/output_sequence_length/max", json!(80.0))];
    assert_eq!(
        faults(&of(&with(samples::aiperf(), &over))),
        ["tokens_over_limit"]
    );
    let one_more = [("/output_sequence_length/max", json!(65.0))];
    assert_eq!(faults(&of(&with(samples::aiperf(), &one_more))), [""; 0]);
}

#[test]
fn reciprocals_of_spreads_and_quantiles_are_found_and_withheld() {
    let inverted = [("/std_intvty", json!(1000.0)), ("/p99_intvty", json!(90.0))];
    let audit = of(&with(samples::inference_x(), &inverted));
    assert_eq!(faults(&audit), ["inverted_spread"]);
    let spread = audit
        .stated
        .iter()
        .find(|stated| stated.field == "std_intvty");
    assert_eq!(spread.and_then(|stated| stated.value), None);
}

#[test]
fn a_load_that_was_not_offered_or_not_held_is_found() {
    let late = [("/load_summary/schedule_delay/mean", json!(9.25))];
    assert_eq!(
        faults(&of(&with(samples::inference_perf(), &late))),
        ["load_not_held"]
    );
    let rate = [("/request_rate", json!(40.0)), ("/concurrency", json!(7.1))];
    assert_eq!(
        faults(&of(&with(samples::sglang(), &rate))),
        ["load_not_held"]
    );
    let below = [("/request_rate", json!(2.0))];
    assert_eq!(
        faults(&of(&with(samples::sglang(), &below))),
        ["load_not_held"]
    );
    assert_eq!(
        vllm(&[("/max_concurrency", json!(32))]),
        ["concurrency_not_held"]
    );
    assert_eq!(
        vllm(&[("/max_concurrent_requests", json!(17))]),
        ["peak_over_cap"]
    );
}

#[test]
fn the_drain_of_a_sound_rate_is_granted() {
    // 100 requests at 10/s with 5 s each: 6.7 a second over the run, and the server kept up.
    let drain = [
        ("/completed", json!(100)),
        ("/duration", json!(15.0)),
        ("/request_throughput", json!(6.67)),
        ("/mean_e2e_latency_ms", json!(5_000.0)),
        ("/mean_tpot_ms", json!(77.8)),
        ("/median_tpot_ms", json!(77.8)),
        ("/mean_itl_ms", json!(77.8)),
        ("/median_itl_ms", json!(77.8)),
        ("/total_output_tokens", json!(6_400)),
        ("/total_output_tokens_retokenized", json!(6_400)),
        ("/output_throughput", json!(426.7)),
    ];
    assert_eq!(faults(&of(&with(samples::sglang(), &drain))), [""; 0]);
}

#[test]
fn failures_show_wherever_they_are_hidden() {
    assert_eq!(vllm(&[("/num_prompts", json!(500))]), ["failures_hidden"]);
    assert_eq!(
        vllm(&[("/failed", json!(40)), ("/num_prompts", json!(440))]),
        ["failures_hidden"]
    );
    assert_eq!(
        vllm(&[("/failed", json!(3)), ("/num_prompts", json!(403))]),
        [""; 0]
    );
    let checks = [("/metrics/checks/values/fails", json!(60))];
    assert_eq!(
        faults(&of(&with(samples::k6(), &checks))),
        ["failures_hidden"]
    );
    let none = [("/aggregated_metrics/num_error_requests", json!(2))];
    assert_eq!(
        faults(&of(&with(samples::genai_bench(), &none))),
        ["failures_hidden"]
    );
    let aborted = [(
        "/errorDistribution",
        json!({ "aborted due to deadline": 8 }),
    )];
    assert_eq!(
        faults(&of(&with(samples::oha(), &aborted))),
        ["failures_hidden"]
    );
}

#[test]
fn waiting_that_a_streams_rate_leaves_out_is_found() {
    let waiting = [("/benchmarks/0/tg_throughput/mean", json!(400.0))];
    assert_eq!(
        faults(&of(&with(samples::llama_benchy(), &waiting))),
        ["wait_left_out"]
    );
    let wide = [("/benchmarks/0/pp_req_throughput/std", json!(1_000.0))];
    assert_eq!(
        faults(&of(&with(samples::llama_benchy(), &wide))),
        ["wide_spread"]
    );
}

#[test]
fn a_run_that_was_cut_short_says_so() {
    let cut = [("/was_cancelled", json!(true))];
    assert_eq!(
        faults(&of(&with(samples::aiperf(), &cut))),
        ["run_cut_short"]
    );
}

#[test]
fn the_five_that_may_stand_on_a_clean_file_are_notes() {
    let audit = of(&with(
        samples::vllm(),
        &[
            ("/max_concurrency", Value::Null),
            ("/completed", json!(20)),
            ("/num_prompts", json!(20)),
            ("/duration", json!(1.825)),
            ("/total_output_tokens", json!(1_280)),
        ],
    ));
    assert_eq!(faults(&audit), [""; 0]);
    assert!(!audit.has_faults());
    assert_eq!(
        rules_of(&audit),
        [
            "no_concurrency",
            "per_stream_missing",
            "few_samples",
            "p99_from_too_few",
            "ramp_and_drain"
        ]
    );
}
