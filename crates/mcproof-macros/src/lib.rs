//! `#[mcproof::test]`: one async function becomes a module with one test for each transport. Knows the names in `mcproof`, not
//! what they do.

use proc_macro::TokenStream;
use proc_macro2::{Ident, TokenStream as Tokens};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{ItemFn, Path, Token, bracketed, parse_macro_input};

/// What stands in the parentheses.
struct Arguments {
    server: Path,
    transports: Vec<Ident>,
}

/// The names of the transports, and what they are in `mcproof::Transport`.
const TRANSPORTS: [(&str, &str); 4] = [("in_memory", "InMemory"), ("stdio", "Stdio"), ("http", "Http"), ("sse", "Sse")];

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (mut server, mut transports) = (None, None);
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            if name == "server" {
                server = Some(input.parse()?);
            } else if name == "transports" {
                let list;
                bracketed!(list in input);
                transports = Some(list.parse_terminated(Ident::parse, Token![,])?.into_iter().collect());
            } else {
                return Err(syn::Error::new(name.span(), "expected `server = …` or `transports = […]`"));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let server = server.ok_or_else(|| input.error("`server = …` is missing: a function from a transport to a client"))?;
        let transports: Vec<Ident> = transports.ok_or_else(|| input.error("`transports = [stdio, http]` is missing"))?;
        match transports.iter().find(|transport| known(transport).is_none()) {
            Some(unknown) => Err(syn::Error::new(unknown.span(), "expected `in_memory`, `stdio`, `http` or `sse`")),
            None if transports.is_empty() => Err(input.error("`transports` is empty: name at least one")),
            None => Ok(Self { server, transports }),
        }
    }
}

fn known(transport: &Ident) -> Option<Ident> {
    TRANSPORTS.iter().find(|(name, _)| transport == name).map(|(_, variant)| format_ident!("{variant}"))
}

/// Runs an async function once for each transport, with a client that `server` opens:
/// `#[mcproof::test(server = shop, transports = [stdio, http, sse])] async fn orders(client: &Client) { … }`.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let Arguments { server, transports } = parse_macro_input!(arguments as Arguments);
    let body = parse_macro_input!(item as ItemFn);
    if body.sig.asyncness.is_none() || body.sig.inputs.len() != 1 {
        let message = "a test is an `async fn` that takes the client: `async fn orders(client: &Client)`";
        return syn::Error::new(body.sig.ident.span(), message).to_compile_error().into();
    }
    let (name, output, attributes) = (&body.sig.ident, &body.sig.output, &body.attrs);
    let tests = transports.iter().map(|transport| -> Tokens {
        let variant = known(transport);
        quote! {
            #[test]
            fn #transport() #output {
                ::mcproof::run_test(::mcproof::Transport::#variant, #server, async |client: &::mcproof::Client| #name(client).await)
            }
        }
    });
    let function = ItemFn { attrs: Vec::new(), ..body.clone() };
    quote! {
        #(#attributes)*
        mod #name {
            use super::*;
            #function
            #(#tests)*
        }
    }
    .into()
}
