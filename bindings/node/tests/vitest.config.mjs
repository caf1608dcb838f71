export default {
  test: { include: ["*.test.ts", "guide/**/*.e2e.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
};
