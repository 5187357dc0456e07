//! Owns the finding of a file's tool by the keys in it, and what becomes of the file.

mod aiperf;
mod archive;
mod console;
mod denom;
mod evalscope;
mod fields;
mod genai_bench;
mod guidellm;
mod inference_benchmarker;
mod inference_perf;
mod inference_x;
mod k6;
mod llama_bench;
mod llama_benchy;
mod llmperf;
mod loadgen;
mod oha;
mod rows;
mod servebench;
mod sglang;
mod vllm;

use serde_json::Value;

use super::form::{Run, Tool};
use super::read::Content;

/// The most runs of one file that are kept.
pub const MOST_RUNS: usize = 20_000;

/// What a file held.
#[derive(Debug, Clone)]
pub struct Import {
    /// Whose it is.
    pub tool: Tool,
    /// Its runs.
    pub runs: Vec<Run>,
    /// What of it was left out, each with why.
    pub left_out: Vec<String>,
}

/// How one form of a tool's file is recognised and read.
struct Importer {
    /// The tool, if this value is of its form.
    claims: fn(&Value) -> Option<Tool>,
    /// All values of the form, in order, as runs.
    import: fn(&[Value]) -> Vec<Run>,
}

/// Forms with the fewest and most particular keys first: vLLM's and SGLang's differ in few.
const IMPORTERS: [Importer; 19] = [
    Importer {
        claims: denom::claims,
        import: denom::import,
    },
    Importer {
        claims: guidellm::claims,
        import: guidellm::import,
    },
    Importer {
        claims: llama_benchy::claims,
        import: llama_benchy::import,
    },
    Importer {
        claims: servebench::claims,
        import: servebench::import,
    },
    Importer {
        claims: aiperf::claims_row,
        import: aiperf::import_rows,
    },
    Importer {
        claims: aiperf::claims,
        import: aiperf::import,
    },
    Importer {
        claims: vllm::claims,
        import: vllm::import,
    },
    Importer {
        claims: sglang::claims,
        import: sglang::import,
    },
    Importer {
        claims: llmperf::claims,
        import: llmperf::import,
    },
    Importer {
        claims: llmperf::claims_row,
        import: llmperf::import_rows,
    },
    Importer {
        claims: genai_bench::claims,
        import: genai_bench::import,
    },
    Importer {
        claims: inference_perf::claims,
        import: inference_perf::import,
    },
    Importer {
        claims: inference_benchmarker::claims,
        import: inference_benchmarker::import,
    },
    Importer {
        claims: evalscope::claims,
        import: evalscope::import,
    },
    Importer {
        claims: inference_x::claims,
        import: inference_x::import,
    },
    Importer {
        claims: archive::claims,
        import: archive::import,
    },
    Importer {
        claims: llama_bench::claims,
        import: llama_bench::import,
    },
    Importer {
        claims: k6::claims,
        import: k6::import,
    },
    Importer {
        claims: oha::claims,
        import: oha::import,
    },
];

/// Finds the tool and reads the runs.
///
/// # Errors
/// With why the file is none that is known, or is damaged.
pub fn import(content: Content, bytes: &[u8]) -> Result<Import, String> {
    let is_record = content.documents.first().is_some_and(denom::is_header);
    let mut found = match content.text {
        Some(text) => from_text(&text),
        None if is_record => denom::from_record(bytes).map(|runs| Import {
            tool: Tool::Denom,
            runs,
            left_out: Vec::new(),
        }),
        None => from_values(content.documents),
    }?;
    found.left_out.extend(content.torn);
    found.runs.iter_mut().for_each(Run::drop_impossible);
    if found.runs.len() > MOST_RUNS {
        let text = format!("only the first {MOST_RUNS} of {} runs", found.runs.len());
        found.left_out.push(text);
        found.runs.truncate(MOST_RUNS);
    }
    if found.runs.is_empty() {
        return Err(format!(
            "it is a file of {} without a run",
            found.tool.name()
        ));
    }
    match found.runs.iter().any(Run::tells) {
        true => Ok(found),
        false => Err(format!(
            "it has the form of a file of {}, and no number could be read from it",
            found.tool.name()
        )),
    }
}

/// The first known summary with a number in it. A title alone is none.
fn from_text(text: &str) -> Result<Import, String> {
    let text = console::bare(text);
    let mut titled = None;
    for read in [
        loadgen::from_text,
        sglang::from_text,
        llama_benchy::from_markdown,
    ] {
        let Some((tool, mut runs)) = read(&text) else {
            continue;
        };
        let all = runs.len();
        runs.retain(Run::tells);
        if runs.is_empty() {
            titled = titled.or(Some(tool));
            continue;
        }
        let empty = all - runs.len();
        let left = || format!("{empty} summaries of which no number could be read");
        return Ok(Import {
            tool,
            runs,
            left_out: (empty > 0).then(left).into_iter().collect(),
        });
    }
    Err(match titled {
        Some(tool) => format!(
            "it has the title of a summary of {}, and no number could be read below it",
            tool.name()
        ),
        None => "it is text, and holds no summary that is known (SGLang or vLLM console, LoadGen, llama-benchy table)".into(),
    })
}

fn from_values(values: Vec<Value>) -> Result<Import, String> {
    let why = unknown(&values);
    if let Some(first) = values.iter().find_map(claimant) {
        return Ok(claimed(values, first));
    }
    // A wrapper that somebody put around results: its members are looked at, one level down.
    let inner = unwrapped(values);
    match inner.iter().find_map(claimant) {
        Some(first) => Ok(claimed(inner, first)),
        None => Err(why),
    }
}

/// Takes all values of the form that the first one of a known tool has.
fn claimed(values: Vec<Value>, (tool, index): (Tool, usize)) -> Import {
    let (kept, others): (Vec<Value>, Vec<Value>) = values
        .into_iter()
        .partition(|value| claimant(value).is_some_and(|(_, found)| found == index));
    let mut left_out = Vec::new();
    if !others.is_empty() {
        left_out.push(format!(
            "{} values are not of the form that the first one of {} has",
            others.len(),
            tool.name()
        ));
    }
    Import {
        tool,
        runs: (IMPORTERS[index].import)(&kept),
        left_out,
    }
}

fn claimant(value: &Value) -> Option<(Tool, usize)> {
    let mut all = IMPORTERS.iter().enumerate();
    all.find_map(|(index, importer)| (importer.claims)(value).map(|tool| (tool, index)))
}

fn unwrapped(values: Vec<Value>) -> Vec<Value> {
    let mut inner = Vec::new();
    for value in values {
        let Value::Object(members) = value else {
            continue;
        };
        for (_, member) in members {
            match member {
                Value::Object(_) => inner.push(member),
                Value::Array(list) => inner.extend(list.into_iter().filter(Value::is_object)),
                _ => {}
            }
        }
    }
    inner
}

/// What the file is, as far as can be said, for its user.
fn unknown(values: &[Value]) -> String {
    let keys: Vec<&str> = match values.first().and_then(Value::as_object) {
        Some(members) if members.is_empty() => return "its JSON object is empty".into(),
        Some(members) => members.keys().take(5).map(String::as_str).collect(),
        None => return "its JSON holds no object".into(),
    };
    format!(
        "its keys are those of no tool that is known (it begins with {})",
        keys.join(", ")
    )
}
