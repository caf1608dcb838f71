//! Calls that run as tasks, in the page: begun, listed, asked for input, canceled, with their result; in both eras.

use crate::browser::Page;
use crate::inspector::{Inspector, choose, click, fill, open_tool, violations, wait_for};
use crate::peers::Peer;
use serde_json::{Value, json};

const SERVER: &str = include_str!("tasks.py");

const STATUS: &str = "document.querySelector('[data-testid=task]')?.dataset.status";

fn opened(folder: tempfile::TempDir, arguments: &[&str]) -> (Inspector, Page) {
    let inspector = Inspector::start_in(folder, "ui", arguments);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    (inspector, page)
}

fn modern() -> (Inspector, Page) {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("tasks.py");
    std::fs::write(&server, SERVER).unwrap();
    opened(folder, &["--", "python3", server.to_str().unwrap()])
}

/// Calls a tool as a task, if it is not one that is always called so.
fn call(page: &mut Page, tool: &str) {
    open_tool(page, tool);
    wait_for(page, "document.querySelector('[data-testid=as-task]')");
    if page.evaluate("document.querySelector('[data-testid=as-task]').checked") == Value::Bool(false) {
        click(page, "as-task");
    }
    click(page, "send");
}

fn becomes(page: &mut Page, status: &str) {
    wait_for(page, &format!("{STATUS} === '{status}'"));
}

#[test]
fn tasks_of_the_everything_server_are_followed_asked_and_canceled() {
    let command = Peer::named("everything").start("stdio").command;
    let words: Vec<&str> = ["--"].into_iter().chain(command.iter().map(String::as_str)).collect();
    let (_inspector, mut page) = opened(tempfile::tempdir().unwrap(), &words);
    open_tool(&mut page, "simulate-research-query");
    // The server runs it as a task only, and so the choice is made.
    wait_for(
        &mut page,
        "document.querySelector('[data-testid=as-task]').checked && document.querySelector('[data-testid=as-task]').disabled",
    );
    fill(&mut page, "[data-testid=input-topic]", "python");
    click(&mut page, "send");
    becomes(&mut page, "working");
    becomes(&mut page, "completed");
    wait_for(&mut page, "document.querySelector('[data-testid=task-outcome]')?.innerText.includes('Research Report')");
    // One that is asked on the way, by a question in the tray.
    choose(&mut page, "input-ambiguous", "true");
    click(&mut page, "send");
    wait_for(&mut page, "document.querySelector('[data-testid=tray] [data-testid=input-interpretation]')");
    let last = page.evaluate("[...document.querySelector('[data-testid=input-interpretation]').options].at(-1).value");
    choose(&mut page, "input-interpretation", last.as_str().unwrap());
    click(&mut page, "accept");
    becomes(&mut page, "completed");
    // A third one is canceled.
    click(&mut page, "send");
    becomes(&mut page, "working");
    click(&mut page, "cancel-task");
    becomes(&mut page, "cancelled");
    wait_for(&mut page, "!document.querySelector('[data-testid=tray]')");
    // All are listed, and the list of the server has them as well.
    click(&mut page, "nav-tasks");
    wait_for(&mut page, "document.querySelector('[data-testid=items-tasks]').dataset.count === '3'");
    click(&mut page, "list-tasks-again");
    fill(&mut page, "[data-testid=filter]", "method:tasks/list");
    wait_for(&mut page, "document.querySelector('[data-testid=calls]').dataset.count === '1'");
    page.evaluate("[...document.querySelectorAll('[data-testid=items-tasks] .row')].at(-1).click()");
    wait_for(&mut page, "document.querySelector('.task.whole [data-testid=task-facts]')?.innerText.includes('Took')");
    assert!(page.text_of("[data-testid=task-outcome]").contains("Research Report"));
    assert_eq!(violations(&mut page), json!([]));
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn tasks_of_the_extension_are_followed_asked_and_canceled() {
    let (_inspector, mut page) = modern();
    call(&mut page, "work");
    becomes(&mut page, "completed");
    wait_for(&mut page, "document.querySelector('[data-testid=task-outcome]')?.innerText.includes('done for nobody')");
    // The server decides, and answers this one at once.
    call(&mut page, "now");
    wait_for(&mut page, "document.querySelector('[data-testid=result]')?.innerText.includes('at once')");
    call(&mut page, "fail");
    becomes(&mut page, "failed");
    assert!(page.text_of("[data-testid=task]").contains("it broke halfway"));
    call(&mut page, "ask");
    wait_for(&mut page, "document.querySelector('[data-testid=tray]')?.innerText.includes('Which name?')");
    fill(&mut page, "[data-testid=input-name]", "Ada");
    click(&mut page, "accept");
    becomes(&mut page, "completed");
    assert!(page.text_of("[data-testid=task-outcome]").contains("done for Ada"));
    // It is kept as a step that runs as a task.
    click(&mut page, "keep");
    page.click("[role=menuitem]");
    click(&mut page, "nav-saved");
    wait_for(&mut page, "document.querySelector('[data-testid=saved]').innerText.includes('task: true')");
    // Who cancels a task is not asked about it any more.
    call(&mut page, "ask");
    wait_for(&mut page, "document.querySelector('[data-testid=tray]')");
    click(&mut page, "cancel-task");
    becomes(&mut page, "cancelled");
    wait_for(&mut page, "!document.querySelector('[data-testid=tray]')");
    call(&mut page, "endless");
    wait_for(&mut page, "document.querySelector('[data-testid=task-message]')?.innerText === 'still at it'");
    click(&mut page, "cancel-task");
    becomes(&mut page, "cancelled");
    // A task without a result says nothing that a test could expect.
    assert_eq!(page.evaluate("document.querySelector('[data-testid=keep]')"), Value::Null);
    click(&mut page, "nav-tasks");
    wait_for(&mut page, "document.querySelector('[data-testid=items-tasks]').dataset.count === '5'");
    assert_eq!(violations(&mut page), json!([]));
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_task_ends_with_its_connection() {
    let (_inspector, mut page) = modern();
    call(&mut page, "endless");
    becomes(&mut page, "working");
    click(&mut page, "nav-overview");
    click(&mut page, "disconnect");
    wait_for(&mut page, "document.querySelector('[data-testid=overview]').dataset.status === 'closed'");
    click(&mut page, "nav-tasks");
    page.evaluate("document.querySelector('[data-testid=items-tasks] .row').click()");
    // What was known stays, and nobody offers to cancel what is gone.
    becomes(&mut page, "working");
    assert_eq!(page.evaluate("document.querySelectorAll('[data-testid=cancel-task], [data-testid=follow-task]').length"), 0);
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}
