import { expect, test } from "vitest";
import { causesOf, NOTHING, type Facts } from "./apps";

const causes = (facts: Partial<Facts>) => causesOf({ ...NOTHING, proxy: true, frame: true, initialize: { appInfo: {}, appCapabilities: {}, protocolVersion: "2026-01-26" }, initialized: true, ...facts });
const drawn = { elements: 3, visible: true, height: 100, refused: false };

test("a library that tries eval is none of the causes, an app that needs it is", () => {
  const early = { directive: "script-src", url: "eval", late: false };
  expect(causes({ blocked: [early], drawn })).toEqual([]);
  expect(causes({ blocked: [{ ...early, late: true }], drawn }).map((cause) => cause.severity)).toEqual(["warning"]);
  const shown = causes({ blocked: [early, { ...early, late: true }], drawn: { ...drawn, refused: true } });
  expect(shown.map((cause) => [cause.id, cause.severity])).toEqual([["blocked", "error"]]);
  expect(shown[0]!.hint).toContain("the reference host and Claude allow it");
  expect(causes({ blocked: [early], initialized: false }).map((cause) => cause.severity)).toEqual(["error"]);
});

test("what the network refuses is not what the policy refuses", () => {
  const load = (url: string, own: boolean) => causes({ loadErrors: [{ tag: "script", url, own }] })[0]!.hint;
  expect(load("https://cdn.example/app.js", false)).toContain("the policy lets it through");
  expect(load("http://127.0.0.1:7001/id/app.js", true)).toContain("inline them");
  expect(load("data:image/png,x", false)).toContain("its data");
  expect(causes({ blocked: [{ directive: "script-src-elem", url: "https://cdn.example/app.js", late: false }], loadErrors: [{ tag: "script", url: "https://cdn.example/app.js", own: false }] }).map((cause) => cause.id)).toEqual(["blocked"]);
});

test("workers from blobs have their hosts named", () => {
  expect(causes({ blocked: [{ directive: "worker-src", url: "blob", late: true }] })[0]!.hint).toContain("VS Code (microsoft/vscode#331633) do not");
});
