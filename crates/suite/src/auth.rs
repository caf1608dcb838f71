//! Reads `auth:`: how a suite is let in by its servers without a person. Reads the key that it names.

use super::document::{Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::reach::read_text_file;
use super::reader::Reader;
use super::restriction::UrlOwner;
use super::source::Span;
use mcproof_client::auth::{
    Authorization, Credential, DynamicRegistration, Grant, Identity, Registered, Secret, SigningAlgorithm, SigningKey,
};
use mcproof_record::Diagnostic;

pub const AUTH_DOC: &str = "authorization: a token, or a client that requests one";

/// `auth:` of a server or a transport.
pub static AUTH: Object<AuthDraft> = Object {
    name: "`auth`",
    keys: &[
        Key {
            name: "bearer",
            doc: "a token to send, such as \"${env.TOKEN}\"",
            shape: Shape::Text,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                draft.bearer = Some((read_secret(reader, node)?, node.span));
                Ok(())
            },
        },
        Key {
            name: "client_id",
            doc: "a client that requests tokens for itself (client credentials)",
            shape: Shape::Text,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                draft.client_key = Some(reader.key);
                draft.client = Some(reader.text(node)?);
                Ok(())
            },
        },
        Key {
            name: "client_secret",
            doc: "the client's secret, such as \"${env.CLIENT_SECRET}\"",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.of_client.push(("client_secret", reader.key));
                draft.secret = Some(read_secret(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "client_key",
            doc: "a PEM file with the private key that signs the client's assertions (private_key_jwt)",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.of_client.push(("client_key", reader.key));
                draft.key = Some((read_text_file(reader, node)?, node.span));
                Ok(())
            },
        },
        Key {
            name: "client_key_algorithm",
            doc: "the signature algorithm, if the type of the key allows several",
            shape: Shape::Word(&["ES256", "ES384", "EdDSA", "RS256", "PS256"]),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.of_client.push(("client_key_algorithm", reader.key));
                let written = reader.text(node)?;
                draft.algorithm = Some(SigningAlgorithm::named(&written).ok_or(Fault::Shape)?);
                Ok(())
            },
        },
        Key {
            name: "scope",
            doc: "the scopes to request, separated by spaces, instead of those that the server names",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.of_client.push(("scope", reader.key));
                draft.scopes = Some(reader.text(node)?.split_whitespace().map(str::to_owned).collect());
                Ok(())
            },
        },
        Key {
            name: "issuer",
            doc: "the issuer of the authorization server that the credentials are for; they are sent to no other; default: the first one that is used",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.of_client.push(("issuer", reader.key));
                let issuer = reader.text(node)?;
                reader.permit(node.span, |restriction| restriction.url(&issuer, UrlOwner::Others))?;
                draft.issuer = Some(issuer);
                Ok(())
            },
        },
    ],
    later: &[],
};

#[derive(Default)]
pub struct AuthDraft {
    bearer: Option<(String, Span)>,
    client: Option<String>,
    client_key: Option<Span>,
    secret: Option<String>,
    key: Option<(String, Span)>,
    algorithm: Option<SigningAlgorithm>,
    scopes: Option<Vec<String>>,
    issuer: Option<String>,
    /// Keys that belong to a client.
    of_client: Vec<(&'static str, Span)>,
}

/// What `auth:` comes to.
#[derive(Clone)]
pub(crate) enum Auth {
    /// The header that every request carries.
    Header(String, String),
    Flow(Box<Authorization>),
}

/// What of a tree is written there in full and yet a secret: it must not come up in any report.
pub fn literal_secrets(node: &Node) -> Vec<String> {
    let mut found = Vec::new();
    collect(node, &mut found);
    found
}

pub(crate) fn read_auth(reader: &mut Reader<'_>, node: &Node) -> Result<Auth, Fault> {
    let mut draft = AuthDraft::default();
    if !AUTH.read(reader, node, &mut draft) {
        return Err(Fault::Reported);
    }
    let AuthDraft { bearer, client, client_key, secret, key, algorithm, scopes, issuer, of_client } = draft;
    let before = reader.mistakes();
    if let Some((token, span)) = bearer {
        for (name, span) in of_client {
            reader.error("inapplicable-key", format!("`{name}` means nothing beside `bearer`"), span);
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let diagnostic = Diagnostic::error("bad-token", "a token has no spaces and no characters beyond ASCII");
            reader.report(diagnostic.hint("`bearer` takes the token alone, without the word Bearer"), span);
        }
        return match reader.mistakes() == before {
            true => Ok(Auth::Header("Authorization".into(), format!("Bearer {token}"))),
            false => Err(Fault::Reported),
        };
    }
    let signing = key.map(|(pem, span)| {
        let key = match algorithm {
            Some(algorithm) => SigningKey::from_pem(&pem, algorithm),
            None => SigningKey::of_any_kind(&pem),
        };
        key.map_err(|unreadable| {
            let diagnostic = Diagnostic::error("bad-key", format!("this key cannot be used: {unreadable}"));
            reader.report(diagnostic.hint("`openssl pkcs8 -topk8 -nocrypt -in KEY` writes a key in that form"), span);
        })
    });
    let credential = match (secret, signing) {
        (Some(_), Some(_)) => {
            let span = of_client.iter().find(|(name, _)| *name == "client_key").map(|(_, span)| *span).unwrap_or_default();
            reader.error("conflicting-keys", "`auth` has `client_secret` or `client_key`, not both", span);
            return Err(Fault::Reported);
        }
        (_, Some(Err(()))) => return Err(Fault::Reported),
        (Some(secret), None) => Credential::Secret(Secret::new(secret)),
        (None, Some(Ok(key))) => Credential::Key(key),
        (None, None) => {
            let diagnostic = Diagnostic::error("missing-key", "`client_id` needs `client_secret` or `client_key`");
            let hint = "a client that cannot prove who it is gets no token without a person";
            reader.report(diagnostic.hint(hint), client_key.unwrap_or_default());
            return Err(Fault::Reported);
        }
    };
    let algorithm = of_client.iter().find(|(name, _)| *name == "client_key_algorithm");
    if let (Credential::Secret(_), Some((_, span))) = (&credential, algorithm) {
        reader.error("inapplicable-key", "`client_key_algorithm` means nothing without `client_key`", *span);
        return Err(Fault::Reported);
    }
    let registered = Registered { id: client.unwrap_or_default(), credential, issuer };
    let identity = Identity { registered: Some(registered), metadata_document: None, dynamic: DynamicRegistration::Never };
    Ok(Auth::Flow(Box::new(Authorization { scopes, ..Authorization::new(identity, Grant::ClientCredentials) })))
}

fn read_secret(reader: &mut Reader<'_>, node: &Node) -> Result<String, Fault> {
    let key = reader.key;
    let secret = reader.text(node)?;
    if secret.is_empty() {
        reader.error("empty-secret", "this secret is empty", node.span);
        return Err(Fault::Reported);
    }
    if is_literal(node) {
        let warning =
            Diagnostic::warning("literal-secret", "this file contains a secret in plain text, where everybody finds it who has the suite");
        reader.report(warning.hint("write \"${env.NAME}\", and set NAME where the suite runs"), key);
    }
    Ok(secret)
}

fn is_literal(node: &Node) -> bool {
    match &node.kind {
        Kind::Text(text) => !text.contains("${"),
        Kind::Number(_) => true,
        _ => false,
    }
}

fn collect(node: &Node, found: &mut Vec<String>) {
    match &node.kind {
        Kind::Map(entries) => {
            for entry in entries {
                let secret = |name: &str| entry.value.get(name).filter(|value| is_literal(value)).map(|value| value.to_value());
                let values = match entry.key.text.as_str() {
                    "auth" => vec![secret("bearer"), secret("client_secret")],
                    "headers" => vec![secret("Authorization"), secret("authorization")],
                    _ => Vec::new(),
                };
                found.extend(values.into_iter().flatten().map(|value| match value {
                    serde_json::Value::String(text) => text,
                    other => other.to_string(),
                }));
                collect(&entry.value, found);
            }
        }
        Kind::Seq(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
