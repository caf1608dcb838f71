//! Runs one demo server: `demo NAME [--http | --sse] [--host HOST] [--port N] [--miscount] [--slow MILLISECONDS]`.
//! The entry for development; users run `mcproof demo`.

use std::{error::Error, time::Duration};

use mcproof_demo::{DEFAULT_HOST, DemoOptions, DemoTransport, serve};

fn main() -> Result<(), Box<dyn Error>> {
    let options = options(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(serve(options, std::future::pending()));
    // A read of standard input that is still blocked must not keep the process.
    runtime.shutdown_background();
    Ok(served?)
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<DemoOptions, Box<dyn Error>> {
    let name = arguments.next().ok_or("the name of a demo is missing")?;
    let mut options = DemoOptions::new(name.parse()?);
    let (mut host, mut port) = (DEFAULT_HOST.to_owned(), 0);
    let mut transport: Option<fn(String, u16) -> DemoTransport> = None;
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--http" => transport = Some(|host, port| DemoTransport::Http { host, port }),
            "--sse" => transport = Some(|host, port| DemoTransport::Sse { host, port }),
            "--host" => host = value()?,
            "--port" => port = value()?.parse()?,
            "--miscount" => options.miscount = true,
            "--slow" => options.slow = Duration::from_millis(value()?.parse()?),
            _ => return Err(format!("unknown flag: {flag}").into()),
        }
    }
    if let Some(transport) = transport {
        options.transport = transport(host, port);
    }
    Ok(options)
}
