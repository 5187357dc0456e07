//! A run's own record, exported in other tools' layouts, audits clean; what it withholds is null.

use measure::audit::audit;
use measure::export::{Layout, export};
use measure::record::Run;
use serde_json::Value;

use crate::runs::{File, closed, read_back, steady, stream};

/// One stream, then four in step: 12 and 24 requests of 40 tokens each.
fn steady_run() -> Vec<String> {
    let mut file = File::new(vec![closed(0, 1, true), closed(1, 4, false)]);
    for index in 0..12 {
        file.add(0, 0, steady(index * 460_000, 60_000, 10_000, 40));
    }
    for index in 0..24 {
        let at = 10_000_000 + index / 4 * 860_000;
        file.add(1, (index % 4) as u32, steady(at, 60_000, 20_000, 40));
    }
    file.texts()
}

fn run(texts: &[String]) -> Run {
    read_back(texts.iter().map(|text| text.clone().into_bytes()))
}

fn exported(texts: &[String], layout: Layout) -> Vec<Value> {
    export(&run(texts), layout, "2026-01-01T00:00:00Z")
}

fn audited(levels: &[Value]) -> measure::audit::Audit {
    let lines: Vec<String> = levels.iter().map(Value::to_string).collect();
    audit(lines.join("\n").as_bytes()).expect("imported")
}

#[test]
fn the_round_trip_through_both_layouts_audits_clean() {
    let texts = steady_run();
    for (layout, tool) in [(Layout::Vllm, "vllm-bench"), (Layout::Aiperf, "aiperf")] {
        let audit = audited(&exported(&texts, layout));
        assert_eq!((audit.tool.name(), audit.runs), (tool, 2));
        assert!(!audit.has_faults(), "{tool}: {:?}", audit.findings);
    }
    let own = audit(texts.join("\n").as_bytes()).expect("imported");
    assert_eq!((own.tool.name(), own.runs), ("denom", 2));
    assert!(!own.has_faults(), "{:?}", own.findings);
    assert_eq!(own.observed[1].shapes.get("streamed"), Some(&24));
}

#[test]
fn figures_follow_the_other_tools_definitions_and_a_quantile_needs_its_n() {
    let texts = steady_run();
    let level = &exported(&texts, Layout::Vllm)[0];
    let near = |found: &Value, wanted: f64| {
        let found = found.as_f64().expect("a number");
        assert!((found / wanted - 1.0).abs() < 1e-9, "{found} and {wanted}");
    };
    near(&level["mean_ttft_ms"], 60.0);
    near(&level["median_tpot_ms"], 10.0);
    near(&level["mean_itl_ms"], 10.0);
    near(&level["mean_e2el_ms"], 450.0);
    near(&level["duration"], 11.0 * 0.46 + 0.45);
    near(&level["output_throughput"], 480.0 / (11.0 * 0.46 + 0.45));
    assert_eq!(level["p99_e2el_ms"], Value::Null);
    let level = &exported(&texts, Layout::Aiperf)[1];
    near(&level["inter_token_latency"]["avg"], 20.0);
    near(&level["output_token_throughput_per_user"]["p50"], 50.0);
    assert_eq!(level["request_latency"]["p99"], Value::Null);
    assert_eq!(level["input_config"]["phases"][0]["concurrency"], 4.0);
}

#[test]
fn a_burst_gives_no_time_to_first_token_and_none_per_token() {
    let mut file = File::new(vec![closed(0, 1, true)]);
    for index in 0..12 {
        let came: Vec<_> = (0..4).map(|i| (690_000 + i * 300, 16, 64)).collect();
        file.add(0, 0, stream(index * 700_000, &came));
    }
    let texts = file.texts();
    let vllm = exported(&texts, Layout::Vllm);
    for key in ["mean_ttft_ms", "mean_tpot_ms", "mean_itl_ms"] {
        assert_eq!(vllm[0][key], Value::Null, "{key}");
    }
    assert!(vllm[0]["mean_e2el_ms"].is_number());
    let aiperf = exported(&texts, Layout::Aiperf);
    assert_eq!(aiperf[0]["output_token_throughput_per_user"], Value::Null);
    for levels in [vllm, aiperf] {
        let audit = audited(&levels);
        assert!(!audit.has_faults(), "{:?}", audit.findings);
    }
}
