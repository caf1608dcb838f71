//! The shop: stock, orders and payment, and small tools for context, chains and concurrency.
//! Knows its own rules, not the transport.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{CallToolResult, ProgressNotificationParam, Tool},
    service::RequestContext,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    session::Session,
    tool::{Arguments, Declaration, Effect, ToolError, ToolResult, input, output, read, text, text_with_meta},
};

/// The one product that is in stock when the process starts, and how many of it.
const FIRST_STOCK: (&str, u64) = ("PROD-123", 10);

/// One shop per process: every session sees the same stock and the same orders.
pub(crate) struct Shop {
    counting: Counting,
    slow: Duration,
    ledger: Mutex<Ledger>,
    operations: AtomicU64,
}

/// How an order is taken out of the stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    Right,
    /// One too many, so that a suite has something to find.
    OneTooMany,
}

#[derive(Default)]
struct Ledger {
    stock: HashMap<String, u64>,
    orders: Vec<Order>,
    /// The processes that have run over each fetched data set, by the number in `data-N`.
    fetched: Vec<String>,
    processed: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Order {
    id: String,
    product_id: String,
    quantity: u64,
    status: &'static str,
    created_at: String,
}

impl Shop {
    pub(crate) fn new(counting: Counting, slow: Duration) -> Self {
        let (product, count) = FIRST_STOCK;
        let ledger = Ledger { stock: HashMap::from([(product.to_owned(), count)]), ..Ledger::default() };
        Self { counting, slow, ledger: Mutex::new(ledger), operations: AtomicU64::new(0) }
    }

    /// Calls the tool `name`; `None` if the shop has no such tool.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: Arguments,
        session: &Session,
        context: &RequestContext<RoleServer>,
    ) -> Option<ToolResult> {
        Some(match name {
            "check_inventory" => read(name, arguments).map(|arguments| self.check_inventory(&arguments)),
            "create_order" => read(name, arguments).and_then(|arguments| self.create_order(arguments)),
            "process_payment" => read(name, arguments).and_then(|arguments| self.process_payment(&arguments)),
            "set_context" => read(name, arguments).map(|arguments| set_context(arguments, session, context)),
            "get_context" => read(name, arguments).and_then(|arguments| get_context(&arguments, session, context)),
            "long_operation" => match read(name, arguments) {
                Ok(arguments) => self.long_operation(arguments, session, context).await,
                Err(error) => Err(error),
            },
            "fetch_data" => read(name, arguments).map(|arguments| self.fetch_data(arguments)),
            "process" => read(name, arguments).and_then(|arguments| self.process(&arguments)),
            "validate" => read(name, arguments).and_then(|arguments| self.validate(&arguments)),
            "calculate" => read(name, arguments).and_then(|arguments| calculate(&arguments)),
            _ => return None,
        })
    }

    fn check_inventory(&self, arguments: &Product) -> CallToolResult {
        let available = self.ledger().stock.get(&arguments.product_id).copied().unwrap_or(0);
        CallToolResult::structured(json!({ "available": available, "reserved": 0 }))
    }

    fn create_order(&self, arguments: NewOrder) -> ToolResult {
        if arguments.quantity == 0 {
            return Err("Quantity must be at least 1".into());
        }
        let mut ledger = self.ledger();
        let id = format!("ORD-{}", ledger.orders.len() + 1);
        let Some(stock) = ledger.stock.get_mut(&arguments.product_id).filter(|stock| **stock >= arguments.quantity) else {
            return Err("Insufficient inventory".into());
        };
        let taken = match self.counting {
            Counting::Right => arguments.quantity,
            Counting::OneTooMany => arguments.quantity.saturating_add(1),
        };
        *stock = stock.saturating_sub(taken);
        let order = Order {
            id,
            product_id: arguments.product_id,
            quantity: arguments.quantity,
            status: "pending",
            created_at: jiff::Timestamp::now().to_string(),
        };
        let answer = json!(order);
        ledger.orders.push(order);
        Ok(CallToolResult::structured(answer))
    }

    fn process_payment(&self, arguments: &Payment) -> ToolResult {
        if arguments.amount < 0.0 {
            return Err("Amount must not be negative".into());
        }
        let mut ledger = self.ledger();
        let Some(order) = ledger.orders.iter_mut().find(|order| order.id == arguments.order_id) else {
            return Err("Order not found".into());
        };
        if order.status == "paid" {
            return Err("Order is already paid".into());
        }
        order.status = "paid";
        Ok(CallToolResult::structured(json!({ "status": "success", "transaction_id": "TXN-12345" })))
    }

    /// Takes its time in two halves and reports the first one, if the caller asked for progress.
    async fn long_operation(&self, arguments: Operation, session: &Session, context: &RequestContext<RoleServer>) -> ToolResult {
        let number = self.operations.fetch_add(1, Ordering::Relaxed) + 1;
        let half = self.slow / 2;
        let work = async {
            tokio::time::sleep(half).await;
            if let Some(token) = context.meta.get_progress_token() {
                let progress = ProgressNotificationParam::new(token, 1.0).with_total(2.0);
                // A peer that has gone is noticed when the answer is sent.
                let _gone = context.peer.notify_progress(progress).await;
            }
            tokio::time::sleep(half).await;
        };
        tokio::select! {
            () = work => {}
            () = context.ct.cancelled() => return Err("Cancelled".into()),
            () = session.phase().closed() => return Err("Cancelled".into()),
        }
        let meta = json!({ "operation_id": format!("op-{number}") });
        Ok(text_with_meta(format!("Complete {}", arguments.id), meta))
    }

    fn fetch_data(&self, arguments: Source) -> CallToolResult {
        let mut ledger = self.ledger();
        ledger.fetched.push(arguments.source);
        text(format!("data-{}", ledger.fetched.len()))
    }

    fn process(&self, arguments: &Process) -> ToolResult {
        let mut ledger = self.ledger();
        if !is_member(&arguments.data_id, "data-", ledger.fetched.len()) {
            return Err(ToolError(format!("Data not found: {}", arguments.data_id)));
        }
        ledger.processed.push(arguments.data_id.clone());
        let meta = json!({ "process_id": format!("proc-{}", ledger.processed.len()) });
        Ok(text_with_meta(format!("Applied {} to {}", arguments.operation, arguments.data_id), meta))
    }

    fn validate(&self, arguments: &Validate) -> ToolResult {
        if !is_member(&arguments.process_id, "proc-", self.ledger().processed.len()) {
            return Err(ToolError(format!("Process not found: {}", arguments.process_id)));
        }
        let meta = json!({ "status": "success", "context_preserved": true });
        Ok(text_with_meta(format!("{} is valid", arguments.process_id), meta))
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether `id` is one of `prefix1` … `prefixCOUNT`.
fn is_member(id: &str, prefix: &str, count: usize) -> bool {
    id.strip_prefix(prefix).and_then(|number| number.parse::<usize>().ok()).is_some_and(|number| (1..=count).contains(&number))
}

fn set_context(arguments: Entry, session: &Session, context: &RequestContext<RoleServer>) -> CallToolResult {
    let answer = text(format!("Stored {}", arguments.key));
    session.notes(context).insert(arguments.key, arguments.value);
    answer
}

fn get_context(arguments: &Key, session: &Session, context: &RequestContext<RoleServer>) -> ToolResult {
    match session.notes(context).get(&arguments.key) {
        Some(value) => Ok(text(value)),
        None => Err(ToolError(format!("No value for key: {}", arguments.key))),
    }
}

fn calculate(arguments: &Operands) -> ToolResult {
    match arguments.a.checked_add(arguments.b) {
        Some(sum) => Ok(text(format!("Result: {sum}"))),
        None => Err("The sum is too large".into()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Product {
    product_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewOrder {
    product_id: String,
    quantity: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payment {
    order_id: String,
    amount: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    key: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    id: OperationId,
}

/// A number or a text, echoed as it reads.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct OperationId(String);

impl TryFrom<Value> for OperationId {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) if !number.is_f64() => Ok(Self(number.to_string())),
            _ => Err("id must be an integer or a string"),
        }
    }
}

impl std::fmt::Display for OperationId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Process {
    data_id: String,
    operation: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Validate {
    process_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operands {
    a: i64,
    b: i64,
}

/// What the shop declares.
pub(crate) fn tools() -> Vec<Tool> {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let integer = |description: &str| json!({ "type": "integer", "description": description });
    let product = text("The product, such as PROD-123");
    [
        Declaration {
            name: "check_inventory",
            title: "Check inventory",
            description: "Tells how many of a product can be ordered. An unknown product has none.",
            effect: Effect::Reads,
            input: input(json!({ "product_id": product }), &["product_id"]),
            output: Some(output(
                json!({
                    "available": { "type": "integer", "minimum": 0 },
                    "reserved": { "type": "integer", "minimum": 0 },
                }),
                &["available", "reserved"],
            )),
        },
        Declaration {
            name: "create_order",
            title: "Create order",
            description: "Orders a quantity of a product and takes it out of the stock.",
            effect: Effect::Adds,
            input: input(
                json!({
                    "product_id": product,
                    "quantity": { "type": "integer", "minimum": 1, "description": "How many to order" },
                }),
                &["product_id", "quantity"],
            ),
            output: Some(output(
                json!({
                    "id": { "type": "string", "pattern": "^ORD-[0-9]+$" },
                    "product_id": { "type": "string" },
                    "quantity": { "type": "integer", "minimum": 1 },
                    "status": { "type": "string", "enum": ["pending", "paid"] },
                    "created_at": { "type": "string", "format": "date-time" },
                }),
                &["id", "product_id", "quantity", "status", "created_at"],
            )),
        },
        Declaration {
            name: "process_payment",
            title: "Process payment",
            description: "Pays for an order that is still pending.",
            effect: Effect::Adds,
            input: input(
                json!({
                    "order_id": text("The order, such as ORD-1"),
                    "amount": { "type": "number", "minimum": 0, "description": "What is paid" },
                }),
                &["order_id", "amount"],
            ),
            output: Some(output(
                json!({
                    "status": { "type": "string", "enum": ["success"] },
                    "transaction_id": { "type": "string" },
                }),
                &["status", "transaction_id"],
            )),
        },
        Declaration {
            name: "set_context",
            title: "Set context",
            description: "Stores a value under a key: for the session, or for the whole process in a \
                          revision without sessions.",
            effect: Effect::Sets,
            input: input(json!({ "key": text("The name of the value"), "value": text("What to store") }), &["key", "value"]),
            output: None,
        },
        Declaration {
            name: "get_context",
            title: "Get context",
            description: "Returns the value that set_context stored under a key.",
            effect: Effect::Reads,
            input: input(json!({ "key": text("The name of the value") }), &["key"]),
            output: None,
        },
        Declaration {
            name: "long_operation",
            title: "Long operation",
            description: "Takes its time, then answers with an operation id of its own in `_meta`.",
            effect: Effect::Reads,
            input: input(
                json!({
                    "id": { "type": ["integer", "string"], "description": "Repeated in the answer" },
                }),
                &["id"],
            ),
            output: None,
        },
        Declaration {
            name: "fetch_data",
            title: "Fetch data",
            description: "Fetches data from a source and answers with its data id.",
            effect: Effect::Adds,
            input: input(json!({ "source": text("Where from, such as database") }), &["source"]),
            output: None,
        },
        Declaration {
            name: "process",
            title: "Process data",
            description: "Applies an operation to fetched data; the process id is in `_meta`.",
            effect: Effect::Adds,
            input: input(
                json!({
                    "data_id": text("What fetch_data answered"),
                    "operation": text("What to apply, such as transform"),
                }),
                &["data_id", "operation"],
            ),
            output: None,
        },
        Declaration {
            name: "validate",
            title: "Validate a process",
            description: "Confirms in `_meta` that a process is known and kept its context.",
            effect: Effect::Reads,
            input: input(json!({ "process_id": text("The process id that process answered") }), &["process_id"]),
            output: None,
        },
        Declaration {
            name: "calculate",
            title: "Calculate",
            description: "Adds two integers.",
            effect: Effect::Reads,
            input: input(json!({ "a": integer("The first"), "b": integer("The second") }), &["a", "b"]),
            output: None,
        },
    ]
    .map(Tool::from)
    .into()
}
