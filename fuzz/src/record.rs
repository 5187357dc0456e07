//! Owns the target of the record reader: any lines behind a header, to a report.

use measure::record::{Line, Reader, Run};
use measure::report;
use serde_json::{Value, json};

/// A header with a baseline and a level, so that inputs need not find one by themselves.
const HEADER: &str = r#"{"line":"header","format":"denom.record/1","version":"0","run":"r","began_unix_ns":0,"origin_monotonic_ns":0,"stamp":"read","url":"http://x/v1","api":"openai-chat","model":"m","stream":true,"http":"1.1","tls":"off","min_chunks":3,"min_interval":200000000,"seed":1,"input_tokens":"5","output_tokens":"11","plan_hash":"h","lead":"system","settings":{},"environment":{},"levels":[{"index":0,"kind":"closed","target_milli":1000,"streams":1,"baseline":true,"stop":{"requests":3},"warmup":{"requests":1},"limit":null},{"index":1,"kind":"closed","target_milli":2000,"streams":2,"baseline":false,"stop":{"duration":1000000000},"warmup":{"requests":2},"limit":null}]}"#;

/// A request as it usually ends.
const ENDED: &str = r#"{"line":"ended","id":0,"level":0,"stream":0,"planned":0,"start":0,"finish":500000000,"sent":0,"written":0,"head":1000,"first_event":2000,"first_content":100000000,"first_answer":100000000,"last_content":420000000,"end":420000000,"stamps":"read","connection":{"reused":false},"status":200,"transport":{"how":"complete"},"body":"stream","finish_reason":"length","sentinel":true,"usage":{"input":5,"output":5,"total":10},"socket_reads":6,"bytes":250,"events":7,"comments":0,"stated_chunks":0,"reads":{"at":[100000000,80000000,80000000,80000000,80000000],"bytes":[50,50,50,50,50],"chunks":[1,1,1,1,1],"chars":[4,4,4,4,4],"lag_high":[20000,20000,20000,20000,20000]}}"#;

/// Lines of a record file. One that begins with a plus is an object whose members replace those
/// of an ended request, so that a short input reaches far into the figures.
pub fn record(data: &[u8]) {
    let mut reader = Reader::new(None);
    if !data.starts_with(b"{\"line\":\"header\"") {
        reader.line(HEADER.as_bytes()).expect("a legal header");
    }
    for (number, line) in (0u64..).zip(data.split(|byte| *byte == b'\n')) {
        let lines = match line.strip_prefix(b"+") {
            Some(members) => request(number, members),
            None => vec![line.to_vec()],
        };
        for line in lines {
            if number == 0 {
                again(&line);
            }
            if reader.line(&line).is_err() {
                return;
            }
        }
    }
    if let Ok(run) = reader.finish() {
        // Writing takes longer than all the rest: a quarter of the inputs is enough for it.
        reported(&run, data.len().is_multiple_of(4));
    }
}

/// The two lines of a request, the second with these members.
fn request(number: u64, members: &[u8]) -> Vec<Vec<u8>> {
    let Ok(Value::Object(members)) = serde_json::from_slice(members) else {
        return Vec::new();
    };
    let mut ended: Value = serde_json::from_str(ENDED).expect("JSON");
    let start = number * 500_000_000;
    for (key, value) in ended.as_object_mut().expect("an object") {
        if let (
            "planned" | "start" | "finish" | "sent" | "written" | "head" | "first_event"
            | "first_content" | "first_answer" | "last_content" | "end",
            Some(at),
        ) = (key.as_str(), value.as_u64())
        {
            *value = json!(at + start);
        }
    }
    ended["reads"]["at"][0] = json!(start + 100_000_000);
    ended["id"] = json!(number);
    ended.as_object_mut().expect("an object").extend(members);
    let sent = json!({"line": "sent", "id": ended["id"], "level": ended["level"],
        "stream": ended["stream"], "start": ended["start"]});
    vec![
        sent.to_string().into_bytes(),
        ended.to_string().into_bytes(),
    ]
}

/// What was read is written so that it reads the same.
fn again(text: &[u8]) {
    if let Ok(line) = serde_json::from_slice::<Line>(text) {
        let written = serde_json::to_string(&line).expect("writes");
        let read: Line = serde_json::from_str(&written).expect("reads what it wrote");
        assert_eq!(read, line);
    }
}

/// Books: every request of a level is in exactly one class.
fn reported(run: &Run, write: bool) {
    let report = report::build(run, run.header.guards());
    for level in &report.levels {
        let requests = &level.requests;
        let classes = requests.ok + requests.drained + requests.failures();
        assert_eq!(requests.issued, classes, "issued = sum of classes");
        let shapes: u64 = requests.shapes.values().sum();
        assert_eq!(requests.ok, shapes, "each ok request has one shape");
    }
    report.ending();
    if !write {
        return;
    }
    let json = serde_json::to_string(&report).expect("writes");
    assert!(!json.contains("NaN") && !json.contains("inf,"));
}
