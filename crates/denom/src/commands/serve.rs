//! Owns `denom serve`: the simulated server alone, until it is told to stop.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};

use crate::sim::library::Library;
use crate::sim::scripts::{self, catalog};
use crate::sim::server::{Config, Running, Server, Summary};
use crate::sim::tls::{Certificate, Tls};

/// Flags of `denom serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address and port to listen on; anything but loopback is for others to reach
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// Port to listen on at 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "N", conflicts_with = "listen")]
    port: Option<u16>,
    /// Write the instant before each write, a JSON line a request, to this new file
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Play the scripts of this JSON file too (docs/serve-script.md)
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Answer every model at once and without any pace: what a client takes in is then its own limit
    #[arg(long)]
    null: bool,
    /// Speak TLS with a certificate made at the start
    #[arg(
        long,
        value_enum,
        value_name = "KIND",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "valid"
    )]
    tls: Option<TlsKind>,
    /// Write that certificate, for a client to trust, to this new PEM file
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_cert_out: Option<PathBuf>,
    /// Print every script with what a client must make of it, and serve nothing
    #[arg(long, exclusive = true)]
    list: bool,
}

/// How TLS is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TlsKind {
    /// In order, for localhost and the loopback addresses
    Valid,
    /// The certificate ran out in 2020
    Expired,
    /// The certificate names another host
    WrongHost,
    /// Connections end without TLS's own end
    NoCloseNotify,
}

/// Serves until SIGINT or SIGTERM: exit 0, 2 if it cannot start, 74 if the ledger's file is not
/// complete.
pub fn run(args: ServeArgs) -> ExitCode {
    if args.list {
        // A reader that has seen enough and left is no failure.
        let _ = std::io::stdout().write_all(catalog::table().as_bytes());
        return ExitCode::SUCCESS;
    }
    let started = configured(args).and_then(|config| {
        let (running, signals) = start(&config)?;
        Ok((config, running, signals))
    });
    match started {
        Ok((config, running, signals)) => serve(&config, running, &signals),
        Err(reason) => {
            eprintln!("denom: {reason}");
            ExitCode::from(2)
        }
    }
}

fn configured(args: ServeArgs) -> Result<Config, String> {
    let library = args.script.as_deref().map(Library::read).transpose()?;
    let tls = args.tls.map(secured).transpose()?;
    if let (Some(tls), Some(file)) = (&tls, &args.tls_cert_out) {
        let written =
            File::create_new(file).and_then(|mut new| new.write_all(tls.pem().as_bytes()));
        let file = file.display();
        written.map_err(|error| format!("the certificate cannot be written to {file}: {error}"))?;
    }
    Ok(Config {
        listen: match args.port {
            Some(port) => (Ipv4Addr::LOCALHOST, port).into(),
            None => args.listen,
        },
        ledger_file: args.ledger,
        ledger_writes: 0,
        library: library.unwrap_or_default(),
        tls,
        only: args.null.then_some("null"),
        ..Config::default()
    })
}

fn secured(kind: TlsKind) -> Result<Tls, String> {
    let certificate = match kind {
        TlsKind::Valid | TlsKind::NoCloseNotify => Certificate::Valid,
        TlsKind::Expired => Certificate::Expired,
        TlsKind::WrongHost => Certificate::WrongHost,
    };
    Tls::new(certificate, kind != TlsKind::NoCloseNotify)
}

fn start(config: &Config) -> Result<(Running, SigSet), String> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    // Before the server's threads start, so that they inherit it and only this thread is told.
    signals
        .thread_block()
        .map_err(|error| format!("failed to take over SIGINT: {error}"))?;
    raise_descriptor_limit();
    let running = Server::start(config).map_err(|error| match &config.ledger_file {
        Some(file) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let file = file.display();
            format!("the ledger file {file} exists and is not overwritten: name another")
        }
        _ => {
            let listen = config.listen;
            format!("failed to serve on {listen}: {error}; another port may be free: --port 0")
        }
    })?;
    Ok((running, signals))
}

/// A thousand streams need a thousand descriptors. Where the limit stays, the server counts what
/// it could not accept.
fn raise_descriptor_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

fn serve(config: &Config, running: Running, signals: &SigSet) -> ExitCode {
    let own = scripts::names().map(|(name, _)| name);
    let names: Vec<&str> = own.chain(config.library.names()).collect();
    println!("{}/v1 serves {}", running.url(), names.join(", "));
    // Any error of the wait ends it as a signal would.
    let _ = signals.wait();
    let summary = running.stop();
    for warning in warnings(&summary) {
        eprintln!("denom: {warning}");
    }
    if summary.lost.file > 0 {
        return ExitCode::from(74);
    }
    ExitCode::SUCCESS
}

fn warnings(summary: &Summary) -> Vec<String> {
    let Summary { counts, lost } = summary;
    let cause = lost.error.as_deref().unwrap_or("it was written too slowly");
    let all = [
        (
            lost.file,
            format!("requests are missing in the ledger file: {cause}"),
        ),
        (
            counts.turned_away,
            "connections were turned away because 16,384 were open: use fewer".to_owned(),
        ),
        (
            counts.accept_errors,
            "times no connection could be accepted: raise the limit of open files (ulimit -n)"
                .to_owned(),
        ),
        (
            counts.idle,
            "connections were closed because no byte moved on them for 10 minutes".to_owned(),
        ),
    ];
    let happened = all.into_iter().filter(|(count, _)| *count > 0);
    happened
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
}
