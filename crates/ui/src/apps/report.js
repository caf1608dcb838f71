(() => {
  document.currentScript?.remove();
  const target = parent;
  let left = 100;
  const text = (value) => String(value).slice(0, 1000);
  const tell = (kind, facts) => {
    if (left-- > 0) target.postMessage({ "mcproof-report": { kind, ...facts } }, "*");
  };
  addEventListener("error", (event) => {
    const at = event.target;
    if (at && at !== window && at.tagName) tell("load-error", { tag: text(at.tagName).toLowerCase(), url: text(at.src || at.href || "") });
    else tell("script-error", { message: text(event.message), line: event.lineno, column: event.colno });
  }, true);
  addEventListener("unhandledrejection", (event) => tell("script-error", { message: text(event.reason && event.reason.message ? event.reason.message : event.reason) }));
  let looking = false;
  addEventListener("securitypolicyviolation", (event) => {
    tell("blocked", { directive: text(event.effectiveDirective), url: text(event.blockedURI), line: event.lineNumber });
    // What the app draws then may be the error.
    if (!looking) setTimeout(() => { looking = false; look(); }, 700);
    looking = true;
  });
  const look = () => {
    const SHOWN = /^(img|canvas|svg|video|audio|iframe|input|button|select|textarea|hr|progress|meter)$/i;
    const all = document.body ? [...document.body.querySelectorAll("*")].slice(0, 5000) : [];
    const seen = all.some((one) => SHOWN.test(one.tagName) && one.getClientRects().length > 0);
    const words = document.body ? document.body.innerText.trim() : "";
    const refused = /'unsafe-eval'|blocked by CSP/.test(words.slice(0, 100000));
    tell("drawn", { elements: all.length, visible: seen || words !== "", height: document.documentElement.scrollHeight, refused });
  };
  addEventListener("load", () => {
    look();
    setTimeout(look, 1500);
    setTimeout(look, 4000);
  });
})();
