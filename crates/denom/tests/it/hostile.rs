//! Text that would take over a terminal, a table, a spreadsheet or a page, from every place a
//! server can put text, through every way out.

use std::process::Output;

use serde_json::{Value, json};

use crate::scripted::{
    Folder, Server, answer, delta, denom, ending, events, json_answer, run, stderr,
};

/// Formula, table, markup and script; OSC 52, CSI as C0 and as C1, bidi, NUL, line ends.
const HOSTILE: &str = "=cmd()|' /C calc'!A0|`x`</script><b>[a](http://e)\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{200f}\0\u{7f}\r\n\t@x\u{2028}|";

/// The most that a page about two requests may have.
const BOUND: usize = 128 << 10;

fn is_inert(c: char) -> bool {
    c == '\n'
        || !(c.is_control()
            || ('\u{200e}'..='\u{200f}').contains(&c)
            || ('\u{2028}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
            || c == '\u{61c}')
}

/// The text of an output that no terminal obeys anything in, and that is of some bounded size.
fn inert(place: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let obeyed = text.chars().find(|c| !is_inert(*c));
    assert_eq!(obeyed, None, "{place}: {text:?}");
    assert!(text.len() < BOUND, "{place} has {} bytes", text.len());
    text
}

/// Cells are numbers, or nothing that a spreadsheet would work out.
fn no_formula(place: &str, text: &str) {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes());
    for row in reader.records() {
        for cell in &row.expect("every row has its cells") {
            let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(!formula || cell.parse::<f64>().is_ok(), "{place}: {cell:?}");
        }
    }
}

/// No markup, and no row of a table with more cells than its head.
fn no_markup(place: &str, text: &str) {
    assert!(!text.contains('<'), "{place}: {text}");
    let mut cells = None;
    for line in text.lines() {
        let bare = line
            .replace("\\\\", "")
            .replace("\\|", "")
            .replace("\\`", "")
            .replace("\\[", "")
            .replace("\\]", "");
        assert!(
            !bare.contains('`') && !bare.contains("]("),
            "{place}: {line}"
        );
        let bars = bare.matches('|').count();
        if bare.starts_with('|') {
            assert_eq!(*cells.get_or_insert(bars), bars, "{place}: {line}");
        } else {
            assert_eq!(bars, 0, "{place}: {line}");
            cells = None;
        }
    }
}

/// Which page must still show the text, made harmless.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Nowhere,
    Rows,
    Report,
}

impl Kept {
    fn of(rows: &[&str]) -> Self {
        if rows.is_empty() {
            Kept::Report
        } else {
            Kept::Rows
        }
    }
}

/// Looks at what a run printed, at its file, and at every page that can be made of it.
fn inert_everywhere(place: &str, output: &Output, file: &str, kept: Kept) {
    inert(place, &output.stdout);
    inert(&format!("{place}, stderr"), &output.stderr);
    let record = std::fs::read(file).expect("the record file");
    for line in inert(&format!("{place}, record file"), &record).lines() {
        serde_json::from_str::<Value>(line).expect("each line is JSON");
    }
    for rows in [&[][..], &["--rows"]] {
        for format in ["text", "json", "markdown", "csv"] {
            let arguments = [&["report", file, "--format", format], rows].concat();
            let page = denom(&arguments);
            let place = format!("{place}, {format} {rows:?}");
            assert!(!page.stdout.is_empty(), "{place}: {}", stderr(&page));
            inert(&place, &page.stderr);
            let text = inert(&place, &page.stdout);
            match format {
                "json" => {
                    let read: Value = serde_json::from_str(&text).expect("JSON");
                    let held = read.to_string().contains("=cmd()");
                    assert!(held || kept != Kept::of(rows), "{place} lost the text");
                }
                "csv" => no_formula(&place, &text),
                "markdown" => no_markup(&place, &text),
                _ => {}
            }
        }
    }
}

/// One run against `server`; its page in every format.
fn hostile_run(place: &str, server: &Server, more: &[&str], kept: Kept) {
    let folder = Folder::new(&format!("hostile-{place}"));
    let file = folder.file("r.denom.jsonl");
    let arguments = [&["--keep-text"], more].concat();
    let output = run(&server.url(), "2", &file, &arguments).output();
    inert_everywhere(place, &output.expect("the binary is built"), &file, kept);
}

/// Answers the first request of a run well, since a refusal there ends it.
fn after_the_first(
    then: impl Fn(&mut std::net::TcpStream) -> bool + Send + Sync + 'static,
) -> Server {
    let first = std::sync::atomic::AtomicBool::new(true);
    Server::start(
        move |_, stream| match first.swap(false, std::sync::atomic::Ordering::SeqCst) {
            true => events(stream, &(delta("a") + &ending(1))),
            false => then(stream),
        },
    )
}

#[test]
fn row_39_errors_of_every_kind_are_inert_everywhere() {
    let big = || format!("{HOSTILE}{}{HOSTILE}", "A".repeat(1 << 20));
    for long in [false, true] {
        let text = move || if long { big() } else { HOSTILE.to_owned() };
        let error = move || json!({"error": {"message": text(), "code": text(), "type": text()}});
        let server = after_the_first(move |stream| json_answer(stream, "500 Oops", &error()));
        hostile_run("status", &server, &["-m", "m"], Kept::Rows);
        let server =
            after_the_first(move |stream| answer(stream, "500 Oops", "", text().as_bytes()));
        hostile_run("plain", &server, &["-m", "m"], Kept::Rows);
        let server = after_the_first(move |stream| {
            events(stream, &format!("{}data: {}\n\n", delta("a"), error()))
        });
        hostile_run("event", &server, &["-m", "m"], Kept::Rows);
        let server = after_the_first(move |stream| {
            let text = text().replace(['\r', '\n'], "");
            events(stream, &format!("{}data: {text}\n\n", delta("a")))
        });
        hostile_run("malformed", &server, &["-m", "m"], Kept::Rows);
    }
}

#[test]
fn row_39_finish_reasons_and_answers_are_inert_everywhere() {
    let reason = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": HOSTILE}]});
    let server = Server::start(move |_, stream| {
        events(
            stream,
            &format!("{}data: {reason}\n\ndata: [DONE]\n\n", delta("a")),
        )
    });
    hostile_run("finish", &server, &["-m", "m"], Kept::Nowhere);
    let server =
        Server::start(|_, stream| events(stream, &(delta(HOSTILE) + &delta(HOSTILE) + &ending(2))));
    hostile_run("answer", &server, &["-m", "m"], Kept::Rows);
}

#[test]
fn row_39_header_values_are_inert_everywhere() {
    let server = after_the_first(|stream| {
        let odd = b"=cmd()|`x`</script>\x9b31m\xc2\x9b\xe2\x80\xae";
        let mut head = b"HTTP/1.1 200 ".to_vec();
        for part in [
            &b"=cmd()\x9b\r\ncontent-type: "[..],
            odd,
            b"\r\ncontent-encoding: =cmd()|`x`</script>\r\nx-request-id: ",
        ] {
            head.extend_from_slice(part);
        }
        head.extend_from_slice(odd);
        head.extend_from_slice(b"\r\ncontent-length: 2\r\n\r\nhi");
        std::io::Write::write_all(stream, &head).is_ok()
    });
    hostile_run("headers", &server, &["-m", "m"], Kept::Rows);
    let server = after_the_first(|stream| {
        answer(
            stream,
            "302 Found",
            "location: http://=cmd()|`x`</script>/\r\n",
            b"",
        )
    });
    hostile_run("location", &server, &["-m", "m"], Kept::Nowhere);
}

#[test]
fn row_39_model_names_are_inert_everywhere() {
    let listing = |names: Vec<String>| {
        Server::start(move |asked, stream| {
            if asked.line.starts_with("GET") {
                let list: Vec<Value> = names.iter().map(|id| json!({"id": id})).collect();
                return json_answer(stream, "200 OK", &json!({"data": list}));
            }
            let sent: Value = serde_json::from_str(&asked.body).expect("the body is JSON");
            let name = sent["model"].as_str().expect("a model");
            assert_eq!(name, names[0], "the name goes back as it came");
            events(stream, &(delta("a") + &ending(1)))
        })
    };
    hostile_run(
        "model",
        &listing(vec![HOSTILE.to_owned()]),
        &[],
        Kept::Report,
    );
    let long = format!("{HOSTILE}{}", "A".repeat(1 << 20));
    for names in [vec![long.clone()], vec![long.clone(); 3], vec![long; 30]] {
        let (server, folder) = (listing(names), Folder::new("hostile-names"));
        let output = run(&server.url(), "1", &folder.file("r.denom.jsonl"), &[]).output();
        let output = output.expect("the binary is built");
        assert!(
            matches!(output.status.code(), Some(2 | 3)),
            "{}",
            stderr(&output)
        );
        assert!(inert("names", &output.stderr).len() < 4_096);
        assert!(stderr(&output).contains("-m"), "{}", stderr(&output));
    }
    // As long as an argument may be.
    let mine = format!("{}{}", HOSTILE.replace('\0', ""), "A".repeat(100_000));
    let refuses =
        Server::start(|_, stream| json_answer(stream, "404 No", &json!({"error": HOSTILE})));
    let folder = Folder::new("hostile-mine");
    let output = run(
        &refuses.url(),
        "1",
        &folder.file("r.denom.jsonl"),
        &["-m", &mine],
    )
    .output();
    let output = output.expect("the binary is built");
    assert_eq!(output.status.code(), Some(3));
    assert!(inert("a refused model", &output.stderr).len() < 4_096);
    hostile_run(
        "mine",
        &listing(vec![mine.clone()]),
        &["-m", &mine],
        Kept::Report,
    );
}

#[test]
fn row_39_a_strangers_record_file_is_inert() {
    let folder = Folder::new("hostile-file");
    let file = folder.file("r.denom.jsonl");
    let server = Server::start(|_, stream| events(stream, &(delta("a") + &ending(1))));
    let output = run(&server.url(), "2", &file, &["-m", "MODEL"]).output();
    assert!(output.is_ok_and(|output| !output.stdout.is_empty()));
    let record = std::fs::read_to_string(&file).expect("the record file");
    let quoted = json!(HOSTILE).to_string();
    let changed = record.replace("\"MODEL\"", &quoted);
    assert_ne!(record, changed);
    std::fs::write(&file, &changed).expect("written");
    for format in ["text", "json", "markdown", "csv"] {
        let page = denom(&["report", &file, "--format", format]);
        inert(format, &page.stdout);
    }
    std::fs::write(
        &file,
        changed.replace("\"line\":\"sent\"", &format!("\"line\":{quoted}")),
    )
    .expect("written");
    let page = denom(&["report", &file]);
    assert_eq!(page.status.code(), Some(2));
    inert("a damaged file", &page.stderr);
}
