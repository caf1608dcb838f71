import { expect, test } from "vitest";
import { flaws } from "./schema";
import { localTime, withOffset } from "./text";

test("a picked time is the time of the browser, and says its offset", () => {
  for (const local of ["2026-03-01T10:20", "2026-07-01T23:59:30", "2026-12-31T00:00"]) {
    const sent = withOffset(local);
    expect(new Date(sent).getTime()).toBe(new Date(local).getTime());
    expect(localTime(sent)).toBe(local);
    expect(flaws({ type: "string", format: "date-time" }, sent)).toEqual([]);
  }
  const utc = new Date(Date.UTC(2026, 0, 31, 12, 0, 5));
  expect(new Date(localTime("2026-01-31T12:00:05Z")).getTime()).toBe(utc.getTime());
  const east = { getTimezoneOffset: () => -330 } as Date;
  expect([withOffset("10:20", east), withOffset("10:20:05", { getTimezoneOffset: () => 300 } as Date)]).toEqual(["10:20:00+05:30", "10:20:05-05:00"]);
  expect(flaws({ type: "string", format: "time" }, withOffset("10:20"))).toEqual([]);
  expect([localTime("10:20:00Z"), localTime(""), localTime("soon"), localTime("2026-01-31")]).toEqual(["10:20", "", "", ""]);
});
