// Stands between the page and the app (MCP Apps, sandbox proxy): passes JSON-RPC messages on, and tells the page what the app's frame reports.
"use strict";
(() => {
  const RESERVED = "ui/notifications/sandbox-";
  const frame = document.createElement("iframe");
  const tell = (name, params) => parent.postMessage({ jsonrpc: "2.0", method: RESERVED + name, params }, "*");
  let reports = 400;
  const report = (facts) => {
    if (reports-- > 0) tell("report", facts);
  };
  const is = (value) => typeof value === "object" && value !== null;

  addEventListener("securitypolicyviolation", (event) => {
    if (event.effectiveDirective === "frame-src") report({ kind: "left", url: String(event.blockedURI).slice(0, 500) });
  });
  addEventListener("message", (event) => {
    const message = event.data;
    if (event.source === parent) {
      const method = is(message) && typeof message.method === "string" ? message.method : "";
      if (method === RESERVED + "resource-ready") {
        if (frame.src === "") {
          frame.src = location.pathname + "/view";
          frame.addEventListener("load", () => report({ kind: "frame-loaded" }));
        }
      } else if (!method.startsWith(RESERVED)) frame.contentWindow?.postMessage(message, "*");
      return;
    }
    if (event.source !== frame.contentWindow) return;
    if (is(message) && is(message["mcproof-report"])) report(message["mcproof-report"]);
    else if (is(message) && message.jsonrpc === "2.0") {
      if (typeof message.method !== "string" || !message.method.startsWith(RESERVED)) parent.postMessage(message, "*");
      else report({ kind: "reserved", method: message.method.slice(0, 200) });
    } else {
      let text = String(message);
      try {
        text = JSON.stringify(message) ?? text;
      } catch {
        // It has no JSON form.
      }
      report({ kind: "other-message", text: text.slice(0, 500) });
    }
  });

  document.addEventListener("DOMContentLoaded", () => {
    for (const element of [document.documentElement, document.body, frame]) element.style.cssText = "margin:0;border:0;padding:0;width:100%;height:100%;display:block;overflow:hidden;background:transparent";
    // The policy of what is loaded says the same again, so that the app cannot change it here.
    frame.setAttribute("sandbox", "allow-scripts allow-forms allow-same-origin");
    frame.setAttribute("allow", "clipboard-write");
    frame.title = "app";
    document.body.append(frame);
    tell("proxy-ready", {});
  });
})();
