//! A small server for answers that no honest one gives: each test says byte by byte what comes.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;

/// Variables that carry keys: none that this process has may reach the program by chance.
const VARIABLES: [&str; 16] = [
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OLLAMA_API_KEY",
    "HF_TOKEN",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "DEEPSEEK_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "FIREWORKS_API_KEY",
    "XAI_API_KEY",
    "DASHSCOPE_API_KEY",
    "MOONSHOT_API_KEY",
];

/// What a client asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Method, path and version.
    pub line: String,
    /// All headers, as they came.
    pub head: String,
    /// The body.
    pub body: String,
    /// Requests before it on its connection.
    pub before: usize,
}

impl Asked {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines();
        lines
            .filter_map(|line| line.split_once(':'))
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
    }
}

/// A server on a loopback port, ended with this.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Connections taken so far.
    pub connections: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
}

/// Reads one request; `None` at the end of the connection.
pub fn read_request(stream: &mut impl BufRead, before: usize) -> Option<Asked> {
    let mut line = String::new();
    if stream.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut next = String::new();
        if stream.read_line(&mut next).ok()? == 0 {
            return None;
        }
        if next.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = next.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&next);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Asked {
        line,
        head,
        body: String::from_utf8_lossy(&body).into_owned(),
        before,
    })
}

impl Server {
    /// Answers each request by what `answer` writes; it closes the connection by returning false.
    pub fn start(
        answer: impl Fn(&Asked, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Server {
        let answer = Arc::new(answer);
        Server::on_connection(move |mut stream| {
            let Ok(read) = stream.try_clone() else { return };
            let mut read = BufReader::new(read);
            let mut before = 0;
            while let Some(asked) = read_request(&mut read, before) {
                before += 1;
                if !answer(&asked, &mut stream) {
                    return;
                }
            }
        })
    }

    /// Gives each connection to `serve`, on a thread of its own.
    pub fn on_connection(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let ended = Arc::new(AtomicBool::new(false));
        let (count, end, serve) = (
            Arc::clone(&connections),
            Arc::clone(&ended),
            Arc::new(serve),
        );
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                count.fetch_add(1, Ordering::SeqCst);
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(stream));
            }
        });
        Server {
            address,
            connections,
            ended,
        }
    }

    /// Its address with the path of the chat API.
    pub fn url(&self) -> String {
        format!("http://{}/v1/chat/completions", self.address)
    }

    /// Connections taken so far.
    pub fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the listener; if it is gone already, that is as well.
        let _ = TcpStream::connect(self.address);
    }
}

/// Writes a whole answer of known length; false if the client is gone.
pub fn answer(stream: &mut impl Write, status: &str, headers: &str, body: &[u8]) -> bool {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).is_ok() && stream.write_all(body).is_ok()
}

/// Writes a whole answer in JSON.
pub fn json_answer(stream: &mut impl Write, status: &str, body: &Value) -> bool {
    let body = body.to_string();
    answer(
        stream,
        status,
        "content-type: application/json\r\n",
        body.as_bytes(),
    )
}

/// An event of a chat stream that brings `text`.
pub fn delta(text: &str) -> String {
    let event = serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {event}\n\n")
}

/// The events that end a chat stream of so many tokens.
pub fn ending(tokens: u64) -> String {
    let finish =
        serde_json::json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let usage = serde_json::json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": tokens, "total_tokens": tokens + 3}});
    format!("data: {finish}\n\ndata: {usage}\n\ndata: [DONE]\n\n")
}

/// Writes events as one answer of known length.
pub fn events(stream: &mut impl Write, text: &str) -> bool {
    answer(
        stream,
        "200 OK",
        "content-type: text/event-stream\r\n",
        text.as_bytes(),
    )
}

/// A whole chat answer.
pub fn chat(stream: &mut impl Write, words: &[&str]) -> bool {
    let text: String = words.iter().map(|word| delta(word)).collect();
    events(stream, &(text + &ending(words.len() as u64)))
}

/// A folder for one test's files, taken away with it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("denom-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind in a temporary folder harms no later test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program with these arguments, and no key in its environment.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_denom"));
    command.args(arguments).stdin(Stdio::null());
    for name in VARIABLES {
        command.env_remove(name);
    }
    command
}

/// Runs the program.
pub fn denom(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary is built")
}

/// A run of so many requests on one stream, its file in `file`, with more arguments.
pub fn run(url: &str, requests: &str, file: &str, more: &[&str]) -> Command {
    let mut command = command(&["run", url, "--no-baseline", "--warmup", "0"]);
    if !more.contains(&"-c") {
        command.args(["-c", "1"]);
    }
    command.args([
        "--requests",
        requests,
        "--output-tokens",
        "5",
        "--input-tokens",
        "4",
    ]);
    command.args(["--force", "-o", file]).args(more);
    command
}

/// What a program wrote to stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a program wrote to stdout, as JSON.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// The report in JSON of a record file.
pub fn report(file: &str) -> Value {
    json(&denom(&["report", file, "--format", "json"]))
}
