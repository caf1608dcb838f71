//! Reads `login:`: who can open the dashboard, and what they may do.

use super::leaves::{Secrecy, choose, optional, read_secret, read_texts, required};
use super::reader::entries;
use super::{Login, Proxy, Secret, User};
use crate::role::Role;
use mcproof_record::Diagnostic;
use mcproof_suite::document::{Kind, Node};
use mcproof_suite::format::{Fault, Object, Shape};
use mcproof_suite::reader::Reader;
use std::net::IpAddr;

const ROLES: [(&str, Role); 3] = [("viewer", Role::Viewer), ("operator", Role::Operator), ("admin", Role::Admin)];
const WORDS: &[&str] = &["viewer", "operator", "admin"];

pub(super) static LOGIN: Object<Login> = Object {
    name: "`login`",
    keys: &[
        optional("tokens", "tokens for the dashboard and the API, each with the role admin", Shape::TextOrTexts, |reader, node, draft| {
            let items = match &node.kind {
                Kind::Seq(items) => items.as_slice(),
                _ => std::slice::from_ref(node),
            };
            for item in items {
                draft.tokens.push(read_token(reader, item)?);
            }
            Ok(())
        }),
        optional("users", "users by name, each with a role and a token", Shape::Objects(&USER), |reader, node, draft| {
            let before = reader.mistakes();
            for entry in entries(reader, Some(node), Shape::Objects(&USER)) {
                let mut user = User { role: Role::Viewer, token: None };
                USER.read(reader, &entry.value, &mut user);
                draft.users.insert(entry.key.text.clone(), user);
            }
            if reader.mistakes() > before {
                return Err(Fault::Reported);
            }
            Ok(())
        }),
        optional("proxy", "an authenticating proxy in front of the dashboard", Shape::Object(&PROXY), |reader, node, draft| {
            let mut found = Proxy { header: String::new(), from: Vec::new(), role: Some(Role::Admin) };
            if !PROXY.read(reader, node, &mut found) {
                return Err(Fault::Reported);
            }
            draft.proxy = Some(found);
            Ok(())
        }),
    ],
    later: &["oidc"],
};

static USER: Object<User> = Object {
    name: "a user",
    keys: &[
        required(
            "role",
            "role: viewer (read), operator (acknowledge, silence) or admin (everything)",
            Shape::Word(WORDS),
            |reader, node, draft| {
                draft.role = choose(reader, node, &ROLES, "role")?;
                Ok(())
            },
        ),
        optional("token", "the token to log in with; not required behind a proxy", Shape::Text, |reader, node, draft| {
            draft.token = Some(read_token(reader, node)?);
            Ok(())
        }),
    ],
    later: &[],
};

static PROXY: Object<Proxy> = Object {
    name: "`proxy`",
    keys: &[
        required("header", "the header with the user's name", Shape::Text, |reader, node, draft| {
            let name = reader.text(node)?;
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(is_token) {
                reader.error("bad-header", format!("`{name}` is not a valid header name"), node.span);
                return Err(Fault::Reported);
            }
            draft.header = name.to_ascii_lowercase();
            Ok(())
        }),
        required("from", "addresses of the proxy; the header is ignored from all others", Shape::TextOrTexts, |reader, node, draft| {
            for text in read_texts(reader, node)? {
                match text.parse::<IpAddr>() {
                    Ok(address) => draft.from.push(address),
                    Err(_) => {
                        let diagnostic = Diagnostic::error("bad-address", format!("`{text}` is not an IP address"));
                        reader.report(diagnostic.hint("write the address of the proxy, such as 127.0.0.1"), node.span);
                        return Err(Fault::Reported);
                    }
                }
            }
            Ok(())
        }),
        optional(
            "role",
            "role of users that are not in `users`; default admin; `none` rejects them",
            Shape::Word(&["viewer", "operator", "admin", "none"]),
            |reader, node, draft| {
                let all =
                    [("viewer", Some(Role::Viewer)), ("operator", Some(Role::Operator)), ("admin", Some(Role::Admin)), ("none", None)];
                draft.role = choose(reader, node, &all, "role")?;
                Ok(())
            },
        ),
    ],
    later: &[],
};

fn read_token(reader: &mut Reader<'_>, node: &Node) -> Result<Secret, Fault> {
    const SHORTEST: usize = 16;
    let token = read_secret(reader, node, Secrecy::Secret)?;
    if token.expose().len() < SHORTEST {
        let diagnostic = Diagnostic::error("short-token", format!("this token is shorter than {SHORTEST} characters"));
        reader.report(diagnostic.hint("generate one with `openssl rand -hex 32`"), node.span);
        return Err(Fault::Reported);
    }
    Ok(token)
}
