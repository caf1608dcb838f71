import { expect, test } from "vitest";
import { rootsOf, rootUri, writtenRoots } from "./roots";

test.each([
  ["/home/me/project", "file:///home/me/project"],
  ["/home/me/my project/ä", "file:///home/me/my%20project/%C3%A4"],
  [" /a/b#c?d ", "file:///a/b%23c%3Fd"],
  ["C:\\Users\\me", "file:///C:/Users/me"],
  ["file:///a%20b", "file:///a%20b"],
  ["FILE:///a", "file:///a"],
  ["file://host/share", "file://host/share"],
])("%s is a root", (typed, uri) => {
  expect(rootUri(typed)).toEqual({ uri });
});

test.each([["", "Type the path"], ["project", "whole path"], ["~/project", "whole path"], ["https://a/b", "`https:`"], ["file:a", "has a path"], ["file://a", "has a path"], ["file:///a b", "percent-encoded"], ["file:///a%zz", "percent-encoded"], ["//server/share", "whole path"]])("%s is none", (typed, said) => {
  expect((rootUri(typed) as { flaw: string }).flaw).toContain(said);
});

test("roots are written as suites have them", () => {
  const written = ["file:///a", { uri: "file:///b", name: "b" }];
  expect(rootsOf(written)).toEqual([{ uri: "file:///a" }, { uri: "file:///b", name: "b" }]);
  expect(writtenRoots(rootsOf(written))).toEqual(written);
  expect(rootsOf(undefined)).toEqual([]);
});
