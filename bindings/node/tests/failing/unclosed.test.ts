// Its test passes; the file fails, for what comes when the session ends that nobody closes.
import { it } from "vitest";
import { testClient } from "mcproof/vitest";

const faulty = [process.execPath, new URL("faulty.mjs", import.meta.url).pathname, "late"];

it("sound until its end", async () => {
  await (await testClient(faulty)).call("sound");
});
