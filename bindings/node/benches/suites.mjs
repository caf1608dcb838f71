// What 240 tests over stdio cost under vitest, from its start to its end: written with the TypeScript SDK, and with this package
// (see suites/e2e.test.mjs). Against a server in Rust that starts at once, and one of the TypeScript SDK. Rounds are paired.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { binary } from "mcproof";

const here = dirname(fileURLToPath(import.meta.url));
const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
// The second takes minutes: it is its starts that take so long, and they differ little from round to round.
const servers = [
  { name: "Rust server", rounds: 3, server: [binary(), "demo", "tracker"] },
  { name: "TypeScript server", rounds: 1, server: [process.execPath, join(here, "../guide/dist/server-stdio.js")] },
];

for (const { name, rounds, server } of servers) {
  const walls = { sdk: [], fresh: [], shared: [] };
  for (let round = 0; round < rounds; round += 1) {
    for (const way of Object.keys(walls)) {
      walls[way].push(run(way, server));
    }
  }
  const [sdk, ...ours] = Object.entries(walls).map(([way, each]) => [way, each.sort((a, b) => a - b)[Math.floor(each.length / 2)]]);
  console.log(`${name}: 240 tests with the SDK, a server each: ${sdk[1].toFixed(1)} s`);
  for (const [way, seconds] of ours) {
    console.log(`  mcproof, ${way === "fresh" ? "a server each" : "one server, at once"}: ${seconds.toFixed(1)} s, ratio ${(seconds / sdk[1]).toFixed(2)}`);
  }
}

function run(way, server) {
  const started = performance.now();
  const { status, stdout, stderr } = spawnSync(process.execPath, [vitest, "run", "--root", join(here, "suites")], {
    env: { ...process.env, WAY: way, SERVER: JSON.stringify(server) },
    encoding: "utf8",
  });
  if (status !== 0 || !stdout.replace(/\x1b\[\d+m/g, "").includes("Tests  240 passed")) {
    throw new Error(`${way} failed\n${stdout}\n${stderr}`);
  }
  return (performance.now() - started) / 1000;
}
