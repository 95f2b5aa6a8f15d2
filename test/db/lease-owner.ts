/** A process that takes a lease and keeps it until it is killed: `lease-owner.ts <database URL> <lease> <ttl ms>`. */
import { createDatabase } from "#db/client.ts";
import { holdLease } from "#db/postgres/hold-lease.ts";

const [url = "", name = "", ttlMs = "0"] = process.argv.slice(2);
const onError = () => undefined;
const database = createDatabase({ url, max: 2, applicationName: "lease owner", onError });
const result = await holdLease(database, { name, ttlMs: Number(ttlMs) }, ({ fence }) => {
  process.send?.(fence);
  return new Promise<never>(() => undefined);
});
process.send?.(result);
