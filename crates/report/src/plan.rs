//! What a run would do, for a person: each test with its place, its transports, its tags and its steps.

use crate::Style;
use crate::style::{BOLD, CYAN, DIM, count};
use mcproof_record::{PlannedCase, PlannedRun};

/// In the order of the plan. Transports of one test share its lines.
pub fn render(plan: &PlannedRun, style: &Style) -> String {
    let mut text = String::new();
    let mut suite = None;
    for group in plan.cases.chunk_by(belong_together) {
        let [first, ..] = group else { continue };
        if suite != Some(&first.case.suite) {
            if suite.is_some() {
                text.push('\n');
            }
            text.push_str(&style.text(&first.case.suite));
            text.push('\n');
            suite = Some(&first.case.suite);
        }
        text.push_str(&test(first, group, style));
    }
    let mut total = count(plan.cases.len() as u64, "test");
    if plan.left_out > 0 {
        total.push_str(&format!(", {} not selected", plan.left_out));
    }
    if let Some(seed) = plan.seed {
        total.push_str(&format!(", shuffled with --seed {seed}"));
    }
    text.push_str(&format!("\n{total}\n"));
    text
}

fn belong_together(one: &PlannedCase, next: &PlannedCase) -> bool {
    let key = |planned: &PlannedCase| (planned.case.suite.clone(), planned.case.line, planned.case.name.clone(), planned.case.repetition);
    key(one) == key(next)
}

fn test(first: &PlannedCase, group: &[PlannedCase], style: &Style) -> String {
    let case = &first.case;
    let transports: Vec<&str> = group.iter().map(|planned| planned.case.transport.as_str()).collect();
    let repetition = if case.repetition > 0 { format!(" #{}", case.repetition) } else { String::new() };
    let line = style.paint(DIM, &format!("{:>5}", case.line));
    let name = style.paint(BOLD, &style.text(&case.name));
    let mut text = format!("{line}  {name}{repetition} {}", style.paint(CYAN, &style.text(&format!("[{}]", transports.join(", ")))));
    if !case.tags.is_empty() {
        text.push_str(&style.paint(DIM, &style.text(&format!("  tags: {}", case.tags.join(", ")))));
    }
    text.push('\n');
    for step in &first.steps {
        let server = if case.servers.len() > 1 && !step.server.is_empty() { format!(" on {}", step.server) } else { String::new() };
        text.push_str(&style.paint(DIM, &format!("{:>5}", step.line)));
        text.push_str(&style.text(&format!("    {}{server}", step.title)));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::{CaseId, CasePlan, PlannedStep};

    #[test]
    fn a_plan_names_each_test_once_with_its_transports() {
        let case = |id: u32, transport: &str, repetition: u32| PlannedCase {
            case: CasePlan {
                id: CaseId(id),
                suite: "a.yaml".into(),
                name: "pays \u{1b}[31m".into(),
                transport: transport.into(),
                line: 12,
                repetition,
                tags: vec!["smoke".into()],
                servers: vec!["shop".into(), "bank".into()],
            },
            steps: vec![PlannedStep { title: "call pay".into(), server: "bank".into(), line: 14 }],
        };
        let cases = vec![case(0, "stdio", 1), case(1, "http", 1), case(2, "stdio", 2)];
        let plan = PlannedRun { version: 1, cases, left_out: 4, seed: Some(7) };
        let expected = "a.yaml\n   12  pays \\u{1b}[31m #1 [stdio, http]  tags: smoke\n   14    call pay on bank\n   \
                        12  pays \\u{1b}[31m #2 [stdio]  tags: smoke\n   14    call pay on bank\n\n3 tests, 4 not selected, shuffled with --seed 7\n";
        assert_eq!(render(&plan, &Style::default()), expected);
    }
}
