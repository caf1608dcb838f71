//! The filter language, row by row.

use super::*;
use mcproof_record::CaseId;

fn case(name: &str, transport: &str) -> CasePlan {
    CasePlan {
        id: CaseId(0),
        suite: "tests/shop.mcproof.yaml".into(),
        name: name.into(),
        transport: transport.into(),
        line: 7,
        repetition: 0,
        tags: vec!["smoke".into(), "slow-network".into()],
        servers: vec!["shop".into(), "data-source".into()],
    }
}

#[test]
fn a_filter_takes_the_cases_that_it_describes() {
    let check = |text: &str, expected: bool| {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {}", error.message));
        assert_eq!(filter.matches(&case("an order (large) is refused", "stdio")), expected, "{text}");
    };
    for text in [
        "all()",
        "name(order)",
        "test(order)",
        "name( ~ order )",
        "name(=an order (large) is refused)",
        r"name(\(large)",
        "name(#an*refused)",
        "name(/^AN order/i)",
        r"name(/\(large\)/)",
        "tag(smoke)",
        "tag(s*)",
        "tag(~network)",
        "transport(stdio)",
        "transport({stdio,http})",
        "server(data-*)",
        "suite(shop)",
        "suite(=shop.mcproof.yaml)",
        "suite(=tests/shop.mcproof.yaml)",
        "file(#tests/*)",
        "!name(slow)",
        "not name(slow)",
        "!!tag(smoke)",
        "tag(smoke) & transport(stdio) & !name(/slow/)",
        "tag(smoke) and transport(stdio) and not name(/slow/)",
        "tag(x)|tag(smoke)",
        "tag(x) || tag(smoke) && name(order)",
        "tag(smoke) | none() & none()",
        "(tag(x) or tag(smoke)) and (all())",
        "name(order)&name(large)",
    ] {
        check(text, true);
    }
    for text in [
        "none()",
        "name(=order)",
        "name(Order)",
        "tag(smok)",
        "tag(slow)",
        "tag(=s*)",
        "transport(std)",
        "transport(http)",
        "server(data)",
        "suite(=shop)",
        "!all()",
        "tag(smoke) & transport(http)",
        "(tag(smoke) | none()) & none()",
        "not (tag(smoke) or none())",
        r"name(/\/large/)",
    ] {
        check(text, false);
    }
}

#[test]
fn a_mistake_is_told_with_its_place() {
    let check = |text: &str, column: u32, length: u32, message: &str, hint: &str| {
        let found = Filter::parse(text).expect_err(text);
        let place = found.place.clone().expect("a place");
        assert_eq!((place.column, place.length, found.message.as_str()), (column, length, message), "{text}");
        assert!(found.hint.as_deref().unwrap_or_default().contains(hint), "{text}: {:?}", found.hint);
    };
    check("", 1, 1, "this filter is empty", "name(login)");
    check("  ", 1, 1, "this filter is empty", "name(login)");
    check("nmae(x)", 1, 4, "invalid filter: unknown condition `nmae`", "did you mean `name`?");
    check("tags(x)", 1, 4, "invalid filter: unknown condition `tags`", "did you mean `tag`?");
    check("zzz(x)", 1, 3, "invalid filter: unknown condition `zzz`", "one of `name`, `test`, `tag`");
    check("checkout", 1, 8, "invalid filter: unknown condition `checkout`", "name(checkout) or tag(checkout)");
    check("tag", 1, 3, "expected `(` after `tag`", "tag(…)");
    check("tag(a) &", 8, 1, "expected a condition after `&`", "remove the operator");
    check("tag(a) and )", 8, 3, "expected a condition after `and`", "remove the operator");
    check("!", 1, 1, "expected a condition after `!`", "name(login)");
    check("tag(a) tag(b)", 8, 3, "expected `&`, `|` or the end of the filter, found `tag`", "`&` for both");
    check("(tag(a) tag(b))", 9, 3, "expected `&`, `|` or `)`, found `tag`", "`|` for one");
    check("tag(a))", 7, 1, "this `)` closes nothing", "\\)");
    check("(tag(a)", 1, 1, "this `(` is never closed", "add `)`");
    check("tag(a", 4, 1, "this `(` is never closed", "add `)`");
    check("name(a (b)", 5, 1, "this `(` is never closed", "`\\(` if it is text");
    check("tag()", 4, 2, "expected a text between the parentheses", "to look for");
    check("tag(= )", 4, 4, "expected a text between the parentheses", "to look for");
    check("()", 1, 2, "these parentheses are empty", "between them");
    check("all(x)", 1, 3, "`all()` takes nothing", "all()");
    check("name(/x", 6, 2, "this pattern has no end", "`/`");
    check("name(/x/g)", 9, 1, "expected `)` after the pattern, found `g`", "`i`");
    check("name(/(/)", 6, 3, "this pattern is not valid: unclosed group", "`=`");
    check("name(#[a)", 7, 2, "this glob is not valid: unclosed character class; missing ']'", "`=`");
    check("& tag(a)", 1, 1, "expected a condition, found `&`", "tag(smoke)");
    check("tag(ä) ü", 8, 1, "expected `&`, `|` or the end of the filter, found `ü`", "`&`");
    check(&"(".repeat(100_000), 65, 1, "this filter is nested too deeply", "--filter");
}

#[test]
fn a_condition_that_nobody_meets_names_what_is_near() {
    let cases = [case("an order is refused", "stdio"), case("a payment succeeds", "http")];
    let check = |text: &str, expected: &[&str]| {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {}", error.message));
        assert_eq!(filter.unmet(&cases), expected, "{text}");
    };
    check("name(order) & name(payment)", &[]);
    check("tag(smok)", &["no test has tag(smok), did you mean `smoke`?"]);
    check("name(paymnt)", &["no test has name(paymnt), did you mean `a payment succeeds`?"]);
    check("name(=payment)", &["no test has name(=payment), did you mean `a payment succeeds`?"]);
    check("name(Order)", &["no test has name(Order), did you mean `an order is refused`?"]);
    check("transport(sse)", &["no test has transport(sse): transports are `http`, `stdio`"]);
    check(
        "tag(a) | tag(/b/)",
        &["no test has tag(a): tags are `slow-network`, `smoke`", "no test has tag(/b/): tags are `slow-network`, `smoke`"],
    );
}
