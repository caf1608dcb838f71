// Node.js 20 has no test runner for TypeScript of its own; vitest takes it as it is.
export default {
  test: { include: ["**/*.test.ts", "**/*.e2e.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
};
