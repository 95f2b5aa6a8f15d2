/** The accounts of the platform, and whether their keys are accepted. */
import { z } from "zod";
import { readBudgets } from "#db/ingest/request-budgets.ts";
import { readZoneHealth } from "#db/proof/platform-health.ts";
import { isRefused } from "#jobs/health/conditions/service.ts";
import { showTime } from "#lib/format.ts";
import { ACCOUNT_STATES } from "#model/kinds.ts";
import { maySeeZone } from "#operations/caller.ts";
import { IsoTime, Name, toIsoOrNull } from "#operations/fields.ts";
import { defineQuery, type QueryContext } from "#operations/operation.ts";

const Account = z
  .object({
    name: Name.describe("default is the account of EDGE_API_KEY."),
    host: Name.nullable().describe("Where its requests go; null where only the service knows it."),
    zones: z.array(z.number().int()).describe("Those of the account that the key may see."),
    state: z
      .enum(ACCOUNT_STATES)
      .describe("refused: the platform refuses the key for a zone. paused: the platform has answered 429."),
    refusedSince: IsoTime.nullable(),
    polledThrough: IsoTime.nullable().describe("Until when the zone is polled that is polled least."),
    ratePerSecond: z.number().describe("The most requests per second, of all processes together."),
  })
  .meta({ id: "Account" });

export const listAccounts = defineQuery({
  name: "accounts.list",
  tab: "Accounts",
  summary: "List the accounts of the platform",
  description: "A key that the platform refuses stops the zones of its account only.",
  http: ["GET", "/api/v1/accounts"],
  tag: "Service",
  scope: "read",
  input: z.strictObject({}),
  output: z.object({ items: z.array(Account) }),
  command: {
    examples: ["accounts list", "accounts list --json"],
    help: "The configuration file has the accounts (docs/scaling.md). POLLED is that of the zone that is polled least.",
    columns: [
      { head: "ACCOUNT", get: ({ name }) => name },
      { head: "PLATFORM", get: ({ host }) => host ?? "-" },
      { head: "ZONES", get: ({ zones }) => String(zones.length) },
      { head: "STATE", get: ({ state }) => ({ text: state, style: state === "ok" ? "green" : "red" }) },
      {
        head: "POLLED (UTC)",
        get: ({ polledThrough: at }) => (at === null ? "-" : showTime(Date.parse(at))),
      },
      { head: "REQUESTS/S", get: ({ ratePerSecond }) => String(ratePerSecond) },
    ],
    empty: "No account.",
  },
  run: async (asked) => {
    const { caller } = asked;
    const accounts = await readAccounts(asked);
    const seen = accounts.filter(({ zones }) => caller.zoneIds === null || zones.length > 0);
    const items = seen.map(({ name, host, zones, isPaused, refusedSince, polledThrough, ratePerSecond }) => ({
      name,
      host,
      zones,
      state: refusedSince !== null ? ("refused" as const) : isPaused ? ("paused" as const) : ("ok" as const),
      refusedSince: toIsoOrNull(refusedSince),
      polledThrough: toIsoOrNull(polledThrough),
      ratePerSecond,
    }));
    return { items };
  },
});

type Asked = Pick<QueryContext, "db" | "now"> & {
  readonly caller?: QueryContext["caller"];
  readonly service: Pick<QueryContext["service"], "accounts">;
};

/** Returns the state of each account, over the zones that the caller may see. Times in epoch ms. */
export async function readAccounts({ db, now, caller, service }: Asked) {
  const accounts = service.accounts.map(({ zoneIds, ...account }) => {
    return { ...account, zones: zoneIds.filter((id) => caller === undefined || maySeeZone(caller, id)) };
  });
  const [budgets, health] = await Promise.all([
    readBudgets(
      db,
      accounts.map(({ budget }) => budget),
    ),
    readZoneHealth(
      db,
      accounts.flatMap(({ zones }) => zones),
    ),
  ]);
  return accounts.map(({ budget: { ratePerSecond }, ...account }, index) => {
    const own = health.filter(({ zoneId }) => account.zones.includes(zoneId));
    const refused = own
      .filter((zone) => isRefused(zone, now))
      .flatMap(({ refusedSince }) => refusedSince ?? []);
    const polled = own.map(({ polledThrough }) => polledThrough);
    return {
      ...account,
      ratePerSecond,
      tokens: budgets[index]?.tokens ?? null,
      isPaused: budgets[index]?.isPaused ?? false,
      refusedSince: refused.length === 0 ? null : Math.min(...refused),
      polledThrough: polled.includes(null) || polled.length === 0 ? null : Math.min(...polled.map(Number)),
    };
  });
}
