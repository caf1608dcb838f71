export default { test: { include: ["*.test.mjs"], testTimeout: 60_000, hookTimeout: 60_000, maxConcurrency: 20 } };
