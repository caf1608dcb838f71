//! Whoever is told: a receiver of pages that writes down what arrives, and when.

use super::weather::Hour;
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// One page as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// In milliseconds of the day.
    pub(crate) hour: i64,
    /// `trigger` or `resolve`.
    pub(crate) action: String,
    pub(crate) key: String,
    /// Of a trigger: who, and what kind of trouble.
    pub(crate) subject: String,
    pub(crate) class: String,
}

#[derive(Clone)]
pub(crate) struct People {
    hour: Hour,
    told: Arc<Mutex<Vec<Told>>>,
}

impl People {
    /// They listen as PagerDuty does (Events API v2), at the URL that comes with them.
    pub(crate) async fn listen(hour: &Hour) -> (Self, String) {
        let people = Self { hour: hour.clone(), told: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v2/enqueue", listener.local_addr().unwrap());
        let router = Router::new().route("/v2/enqueue", post(hear)).with_state(people.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (people, url)
    }

    pub(crate) fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }
}

async fn hear(State(people): State<People>, Json(body): Json<Value>) -> Json<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (action, key) = (text(&body["event_action"]), text(&body["dedup_key"]));
    let payload = &body["payload"];
    let (subject, class) = (text(&payload["source"]), text(&payload["class"]));
    let told = Told { hour: people.hour.get(), action, key: key.clone(), subject, class };
    people.told.lock().unwrap().push(told);
    Json(json!({ "status": "success", "message": "Event processed", "dedup_key": key }))
}
