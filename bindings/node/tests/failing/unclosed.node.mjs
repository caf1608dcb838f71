// Its tests pass; the file fails, for what was on the wire of the sessions that nobody closes.
import { it } from "node:test";
import { testClient } from "mcproof";

const faulty = [process.execPath, new URL("faulty.mjs", import.meta.url).pathname];

it("noise", async () => {
  await (await testClient(faulty)).call("noise");
});

it("sound until its end", async () => {
  await (await testClient([...faulty, "late"])).call("sound");
});

it("sound", async () => {
  await (await testClient(faulty)).call("sound");
});
