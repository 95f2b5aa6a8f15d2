/** The accounts of the platform, and whether their keys are accepted. */
import { z } from "zod";
import { readBudgets } from "#db/ingest/request-budgets.ts";
import { readZoneHealth } from "#db/proof/platform-health.ts";
import { isRefused } from "#jobs/health/conditions/service.ts";
import { showTime } from "#lib/format.ts";
import { maySeeZone } from "#operations/caller.ts";
import { IsoTime, Name, toIso, toIsoOrNull } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";

const Account = z
  .object({
    name: Name.describe("default is the account of EDGE_API_KEY."),
    host: Name.describe("Where its requests go."),
    zones: z.array(z.number().int()).describe("Those of the account that the key may see."),
    state: z
      .enum(["ok", "refused", "paused"])
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
      { head: "PLATFORM", get: ({ host }) => host },
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
  run: async ({ db, now, caller, service }) => {
    const accounts = service.accounts
      .map((account) => ({ ...account, seen: account.zoneIds.filter((id) => maySeeZone(caller, id)) }))
      .filter(({ seen }) => caller.zoneIds === null || seen.length > 0);
    const budgets = await readBudgets(
      db,
      accounts.map(({ budget }) => budget),
    );
    const health = await readZoneHealth(
      db,
      accounts.flatMap(({ seen }) => seen),
    );
    const items = accounts.map(({ name, host, seen, budget }, index) => {
      const zones = health.filter(({ zoneId }) => seen.includes(zoneId));
      const refused = zones
        .filter((zone) => isRefused(zone, now))
        .flatMap(({ refusedSince }) => refusedSince ?? []);
      const polled = zones.map(({ polledThrough }) => polledThrough ?? 0);
      const least = polled.length === 0 ? 0 : Math.min(...polled);
      const isPaused = budgets[index]?.isPaused === true;
      return {
        name,
        host,
        zones: seen,
        state: refused.length > 0 ? ("refused" as const) : isPaused ? ("paused" as const) : ("ok" as const),
        refusedSince: refused.length === 0 ? null : toIso(Math.min(...refused)),
        polledThrough: toIsoOrNull(least === 0 ? null : least),
        ratePerSecond: budget.ratePerSecond,
      };
    });
    return { items };
  },
});
