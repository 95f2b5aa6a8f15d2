import { openRequestGates } from "#app/open-accounts.ts";
import { createSecret } from "#lib/secret.ts";
import { createEdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";

/**
 * One replica that asks for page after page, four at a time, until its parent ends it:
 * node limited-replica.ts <zone> <database> <platform> <rate>. Says when it is ready and begins when told.
 */
const [zone = "", database = "", platform = "", rate = ""] = process.argv.slice(2);
process.once("disconnect", () => process.exit(0));
const { gates } = openRequestGates({
  databaseUrl: createSecret(database),
  accounts: [{ name: "default", requestsPerSecond: Number(rate) }],
  // Alone it would send what the test does not allow for.
  onUnshared: (error) => process.exit(error === null ? 0 : 1),
});
const edge = createEdgeClient(
  createEdgeTransport({ baseUrl: platform, accessKey: createSecret("key-of-the-replica"), gate: gates[0] }),
);

async function askForEver(): Promise<never> {
  for (;;) {
    const params = { shieldZoneId: Number(zone), date: "11-21-2026", continuationToken: null };
    await edge.listEventLogs(params).catch(() => undefined);
  }
}

process.once("message", () => {
  for (let count = 0; count < 4; count++) void askForEver();
});
process.send?.("ready");
