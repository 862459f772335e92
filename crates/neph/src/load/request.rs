//! The options of a request: method, headers, body.

use std::fs;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_load::workload::HttpRequest;
use neph_model::{ProbeKind, Target};

use crate::exit::Failure;

/// Maximum size of a body.
const MAX_BODY: u64 = 64 << 20;

/// Options of the request.
#[derive(Debug, ClapArgs)]
pub(super) struct RequestChoice {
    /// HTTP method [default: GET; with a body, POST]
    #[arg(long, value_name = "METHOD", value_parser = method)]
    method: Option<String>,
    /// Header of each request, for example 'Accept: text/html'; repeatable
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// Body of each request
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,
    /// File with the body of each request, up to 64 MiB
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// Open a new connection for each request
    #[arg(long)]
    no_keep_alive: bool,
}

/// The service of a URL.
pub(super) fn target(text: &str) -> Result<Target, Failure> {
    let target = if text.contains("://") {
        Target::parse(text)
    } else {
        Target::under("http", text)
    };
    let target = target.map_err(Failure::usage)?;
    if target.kind() != ProbeKind::Http {
        return Err(Failure::usage(format!(
            "target '{target}': neph load sends HTTP; write http://host[:port]/path or https://"
        )));
    }
    Ok(target)
}

impl RequestChoice {
    /// The request for this service.
    pub(super) fn request(&self, target: &Target) -> Result<HttpRequest, Failure> {
        let body = match (&self.body, &self.body_file) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(path)) => read_body(path)?,
            (None, None) => Vec::new(),
        };
        let default = if body.is_empty() { "GET" } else { "POST" };
        let is_host = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("host");
        let host = self.header.iter().find(is_host);
        let host = host.map_or_else(|| target.host_header(), |(_, value)| value.clone());
        let others = self.header.iter().filter(|header| !is_host(header));
        let mut headers: Vec<(String, String)> = others.cloned().collect();
        let authorization = target.authorization();
        headers.extend(authorization.map(|value| ("Authorization".to_owned(), value)));
        let request = HttpRequest {
            method: self.method.clone().unwrap_or_else(|| default.to_owned()),
            target: target.path().to_owned(),
            host,
            headers,
            body,
            keep_alive: !self.no_keep_alive,
        };
        request
            .encode()
            .map_err(|error| Failure::usage(format!("the request: {error}")))?;
        Ok(request)
    }
}

fn read_body(path: &PathBuf) -> Result<Vec<u8>, Failure> {
    let fault = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("--body-file {}: {error}", path.display()))
    };
    let size = fs::metadata(path).map_err(|error| fault(&error))?.len();
    if size > MAX_BODY {
        return Err(fault(&"the file has more than 64 MiB"));
    }
    fs::read(path).map_err(|error| fault(&error))
}

/// A method in capitals.
fn method(text: &str) -> Result<String, String> {
    let is_valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase());
    if text == "CONNECT" || !is_valid {
        return Err("write a method in capitals, such as GET or POST".to_owned());
    }
    Ok(text.to_owned())
}

/// Headers that neph writes itself.
const OWN_HEADERS: [&str; 3] = ["connection", "content-length", "transfer-encoding"];

fn header(text: &str) -> Result<(String, String), String> {
    let example = "write it as 'Name: value'";
    let (name, value) = text.split_once(':').ok_or(example)?;
    let (name, value) = (name.trim(), value.trim());
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(example.to_owned());
    }
    if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!(
            "neph writes the header {name} itself; --no-keep-alive closes connections"
        ));
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_need_a_name_and_may_not_frame_the_message() {
        let parsed = header("X-Id: a: b").expect("a header");
        assert_eq!(parsed, ("X-Id".to_owned(), "a: b".to_owned()));
        for wrong in [
            "",
            "novalue",
            ": x",
            "a b: c",
            "Content-Length: 5",
            "connection:close",
        ] {
            assert!(header(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_http_is_a_target() {
        assert!(target("127.0.0.1:8080/path").is_ok_and(|target| target.path() == "/path"));
        assert!(target("https://example.net/").is_ok_and(|target| target.is_secure()));
        for wrong in ["tcp://127.0.0.1:80", "icmp://127.0.0.1"] {
            assert!(matches!(target(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
