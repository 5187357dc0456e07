//! Canary keys through every way in, looked for at every way out.

use std::collections::BTreeSet;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::json;

use crate::scripted::{
    Asked, Folder, Server, answer, chat, command, delta, denom, ending, events, json_answer, run,
    stderr,
};

const KEY: &str = "sk-canary/7Hq+W2x9Zt4&Lm8=Rb5Vn1Kc3Jf6";

/// Every stretch of eight characters of every form of `secret`: none may show anywhere.
fn stretches(secret: &str) -> BTreeSet<String> {
    let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let mut forms = vec![
        secret.to_owned(),
        percent.to_ascii_lowercase(),
        percent,
        secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
        secret
            .replace('/', "%2F")
            .replace('+', "%2B")
            .replace('&', "%26")
            .replace('=', "%3D"),
        secret
            .replace('/', "\\/")
            .replace('&', "\\u0026")
            .replace('=', "\\u003d"),
    ];
    for ahead in 0..3 {
        let bytes = [&b"::"[..ahead], secret.as_bytes()].concat();
        for text in [STANDARD.encode(&bytes), URL_SAFE.encode(&bytes)] {
            // The letters that stand for what is in front are not the key's.
            forms.push(text[4.min(ahead * 4)..].trim_end_matches('=').to_owned());
        }
    }
    let mut found = BTreeSet::new();
    for form in forms {
        let letters: Vec<char> = form.chars().collect();
        found.extend(
            letters
                .windows(8)
                .map(|eight| eight.iter().collect::<String>()),
        );
    }
    found
}

/// Fails if any stretch of the key stands in `text`.
fn clean(secret: &str, place: &str, text: &str) {
    for stretch in stretches(secret) {
        assert!(
            !text.contains(&stretch),
            "{place} holds {stretch:?} of the key: {text}"
        );
    }
}

fn clean_output(secret: &str, place: &str, output: &Output) {
    clean(secret, place, &String::from_utf8_lossy(&output.stdout));
    clean(secret, &format!("{place}, stderr"), &stderr(output));
}

/// Looks at the run's own output, its file, and every page that can be made of it.
fn clean_everywhere(secret: &str, place: &str, output: &Output, file: &str) {
    clean_output(secret, place, output);
    let Ok(record) = std::fs::read_to_string(file) else {
        return;
    };
    clean(secret, &format!("{place}, record file"), &record);
    for format in ["text", "json", "markdown", "csv"] {
        let page = denom(&["report", file, "--format", format]);
        assert!(!page.stdout.is_empty(), "{place}: {}", stderr(&page));
        clean_output(secret, &format!("{place}, {format}"), &page);
        let rows = denom(&["report", file, "--rows", "--format", format]);
        assert!(!rows.stdout.is_empty(), "{place}: {}", stderr(&rows));
        clean_output(secret, &format!("{place}, rows in {format}"), &rows);
    }
}

/// The key in every form that servers have been seen to echo, or might.
fn echoes(key: &str) -> Vec<String> {
    let percent: String = key.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let tail = key.len() - 8;
    vec![
        key.to_owned(),
        format!("Bearer {key}"),
        STANDARD.encode(key),
        STANDARD.encode(format!("Bearer {key}")),
        STANDARD.encode(format!("u:{key}")),
        URL_SAFE.encode(key),
        percent,
        key.replace('/', "\\/")
            .replace('&', "\\u0026")
            .replace('+', "\\u002B"),
        key.replace('&', "&amp;").replace('/', "&#x2F;"),
        format!("{}********{}", &key[..8], &key[tail..]),
        format!("{}...{}", &key[..6], &key[key.len() - 4..]),
        format!("{}{}", "x".repeat(180), key),
        format!("{}{}", "x".repeat(192), key),
    ]
}

fn key_in(asked: &Asked) -> Option<String> {
    [
        "authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "cookie",
        "x-auth-token",
    ]
    .into_iter()
    .filter_map(|name| asked.header(name))
    .map(|value| {
        value
            .trim_start_matches("Bearer ")
            .trim_start_matches("session=")
            .to_owned()
    })
    .next()
}

/// A server that echoes the key it is sent in every place it has.
fn echoing(place: &'static str) -> Server {
    let asked_before = AtomicUsize::new(0);
    Server::start(move |asked, stream| {
        let key = key_in(asked).unwrap_or_else(|| KEY.to_owned());
        let forms = echoes(&key);
        // The first request opens the run: what is refused there is never echoed by later ones.
        let n = asked_before.fetch_add(1, Ordering::SeqCst);
        let form = &forms[n % forms.len()];
        match place {
            "status" if n > 0 => json_answer(
                stream,
                "500 Oops",
                &json!({"error": {"message": format!("key {form} failed"), "type": form, "code": form}}),
            ),
            "plain" if n > 0 => answer(
                stream,
                "503 Oops",
                "",
                format!("no JSON: {form}").as_bytes(),
            ),
            "object" if n > 0 => json_answer(
                stream,
                "422 Oops",
                &json!({"error": {"input": form, "ctx": {"headers": [form]}}}),
            ),
            "event" if n > 0 => events(
                stream,
                &format!(
                    "{}data: {}\n\n",
                    delta("a"),
                    json!({"error": {"message": form, "code": form}})
                ),
            ),
            "field" if n > 0 => events(
                stream,
                &format!("{}error: {}\n\n", delta("a"), json!({"message": form})),
            ),
            "malformed" if n > 0 => events(
                stream,
                &format!("{}data: {{\"choices\": {form}\n\n", delta("a")),
            ),
            "headers" if n > 0 => answer(
                stream,
                "200 OK",
                &format!(
                    "content-type: {form}\r\ncontent-encoding: {form}\r\nset-cookie: a={form}\r\nx-request-id: {form}\r\n"
                ),
                form.as_bytes(),
            ),
            "location" if n > 0 => answer(
                stream,
                "307 Moved",
                &format!("location: http://{form}@127.0.0.1:9/v1?key={form}\r\n"),
                form.as_bytes(),
            ),
            "answer" => {
                let words: Vec<&str> = forms.iter().map(String::as_str).collect();
                let first = delta(words[0]).replace(&words[0][..4], "");
                events(
                    stream,
                    &format!(
                        "{first}{}{}",
                        words.iter().map(|word| delta(word)).collect::<String>(),
                        ending(14)
                    ),
                )
            }
            _ => chat(stream, &["a", "b", "c"]),
        }
    })
}

#[test]
fn whatever_a_server_echoes_the_key_stays_out_of_every_sink() {
    for place in [
        "status",
        "plain",
        "object",
        "event",
        "field",
        "malformed",
        "headers",
        "location",
        "answer",
    ] {
        let folder = Folder::new(&format!("echo-{place}"));
        let file = folder.file("r.denom.jsonl");
        for format in ["json", "text"] {
            let server = echoing(place);
            // Each form is one request, on a stream of its own: one that is refused has to wait.
            let more = ["-c", "14", "-m", "m", "--keep-text", "--format", format];
            let output = run(&server.url(), "14", &file, &more)
                .env("OPENAI_API_KEY", KEY)
                .output()
                .expect("the binary is built");
            assert!(!output.stdout.is_empty(), "{place}: {}", stderr(&output));
            clean_everywhere(KEY, place, &output, &file);
        }
        let record = std::fs::read_to_string(&file).expect("the record file");
        assert!(
            place == "location" || record.contains("[key]"),
            "{place} echoed nothing: {record}"
        );
    }
}

#[test]
fn the_first_answer_ends_a_run_without_the_key() {
    for status in ["401 No", "403 No", "404 No", "422 No", "400 No"] {
        for index in 0..echoes(KEY).len() {
            let server = Server::start(move |asked, stream| {
                let key = key_in(asked).expect("a key was sent");
                json_answer(
                    stream,
                    status,
                    &json!({"error": {"message": format!("Incorrect API key provided: {}.", echoes(&key)[index])}}),
                )
            });
            let folder = Folder::new("first");
            let file = folder.file("r.denom.jsonl");
            let output = run(&server.url(), "1", &file, &["-m", "m"])
                .env("OPENAI_API_KEY", KEY)
                .output()
                .expect("the binary is built");
            assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
            assert!(
                stderr(&output).contains("[key]") || index > 10,
                "{}",
                stderr(&output)
            );
            clean_everywhere(KEY, status, &output, &file);
        }
    }
}

/// Each way in: where the key is given, the header it must arrive in, and how it is given.
#[test]
fn every_way_in_is_a_way_the_key_goes_to_the_server_alone() {
    let basic = STANDARD.encode(format!("user:{KEY}"));
    let headers = [
        ("authorization", format!("Authorization: Bearer {KEY}")),
        ("authorization", format!("Authorization: Basic {basic}")),
        ("authorization", format!("authorization: {KEY}")),
        ("x-api-key", format!("X-Api-Key: {KEY}")),
        ("api-key", format!("api-key: {KEY}")),
        ("cookie", format!("Cookie: theme=dark; session={KEY}")),
        ("x-auth-token", format!("x-auth-token: {KEY}")),
    ];
    for (name, header) in headers {
        the_key_arrives(name, "openai-chat", &["--header", &header], &[]);
    }
    let usual = [
        ("openai-chat", "OPENAI_API_KEY", "authorization"),
        ("openai-completions", "OPENAI_API_KEY", "authorization"),
        ("openai-responses", "OPENAI_API_KEY", "authorization"),
        ("anthropic", "ANTHROPIC_API_KEY", "x-api-key"),
        ("gemini", "GEMINI_API_KEY", "x-goog-api-key"),
        ("ollama", "OLLAMA_API_KEY", "authorization"),
        ("tgi", "HF_TOKEN", "authorization"),
    ];
    for (api, variable, header) in usual {
        the_key_arrives(header, api, &["--api", api], &[(variable, KEY)]);
        the_key_arrives(
            header,
            api,
            &["--api", api, "--api-key-env", "MINE"],
            &[("MINE", KEY)],
        );
    }
}

fn the_key_arrives(name: &'static str, api: &str, more: &[&str], variables: &[(&str, &str)]) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let server = Server::start(move |asked, stream| {
        let value = asked.header(name);
        sees.lock()
            .expect("held by nobody else")
            .push((asked.line.clone(), value.clone()));
        let said = json!({"error": {"message": format!("{value:?} {}", KEY)}});
        json_answer(stream, "500 Oops", &said)
    });
    let folder = Folder::new("in");
    let file = folder.file("r.denom.jsonl");
    let mut command = run(
        &format!("http://{}", server.address),
        "2",
        &file,
        &["-m", "m", "--keep-text"],
    );
    command.args(more).envs(variables.iter().copied());
    let output = command.output().expect("the binary is built");
    assert_eq!(output.status.code(), Some(3), "{api}: {}", stderr(&output));
    let seen = seen.lock().expect("held by nobody else");
    assert_eq!(seen.len(), 2, "{api}");
    for (line, value) in seen.iter() {
        let value = value.as_deref().unwrap_or_default();
        let basic = STANDARD.encode(format!("user:{KEY}"));
        assert!(
            value.contains(KEY) || value.contains(&basic),
            "{api} {name}: {value}"
        );
        clean(KEY, "the URL", line);
    }
    clean_everywhere(KEY, api, &output, &file);
    command.arg("--dry-run");
    let dry = command.output().expect("the binary is built");
    assert_eq!(dry.status.code(), Some(0), "{}", stderr(&dry));
    clean_output(KEY, "a dry run", &dry);
}

#[test]
fn a_key_in_the_body_file_goes_to_the_server_and_nowhere_else() {
    let folder = Folder::new("body");
    let (file, body) = (folder.file("r.denom.jsonl"), folder.file("body.json"));
    let text = json!({"metadata": {"api_key": KEY}, "user": "me"}).to_string();
    std::fs::write(&body, text).expect("written");
    let server = Server::start(|asked, stream| {
        assert!(asked.body.contains("sk-canary"), "{}", asked.body);
        // As servers do that validate: the whole input comes back.
        let said = json!({"detail": [{"loc": ["body"], "input": asked.body}], "error": {"message": asked.body}});
        json_answer(stream, "500 Oops", &said)
    });
    let arguments = ["-m", "m", "--body", &body];
    let output = run(&server.url(), "2", &file, &arguments)
        .output()
        .expect("the binary is built");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    clean_everywhere(KEY, "body", &output, &file);
    let dry = run(&server.url(), "2", &file, &arguments)
        .arg("--dry-run")
        .output();
    let dry = dry.expect("the binary is built");
    assert!(String::from_utf8_lossy(&dry.stdout).contains("[key]"));
    clean_output(KEY, "a dry run", &dry);
    let mut abroad = command(&["run", "http://192.0.2.1/v1", "--body", &body]);
    let output = abroad
        .args(arguments)
        .output()
        .expect("the binary is built");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_key_where_none_belongs_is_refused_without_being_repeated() {
    for arguments in [
        vec![
            "run".to_owned(),
            format!("http://user:{KEY}@127.0.0.1:9/v1"),
        ],
        vec![
            "run".to_owned(),
            "http://127.0.0.1:9/v1?key=sk-canary7HqW2x9Zt4".to_owned(),
        ],
        vec![
            "run".to_owned(),
            "http://127.0.0.1:9/v1?subscription-key=sk-canary7HqW2x9Zt4".to_owned(),
        ],
        // The key itself in place of its variable's name.
        [
            "run",
            "http://127.0.0.1:9/v1",
            "-m",
            "m",
            "--api-key-env",
            KEY,
        ]
        .map(str::to_owned)
        .to_vec(),
        [
            "run",
            "http://127.0.0.1:9/v1",
            "-m",
            "m",
            "--header",
            &format!("x api key: {KEY}"),
        ]
        .map(str::to_owned)
        .to_vec(),
        [
            "run",
            "http://127.0.0.1:9/v1",
            "-m",
            "m",
            "--header",
            &format!("x-api-key: {KEY}\n"),
        ]
        .map(str::to_owned)
        .to_vec(),
        [
            "run",
            "http://127.0.0.1:9/v1",
            "-m",
            "m",
            "--header",
            &format!("x-api-key: a\u{1}{KEY}"),
        ]
        .map(str::to_owned)
        .to_vec(),
        ["run", "http://127.0.0.1:9/v1", "-m", "m", "--header", KEY]
            .map(str::to_owned)
            .to_vec(),
        ["run", &format!("http://127.0.0.1:9/ {KEY}"), "-m", "m"]
            .map(str::to_owned)
            .to_vec(),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = denom(&arguments);
        assert!(
            matches!(output.status.code(), Some(2 | 3)),
            "{}",
            stderr(&output)
        );
        clean_output(KEY, "a refusal", &output);
        clean_output("sk-canary7HqW2x9Zt4", "a refusal", &output);
    }
}

#[test]
fn a_list_of_models_that_holds_the_key_leaks_nothing() {
    for names in [1, 3] {
        let server = Server::start(move |asked, stream| {
            let key = key_in(asked).expect("a key was sent");
            let models: Vec<_> = echoes(&key)
                .into_iter()
                .take(names)
                .map(|id| json!({"id": id}))
                .collect();
            json_answer(stream, "200 OK", &json!({"data": models}))
        });
        let folder = Folder::new("models");
        let file = folder.file("r.denom.jsonl");
        let output = run(&server.url(), "1", &file, &[])
            .env("OPENAI_API_KEY", KEY)
            .output();
        let output = output.expect("the binary is built");
        assert!(
            matches!(output.status.code(), Some(2 | 3)),
            "{}",
            stderr(&output)
        );
        assert!(stderr(&output).contains("-m"), "{}", stderr(&output));
        clean_everywhere(KEY, "models", &output, &file);
    }
}

#[test]
fn row_30_a_redirect_is_an_error_and_the_second_origin_hears_nothing() {
    let other = Server::start(|_, _| false);
    let place = format!("http://{}/v1/chat/completions?key={KEY}", other.address);
    let server = Server::start(move |asked, stream| {
        assert!(asked.header("x-api-key").is_some());
        answer(
            stream,
            "307 Temporary Redirect",
            &format!("location: {place}\r\n"),
            b"",
        )
    });
    let folder = Folder::new("redirect");
    let file = folder.file("r.denom.jsonl");
    let header = format!("x-api-key: {KEY}");
    let output = run(&server.url(), "3", &file, &["-m", "m", "--header", &header]).output();
    let output = output.expect("the binary is built");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let rows = crate::scripted::json(&denom(&["report", &file, "--rows", "--format", "json"]));
    let rows = rows["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(
            (&row["outcome"], &row["status"]),
            (&json!("http_error"), &json!(307))
        );
        let detail = row["detail"].as_str().expect("it says where to");
        assert!(
            detail.contains(&format!("http://{},", other.address)),
            "{detail}"
        );
        assert!(row["e2e_s"].is_null() && row["ttft_s"].is_null(), "{row}");
    }
    let requests = &crate::scripted::report(&file)["levels"][0]["requests"];
    assert_eq!(
        (&requests["issued"], &requests["failed"]),
        (&json!(3), &json!({"http_error": 3}))
    );
    assert_eq!(other.count(), 0, "something reached the second origin");
    clean_everywhere(KEY, "a redirect", &output, &file);
}

#[test]
fn a_list_of_models_is_not_followed_elsewhere_either() {
    let other = Server::start(|_, _| false);
    let place = other.address;
    let server = Server::start(move |_, stream| {
        answer(
            stream,
            "302 Found",
            &format!("location: http://{place}/v1/models\r\n"),
            b"",
        )
    });
    let folder = Folder::new("models-redirect");
    let output = run(&server.url(), "1", &folder.file("r.denom.jsonl"), &[]);
    let output = { output }
        .env("OPENAI_API_KEY", KEY)
        .output()
        .expect("the binary is built");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("302"), "{}", stderr(&output));
    assert_eq!(other.count(), 0);
}

#[test]
fn a_key_over_plain_http_to_another_machine_needs_the_users_word_first() {
    // No address of this test leads anywhere: the refusal must come before any attempt.
    for host in [
        "192.0.2.1",
        "denom-test.invalid",
        "[2001:db8::1]",
        "localhost.example.invalid",
    ] {
        let url = format!("http://{host}/v1");
        for header in [
            "Authorization: Bearer abcdefgh",
            "x-api-key: abcdefgh",
            "Cookie: a=abcdefgh",
        ] {
            let output = denom(&["run", &url, "-m", "m", "--header", header]);
            assert_eq!(output.status.code(), Some(2), "{url}: {}", stderr(&output));
            assert!(
                stderr(&output).contains("--allow-plaintext-key"),
                "{}",
                stderr(&output)
            );
        }
        let output = command(&["run", &url, "-m", "m"])
            .env("OPENAI_API_KEY", KEY)
            .output();
        assert_eq!(output.expect("the binary is built").status.code(), Some(2));
    }
    // With the user's word it is tried: the name is looked up, and is not there.
    let output = command(&[
        "run",
        "http://denom-test.invalid/v1",
        "-m",
        "m",
        "--allow-plaintext-key",
    ])
    .env("OPENAI_API_KEY", KEY)
    .output()
    .expect("the binary is built");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}
