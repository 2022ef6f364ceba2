//! An HTTP client that runs curl, which accepts a self-signed certificate and needs no further crate.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use oracle::{Request, Response};

/// The time limit of a request.
const SECONDS: &str = "20";

/// A server and the caller's credentials.
pub struct Curl {
    url: String,
    token: String,
}

impl Curl {
    pub fn new(url: &str, token: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), token: token.to_owned() }
    }

    /// Sends a request and reads the response, or the requested number of its lines.
    pub fn send(&self, request: &Request) -> Result<Response, String> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--insecure", "--no-buffer", "--include", "--http1.1"])
            .args(["--max-time", SECONDS, "--user-agent", "oracle", "--header", "Expect:"])
            .args(["--request", request.method]);
        if !request.headers.iter().any(|(key, _)| key == "authorization") {
            curl.args(["--header", &format!("Authorization: Bearer {}", self.token)]);
        }
        if request.method == "HEAD" {
            curl.arg("--head");
        }
        for name in ["accept", "content-type"] {
            // An empty header keeps curl from sending its own value.
            if !request.headers.iter().any(|(key, value)| key == name && !value.is_empty()) {
                curl.args(["--header", &format!("{name}:")]);
            }
        }
        for (key, value) in request.headers.iter().filter(|(_, value)| !value.is_empty()) {
            curl.args(["--header", &format!("{key}: {value}")]);
        }
        if !request.body.is_empty() {
            curl.args(["--data-binary", "@-"]);
        }
        curl.arg(format!("{}{}", self.url, request.path));
        let mut child = curl
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("curl cannot be run: {error}"))?;
        let failed = |error: std::io::Error| format!("{}: {error}", request.path);
        // Closing standard input ends the body.
        child.stdin.take().map_or(Ok(()), |mut input| input.write_all(&request.body)).map_err(failed)?;
        let output = child.stdout.take().ok_or("curl has no output")?;
        let response = read(BufReader::new(output), request.lines).map_err(failed);
        // A watch would not end by itself; a complete answer has been read.
        child.kill().map_err(failed)?;
        child.wait().map_err(failed)?;
        response
    }
}

fn read(mut output: impl BufRead, lines: Option<usize>) -> std::io::Result<Response> {
    let mut response = Response::default();
    let mut line = String::new();
    loop {
        line.clear();
        if output.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        match line.trim().split_once(": ") {
            Some((key, value)) => response.headers.push((key.to_lowercase(), value.to_owned())),
            None => {
                let code = line.split(' ').nth(1).and_then(|code| code.trim().parse().ok());
                response.code = code.unwrap_or(response.code);
            }
        }
    }
    if response.code == 0 {
        return Err(std::io::Error::other("the server sent no answer"));
    }
    match lines {
        Some(lines) if response.code == 200 => {
            for line in 0..lines {
                if output.read_until(b'\n', &mut response.body)? == 0 {
                    let problem = format!("only {line} of {lines} events came");
                    return Err(std::io::Error::other(problem));
                }
            }
        }
        _ => {
            output.read_to_end(&mut response.body)?;
        }
    }
    Ok(response)
}
