//! Every API of the simulated server, and its faults that need a socket to be seen.

use denom::sim::library::Library;
use denom::sim::scripts::catalog;

use super::*;

/// Path, body and content type of a stream of three tokens in every API.
fn streams(model: &str) -> Vec<(String, String, &'static str)> {
    const SSE: &str = "text/event-stream; charset=utf-8";
    let gemini = format!("/v1beta/models/{model}:streamGenerateContent");
    let contents =
        r#"{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{"maxOutputTokens":3}}"#;
    let with = |rest: &str| format!(r#"{{"model":"{model}",{rest}}}"#);
    let messages = r#""messages":[{"role":"user","content":"a"}]"#;
    let chat = with(&format!(r#"{messages},"max_tokens":3,"stream":true"#));
    let ollama = r#""options":{"num_predict":3}"#;
    vec![
        ("/v1/chat/completions".to_owned(), chat.clone(), SSE),
        (
            "/v1/completions".to_owned(),
            with(r#""prompt":"a","max_tokens":3,"stream":true"#),
            SSE,
        ),
        (
            "/v1/responses".to_owned(),
            with(r#""input":"a","max_output_tokens":3,"stream":true"#),
            SSE,
        ),
        ("/v1/messages".to_owned(), chat, SSE),
        (format!("{gemini}?alt=sse"), contents.to_owned(), SSE),
        (
            gemini,
            contents.to_owned(),
            "application/json; charset=utf-8",
        ),
        (
            "/api/chat".to_owned(),
            with(&format!("{messages},{ollama}")),
            "application/x-ndjson",
        ),
        (
            "/api/generate".to_owned(),
            with(&format!(r#""prompt":"a",{ollama}"#)),
            "application/x-ndjson",
        ),
        (
            format!("/generate_stream?model={model}"),
            r#"{"inputs":"a","parameters":{"max_new_tokens":3}}"#.to_owned(),
            SSE,
        ),
    ]
}

#[test]
fn every_api_streams_on_its_own_path() {
    let server = server();
    let mut client = Client::of(&server);
    for (path, body, kind) in streams("null") {
        client.ask_at(&path, &body);
        let response = client.response();
        assert_eq!(response.status(), "200", "{path}");
        assert_eq!(field(&response.head, "content-type"), Some(kind), "{path}");
        // The third token of any request.
        assert!(response.text().contains(" aaac"), "{path}");
        assert!(!response.text().contains(" aaad"), "{path}");
    }
    for record in records(&server, 9) {
        assert_eq!((record.model.as_str(), tokens(&record)), ("null", 3));
    }
}

#[test]
fn every_api_refuses_in_its_own_shape() {
    let server = server();
    let mut client = Client::of(&server);
    for (path, body, _) in streams("nobody") {
        client.ask_at(&path, &body);
        let response = client.response();
        assert_eq!(response.status(), "404", "{path}");
        let error: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
        let message = if path.starts_with("/api") || path.starts_with("/generate") {
            &error["error"]
        } else {
            &error["error"]["message"]
        };
        assert!(
            message
                .as_str()
                .is_some_and(|text| text.contains("'nobody'")),
            "{path}: {error}"
        );
        client.ask_at(&path, "{");
        assert_eq!(client.response().status(), "400", "{path}");
    }
}

#[test]
fn a_model_can_be_named_where_the_api_has_no_place_for_it() {
    let server = server();
    let mut client = Client::of(&server);
    let body = r#"{"inputs":"a","parameters":{"max_new_tokens":1}}"#;
    client.ask_at("/generate", body);
    assert_eq!(client.response().status(), "200");
    let length = body.len();
    let head = "POST /generate HTTP/1.1\r\nx-denom-model: http403\r\ncontent-length";
    client.send(format!("{head}: {length}\r\n\r\n{body}").as_bytes());
    assert_eq!(client.response().status(), "403");
}

#[test]
fn models_are_listed_in_the_form_of_who_asks() {
    let server = server();
    let mut client = Client::of(&server);
    let mut list = |request: &str| -> serde_json::Value {
        client.send(format!("GET {request}\r\n\r\n").as_bytes());
        serde_json::from_slice(&client.response().body).expect("JSON")
    };
    assert_eq!(list("/v1/models HTTP/1.1")["data"][0]["object"], "model");
    let anthropic = list("/v1/models HTTP/1.1\r\nanthropic-version: 2023-06-01");
    assert_eq!(anthropic["data"][0]["type"], "model");
    assert_eq!(anthropic["has_more"], false);
    assert_eq!(
        list("/v1beta/models HTTP/1.1")["models"][0]["name"],
        "models/normal"
    );
    let gemini = list("/v1/models HTTP/1.1\r\nx-goog-api-key: k");
    assert_eq!(gemini["models"][0]["name"], "models/normal");
    let names = list("/api/tags HTTP/1.1");
    let names = names["models"].as_array().expect("a list");
    assert_eq!(names.len(), catalog::entries().count());
}

/// The whole answer arrives in order, and the connection is gone when the next request comes.
#[test]
fn a_stale_connection_closes_as_the_next_request_comes() {
    let server = server();
    let mut client = Client::of(&server);
    client.ask(&stream("stale-keepalive", 1));
    let response = client.response();
    assert_eq!(field(&response.head, "connection"), None);
    assert!(response.text().ends_with("data: [DONE]\n\n"));
    client.ask(&stream("null", 1));
    let rest = client.0.read_to_end(&mut Vec::new());
    assert!(matches!(rest, Ok(0) | Err(_)));
    let records = records(&server, 1);
    assert_eq!((records.len(), records[0].end), (1, End::Done));
}

#[test]
fn a_model_is_ready_after_three_requests() {
    let server = server();
    let mut client = Client::of(&server);
    let mut status = |model: &str| {
        client.ask(&stream(model, 1));
        client.response().status().to_owned()
    };
    assert_eq!(
        [1, 2, 3, 4].map(|_| status("loading")),
        ["503", "503", "503", "200"]
    );
    assert_eq!([1, 2].map(|_| status("loading=1")), ["503", "200"]);
}

#[test]
fn a_redirect_leads_where_the_parameter_says() {
    let server = server();
    let mut client = Client::of(&server);
    client.ask(&stream("http307=http://127.0.0.1:1/there", 1));
    let response = client.response();
    assert_eq!(response.status(), "307");
    assert_eq!(
        field(&response.head, "location"),
        Some("http://127.0.0.1:1/there")
    );
}

#[test]
fn small_writes_are_as_many_as_bytes_and_the_same_answer() {
    let server = server();
    let mut client = Client::of(&server);
    client.ask(&stream("one-byte-writes", 2));
    let response = client.response();
    assert!(response.text().ends_with("data: [DONE]\n\n"));
    let record = &records(&server, 1)[0];
    assert!(record.writes.iter().all(|write| write.bytes == 1));
    assert_eq!(record.writes.len() as u64, response.bytes);
    assert_eq!(tokens(record), 2);
}

/// What has no end is sent for as long as it is read, and leaves nothing behind.
#[test]
fn an_endless_stream_goes_on_until_the_client_leaves() {
    let server = server();
    for model in ["endless-fast", "endless-line"] {
        let mut client = Client::of(&server);
        client.ask(&stream(model, 1));
        client.head();
        let mut read = 0;
        while read < 2 << 20 {
            read += client.chunk(&mut 0).expect("it goes on").len();
        }
    }
    let records = records(&server, 2);
    assert!(records.iter().all(|record| record.end == End::ClientGone));
    assert!(tokens(&records[0]) > 1_000);
}

#[test]
fn an_event_of_32_mib_arrives_whole() {
    let server = server();
    let mut client = Client::of(&server);
    client.ask(&stream("huge-event", 2));
    let response = client.response();
    assert!(response.body.len() > 32 << 20);
    assert!(response.body.ends_with(b"data: [DONE]\n\n"));
    assert_eq!(tokens(&records(&server, 1)[0]), 2);
}

#[test]
fn a_script_from_a_file_is_served_under_its_name_on_every_path() {
    let json = br#"{"scripts":{"mine":{"status":203,"headers":{"x-mine":"yes"},
        "steps":[{"at_us":1000,"text":"hello\n","tokens":4},{"at_us":2000,"text":"!"}]}}}"#;
    let config = Config {
        library: Library::parse(json).expect("it is in order"),
        ..Config::default()
    };
    let server = Server::start(&config).expect("a free loopback port");
    let mut client = Client::of(&server);
    for (path, body, _) in streams("mine") {
        client.ask_at(&path, &body);
        let response = client.response();
        assert_eq!(
            (response.status(), response.text()),
            ("203", "hello\n!"),
            "{path}"
        );
        assert_eq!(field(&response.head, "x-mine"), Some("yes"));
    }
    assert!(records(&server, 9).iter().all(|record| tokens(record) == 4));
    client.send(b"GET /v1/models HTTP/1.1\r\n\r\n");
    assert!(client.response().text().contains(r#""id":"mine""#));
}
