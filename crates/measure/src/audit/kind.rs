//! Owns the kinds of imported numbers: whose, of what, over what, and which statistic.

use serde::Serialize;

/// The programs whose files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// denom's own record or report.
    Denom,
    /// `vllm bench serve`.
    VllmBench,
    /// Its client in Rust.
    VllmBenchRust,
    /// SGLang's `bench_serving`.
    SglangBench,
    /// AIPerf.
    Aiperf,
    /// GenAI-Perf.
    GenaiPerf,
    /// GuideLLM.
    Guidellm,
    /// inference-perf.
    InferencePerf,
    /// llmperf.
    Llmperf,
    /// genai-bench.
    GenaiBench,
    /// llama-benchy.
    LlamaBenchy,
    /// llama.cpp's llama-bench.
    LlamaBench,
    /// evalscope's `perf`.
    Evalscope,
    /// servebench.
    Servebench,
    /// Hugging Face's inference-benchmarker.
    InferenceBenchmarker,
    /// InferenceX.
    InferenceX,
    /// MLPerf's LoadGen.
    Loadgen,
    /// k6.
    K6,
    /// oha.
    Oha,
    /// The archive of runs on four RTX 3090.
    #[serde(rename = "archive-4x3090")]
    Archive4x3090,
}

impl Tool {
    /// Its name in JSON and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Denom => "denom",
            Tool::VllmBench => "vllm-bench",
            Tool::VllmBenchRust => "vllm-bench-rust",
            Tool::SglangBench => "sglang-bench",
            Tool::Aiperf => "aiperf",
            Tool::GenaiPerf => "genai-perf",
            Tool::Guidellm => "guidellm",
            Tool::InferencePerf => "inference-perf",
            Tool::Llmperf => "llmperf",
            Tool::GenaiBench => "genai-bench",
            Tool::LlamaBenchy => "llama-benchy",
            Tool::LlamaBench => "llama-bench",
            Tool::Evalscope => "evalscope",
            Tool::Servebench => "servebench",
            Tool::InferenceBenchmarker => "inference-benchmarker",
            Tool::InferenceX => "inference-x",
            Tool::Loadgen => "loadgen",
            Tool::K6 => "k6",
            Tool::Oha => "oha",
            Tool::Archive4x3090 => "archive-4x3090",
        }
    }
}

/// What a stated number is of. Rates are per second, times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Time to the first token.
    Ttft,
    /// Time per output token after the first.
    Tpot,
    /// Latency over all tokens.
    NormalizedTpot,
    /// Time between tokens, by the tool's name.
    Itl,
    /// Time between chunks, named as such.
    ChunkGap,
    /// The whole request.
    E2e,
    /// Planned to sent.
    ScheduleDelay,
    /// Output tokens of all streams.
    SystemOutput,
    /// The same in a stretch that the tool calls steady.
    SystemSteadyOutput,
    /// Input and output tokens of all streams.
    SystemTotal,
    /// Input tokens of all streams.
    SystemInput,
    /// The highest output rate of all streams.
    SystemPeak,
    /// Requests of all streams.
    Requests,
    /// Output tokens of one stream while it generates.
    StreamGeneration,
    /// Output tokens of one stream over its whole request.
    StreamEndToEnd,
    /// Prompt tokens of one stream.
    StreamPrompt,
    /// Input and output tokens per GPU.
    GpuTotal,
    /// Output tokens per GPU.
    GpuOutput,
    /// Input tokens per GPU.
    GpuInput,
    /// Requests in flight at once, at most.
    PeakInFlight,
    /// Requests in flight on average, as the tool measured it.
    InFlight,
    /// Output tokens a request.
    OutputLength,
    /// Input tokens a request.
    InputLength,
    /// Another count of the whole system per second.
    OtherRate,
}

/// The scope a number is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All streams together.
    System,
    /// One stream or request.
    PerStream,
    /// The system's, divided by its GPUs.
    PerGpu,
}

impl Metric {
    /// Its name in JSON and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Ttft => "ttft",
            Metric::Tpot => "tpot",
            Metric::NormalizedTpot => "normalized_tpot",
            Metric::Itl => "itl",
            Metric::ChunkGap => "chunk_gap",
            Metric::E2e => "e2e",
            Metric::ScheduleDelay => "schedule_delay",
            Metric::SystemOutput => "system_output",
            Metric::SystemSteadyOutput => "system_steady_output",
            Metric::SystemTotal => "system_total",
            Metric::SystemInput => "system_input",
            Metric::SystemPeak => "system_peak",
            Metric::Requests => "requests",
            Metric::StreamGeneration => "generation_rate",
            Metric::StreamEndToEnd => "e2e_rate",
            Metric::StreamPrompt => "prompt_rate",
            Metric::GpuTotal => "gpu_total",
            Metric::GpuOutput => "gpu_output",
            Metric::GpuInput => "gpu_input",
            Metric::PeakInFlight => "peak_in_flight",
            Metric::InFlight => "in_flight",
            Metric::OutputLength => "output_length",
            Metric::InputLength => "input_length",
            Metric::OtherRate => "other_rate",
        }
    }

    /// What it is summed over.
    pub fn scope(self) -> Scope {
        use Metric::*;
        match self {
            SystemOutput | SystemSteadyOutput | SystemTotal | SystemInput | SystemPeak
            | Requests | PeakInFlight | InFlight | OtherRate => Scope::System,
            GpuTotal | GpuOutput | GpuInput => Scope::PerGpu,
            _ => Scope::PerStream,
        }
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        use Metric::*;
        match self {
            Ttft | Tpot | NormalizedTpot | Itl | ChunkGap | E2e | ScheduleDelay => "s",
            SystemOutput | SystemSteadyOutput | SystemPeak | StreamGeneration | StreamEndToEnd
            | GpuOutput => "tok/s",
            SystemTotal | GpuTotal => "input and output tok/s",
            SystemInput | StreamPrompt | GpuInput => "input tok/s",
            Requests => "req/s",
            PeakInFlight | InFlight => "req",
            OutputLength | InputLength => "tok",
            OtherRate => "1/s",
        }
    }

    /// Whether it is a time that a request takes.
    pub fn is_time(self) -> bool {
        self.unit() == "s"
    }

    /// Whether it is a rate of the stated kind's own stream.
    pub fn is_stream_rate(self) -> bool {
        matches!(self, Metric::StreamGeneration | Metric::StreamEndToEnd)
    }
}

/// Which statistic of a metric a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stat {
    /// The only one: a total, or a rate of the whole run.
    Value,
    /// Mean.
    Mean,
    /// Median.
    Median,
    /// Standard deviation.
    Std,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// A quantile in thousandths of a percent: p99.9 is 99,900.
    Quantile(u32),
}

impl Stat {
    /// The statistic that a key names, in any tool's spelling.
    pub fn of_key(key: &str) -> Option<Stat> {
        match key {
            "avg" | "mean" | "average" => return Some(Stat::Mean),
            "median" | "med" => return Some(Stat::Median),
            "std" | "stddev" | "std_dev" => return Some(Stat::Std),
            "min" | "fastest" => return Some(Stat::Min),
            "max" | "slowest" => return Some(Stat::Max),
            _ => {}
        }
        let digits = key.strip_prefix('p')?;
        let digits = digits
            .strip_prefix('(')
            .and_then(|inner| inner.strip_suffix(')'))
            .unwrap_or(digits);
        let percent: f64 = digits.parse().ok().filter(|_| digits.len() <= 6)?;
        Stat::quantile(percent)
    }

    /// The quantile at `percent`; the median at 50.
    pub fn quantile(percent: f64) -> Option<Stat> {
        if !(percent > 0.0 && percent < 100.0) {
            return None;
        }
        match (percent * 1_000.0).round() as u32 {
            50_000 => Some(Stat::Median),
            thousandths => Some(Stat::Quantile(thousandths)),
        }
    }

    /// Its name on pages.
    pub fn name(self) -> String {
        match self {
            Stat::Value => "value".into(),
            Stat::Mean => "mean".into(),
            Stat::Median => "p50".into(),
            Stat::Std => "std".into(),
            Stat::Min => "min".into(),
            Stat::Max => "max".into(),
            Stat::Quantile(q) => format!("p{}", f64::from(q) / 1_000.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_known_in_every_spelling() {
        for key in ["p50", "p(50)", "median", "med", "p50.0"] {
            assert_eq!(Stat::of_key(key), Some(Stat::Median), "{key}");
        }
        assert_eq!(Stat::of_key("p99.9"), Some(Stat::Quantile(99_900)));
        assert_eq!(Stat::of_key("p(95)"), Some(Stat::Quantile(95_000)));
        for key in ["p", "p0", "p100", "pp", "p1e9", "peak", "p-5"] {
            assert_eq!(Stat::of_key(key), None, "{key}");
        }
    }
}
