//! Owns the CSV page: one row a level, units in the header's names, empty where unknown.

use measure::basis::Loop;
use measure::figure::Dist;
use measure::level::LevelReport;
use measure::quantile::Quantile;
use measure::report::Report;

use super::escape;

/// The report as CSV with a header.
pub fn csv(report: &Report) -> String {
    let header = cells(report, report.levels.first())
        .into_iter()
        .map(|(name, _)| name);
    let rows = report.levels.iter().map(|level| {
        let cells = cells(report, Some(level));
        cells.into_iter().map(|(_, cell)| cell).collect()
    });
    written(header.map(str::to_owned).collect(), rows)
}

/// Rows as CSV text. Writing to memory does not fail; if it ever did, what was written stands.
pub(super) fn written(header: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let all = std::iter::once(header).chain(rows);
    let failed = all.map(|row| writer.write_record(row)).find(Result::is_err);
    let bytes = writer.into_inner().unwrap_or_default();
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if let Some(Err(error)) = failed {
        text.push_str(&format!("# {error}\n"));
    }
    text
}

/// A number in full, empty where there is none.
pub(super) fn number(value: Option<f64>) -> String {
    value
        .filter(|value| value.is_finite())
        .map(|value| value.to_string())
        .unwrap_or_default()
}

fn cells(report: &Report, level: Option<&LevelReport>) -> Vec<(&'static str, String)> {
    let target = &report.target;
    let text = |of: &dyn Fn(&LevelReport) -> String| level.map(of).unwrap_or_default();
    let value = |of: &dyn Fn(&LevelReport) -> Option<f64>| number(level.and_then(of));
    let dist =
        |of: &dyn Fn(&LevelReport) -> &Dist| number(level.and_then(|l| of(l).median().value));
    let p90 = Quantile::ALL.into_iter().find(|q| q.name() == "p90");
    let at90 = |of: &dyn Fn(&LevelReport) -> &Dist| {
        number(level.zip(p90).and_then(|(l, q)| of(l).point(q).value))
    };
    vec![
        ("url", escape::csv(&target.url)),
        ("model", escape::csv(&target.model)),
        ("api", escape::csv(target.api)),
        ("http", escape::csv(&target.http)),
        ("tls", escape::csv(&target.tls)),
        (
            "loop",
            text(&|l| match l.load.kind {
                Loop::Closed => "closed".into(),
                Loop::Open => "open".into(),
            }),
        ),
        ("target", value(&|l| Some(l.load.target))),
        ("target_unit", text(&|l| l.load.unit.into())),
        ("held_concurrency", value(&|l| l.load.held)),
        ("ok", text(&|l| l.requests.ok.to_string())),
        ("failed", text(&|l| l.requests.failures().to_string())),
        ("drained", text(&|l| l.requests.drained.to_string())),
        ("rate_unit", text(&|l| l.system.output.unit().into())),
        ("system_per_s", value(&|l| l.system.output.value())),
        (
            "stream_rate_unit",
            text(&|l| l.per_stream.generation.unit().into()),
        ),
        ("per_stream_p50_per_s", dist(&|l| &l.per_stream.generation)),
        (
            "per_stream_min_per_s",
            value(&|l| l.per_stream.generation.min()),
        ),
        ("e2e_rate_p50_per_s", dist(&|l| &l.per_stream.end_to_end)),
        (
            "per_stream_in_flight_per_s",
            value(&|l| l.per_stream.ratio_of_sums.value()),
        ),
        (
            "share_of_baseline",
            value(&|l| l.per_stream.share_of_baseline.value()),
        ),
        (
            "e2e_share_of_baseline",
            value(&|l| l.per_stream.e2e_share_of_baseline.value()),
        ),
        ("ttft_p50_s", dist(&|l| &l.latency.ttft)),
        ("ttft_p90_s", at90(&|l| &l.latency.ttft)),
        ("ttft_max_s", value(&|l| l.latency.ttft.max())),
        ("e2e_p50_s", dist(&|l| &l.latency.e2e)),
        ("e2e_p90_s", at90(&|l| &l.latency.e2e)),
        ("e2e_max_s", value(&|l| l.latency.e2e.max())),
        ("ttft_from_plan_p50_s", dist(&|l| &l.latency.ttft_from_plan)),
        ("ttft_from_plan_p90_s", at90(&|l| &l.latency.ttft_from_plan)),
        ("e2e_from_plan_p50_s", dist(&|l| &l.latency.e2e_from_plan)),
        ("e2e_from_plan_p90_s", at90(&|l| &l.latency.e2e_from_plan)),
        ("send_lag_max_s", value(&|l| l.client.send_lag.max())),
        (
            "planned",
            text(&|l| {
                let plan = l.requests.plan.as_ref();
                plan.map(|p| p.planned.to_string()).unwrap_or_default()
            }),
        ),
        (
            "window_rule",
            text(&|l| {
                l.window
                    .map(|w| w.rule.words().to_owned())
                    .unwrap_or_default()
            }),
        ),
        ("valid", text(&|l| l.verdict.valid.to_string())),
    ]
}
