export default { test: { include: ["failing/*.test.ts"], testTimeout: 60_000 } };
