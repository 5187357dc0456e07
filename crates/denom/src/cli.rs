//! Owns the command line as typed. Nothing after `config` sees a flag.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use measure::api::Api;
use measure::probe;
use measure::prompt::Lengths;

use crate::commands::audit::AuditArgs;
use crate::commands::claim::StreamsFlag;
use crate::commands::serve::ServeArgs;
use crate::config::values::{Concurrency, InFlight, Rates, Requests, Time, WarmupFlag};

/// Measures LLM serving honestly: every rate with its denominator
#[derive(Debug, Parser)]
#[command(name = "denom", version, arg_required_else_help = true)]
pub struct Cli {
    /// The job
    #[command(subcommand)]
    pub command: Command,
}

/// The jobs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the whole point in under 20 s: three simulated endpoints, no network
    Demo(DemoArgs),
    /// Benchmark an endpoint
    Run(Box<RunArgs>),
    /// Read a stated number: what it says, what it leaves out, what it means per stream and in all
    Claim(Box<ClaimArgs>),
    /// Does this path stream, which hop holds it back, and how fast is the model behind it?
    Probe(Box<ProbeArgs>),
    /// Print the page of a run from its record file alone
    Report(ReportArgs),
    /// Sum up a log of work by parallel workers: the rate of all, of one, and how many at once
    Tally(TallyArgs),
    /// Read result files, other tools' and denom's own, and say what does not hold
    Audit(AuditArgs),
    /// Run the simulated server alone
    Serve(ServeArgs),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

/// How a page is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a person at a terminal
    Text,
    /// One JSON object, see `denom report --schema`
    Json,
    /// For a README or an issue
    Markdown,
    /// For a spreadsheet
    Csv,
}

/// How a report is printed: as a page, or in another tool's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For a person at a terminal
    Text,
    /// One JSON object, see `denom report --schema`
    Json,
    /// For a README or an issue
    Markdown,
    /// For a spreadsheet
    Csv,
    /// One line a level, in the layout of vLLM's benchmark
    VllmJson,
    /// One line a level, in the layout of AIPerf's summary
    AiperfJson,
}

/// Reads the name of an API, and lists all names in help and refusals.
fn api_parser() -> impl TypedValueParser<Value = Api> {
    let names = Api::ALL.iter().map(|api| api.name());
    PossibleValuesParser::new(names).try_map(|name| {
        let named = |api: &&Api| api.name() == name;
        Api::ALL.iter().find(named).copied().ok_or("no such API")
    })
}

/// How arrivals are stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StampName {
    /// The kernel's receive stamps, where there are any
    Kernel,
    /// A clock read after each read, as other tools do
    Read,
}

/// Which version of HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HttpName {
    /// HTTP/1.1
    #[value(name = "1.1")]
    One,
    /// HTTP/2, a stream a connection
    #[value(name = "2")]
    Two,
}

/// Which rate leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LeadName {
    /// Summed over all streams
    System,
    /// One stream
    #[value(name = "per_stream", alias = "per-stream")]
    PerStream,
}

/// What a 429 does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum On429 {
    /// It is counted, and the load goes on
    None,
    /// All requests pause for as long as the server asks, an hour at most
    Pause,
}

/// How the planned instants of an open loop lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsName {
    /// Exponential gaps, as of users who know nothing of each other
    Poisson,
    /// Equally far apart
    Constant,
}

/// Flags of `denom demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// No progress on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// How the page of a claim or a tally is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClaimFormat {
    /// For a person at a terminal
    Text,
    /// One JSON object, see `--schema`
    Json,
    /// For an issue or a reply to the author
    Markdown,
}

/// What a stated number is summed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeName {
    /// Summed over all streams
    System,
    /// One stream
    #[value(name = "per_stream", alias = "per-stream")]
    PerStream,
}

/// Flags of `denom claim`.
#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// The claim as its author wrote it, in quotes
    #[arg(value_name = "TEXT", conflicts_with_all = ["value", "unit"])]
    pub text: Option<String>,
    /// The number, instead of a text: 500, 22.3k, 1.5M, 50-100
    #[arg(long, value_name = "NUMBER", requires = "unit")]
    pub value: Option<String>,
    /// Its unit: tok/s, tok/s/user, pages/h
    #[arg(long, value_name = "UNIT", requires = "value")]
    pub unit: Option<String>,
    /// How many ran at once, where the text does not say: 16 or 4-8
    #[arg(short, long, value_name = "N")]
    pub concurrency: Option<StreamsFlag>,
    /// What the number is summed over, where the text does not say
    #[arg(long, value_enum)]
    pub scope: Option<ScopeName>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = ClaimFormat::Text)]
    pub format: ClaimFormat,
    /// Print the JSON schema of --format json
    #[arg(long, exclusive = true)]
    pub schema: bool,

    /// Test it: run at concurrency 1 and at the stated one against this endpoint
    #[arg(long, value_name = "URL", help_heading = "Test against an endpoint")]
    pub against: Option<String>,
    /// Requests at the stated concurrency [default: 6 a stream, at least 12]
    #[arg(
        long,
        value_name = "N",
        requires = "against",
        help_heading = "Test against an endpoint"
    )]
    pub requests: Option<Requests>,
    /// Most requests at concurrency 1
    #[arg(
        long,
        value_name = "N",
        default_value = "12",
        requires = "against",
        help_heading = "Test against an endpoint"
    )]
    pub baseline_requests: Requests,
    /// Record file of the run [default: named by time, here]
    #[arg(
        short,
        long,
        value_name = "FILE",
        requires = "against",
        help_heading = "Test against an endpoint"
    )]
    pub output: Option<PathBuf>,
    /// Overwrite the record file
    #[arg(long, requires = "against", help_heading = "Test against an endpoint")]
    pub force: bool,
    /// No progress on stderr
    #[arg(short, long, help_heading = "Test against an endpoint")]
    pub quiet: bool,
    /// What is asked of the endpoint, and how
    #[command(flatten)]
    pub endpoint: EndpointArgs,
}

/// Units of times that are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TimeUnitName {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds
    Ns,
}

/// Units of durations that are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DurationUnitName {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds
    Ns,
    /// Minutes
    Min,
    /// Hours
    H,
}

/// Bases of time that rates are shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PerName {
    /// A second
    Second,
    /// A minute
    Minute,
    /// An hour
    Hour,
    /// A day
    Day,
}

/// Flags of `denom tally`.
#[derive(Debug, Args)]
pub struct TallyArgs {
    /// CSV with a header, or JSON lines; - is stdin
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    pub file: Option<PathBuf>,
    /// Column with the start of each piece of work
    #[arg(long, value_name = "COL", required_unless_present = "schema")]
    pub start: Option<String>,
    /// Column with its end
    #[arg(
        long,
        value_name = "COL",
        required_unless_present_any = ["duration", "schema"],
        conflicts_with = "duration"
    )]
    pub end: Option<String>,
    /// Column with its duration, instead of an end
    #[arg(long, value_name = "COL")]
    pub duration: Option<String>,
    /// Column with who did it
    #[arg(long, value_name = "COL")]
    pub worker: Option<String>,
    /// Column with how much it was [default: one a row]
    #[arg(long, value_name = "COL")]
    pub units: Option<String>,
    /// What is counted [default: the name of the --units column, else rows]
    #[arg(long, value_name = "NAME")]
    pub unit: Option<String>,
    /// Unit of times that are numbers [default: by magnitude]
    #[arg(long, value_enum, value_name = "UNIT")]
    pub time_unit: Option<TimeUnitName>,
    /// Unit of durations that are numbers
    #[arg(
        long,
        value_enum,
        value_name = "UNIT",
        default_value = "s",
        requires = "duration"
    )]
    pub duration_unit: DurationUnitName,
    /// Length of the window that the peak is found in [default: the longest of which 20 fit]
    #[arg(long, value_name = "TIME")]
    pub peak_window: Option<Time>,
    /// Base of time on the page [default: by the size of the rates]
    #[arg(long, value_enum, value_name = "TIME")]
    pub per: Option<PerName>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = ClaimFormat::Text)]
    pub format: ClaimFormat,
    /// Print the JSON schema of --format json
    #[arg(long, exclusive = true)]
    pub schema: bool,
}

/// Flags of `denom report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Record file of a run
    #[arg(required_unless_present = "schema", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// Single requests with their evidence
    #[arg(long)]
    pub rows: bool,
    /// The N slowest requests only
    #[arg(long, value_name = "N", requires = "rows", conflicts_with = "fastest")]
    pub slowest: Option<usize>,
    /// The N fastest requests only
    #[arg(long, value_name = "N", requires = "rows")]
    pub fastest: Option<usize>,
    /// Judge by another least number of chunks and arrivals than the run did
    #[arg(long, value_name = "N")]
    pub min_chunks: Option<u64>,
    /// Judge by another least time from first to last content than the run did
    #[arg(long, value_name = "TIME")]
    pub min_interval: Option<Time>,
    /// Print the JSON schema of --format json
    #[arg(long, exclusive = true)]
    pub schema: bool,
}

/// Flags of every command that asks an endpoint: what is asked, within which limits, over which
/// connection.
#[derive(Debug, Args)]
pub struct EndpointArgs {
    /// Model [default: the only one the server lists]
    #[arg(short, long)]
    pub model: Option<String>,
    /// API [default: by the URL's path, else asked of the server]
    #[arg(long, value_parser = api_parser())]
    pub api: Option<Api>,

    /// Input tokens: 512, normal(512,64) or uniform(100,900)
    #[arg(
        long,
        value_name = "LENGTH",
        default_value = "512",
        conflicts_with = "prompts",
        help_heading = "Requests"
    )]
    pub input_tokens: Lengths,
    /// Output tokens to ask for
    #[arg(
        long,
        value_name = "LENGTH",
        default_value = "256",
        help_heading = "Requests"
    )]
    pub output_tokens: Lengths,
    /// Prompts, one JSON object a line with `prompt` or `messages`
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    pub prompts: Option<PathBuf>,
    /// Tokens of a prefix that all prompts share
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        conflicts_with = "prompts",
        help_heading = "Requests"
    )]
    pub prefix_tokens: u64,
    /// Seed of prompts and lengths
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Requests")]
    pub seed: u64,
    /// JSON object merged into each request's body
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    pub body: Option<PathBuf>,
    /// Ask for whole answers, not streams
    #[arg(long, help_heading = "Requests")]
    pub no_stream: bool,

    /// Wait until the server is ready before the run, at most so long (10m if not said)
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10m",
        help_heading = "Limits and guards"
    )]
    pub wait_ready: Option<Time>,
    /// What an answer 429 does
    #[arg(
        long = "on-429",
        value_enum,
        default_value_t = On429::None,
        help_heading = "Limits and guards"
    )]
    pub on_429: On429,
    /// The longest without content
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        help_heading = "Limits and guards"
    )]
    pub timeout: Time,
    /// The longest of a whole request [default: none]
    #[arg(long, value_name = "TIME", help_heading = "Limits and guards")]
    pub max_time: Option<Time>,
    /// Fewer chunks or arrivals support no stream figures
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        help_heading = "Limits and guards"
    )]
    pub min_chunks: u64,
    /// Less time from first to last content supports no stream figures
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0.2s",
        help_heading = "Limits and guards"
    )]
    pub min_interval: Time,

    /// Over which connection
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

/// Flags of the connection to an endpoint.
#[derive(Debug, Clone, Args)]
pub struct ConnectionArgs {
    /// Header of each request: 'Name: value'
    #[arg(long, value_name = "HEADER", help_heading = "Connection")]
    pub header: Vec<String>,
    /// Environment variable that holds the key [default: the API's usual one]
    #[arg(long, value_name = "NAME", help_heading = "Connection")]
    pub api_key_env: Option<String>,
    /// Send the key over http to another machine
    #[arg(long, help_heading = "Connection")]
    pub allow_plaintext_key: bool,
    /// Trust the certificates in this PEM file too
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "insecure",
        help_heading = "Connection"
    )]
    pub cacert: Option<PathBuf>,
    /// Do not verify certificates; every page says so
    #[arg(long, help_heading = "Connection")]
    pub insecure: bool,
    /// Which version of HTTP is spoken; over http the server must know that 2 is coming
    #[arg(long, value_enum, value_name = "VERSION", default_value_t = HttpName::One, help_heading = "Connection")]
    pub http: HttpName,
    /// How arrivals are stamped
    #[arg(long, value_enum, default_value_t = StampName::Kernel, help_heading = "Connection")]
    pub stamp: StampName,
}

/// Flags of `denom probe`.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// The endpoint: http://localhost:8000, …/v1, or the full path
    pub url: String,
    /// Another way to the same server, asked in turns: which side changes the shape?
    #[arg(long, value_name = "URL2")]
    pub direct: Option<String>,
    /// Ask again as SDKs do, which offer compression: does that change the shape?
    #[arg(long)]
    pub as_sdk: bool,
    /// Model [default: the only one the server lists]
    #[arg(short, long)]
    pub model: Option<String>,
    /// API [default: by the URL's path, else asked of the server]
    #[arg(long, value_parser = api_parser())]
    pub api: Option<Api>,

    /// Three output lengths to ask for [default: 16,64,256, shorter for a slow server]
    #[arg(long, value_name = "A,B,C", help_heading = "Requests")]
    pub lengths: Option<probe::plan::Lengths>,
    /// Input tokens: 48, normal(48,8) or uniform(40,60)
    #[arg(
        long,
        value_name = "LENGTH",
        default_value = "48",
        conflicts_with = "prompts",
        help_heading = "Requests"
    )]
    pub input_tokens: Lengths,
    /// Prompts, one JSON object a line with `prompt` or `messages`
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    pub prompts: Option<PathBuf>,
    /// JSON object merged into each request's body
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    pub body: Option<PathBuf>,
    /// Seed of prompts and order
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Requests")]
    pub seed: u64,
    /// The longest without content: a path that holds back is silent until its end
    #[arg(
        long,
        value_name = "TIME",
        default_value = "120s",
        help_heading = "Requests"
    )]
    pub timeout: Time,

    /// How the endpoint is reached
    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Keep prompts and answers in the record file
    #[arg(long, requires = "output", help_heading = "Output")]
    pub keep_text: bool,
    /// Record file [default: none]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Overwrite the record file
    #[arg(long, requires = "output", help_heading = "Output")]
    pub force: bool,
    /// How to print what was found
    #[arg(long, value_enum, default_value_t = ProbeFormat::Text, help_heading = "Output")]
    pub format: ProbeFormat,
    /// Print the plan, its cost and one request; send nothing
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// No progress on stderr
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

/// How the probe's page is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProbeFormat {
    /// For a person at a terminal
    Text,
    /// One JSON object, see docs/schema/probe-1.json
    Json,
    /// For a README or an issue
    Markdown,
    /// For a CI server: one test case a side
    Junit,
}

/// Flags of `denom run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The endpoint: http://localhost:8000, …/v1, or the full path
    pub url: String,
    /// What is asked of the endpoint, and how
    #[command(flatten)]
    pub endpoint: EndpointArgs,

    /// Streams at once, one level each
    #[arg(
        short,
        long,
        value_name = "LIST",
        default_value = "1,4,16",
        help_heading = "Load"
    )]
    pub concurrency: Concurrency,
    /// Requests a second, one level each: an open loop, which waits for no answer, such as 2,5/s
    #[arg(
        long,
        value_name = "LIST",
        conflicts_with = "concurrency",
        help_heading = "Load"
    )]
    pub rate: Option<Rates>,
    /// How the requests of --rate lie in time
    #[arg(
        long,
        value_enum,
        default_value_t = ArrivalsName::Poisson,
        requires = "rate",
        help_heading = "Load"
    )]
    pub arrivals: ArrivalsName,
    /// Most requests of --rate in flight; what would be more is not sent, and counted
    #[arg(
        long,
        value_name = "N",
        default_value = "1000",
        requires = "rate",
        help_heading = "Load"
    )]
    pub max_in_flight: InFlight,
    /// Do not put concurrency 1 in front
    #[arg(long, help_heading = "Load")]
    pub no_baseline: bool,
    /// Most requests of the level at concurrency 1
    #[arg(
        long,
        value_name = "N",
        default_value = "12",
        conflicts_with = "no_baseline",
        help_heading = "Load"
    )]
    pub baseline_requests: Requests,
    /// Requests a level [default: 6 a stream, or 30 s of --rate, at least 12]
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "duration",
        help_heading = "Load"
    )]
    pub requests: Option<Requests>,
    /// Time a level, after its warm-up
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub duration: Option<Time>,
    /// Do not measure this client's own ceiling before a level of 64 streams or more
    #[arg(long, help_heading = "Load")]
    pub no_self_check: bool,
    /// Requests or time before the measurement [default: one request a stream, or 5 s of --rate]
    #[arg(long, value_name = "N|TIME", help_heading = "Load")]
    pub warmup: Option<WarmupFlag>,

    /// Which rate leads on the page; neither is dropped
    #[arg(long, value_enum, default_value_t = LeadName::System, help_heading = "Output")]
    pub lead: LeadName,
    /// Count tokens by this tokenizer.json after the run, where the server states no count
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub tokenizer: Option<PathBuf>,
    /// Keep prompts and answers in the record file
    #[arg(long, help_heading = "Output")]
    pub keep_text: bool,
    /// Record file [default: named by time, here]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Overwrite the record file
    #[arg(long, help_heading = "Output")]
    pub force: bool,
    /// How to print the page
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub format: Format,
    /// Print the plan, its cost and one request; send nothing
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// No progress on stderr
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}
