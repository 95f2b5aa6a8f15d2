import { type Config, requireEdge } from "#config/config.ts";
import type { Fact, PlatformFacts } from "#health/doctor/facts.ts";
import type { Secret } from "#lib/secret.ts";
import { HOUR_MS } from "#lib/units.ts";
import { apiKeyPages } from "#platform/account.ts";
import { createEdgeClient, type EdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import { withEdge } from "../edge/open-edge.ts";
import { describePlatformFailure } from "../start/describe-failure.ts";

const TIMEOUT_MS = 15_000;
const MOST_KEY_PAGES = 20;

/** Asks the platform for its keys once, for each zone once, and for its clock. `databaseUrl` holds the request budget. */
export async function gatherPlatform(
  config: Config,
  databaseUrl: Secret | null,
  { nowMs, onStep }: { readonly nowMs: number; readonly onStep: (step: string) => void },
): Promise<PlatformFacts | null> {
  const { url, key, zones } = config.edge;
  if (url === null || key === null) return null;
  const offsetMs = await readOffset(url);
  const ask = async (edge: EdgeClient): Promise<PlatformFacts> => {
    onStep("asking the platform about the key");
    const roles = await readRoles(edge, key);
    const asked: PlatformFacts["zones"][number][] = [];
    for (const zoneId of zones) {
      onStep(`asking the platform about zone ${zoneId}`);
      asked.push({ zoneId, failed: await trySearch(edge, zoneId, nowMs) });
    }
    return { host: new URL(url).host, roles, zones: asked, offsetMs };
  };
  if (databaseUrl !== null) return withEdge(config, databaseUrl, ask);
  const transport = createEdgeTransport({ ...requireEdge(config), timeoutMs: TIMEOUT_MS });
  try {
    return await ask(createEdgeClient(transport));
  } finally {
    await transport.close();
  }
}

async function readRoles(edge: EdgeClient, key: Secret): Promise<PlatformFacts["roles"]> {
  try {
    let pages = 0;
    for await (const { Items } of apiKeyPages(edge.listApiKeys, {})) {
      const own = Items.find(({ Key }) => Key === key.reveal());
      if (own !== undefined) return { value: own.Roles };
      pages += 1;
      if (pages === MOST_KEY_PAGES) break;
    }
    return { value: null };
  } catch (thrown) {
    return { failed: describePlatformFailure(thrown) };
  }
}

async function trySearch(edge: EdgeClient, shieldZoneId: number, nowMs: number): Promise<string | null> {
  try {
    await edge.searchEventLogs({ shieldZoneId, request: { from: nowMs - HOUR_MS, to: nowMs, pageSize: 1 } });
    return null;
  } catch (thrown) {
    return describePlatformFailure(thrown);
  }
}

/** Reads the header Date of an answer to a request without the key. */
async function readOffset(url: string): Promise<Fact<number>> {
  try {
    const before = Date.now();
    const { headers } = await fetch(url, {
      method: "HEAD",
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const middle = (before + Date.now()) / 2;
    const at = Date.parse(headers.get("date") ?? "");
    // The header is cut to whole seconds.
    return Number.isNaN(at) ? { failed: "its answer has no header Date" } : { value: at + 500 - middle };
  } catch {
    return { failed: "it did not answer" };
  }
}
