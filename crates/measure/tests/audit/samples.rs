//! Owns a small sound result file of each tool: the tests break them one field at a time.

use serde_json::{Value, json};

/// A sample by its tool's name, as the text of a file.
pub struct Sample {
    /// The tool that must be found.
    pub tool: &'static str,
    /// The file.
    pub text: String,
}

fn of(tool: &'static str, value: &Value) -> Sample {
    Sample {
        tool,
        text: value.to_string(),
    }
}

/// One sound sample of each form that is read.
pub fn all() -> Vec<Sample> {
    let lines = |values: &[Value]| values.iter().map(|v| format!("{v}\n")).collect::<String>();
    vec![
        of("vllm-bench", &vllm()),
        of("vllm-bench-rust", &vllm_rust()),
        of("sglang-bench", &sglang()),
        Sample {
            tool: "sglang-bench",
            text: sglang_console().into(),
        },
        of("aiperf", &aiperf()),
        Sample {
            tool: "aiperf",
            text: lines(&(0..40).map(aiperf_row).collect::<Vec<_>>()),
        },
        of("genai-perf", &genai_perf()),
        of("guidellm", &guidellm()),
        of("inference-perf", &inference_perf()),
        of("llmperf", &llmperf()),
        of("llmperf", &Value::Array((0..40).map(llmperf_row).collect())),
        of("genai-bench", &genai_bench()),
        of("llama-benchy", &llama_benchy()),
        Sample {
            tool: "llama-benchy",
            text: LLAMA_BENCHY_TABLE.into(),
        },
        of("llama-bench", &json!([llama_bench()])),
        of("evalscope", &evalscope()),
        of("servebench", &servebench()),
        of("inference-benchmarker", &inference_benchmarker()),
        of("inference-x", &inference_x()),
        Sample {
            tool: "loadgen",
            text: LOADGEN.into(),
        },
        of("k6", &k6()),
        of("oha", &oha()),
        of("archive-4x3090", &archive()),
    ]
}

/// 400 requests at 8 streams: 64 tokens, the first at 0.1 s, one each 10 ms; 0.73 s a request.
pub fn vllm() -> Value {
    json!({
        "date": "20260101-000000", "endpoint_type": "openai-chat", "model_id": "m",
        "num_prompts": 400, "request_rate": "inf", "max_concurrency": 8, "duration": 36.5,
        "completed": 400, "failed": 0, "total_input_tokens": 4000, "total_output_tokens": 25600,
        "request_throughput": 10.958_904, "output_throughput": 701.369_86,
        "total_token_throughput": 810.958_9, "max_output_tokens_per_s": 800.0,
        "max_concurrent_requests": 16,
        "mean_ttft_ms": 100.0, "median_ttft_ms": 100.0, "std_ttft_ms": 1.0, "p99_ttft_ms": 103.0,
        "mean_tpot_ms": 10.0, "median_tpot_ms": 10.0, "std_tpot_ms": 0.1, "p99_tpot_ms": 10.3,
        "mean_itl_ms": 10.0, "median_itl_ms": 10.0, "std_itl_ms": 0.5, "p99_itl_ms": 12.0,
        "mean_e2el_ms": 730.0, "median_e2el_ms": 730.0, "std_e2el_ms": 2.0, "p99_e2el_ms": 735.0
    })
}

fn vllm_rust() -> Value {
    let mut value = vllm();
    value["max_model_len"] = Value::Null;
    value["steady_state"] = json!({ "output_throughput": 705.0, "window": { "duration_s": 35.0 } });
    value
}

/// `vllm()` with the single requests of `--save-detailed`.
pub fn vllm_detailed() -> Value {
    let mut value = vllm();
    let each = |one: Value| Value::Array(vec![one; 400]);
    value["ttfts"] = each(json!(0.1));
    value["itls"] = each(json!(vec![0.01; 63]));
    value["output_lens"] = each(json!(64));
    value["input_lens"] = each(json!(10));
    value["errors"] = each(json!(""));
    let start = |index: usize| 100.0 + (index / 8) as f64 * 0.73;
    value["start_times"] = Value::Array((0..400).map(|index| json!(start(index))).collect());
    value
}

pub fn sglang() -> Value {
    json!({
        "tag": "t", "backend": "sglang", "dataset_name": "random", "request_rate": 10.0,
        "max_concurrency": null, "random_output_len": 64, "duration": 40.73, "completed": 400,
        "total_input_tokens": 4000, "total_output_tokens": 25600,
        "total_output_tokens_retokenized": 25500, "request_throughput": 9.8207,
        "output_throughput": 628.529, "total_throughput": 726.7,
        "mean_ttft_ms": 100.0, "median_ttft_ms": 100.0, "p99_ttft_ms": 103.0,
        "mean_tpot_ms": 10.0, "median_tpot_ms": 10.0, "p99_tpot_ms": 10.3,
        "mean_itl_ms": 10.0, "median_itl_ms": 10.0, "p99_itl_ms": 12.0,
        "mean_e2e_latency_ms": 730.0, "median_e2e_latency_ms": 730.0, "concurrency": 7.17
    })
}

pub fn sglang_console() -> &'static str {
    "run one\n\
     ============ Serving Benchmark Result ============\n\
     Backend:                                 sglang\n\
     Traffic request rate:                    inf\n\
     Max request concurrency:                 8\n\
     Successful requests:                     400\n\
     Benchmark duration (s):                  36.50\n\
     Total input tokens:                      4000\n\
     Total generated tokens:                  25600\n\
     Total generated tokens (retokenized):    25590\n\
     Request throughput (req/s):              10.96\n\
     Output token throughput (tok/s):         701.37\n\
     ----------------End-to-End Latency----------------\n\
     Mean E2E Latency (ms):                   730.00\n\
     Median E2E Latency (ms):                 730.00\n\
     ---------------Time to First Token----------------\n\
     Mean TTFT (ms):                          100.00\n\
     Median TTFT (ms):                        100.00\n\
     P99 TTFT (ms):                           103.00\n\
     Mean TPOT (ms):                          10.00\n\
     Median TPOT (ms):                        10.00\n\
     Mean ITL (ms):                           10.00\n\
     Median ITL (ms):                         10.00\n\
     ==================================================\n"
}

fn milliseconds(mean: f64) -> Value {
    json!({ "unit": "ms", "avg": mean, "p50": mean, "p99": mean * 1.1, "min": mean * 0.9, "max": mean * 1.2, "std": mean * 0.01 })
}

pub fn aiperf() -> Value {
    let tokens =
        json!({ "unit": "tokens", "avg": 64.0, "p50": 64.0, "min": 64.0, "max": 64.0, "std": 0.0 });
    json!({
        "schema_version": "1.4", "aiperf_version": "0.13.0",
        "request_throughput": { "unit": "requests/sec", "avg": 10.958_904 },
        "request_latency": milliseconds(730.0), "time_to_first_token": milliseconds(100.0),
        "inter_token_latency": milliseconds(10.0), "inter_chunk_latency": milliseconds(10.0),
        "request_count": { "unit": "requests", "avg": 400.0 },
        "output_token_throughput": { "unit": "tokens/sec", "avg": 701.369_86 },
        "output_token_throughput_per_user": { "unit": "tokens/sec/user", "avg": 100.0, "p50": 100.0, "std": 1.0 },
        "e2e_output_token_throughput": { "unit": "tokens/sec/user", "avg": 87.67, "p50": 87.67, "std": 1.0 },
        "output_sequence_length": tokens, "total_osl": { "unit": "tokens", "avg": 25600.0 },
        "benchmark_duration": { "unit": "sec", "avg": 36.5 },
        "input_config": {
            "models": { "items": [{ "name": "m" }] },
            "endpoint": { "type": "chat", "streaming": true },
            "datasets": [{ "prompts": { "osl": { "mean": 64.0 } } }],
            "phases": [
                { "name": "warmup", "kind": "warmup", "concurrency": 99 },
                { "name": "profiling", "kind": "profiling", "type": "concurrency", "requests": 400, "concurrency": 8 }
            ]
        },
        "was_cancelled": false, "is_complete": true
    })
}

pub fn aiperf_row(index: u64) -> Value {
    let start = 1_796_073_086_860_611_671_u64 + index * 730_000_000;
    let ms = |value: f64| json!({ "value": value, "unit": "ms" });
    json!({
        "metadata": { "request_start_ns": start, "request_end_ns": start + 730_000_000, "benchmark_phase": "profiling", "was_cancelled": false },
        "metrics": {
            "time_to_first_token": ms(100.0), "request_latency": ms(730.0),
            "inter_chunk_latency": { "value": vec![10.0; 63], "unit": "ms" },
            "output_sequence_length": { "value": 64, "unit": "tokens" },
            "input_sequence_length": { "value": 16, "unit": "tokens" },
            "usage_completion_tokens": { "value": 64, "unit": "tokens" },
            "e2e_output_token_throughput": { "value": 87.671, "unit": "tokens/sec/user" }
        }
    })
}

fn genai_perf() -> Value {
    let mut value = aiperf();
    let config =
        json!({ "model": ["m"], "endpoint_type": "chat", "streaming": true, "concurrency": 8 });
    value["input_config"] = config;
    let members = value.as_object_mut().expect("an object");
    for name in [
        "aiperf_version",
        "schema_version",
        "benchmark_duration",
        "is_complete",
    ] {
        members.remove(name);
    }
    value
}

pub fn guidellm() -> Value {
    let of = |mean: f64| {
        json!({ "successful": {
            "mean": mean, "median": mean, "std_dev": mean * 0.01, "min": mean * 0.9, "max": mean * 1.1,
            "percentiles": { "p05": mean * 0.95, "p50": mean, "p99": mean * 1.05, "p999": mean * 1.06 }
        } })
    };
    let metrics = json!({
        "request_totals": { "successful": 400, "incomplete": 0, "errored": 0, "total": 400 },
        "requests_per_second": of(10.958_904), "request_concurrency": of(7.9), "request_latency": of(0.73),
        "time_to_first_token_ms": of(100.0), "time_per_output_token_ms": of(11.4),
        "inter_token_latency_ms": of(10.0), "output_tokens_per_second": of(701.0),
        "output_token_count": of(64.0)
    });
    json!({
        "metadata": { "version": 2, "guidellm_version": "0.8.1" },
        "benchmarks": [{
            "type_": "generative_benchmark",
            "config": { "strategy": { "type_": "concurrent", "streams": 8 } },
            "metrics": metrics, "duration": 36.5
        }]
    })
}

pub fn inference_perf() -> Value {
    let of = |mean: f64| json!({ "mean": mean, "median": mean, "min": mean * 0.9, "max": mean * 1.1, "p99": mean * 1.05, "p99.9": mean * 1.06 });
    json!({
        "load_summary": { "count": 400, "requested_rate": 10.0, "achieved_rate": 10.0, "schedule_delay": { "mean": 0.0004, "max": 0.002 } },
        "successes": {
            "count": 400,
            "latency": { "request_latency": of(0.73), "time_to_first_token": of(0.1), "time_per_output_token": of(0.01), "inter_token_latency": of(0.01) },
            "throughput": { "requests_per_sec": 9.9, "output_tokens_per_sec": 633.6, "total_tokens_per_sec": 732.6 },
            "output_len": of(64.0)
        },
        "failures": { "count": 0 }
    })
}

pub fn llmperf() -> Value {
    let mut value = json!({
        "version": "2023-08-31", "name": "n", "model": "m", "mean_output_tokens": 64, "stddev_output_tokens": 0,
        "num_concurrent_requests": 8, "results_num_requests_started": 400, "results_number_errors": 0,
        "results_error_rate": 0.0, "results_num_completed_requests": 400,
        "results_num_completed_requests_per_min": 657.534, "results_mean_output_throughput_token_per_s": 701.37
    });
    for (name, mean) in [
        ("inter_token_latency_s", 0.0114),
        ("ttft_s", 0.1),
        ("end_to_end_latency_s", 0.73),
        ("request_output_throughput_token_per_s", 87.67),
        ("number_output_tokens", 64.0),
    ] {
        value[format!("results_{name}_mean")] = json!(mean);
        value[format!("results_{name}_quantiles_p50")] = json!(mean);
        value[format!("results_{name}_max")] = json!(format!("{}", mean * 1.01));
    }
    value
}

/// 65 chunks for 64 tokens: the count of chunks shows in rate × latency.
pub fn llmperf_row(index: u64) -> Value {
    let latency = 0.73 + index as f64 * 0.001;
    json!({
        "error_code": null, "error_msg": "", "ttft_s": 0.1, "end_to_end_latency_s": latency,
        "inter_token_latency_s": (latency - 0.001) / 64.0, "number_output_tokens": 64,
        "request_output_throughput_token_per_s": 65.0 / latency,
        "number_total_tokens": 74, "number_input_tokens": 10
    })
}

pub fn genai_bench() -> Value {
    let of = |mean: f64| json!({ "min": mean * 0.9, "max": mean * 1.1, "mean": mean, "stddev": mean * 0.01, "sum": mean * 400.0, "p50": mean, "p99": mean * 1.05 });
    json!({ "aggregated_metrics": {
        "scenario": "D(10,64)", "num_concurrency": 8, "run_duration": 36.5,
        "mean_output_throughput_tokens_per_s": 701.4, "requests_per_second": 10.96,
        "error_rate": 0.0, "num_error_requests": 0, "num_completed_requests": 400, "num_requests": 400,
        "stats": { "ttft": of(0.1), "tpot": of(0.01), "e2e_latency": of(0.73), "output_inference_speed": of(100.0),
            "output_throughput": of(100.0), "num_output_tokens": { "mean": 64, "min": 64, "max": 64, "sum": 25600 }, "num_input_tokens": of(10.0) }
    }, "_time_unit": "s" })
}

pub fn llama_benchy() -> Value {
    let of = |mean: f64| json!({ "mean": mean, "std": mean * 0.01, "values": [mean, mean, mean] });
    json!({ "version": "0.4.0", "latency_mode": "api", "model": "m", "benchmarks": [{
        "concurrency": 8, "context_size": 0, "prompt_size": 512, "response_size": 64,
        "pp_throughput": of(4000.0), "pp_req_throughput": of(900.0), "tg_throughput": of(760.0), "tg_req_throughput": of(100.0),
        "peak_throughput": of(800.0), "ttfr": of(90.0), "e2e_ttft": of(100.0)
    }] })
}

pub const LLAMA_BENCHY_TABLE: &str = "# Test\n\n\
    | model | test | t/s (total) | t/s (req) | peak t/s | e2e_ttft (ms) |\n\
    |:------|-----:|------------:|----------:|---------:|--------------:|\n\
    | m | pp512 (c8) | 4000.00 ± 5.33 | 900.00 ± 51.93 | | 100.63 ± 4.39 |\n\
    | m | tg64 (c8) | 760.00 ± 0.35 | 100.00 ± 1.35 | 800.00 ± 0.00 | |\n";

fn llama_bench() -> Value {
    json!({ "build_commit": "c", "model_filename": "f", "model_type": "m", "n_prompt": 0, "n_gen": 128, "n_depth": 0,
        "avg_ns": 16_000_000_000_u64, "stddev_ns": 1000, "avg_ts": 8.0, "stddev_ts": 0.01, "samples_ns": [16_000_000_000_u64], "samples_ts": [8.0] })
}

pub fn evalscope() -> Value {
    json!({ "Test Duration (s)": 36.5, "Concurrency": 8, "Request Rate (req/s)": -1, "Total Requests": 400,
        "Success Requests": 400, "Failed Requests": 0, "Stream Requests": 400, "Request Throughput (req/s)": 10.9589,
        "Output Throughput (tok/s)": 701.37, "Avg Latency (s)": 0.73, "Avg TTFT (ms)": 100.0, "Avg TPOT (ms)": 10.0,
        "Avg ITL (ms)": 10.0, "Avg Output Tokens": 64.0 })
}

pub fn servebench() -> Value {
    let stamps: Vec<f64> = (0..64).map(|index| 0.1 + f64::from(index) * 0.01).collect();
    let request = |index: usize| {
        json!({ "index": index, "start": (index / 8) as f64 * 0.731, "ok": true, "error": null, "ttft": 0.1, "e2e": 0.73,
            "chunk_times": stamps, "prompt_tokens": 10, "output_tokens": 64, "token_source": "usage", "reasoning_chunks": 0 })
    };
    let of =
        |mean: f64| json!({ "mean": mean, "p50": mean, "p99": mean, "max": mean, "count": 400 });
    json!({
        "schema_version": 1, "config": { "model": "m", "output_len": 64, "mode": "concurrency", "output_dist": null },
        "environment": { "servebench_version": "1.1.3" },
        "levels": [{ "mode": "concurrency", "value": 8.0, "duration": 36.55, "requests": (0..400).map(request).collect::<Vec<_>>(),
            "summary": { "completed": 400, "failed": 0, "request_throughput": 10.944, "output_throughput": 700.4,
                "ttft": of(0.1), "tpot": of(0.01), "itl": of(0.01), "e2e": of(0.73), "output_tokens_mean": 64.0 } }]
    })
}

pub fn inference_benchmarker() -> Value {
    let of = |mean: f64| json!({ "p50": mean, "p90": mean, "p99": mean, "avg": mean });
    json!({ "config": {}, "start_time": "a", "end_time": "b", "results": [{
        "id": "8 users", "executor_type": "ConstantVUs", "config": { "max_vus": 8, "duration": 36, "rate": null },
        "total_requests": 400, "total_tokens": 25600, "token_throughput_secs": 701.0, "duration_ms": 36500.0,
        "time_to_first_token_ms": of(100.0), "inter_token_latency_ms": of(10.0), "e2e_latency_ms": of(730.0),
        "failed_requests": 0, "successful_requests": 400, "request_rate": 10.96
    }] })
}

pub fn inference_x() -> Value {
    json!({ "hw": "h", "conc": 8, "model": "m", "tp": 8, "isl": 10, "osl": 64, "disagg": false,
        "tput_per_gpu": 87.6, "output_tput_per_gpu": 87.6, "mean_ttft": 0.1, "median_ttft": 0.1, "mean_tpot": 0.01,
        "median_tpot": 0.01, "std_tpot": 0.001, "mean_intvty": 100.0, "median_intvty": 100.0, "std_intvty": 9.0,
        "mean_itl": 0.01, "median_itl": 0.01, "mean_e2el": 0.73, "median_e2el": 0.73 })
}

pub const LOADGEN: &str = "================================================\n\
    MLPerf Results Summary\n\
    ================================================\n\
    SUT name : s\n\
    Scenario : Server\n\
    Mode     : PerformanceOnly\n\
    Completed samples per second    : 9.9\n\
    Completed tokens per second: 633.60\n\
    Result is : VALID\n\
    Additional Stats\n\
    Mean latency (ns)               : 730000000\n\
    50.00 percentile latency (ns)   : 730000000\n\
    99.00 percentile latency (ns)   : 760000000\n\
    Mean First Token latency (ns)   : 100000000\n\
    99.00 percentile first token latency (ns) : 110000000\n\
    Mean Time to Output Token (ns)  : 10000000\n\
    target_qps : 10\n\
    samples : 4000\n";

pub fn k6() -> Value {
    let time = |mean: f64| json!({ "type": "trend", "contains": "time", "values": { "avg": mean, "min": mean * 0.9, "med": mean, "max": mean * 1.1, "p(90)": mean, "p(95)": mean } });
    json!({
        "metrics": {
            "http_reqs": { "type": "counter", "values": { "count": 400, "rate": 10.9589 } },
            "http_req_duration": time(730.0), "http_req_waiting": time(729.0),
            "http_req_failed": { "type": "rate", "values": { "rate": 0, "passes": 0, "fails": 400 } },
            "checks": { "type": "rate", "values": { "rate": 1, "passes": 400, "fails": 0 } },
            "vus_max": { "type": "gauge", "values": { "value": 8, "min": 8, "max": 8 } }
        },
        "root_group": {}, "state": { "testRunDurationMs": 36500.0 }
    })
}

pub fn oha() -> Value {
    json!({ "summary": { "successRate": 1.0, "total": 36.5, "slowest": 0.8, "fastest": 0.7, "average": 0.73, "requestsPerSec": 10.9589 },
        "latencyPercentiles": { "p50": 0.73, "p90": 0.74, "p99": 0.75 },
        "statusCodeDistribution": { "200": 400 }, "errorDistribution": {} })
}

fn archive() -> Value {
    json!({ "schema_version": 2, "run_id": "r", "model": "m", "objective": "aggregate", "output_tps_kind": "aggregate_output",
        "concurrency": 8, "output_tok_s": 701.0, "req_s": 10.96, "ttft_p50_ms": 100.0, "itl_p50_ms": 10.0, "e2e_p99_ms": 760.0,
        "curve": [{ "concurrency": 1, "output_tok_s": 87.0, "req_s": 1.37, "ttft_p50": 100.0, "itl_p50": 10.0, "e2e_p99": 740.0, "errors": 0 }] })
}
