//! The static token file of Kubernetes: comma-separated values, one token per line.

use std::{collections::HashSet, fmt, path::PathBuf};

use apiserver::auth::StaticToken as ServerToken;
use process::reload::{Content, Current, NamedFile, Reloader};
use server::{Identity, unusable};
use thiserror::Error;

/// A bearer token and the user it stands for.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StaticToken {
    pub(crate) token: String,
    pub(crate) user: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
}

impl From<StaticToken> for ServerToken {
    fn from(StaticToken { token, user, uid, groups }: StaticToken) -> Self {
        Self { token, identity: Identity { uid, ..Identity::authenticated(user, groups) } }
    }
}

/// The token itself stays out of logs.
impl fmt::Debug for StaticToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token: _, user, uid, groups } = self;
        f.debug_struct("StaticToken").field("user", user).field("uid", uid).field("groups", groups).finish()
    }
}

/// A malformed line. The message never quotes the line, which may contain a secret.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("line {line}: {reason}; a line is TOKEN,USER,UID or TOKEN,USER,UID,\"GROUP1,GROUP2\"")]
pub(crate) struct BadLine {
    line: usize,
    reason: &'static str,
}

/// Follows the token file, if one is given.
pub(crate) fn follow(
    files: &mut Reloader,
    path: Option<PathBuf>,
) -> anyhow::Result<Current<Vec<ServerToken>>> {
    let Some(path) = path else { return Ok(Current::default()) };
    let parse_file = |contents: &[Content]| {
        let mut tokens = Vec::new();
        for Content { path, bytes } in contents {
            let bad = |reason: &dyn fmt::Display| format!("{}: {reason}", unusable(path));
            let text = std::str::from_utf8(bytes).map_err(|_| bad(&"it is no UTF-8 text"))?;
            tokens.extend(parse(text).map_err(|error| bad(&error))?);
        }
        Ok::<_, String>(tokens.into_iter().map(ServerToken::from).collect())
    };
    let file = NamedFile { flag: "--token-auth-file", path };
    Ok(files.follow("token-auth-file", vec![file], parse_file)?)
}

/// Reads a whole file. Empty lines are skipped; columns past the fourth are ignored, as Kubernetes does.
pub(crate) fn parse(text: &str) -> Result<Vec<StaticToken>, BadLine> {
    let mut seen = HashSet::new();
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let bad = |reason| BadLine { line: index + 1, reason };
        let token = parse_line(line).map_err(bad)?;
        if !seen.insert(token.token.clone()) {
            return Err(bad("its token stands on an earlier line as well"));
        }
        tokens.push(token);
    }
    Ok(tokens)
}

fn parse_line(line: &str) -> Result<StaticToken, &'static str> {
    let mut columns = columns(line)?.into_iter();
    let (Some(token), Some(user), Some(uid)) = (columns.next(), columns.next(), columns.next()) else {
        return Err("it has fewer than three columns");
    };
    if token.is_empty() {
        return Err("its token is empty");
    }
    if user.is_empty() {
        return Err("its user is empty");
    }
    let groups = columns.next().unwrap_or_default();
    let groups =
        groups.split(',').map(str::trim).filter(|group| !group.is_empty()).map(str::to_owned).collect();
    Ok(StaticToken { token, user, uid, groups })
}

/// Splits at commas outside of quotes. A quote inside quotes is written twice.
fn columns(line: &str) -> Result<Vec<String>, &'static str> {
    let mut columns = Vec::new();
    let mut rest = line;
    loop {
        let (column, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_column(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        if column.contains('"') && !rest.starts_with('"') {
            return Err("a quote stands inside a column that does not begin with one");
        }
        columns.push(column);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(columns),
            None => return Err("there is something between a closing quote and the next comma"),
        }
    }
}

fn quoted_column(mut rest: &str) -> Result<(String, &str), &'static str> {
    let mut column = String::new();
    loop {
        let end = rest.find('"').ok_or("a quote is not closed")?;
        column.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(next) => {
                column.push('"');
                rest = next;
            }
            None => return Ok((column, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(token: &str, user: &str, uid: &str, groups: &[&str]) -> StaticToken {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        StaticToken { token: token.to_owned(), user: user.to_owned(), uid: uid.to_owned(), groups }
    }

    #[test]
    fn lines_are_read_as_kubernetes_reads_them() {
        let text = "t1,jane,1\n\nt2,joe,2,\"dev,ops\"\r\nt3,\"a, \"\"b\"\"\",,solo,ignored\n";
        let expected = [
            token("t1", "jane", "1", &[]),
            token("t2", "joe", "2", &["dev", "ops"]),
            token("t3", "a, \"b\"", "", &["solo"]),
        ];
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(parse("").unwrap(), []);
    }

    fn refused(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_line_is_named_by_number_and_never_shown() {
        for (text, line, reason) in [
            ("s3cret", 1, "fewer than three columns"),
            ("t,u,1\ns3cret,u", 2, "fewer than three columns"),
            (",u,1", 1, "token is empty"),
            ("s3cret,,1", 1, "user is empty"),
            ("t,u,1\n\nt,v,2", 3, "earlier line"),
            ("s3cret,u,1,\"a,b", 1, "not closed"),
            ("s3cret,u,1,\"a\"b", 1, "closing quote"),
            ("s3cret,u\"x,1", 1, "inside a column"),
        ] {
            let message = refused(text);
            assert!(message.starts_with(&format!("line {line}: ")) && message.contains(reason), "{message}");
            assert!(!message.contains("s3cret"), "{message}");
        }
    }

    #[test]
    fn a_token_is_not_shown_by_debug() {
        assert!(!format!("{:?}", token("s3cret", "jane", "1", &["dev"])).contains("s3cret"));
    }
}
