// Ends its process while a session is open.
import { testClient } from "mcproof";

await (await testClient([process.execPath, new URL("faulty.mjs", import.meta.url).pathname])).call("noise");
process.exit(0);
