// Never ends: runner.test.ts kills vitest while it runs, and looks for what is left.
import { writeFileSync } from "node:fs";
import { startHttpServer, startStdioServer } from "mcproof/vitest";
import { it } from "vitest";

const script = (name: string): string => new URL(`../guide/dist/${name}.js`, import.meta.url).pathname;

it("waits for its death", async () => {
  const [stdio, http] = await Promise.all([startStdioServer(script("server-stdio")), startHttpServer(script("server-http"))]);
  writeFileSync(process.env["PIDS_FILE"] ?? "", JSON.stringify([process.pid, stdio.client.pid, http.client.pid]));
  // As long as it waits, its worker lives, whatever becomes of vitest.
  await new Promise((resolve) => setTimeout(resolve, 50_000));
});
