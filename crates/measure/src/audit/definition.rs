//! Owns what imported numbers mean: each tool's definition, and the refusal to mix two of them.

use serde::Serialize;

/// What a number of a tool is, precisely. Two numbers are of one kind where their ids are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Definition {
    /// A short name, the same for every tool that measures the same thing.
    pub id: &'static str,
    /// What it is, in words.
    pub text: &'static str,
}

macro_rules! definitions {
    ($($name:ident = $id:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: Definition = Definition { id: $id, text: $text };)*
        /// Every definition, in the order of METRICS.md.
        pub const ALL: &[Definition] = &[$($name),*];
    };
}

definitions! {
    TTFT_CHOICES = "ttft.first_choices", "send to the first message with choices: the role chunk counts, though it holds no text";
    TTFT_CONTENT = "ttft.first_content", "send to the first text, reasoning text or tool call";
    TTFT_ANSWER = "ttft.first_answer_text", "send to the first answer text; reasoning before it is waited out";
    TTFT_NON_EMPTY = "ttft.first_response", "send to the first response that is not empty";
    TTFT_BYTE = "ttft.first_byte", "send to the first byte of the response, of headers or body";
    TTFT_SUT = "ttft.reported", "issue to the first token as the system under test reports it";
    TTFT_DENOM = "ttft.denom", "send to the first content; withheld where the response was buffered";
    TTFT_UNSAID = "ttft.unsaid", "the file does not say how it was timed";
    ITL_UNSAID = "itl.unsaid", "the file does not say how it was timed";
    E2E_UNSAID = "e2e.unsaid", "the file does not say how it was timed";
    E2E = "e2e.request", "send to the end of the response, as the tool's client saw it";
    E2E_ITERATION = "e2e.http", "one HTTP request, sending, waiting and receiving";
    TPOT_TO_END = "tpot.to_end", "(latency − TTFT) ÷ (tokens − 1) of each request";
    TPOT_TO_LAST = "tpot.to_last", "(last − first content) ÷ (tokens − 1) of each request";
    TPOT_WITH_WAIT = "tpot.with_wait", "latency ÷ tokens of each request: the wait for the first token is in it";
    ITL_CHUNK_GAPS = "itl.chunk_gaps", "gaps between chunks, pooled over requests: a time between tokens only where a chunk is a token";
    ITL_SPREAD = "itl.retokenized", "gaps between chunks, each chunk's tokens counted again and given one stamp";
    ITL_WITH_WAIT = "itl.with_wait", "sum of a request's gaps, the first content's wait included, ÷ its tokens";
    ITL_MEAN_GAP = "itl.mean_gap", "mean gap of each request; 0 where it was one chunk";
    CHUNK_GAP = "gap.chunk", "gaps between chunks, named as such";
    SCHEDULE_DELAY = "delay.schedule", "planned to actual send: outside every latency of the tool";
    OUTPUT_RUN = "system_output.run", "output tokens of completed requests ÷ first send to last end: ramp and drain are in it";
    OUTPUT_WITH_FAILURES = "system_output.run_all", "output tokens of successes ÷ first start to last end of all requests, failed ones included";
    OUTPUT_VALID = "system_output.valid_records", "output tokens ÷ first start to last end of valid records";
    OUTPUT_INSTANT = "system_output.instantaneous", "mean of a rate over time, each request's tokens spread evenly between first and last";
    OUTPUT_TRIMMED = "system_output.trimmed", "output tokens ÷ run, with shares of the first and last requests dropped";
    OUTPUT_FIRST_TO_LAST_TOKEN = "system_output.token_window", "output tokens ÷ (last end − first token of any request)";
    OUTPUT_RECEIVED = "system_output.received", "output tokens ÷ start of the first to complete to the end of the last received";
    OUTPUT_STEADY_CHUNKS = "system_output.steady_chunks", "chunks in the stretch at 95 % of the concurrency cap ÷ that stretch";
    OUTPUT_BATCH_ONE = "system_output.engine", "tokens ÷ time inside the engine at batch 1: no server, no network";
    OUTPUT_LONGEST = "system_output.max_latency", "output tokens ÷ the longest latency from the start of the test";
    OUTPUT_STEADY_DENOM = "system_output.steady", "output that arrived in the steady window ÷ that window; the whole run where there is none";
    OUTPUT_LABELLED = "system_output.labelled", "as the archive's own label says: one stream's wall rate, or the sum over streams";
    TOTAL_RUN = "system_total.run", "input and output tokens ÷ run: not an output rate";
    INPUT_RUN = "system_input.run", "input tokens ÷ run";
    PEAK_BUCKET = "system_peak.one_second", "the fullest one-second bucket of chunks";
    PEAK_INFLIGHT = "in_flight.one_second", "most requests that touched one one-second bucket";
    IN_FLIGHT = "in_flight.mean", "requests in flight, averaged over the run, as the tool measured it";
    REQUESTS_COMPLETED = "requests.completed", "completed requests ÷ run";
    REQUESTS_ALL = "requests.all", "requests, failed and empty ones included, ÷ run";
    GPU_TOTAL = "per_gpu.total", "input and output tokens ÷ run ÷ GPUs";
    GPU_OUTPUT = "per_gpu.output", "output tokens ÷ run ÷ GPUs";
    GPU_INPUT = "per_gpu.input", "input tokens ÷ run ÷ GPUs";
    USER_INVERSE = "per_stream.inverse_tpot", "1 ÷ time per output token of each request: a mean of it is a mean of reciprocals";
    USER_RECIPROCAL_OF_STATISTIC = "per_stream.reciprocal_of_statistic", "1 ÷ a statistic of the time per token: the reciprocal of a p99 is a p1, that of a spread is nothing";
    USER_E2E = "per_stream.over_latency", "output tokens ÷ latency of each request, the wait included";
    USER_AFTER_FIRST = "per_stream.after_first", "tokens after the first ÷ (last − first) of each request: waiting is outside";
    USER_AS_FIELD = "per_stream.as_written", "what the file writes under a name of tokens per second; older versions counted chunks";
    USER_DENOM = "per_stream.generation", "visible tokens after the first arrival ÷ first to last content";
    USER_PROMPT = "per_stream.prompt", "prompt tokens ÷ time to the first chunk of each request";
    PROMPT_ENGINE = "prompt.engine", "prompt tokens ÷ time inside the engine at batch 1";
    LENGTH_OUTPUT = "length.output", "output tokens a request, as the tool counted them";
    LENGTH_INPUT = "length.input", "input tokens a request, as the tool counted them";
    OTHER_RATE = "rate.other", "a rate of another unit, over the run";
}

/// Two numbers that mean different things were to be put into one ratio or one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Different {
    /// What is there.
    pub one: Definition,
    /// What was to be added or divided by.
    pub other: Definition,
}

impl std::fmt::Display for Different {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "numbers of two definitions do not go into one table or ratio: {} ({}) and {} ({})",
            self.one.id, self.one.text, self.other.id, self.other.text
        )
    }
}

impl std::error::Error for Different {}

impl Definition {
    /// Nothing, where both are one definition.
    ///
    /// # Errors
    /// With both, where they differ.
    pub fn same_as(self, other: Definition) -> Result<(), Different> {
        match self.id == other.id {
            true => Ok(()),
            false => Err(Different { one: self, other }),
        }
    }
}
