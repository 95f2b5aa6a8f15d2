import { z } from "zod";
import { DAY_MS } from "#lib/units.ts";
import { apiKeyPages } from "#platform/account.ts";
import { ApiKeyListQuery, HostnameKeyTypeRequest, KEY_TYPES } from "#platform/contract/account.ts";
import { ApplicationUpdateRequest, ContainerTemplateRequest } from "#platform/contract/containers.ts";
import { EventLogsExportRequest, EventLogsSearchRequest } from "#platform/contract/event-logs.ts";
import { eventLogPages, parseLogDay, toLogDay } from "#platform/list-event-logs.ts";
import { searchPages } from "#platform/search-event-logs.ts";
import type { AddCall } from "./edge.ts";
import { writeJoinedPages, writeText } from "./edge-io.ts";
import { limitItems, maskKey, toPages, untilStalled } from "./pages.ts";
import { byMembers, byWindow } from "./read-search.ts";

/** The longest time that the platform may send nothing during an export. */
const IDLE_MS = 30_000;

const { shape: TEMPLATE } = ContainerTemplateRequest;
const { shape: APPLICATION } = ApplicationUpdateRequest;

const zone = idOf("a shield zone's number", "zone").describe("shield zone");
const rule = textOf("a rule's id", "rule").describe("rule");
const app = textOf("an application's id", "app").describe("application");
const pageAll = z.boolean().default(false).describe("follow all pages and join them");

const KeyType = z
  .string()
  .toLowerCase()
  .pipe(z.enum(["ecdsa", "0", "rsa", "1"], "must be ecdsa (0) or rsa (1)"))
  .transform((word) => (word === "ecdsa" || word === "0" ? KEY_TYPES.ecdsa : KEY_TYPES.rsa));

const Variable = z
  .string()
  .regex(/^[^=]+=/, "must be NAME=value")
  .transform((pair) => {
    const [name = ""] = pair.split("=", 1);
    return { name, value: pair.slice(name.length + 1) };
  });

/** A day as it is typed, or the time at which a relative day begins. */
const Day = z.string().transform((text, context) => {
  const startsAt = parseLogDay(text) ?? (/^\d{4}-/.test(text) ? Date.parse(text) : Number.NaN);
  if (startsAt % DAY_MS === 0) return toLogDay(startsAt);
  context.addIssue("must be a UTC day: MM-dd-yyyy, yyyy-MM-dd, today or yesterday");
  return z.NEVER;
});

/** Adds the commands of the eleven calls of the platform's contract, each with the flags of its parameters. */
export function addCalls(add: AddCall): void {
  add(
    {
      name: "api-keys list",
      summary: "List the account's API keys. Without --reveal each key is masked.",
      examples: [
        "api-keys list",
        "api-keys list --reveal",
        "api-keys list --page 2 --per-page 50",
        "api-keys list --page-all",
      ],
    },
    byMembers(
      z.strictObject({
        page: ApiKeyListQuery.shape.page.describe("page to show, from 1"),
        perPage: ApiKeyListQuery.shape.perPage.describe("keys per page, 5 to 1000"),
        pageAll,
        reveal: z.boolean().default(false).describe("print the keys unmasked"),
      }),
    ),
    async ({ listApiKeys }, { pageAll, reveal, ...query }, { io }) => {
      const list: typeof listApiKeys = async (...asked) => {
        const page = await listApiKeys(...asked);
        return reveal ? page : { ...page, Items: page.Items.map(maskKey) };
      };
      if (!pageAll) return list(query);
      return writeJoinedPages(io.stdout, "Items", untilStalled(apiKeyPages(list, query), "Items"));
    },
  );
  add(
    {
      name: "hostname set-key-type",
      summary: "Change the private key type of a hostname's certificate.",
      examples: [
        "hostname set-key-type --pull-zone 1001 --hostname www.example.test --key-type ecdsa",
        "hostname set-key-type --pull-zone 1001 --body key-type.json",
      ],
    },
    byMembers(
      z.strictObject({
        pullZoneId: idOf("a pull zone's number", "pull-zone").describe("pull zone"),
        request: z.strictObject({
          Hostname: textOf("a hostname", "hostname", "name").describe("hostname"),
          KeyType: KeyType.meta({ flag: "key-type", place: "type" }).describe("ecdsa (0) or rsa (1)"),
        }),
      }),
      { schema: HostnameKeyTypeRequest, help: "the request as JSON {Hostname, KeyType}" },
    ),
    async (client, params) => {
      await client.setHostnameKeyType(params);
      return params.request;
    },
  );
  add(
    {
      name: "dns-zone check",
      summary: "Show whether a DNS zone name is available.",
      examples: ["dns-zone check --name example.test"],
    },
    byMembers(z.strictObject({ Name: textOf("a zone name", "name", "name").describe("zone name") })),
    (client, params) => client.checkDnsZone(params),
  );
  add(
    {
      name: "containers add",
      summary: "Add a container template to an application.",
      examples: [
        "containers add --app a1B2c3D4e5F6g7H --name web --image-name nginx --image-namespace library --image-tag 1.29 --image-registry-id 12",
        "containers add --app a1B2c3D4e5F6g7H --body container.json",
      ],
    },
    byMembers(
      z.strictObject({
        appId: app,
        request: z.strictObject({
          name: TEMPLATE.name.describe("container name"),
          imageName: TEMPLATE.imageName.describe("image name"),
          imageNamespace: TEMPLATE.imageNamespace.describe("image namespace"),
          imageTag: TEMPLATE.imageTag.describe("image tag"),
          imageRegistryId: TEMPLATE.imageRegistryId.describe("image registry"),
          environmentVariables: z
            .array(Variable)
            .optional()
            .meta({ flag: "env", place: "name=value" })
            .describe("environment variable (repeatable)"),
        }),
      }),
      { schema: ContainerTemplateRequest, help: "the whole request as JSON" },
    ),
    (client, params) => client.addContainer(params),
  );
  add(
    {
      name: "apps update",
      summary:
        "Replace the whole configuration of an application. The platform resets every member that the request leaves out, so use --body unless the flags cover everything.",
      examples: [
        "apps update --app a1B2c3D4e5F6g7H --body app.json",
        "apps update --app a1B2c3D4e5F6g7H --body - < app.json",
        "apps update --app a1B2c3D4e5F6g7H --name shop --min 1 --max 3 --regions DE,UK",
      ],
    },
    byMembers(
      z.strictObject({
        appId: app,
        request: z.strictObject({
          name: APPLICATION.name.describe("application name"),
          runtimeType: APPLICATION.runtimeType.describe("shared or reserved"),
          autoScaling: z.strictObject({
            min: APPLICATION.autoScaling.shape.min.describe("smallest number of instances"),
            max: APPLICATION.autoScaling.shape.max.describe("largest number of instances"),
          }),
          regionSettings: z
            .strictObject({
              allowedRegionIds: z
                .string()
                .transform((text) => text.split(","))
                .optional()
                .meta({ flag: "regions" })
                .describe("allowed regions, separated by commas"),
            })
            .prefault({}),
        }),
      }),
      { schema: ApplicationUpdateRequest, help: "the whole configuration as JSON" },
    ),
    (client, params) => client.updateApplication(params),
  );
  add(
    {
      name: "volumes delete",
      summary: "Delete all instances of a volume with their data. Every instance must be detached.",
      examples: ["volumes delete --app a1B2c3D4e5F6g7H --volume data"],
    },
    byMembers(
      z.strictObject({
        appId: app,
        volumeId: textOf("a volume template's id", "volume").describe("volume template"),
      }),
    ),
    (client, params) => client.deleteVolumeInstances(params),
  );
  add(
    {
      name: "events list",
      summary: "Show one UTC day of the log, page by page.",
      examples: [
        "events list --zone 101 --date 11-20-2026",
        "events list --zone 101 --date yesterday --page-all",
        "events list --zone 101 --date today --token 'Zm9v/YmFy='",
      ],
    },
    byMembers(
      z.strictObject({
        shieldZoneId: zone,
        date: Day.meta({ time: true, place: "day" }).describe(
          "UTC day: MM-dd-yyyy, yyyy-MM-dd, today or yesterday",
        ),
        continuationToken: textOf("a continuation token", "token", "token")
          .nullable()
          .default(null)
          .describe("continuation token of the previous page"),
        pageAll: pageAll.describe("follow the tokens to the end and join the pages"),
      }),
    ),
    async ({ listEventLogs }, { pageAll, ...params }, { io }) => {
      if (!pageAll) return (await listEventLogs(params)).page;
      const follow = async function* () {
        for await (const { page, looped } of eventLogPages(listEventLogs, params)) {
          if (looped) {
            io.stderr.write(
              "longwatch edge: the platform repeated a continuation token; the list may be incomplete\n",
            );
            io.setExitCode(1);
          }
          yield page;
        }
      };
      return writeJoinedPages(io.stdout, "logs", untilStalled(follow(), "logs"));
    },
  );
  add(
    {
      name: "events search",
      summary: "Search, filter and group events.",
      examples: [
        "events search --zone 101 --from -2h --limit 10",
        "events search --zone 101 --from -24h --filter ip:cidr:203.0.113.0/24 --filter action:in:block,challenge",
        "events search --zone 101 --from -72h --group-by ruleId --buckets 72 --page-all",
      ],
    },
    byWindow(EventLogsSearchRequest, { isSearch: true }),
    async ({ searchEventLogs }, { limit, pageAll, ...params }, { io }) => {
      if (limit === undefined && !pageAll) return (await searchEventLogs(params)).page;
      const member = (params.request.groupBy ?? []).length > 0 ? "groups" : "rows";
      const follow = async function* () {
        for await (const { page } of searchPages(searchEventLogs, params)) yield page;
      };
      const pages = limitItems(untilStalled(follow(), member), member, limit);
      return writeJoinedPages(io.stdout, member, pages);
    },
  );
  add(
    {
      name: "events export",
      summary:
        "Export events as CSV. Visitors control many of the values: a spreadsheet may run cells that begin with =, +, - or @.",
      examples: [
        "events export --zone 101 --from -72h > events.csv",
        "events export --zone 101 --from 2026-11-20T00:00Z --to 2026-11-20T06:00Z --filter country:eq:NL",
        "events export --zone 101 --from -1h --json",
      ],
      json: "print JSON: one item per row, with the column names of the header",
    },
    byWindow(EventLogsExportRequest, { isSearch: false }),
    async (client, { shieldZoneId, request }, { io, isJson, typedTimeoutMs }) => {
      // Without --timeout, an export has no total limit.
      const limits = typedTimeoutMs !== null && {
        limits: { idleTimeoutMs: Math.min(typedTimeoutMs, IDLE_MS), timeoutMs: typedTimeoutMs },
      };
      const { csv } = await client.exportEventLogs({ shieldZoneId, request, ...limits });
      if (isJson) return writeJoinedPages(io.stdout, "items", toPages(csv));
      return writeText(io.stdout, csv);
    },
  );
  add(
    {
      name: "rules recommend",
      summary: "Ask the platform's AI about a triggered rule. The answer takes seconds.",
      examples: ["rules recommend --zone 101 --rule 942100"],
    },
    byMembers(z.strictObject({ shieldZoneId: zone, ruleId: rule })),
    (client, params) => client.getRecommendation(params),
  );
  add(
    {
      name: "rules metrics",
      summary: "Show the platform's own counts of a rule over the past 28 days.",
      examples: ["rules metrics --zone 101 --rule 942100"],
    },
    byMembers(z.strictObject({ shieldZoneId: zone, ruleId: rule })),
    (client, params) => client.getRuleMetrics(params),
  );
}

function idOf(what: string, flag: string) {
  const error = `must be ${what}`;
  return z.int(error).min(1, error).max(2_147_483_647, error).meta({ flag, place: "id" });
}

function textOf(what: string, flag: string, place = "id") {
  return z.string().min(1, `must be ${what}`).meta({ flag, place });
}
