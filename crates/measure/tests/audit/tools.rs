//! Every tool's form is found by its keys, in each way people keep it.

use measure::audit::audit;
use serde_json::{Value, json};

use crate::samples;
use crate::{faults, of};

#[test]
fn every_form_is_found_and_a_sound_one_raises_no_fault() {
    for sample in samples::all() {
        let audit =
            audit(sample.text.as_bytes()).unwrap_or_else(|why| panic!("{}: {why}", sample.tool));
        assert_eq!(audit.tool.name(), sample.tool);
        assert_eq!(
            faults(&audit),
            [""; 0],
            "{}: {:?}",
            sample.tool,
            audit.findings
        );
        let told = !audit.stated.is_empty() || !audit.observed.is_empty();
        assert!(told, "{} states nothing", sample.tool);
    }
}

#[test]
fn the_summary_figures_of_every_tool_are_in_seconds_and_with_their_definition() {
    for sample in samples::all() {
        let audit = audit(sample.text.as_bytes()).expect("imported");
        for stated in &audit.stated {
            let plausible = match stated.metric.name() {
                "ttft" => 0.05..0.8,
                "tpot" => 0.009..0.02,
                "e2e" => 0.6..0.9,
                _ => continue,
            };
            if !matches!(stated.stat.as_str(), "mean" | "p50") {
                continue;
            }
            let value = stated.value.expect("a value");
            assert!(
                plausible.contains(&value),
                "{} {} {value}",
                sample.tool,
                stated.field
            );
            assert!(!stated.definition.text.is_empty());
        }
    }
}

#[test]
fn runs_may_be_concatenated_listed_a_line_each_or_wrapped() {
    let one = samples::vllm().to_string();
    for (text, runs) in [
        (format!("{one}{one}"), 2),
        (format!("{one}\n{one}\n{one}\n"), 3),
        (format!("[{one}, {one}]"), 2),
        (format!("{{\"note\": 1, \"runs\": [{one}, {one}]}}"), 2),
        (format!("{{\"result\": {one}}}"), 1),
    ] {
        let audit = audit(text.as_bytes()).expect("imported");
        assert_eq!((audit.runs, audit.tool.name()), (runs, "vllm-bench"));
    }
}

#[test]
fn what_is_no_result_says_why() {
    let why = |text: &str| audit(text.as_bytes()).expect_err("refused");
    assert!(why("{\"name\": \"p\", \"version\": \"1\"}").contains("name, version"));
    assert!(why("hello\nworld\n").contains("text"));
    assert!(why("[1, 2, 3]").contains("no object"));
    assert!(why("{}").contains("is empty"));
    assert!(
        why("{\"benchmarks\": [], \"metadata\": {\"guidellm_version\": \"1\"}}")
            .contains("without a run")
    );
}

#[test]
fn a_file_from_which_no_number_came_is_not_imported() {
    for text in [
        "# Serving Benchmark Result of our team: it was fast\n",
        "============ Serving Benchmark Result ============\n",
        "MLPerf Results Summary\n",
        "| model | test | t/s (total) |\n|---|---|---|\n| a | b | c |\n",
        "{\"completed\": \"x\", \"request_throughput\": \"y\", \"failed\": \"z\"}",
    ] {
        let why = audit(text.as_bytes()).expect_err(text);
        assert!(why.contains("no number could be read"), "{text}: {why}");
    }
    // A title without numbers does not hide the summary that has some.
    let both = format!(
        "Serving Benchmark Result\n\n{}",
        samples::LLAMA_BENCHY_TABLE
    );
    let found = audit(both.as_bytes()).expect("imported");
    assert_eq!(found.tool.name(), "llama-benchy");
}

#[test]
fn a_coloured_logged_or_quoted_summary_is_the_same_summary() {
    let stated = |text: &str| {
        let audit = audit(text.as_bytes()).expect("imported");
        let all = audit.stated.iter();
        all.map(|one| (one.field.clone(), one.value))
            .collect::<Vec<_>>()
    };
    for plain in [
        samples::sglang_console(),
        samples::LLAMA_BENCHY_TABLE,
        samples::LOADGEN,
    ] {
        let own = stated(plain);
        assert!(!own.is_empty());
        for (before, after) in [
            ("\u{1b}[32m", "\u{1b}[0m"),
            ("2026-01-01 00:00:00 INFO ", ""),
            ("> ", ""),
        ] {
            let changed: String = plain
                .lines()
                .map(|line| format!("{before}{line}{after}\n"))
                .collect();
            assert_eq!(stated(&changed), own, "{changed}");
        }
    }
}

#[test]
fn numbers_as_text_minus_one_and_nan_become_what_they_are() {
    let mut value = samples::llmperf();
    value["results_ttft_s_mean"] = json!("0.1");
    let text = value.to_string();
    let audit_of = |text: &str| audit(text.as_bytes()).expect("imported");
    let stated = |text: &str, field: &str| {
        let audit = audit_of(text);
        let found = audit.stated.iter().find(|stated| stated.field == field);
        found.map(|stated| stated.value)
    };
    assert_eq!(stated(&text, "results_ttft_s_mean"), Some(Some(0.1)));
    let nan = text.replace("\"0.1\"", "NaN");
    assert_eq!(stated(&nan, "results_ttft_s_mean"), None);
    assert_eq!(faults(&audit_of(&nan)), ["non_finite"]);
    let mut value = samples::evalscope();
    value["Avg TPOT (ms)"] = json!(-1);
    assert!(
        of(&value)
            .stated
            .iter()
            .all(|stated| stated.metric.name() != "tpot")
    );
}

#[test]
fn a_run_without_a_result_states_no_number() {
    let mut value = samples::vllm();
    value["completed"] = json!(0);
    value["failed"] = json!(400);
    for key in [
        "mean_ttft_ms",
        "median_ttft_ms",
        "mean_e2el_ms",
        "output_throughput",
        "request_throughput",
    ] {
        value[key] = json!(0.0);
    }
    let audit = of(&value);
    assert_eq!(faults(&audit), ["zero_latency"]);
    for stated in &audit.stated {
        assert_eq!(stated.value, None, "{}", stated.field);
        let code = stated.withheld.as_ref().map(|why| why.code);
        assert_eq!(code, Some("no_result"));
    }
}

#[test]
fn a_system_rate_has_both_readings_by_littles_law() {
    let audit = of(&samples::vllm());
    let rate = audit
        .stated
        .iter()
        .find(|stated| stated.field == "output_throughput")
        .expect("stated");
    let [system, stream] = rate.readings.as_ref().expect("both readings");
    let held = 10.958_904 * 0.73;
    let near = |found: Option<f64>, wanted: f64| {
        let found = found.expect("a value");
        assert!((found / wanted - 1.0).abs() < 1e-6, "{found} and {wanted}");
    };
    near(system.per_stream.value(), 701.369_86 / held);
    near(stream.system.value(), 701.369_86 * held);
    assert_eq!(rate.concurrency.target, Some(8.0));
    let json = serde_json::to_value(rate).expect("json");
    assert_eq!(json["evidence"], "stated");
    assert_eq!(json["readings"][0]["if"], "system");
}

#[test]
fn every_level_of_a_file_is_a_run_with_its_own_load() {
    let mut value = samples::guidellm();
    let mut second = value["benchmarks"][0].clone();
    second["config"]["strategy"] = json!({ "type_": "constant", "rate": 100.0 });
    second["metrics"]["request_latency"]["successful"]["mean"] = json!(0.9);
    value["benchmarks"]
        .as_array_mut()
        .expect("a list")
        .push(second);
    let audit = of(&value);
    assert_eq!(audit.runs, 2);
    let found: Vec<_> = audit
        .findings
        .iter()
        .filter(|finding| finding.rule == "load_not_held")
        .collect();
    assert_eq!(found.len(), 1, "{:?}", audit.findings);
    assert_eq!((found[0].count, found[0].of), (1, 2));
    assert_eq!(found[0].runs, ["constant 100"]);
}

#[test]
fn vllm_and_sglang_are_told_apart_by_what_only_one_writes() {
    let mut value = samples::vllm();
    let members = value.as_object_mut().expect("an object");
    for key in ["model_id", "endpoint_type", "failed"] {
        members.remove(key);
    }
    members.insert("dataset_name".into(), Value::from("random"));
    assert_eq!(of(&value).tool.name(), "sglang-bench");
}
