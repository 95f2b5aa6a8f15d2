import { openAccounts } from "#app/open-accounts.ts";
import { accountsOf, type Config } from "#config/config.ts";
import type { Account } from "#config/file/accounts-entry.ts";
import type { Fact, PlatformFacts } from "#health/doctor/facts.ts";
import type { Secret } from "#lib/secret.ts";
import { HOUR_MS } from "#lib/units.ts";
import { labelAccount } from "#model/zones.ts";
import { apiKeyPages } from "#platform/account.ts";
import { createEdgeClient, type EdgeClient } from "#platform/edge-client.ts";
import { describePlatformFailure } from "../start/describe-failure.ts";

const TIMEOUT_MS = 15_000;
const MOST_KEY_PAGES = 20;

interface Asking {
  readonly nowMs: number;
  readonly onStep: (step: string) => void;
  /** The zones of an account that names none. */
  readonly zones: readonly number[];
}

/** Asks each account for its keys once, for each of its zones once, and for its clock. `databaseUrl` holds the request budgets. */
export async function gatherPlatform(
  config: Config,
  databaseUrl: Secret | null,
  asking: Asking,
): Promise<readonly PlatformFacts[]> {
  const accounts = accountsOf(config);
  const facts: PlatformFacts[] = [];
  for (const account of accounts) {
    const { account: name = null } = labelAccount(accounts, account.name);
    facts.push({ account: name, ...(await askAccount(account, databaseUrl, asking)) });
  }
  return facts;
}

async function askAccount(
  account: Account,
  databaseUrl: Secret | null,
  { nowMs, onStep, zones }: Asking,
): Promise<Omit<PlatformFacts, "account">> {
  const { url, key } = account;
  const { host } = new URL(url);
  const offsetMs = await readOffset(url);
  if (key === null) return { host, roles: { failed: "its key cannot be read here" }, zones: [], offsetMs };
  const timeoutMs = databaseUrl === null ? TIMEOUT_MS : undefined;
  const transport = openAccounts({ databaseUrl, timeoutMs, accounts: [{ ...account, key }] });
  try {
    const edge = createEdgeClient(transport, "low");
    onStep("asking the platform about the key");
    const roles = await readRoles(edge, key);
    const asked: PlatformFacts["zones"][number][] = [];
    for (const zoneId of account.zoneIds.length > 0 ? account.zoneIds : zones) {
      onStep(`asking the platform about zone ${zoneId}`);
      asked.push({ zoneId, failed: await trySearch(edge, zoneId, nowMs) });
    }
    return { host, roles, zones: asked, offsetMs };
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
