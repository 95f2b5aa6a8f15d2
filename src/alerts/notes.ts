import { z } from "zod";
import { maskText } from "#archive/rules/mask.ts";
import { deleteNote, insertNote, listNotes, type NoteRow } from "#db/alerts/notes.ts";
import { showTime } from "#lib/format.ts";
import { cutText, toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import {
  IsoTime,
  lineOf,
  notFound,
  pageOf,
  pageQuery,
  RowId,
  requireEveryZone,
  Text,
  Time,
  toPage,
  visibleZones,
  ZoneId,
  ZoneNumber,
} from "#operations/fields.ts";
import { type Changing, type Column, defineChange, defineQuery } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { requireZone } from "#operations/require-known.ts";
import { checkOrder } from "#operations/span.ts";

const PATH = "/api/v1/notes";
const TAG = "Alerts";
const MOST_CHARS = 200;
/** Deploys that are planned so far ahead are a mistake in the time. */
const AHEAD_MS = 7 * DAY_MS;

const Item = z
  .object({
    id: z.number().int(),
    at: IsoTime,
    zone: z.number().int().nullable().describe("Null: all zones."),
    text: Text.describe("Escape it."),
    link: Text.nullable().describe("An https address. Escape it."),
    createdBy: Text,
  })
  .meta({ id: "Note" });
type Item = z.infer<typeof Item>;

const COLUMNS: readonly Column<Item>[] = [
  { head: "NOTE", get: ({ id }) => `#${id}` },
  { head: "AT (UTC)", get: ({ at }) => showTime(at) },
  { head: "ZONE", get: ({ zone }) => (zone === null ? "all" : `${zone}`) },
  { head: "TEXT", get: ({ text }) => toLine(text, MOST_CHARS) },
  { head: "BY", get: ({ createdBy }) => toLine(createdBy, 60) },
];

const list = defineQuery({
  name: "notes.list",
  tab: "Notes",
  summary: "List what people noted about the sites, such as deploys, newest first",
  http: ["GET", PATH],
  tag: TAG,
  scope: "read",
  input: z.strictObject({
    zone: ZoneId.optional().describe("Notes on this zone, and those on all zones."),
    since: Time.optional().describe("Notes of this time or later."),
    until: Time.optional().describe("Notes before this time."),
    ...pageQuery({ fallback: 100, most: 500 }),
  }),
  output: pageOf(Item),
  command: {
    examples: ["notes list", "notes list --zone 101 --since -7d"],
    columns: COLUMNS,
    empty: "No note matches.",
  },
  run: async (asked, { zone, since, until, limit, after }) => {
    checkOrder({ name: "since", ms: since }, { name: "until", ms: until });
    const name = `notes:${JSON.stringify([zone, since, until])}`;
    const last = asked.cursors.readAfter(name, after);
    const rows = await listNotes(asked.db, {
      zoneIds: visibleZones(asked.caller, zone),
      sinceMs: since,
      untilMs: until,
      after: last === null ? undefined : { atMs: Number(last[0]), id: Number(last[1]) },
      limit: limit + 1,
    });
    return toPage(rows, limit, toItem, ({ at, id }) => asked.cursors.sign(name, [at.getTime(), id]));
  },
});

const add = defineChange({
  name: "notes.add",
  summary: "Note what was done to the sites and when, such as a deploy",
  description: "Plots show notes. An alert that begins within half an hour of one says so.",
  http: ["POST", PATH],
  tag: TAG,
  scope: "act",
  input: z.strictObject({
    text: lineOf(MOST_CHARS).meta({ operand: true }).describe("What was done."),
    zone: ZoneNumber.optional().describe("Default: all zones."),
    at: Time.optional().describe("Default: now."),
    link: z
      .url({ protocol: /^https$/, error: "must be an https address" })
      .max(500)
      .optional()
      .describe("An address that says more."),
  }),
  output: Item,
  example: { text: "deploy 1.4.2", zone: 101 },
  created: () => PATH,
  command: {
    examples: ['notes add "deploy 1.4.2" --zone 101', 'notes add "new rule set" --at -20m'],
    help: "Plots show notes. An alert that begins within half an hour of one says so. Deployment webhooks of GitHub and GitLab make notes by themselves: see docs/api.md.",
    say: ({ id, at, text }) => `note #${id} at ${showTime(at)} UTC: ${toLine(text, MOST_CHARS)}\n`,
  },
  run: (changing, { text, zone, at = changing.now, link }) =>
    store(changing, { text, zone, at, link: link ?? null, source: null }),
});

const deployed = defineChange({
  name: "notes.deployed",
  summary: "Note a deployment that GitHub or GitLab sends",
  description:
    "For webhooks. Takes the events deployment_status of GitHub and Deployment of GitLab; a deployment that has succeeded is noted, once. Anything else is accepted and not noted. The key may be the password of HTTP Basic in the address.",
  http: ["POST", `${PATH}/deployments`],
  tag: TAG,
  scope: "act",
  takesBasic: true,
  takesMore: true,
  isForPages: true,
  query: ["zone"],
  input: z.object({
    zone: ZoneId.optional().describe("Default: all zones."),
    deployment_status: z.unknown().optional().describe("GitHub."),
    deployment: z.unknown().optional().describe("GitHub."),
    repository: z.unknown().optional().describe("GitHub."),
    object_kind: z.unknown().optional().describe("GitLab."),
    status: z.unknown().optional().describe("GitLab."),
    status_changed_at: z.unknown().optional().describe("GitLab."),
    deployment_id: z.unknown().optional().describe("GitLab."),
    environment: z.unknown().optional().describe("GitLab."),
    project: z.unknown().optional().describe("GitLab."),
    ref: z.unknown().optional().describe("GitLab."),
    short_sha: z.unknown().optional().describe("GitLab."),
    deployable_url: z.unknown().optional().describe("GitLab."),
  }),
  output: z.object({ noted: Item.nullable().describe("Null if there was nothing to note.") }),
  run: async (changing, { zone, ...body }) => {
    const deployment = readDeployment(body);
    if (deployment === null) return { output: { noted: null }, audit: null };
    const { atMs, text, link, source } = deployment;
    const at = Math.min(atMs ?? changing.now, changing.now);
    const { output, audit } = await store(changing, { text, zone, at, link, source });
    return { output: { noted: output }, audit };
  },
});

const remove = defineChange({
  name: "notes.delete",
  summary: "Delete a note",
  http: ["DELETE", `${PATH}/:id`],
  tag: TAG,
  scope: "act",
  input: z.strictObject({ id: RowId.describe("The number of the note.") }),
  output: z.object({ id: z.number().int(), result: z.literal("deleted") }),
  command: { examples: ["notes delete 3"], say: ({ id }) => `note #${id} is deleted.\n` },
  run: async ({ tx, caller }, { id }) => {
    const row = await deleteNote(tx, id, caller.zoneIds);
    if (row === null) throw notFound(`note ${id}`);
    return { output: { id, result: "deleted" as const }, audit: { action: "note.deleted", ...toEntry(row) } };
  },
});

export const noteOperations = [list, add, deployed, remove];

interface Wanted {
  readonly text: string;
  readonly zone: number | undefined;
  readonly at: number;
  readonly link: string | null;
  readonly source: string | null;
}

/** @throws {Refusal} 403 for zones of others, 422 for an unknown zone or a time that is far ahead */
async function store(changing: Changing, { text, zone, at, link, source }: Wanted) {
  const { tx, caller, now } = changing;
  if (zone === undefined) requireEveryZone(caller);
  visibleZones(caller, zone);
  if (zone !== undefined) await requireZone(changing, zone);
  if (at > now + AHEAD_MS) {
    const value = new Date(at).toISOString();
    throw new Refusal(422, { mistakes: [{ field: "at", value, rule: "must be at most a week ahead" }] });
  }
  const note = { at: new Date(at), zoneId: zone ?? null, text: cutText(text, MOST_CHARS), link, source };
  const { row, isNew } = await insertNote(tx, { ...note, createdBy: caller.name });
  return { output: toItem(row), audit: isNew ? { action: "note.added", ...toEntry(row) } : null };
}

function toItem({ id, at, zoneId, text, link, createdBy }: NoteRow): Item {
  return { id, at: at.toISOString(), zone: zoneId, text, link, createdBy };
}

/** Texts are masked, because an erasure does not change audit entries. */
function toEntry({ id, at, zoneId, text }: NoteRow) {
  return { subject: `note ${id}`, details: { at: at.toISOString(), zone: zoneId, text: maskText(text) } };
}

/** A deployment that a webhook has reported. Texts are hostile. */
export interface Deployment {
  /** Null if the tool did not say when. */
  readonly atMs: number | null;
  readonly text: string;
  readonly link: string | null;
  /** Identifies it. */
  readonly source: string;
}

const text = z.string().catch("");
const id = z.union([z.int(), z.string()]).transform(String);

/** https://docs.github.com/en/webhooks/webhook-events-and-payloads#deployment_status */
const GitHub = z.object({
  deployment_status: z.object({
    state: z.literal("success"),
    target_url: text,
    created_at: text,
  }),
  deployment: z.object({ id, ref: text, sha: text, environment: text }),
  repository: z.object({ full_name: text }).catch({ full_name: "" }),
});

/** https://docs.gitlab.com/user/project/integrations/webhook_events/#deployment-events */
const GitLab = z.object({
  object_kind: z.literal("deployment"),
  status: z.literal("success"),
  status_changed_at: text,
  deployment_id: id,
  environment: text,
  project: z.object({ path_with_namespace: text }).catch({ path_with_namespace: "" }),
  ref: text,
  short_sha: text,
  deployable_url: text,
});

const DEPLOYMENT_CHARS = 200;
const SHORT_SHA = 8;

/** Returns a deployment of GitHub or GitLab that has succeeded; null for anything else. */
function readDeployment(body: unknown): Deployment | null {
  const hub = GitHub.safeParse(body).data;
  if (hub !== undefined) {
    const { deployment, deployment_status: status, repository } = hub;
    return describe({
      ...deployment,
      sha: deployment.sha.slice(0, SHORT_SHA),
      project: repository.full_name,
      at: status.created_at,
      url: status.target_url,
      source: `github ${repository.full_name} ${deployment.id}`,
    });
  }
  const lab = GitLab.safeParse(body).data;
  if (lab === undefined) return null;
  const project = lab.project.path_with_namespace;
  return describe({
    ref: lab.ref,
    sha: lab.short_sha,
    environment: lab.environment,
    project,
    at: lab.status_changed_at,
    url: lab.deployable_url,
    source: `gitlab ${project} ${lab.deployment_id}`,
  });
}

function describe(of: {
  readonly ref: string;
  readonly sha: string;
  readonly environment: string;
  readonly project: string;
  readonly at: string;
  readonly url: string;
  readonly source: string;
}): Deployment {
  const { ref, sha, environment, project, at, url, source } = of;
  const version = [ref, sha === "" || sha === ref ? "" : `(${sha})`].filter((part) => part !== "").join(" ");
  const where = [project, environment].filter((part) => part !== "").join(", ");
  // GitLab writes 2021-04-28 21:50:00 +0200.
  const atMs = Date.parse(at.replace(/^(\S+) (\S+) ([+-]\d{4})$/, "$1T$2$3"));
  return {
    atMs: Number.isNaN(atMs) ? null : atMs,
    text: toLine(`deploy ${version}${where === "" ? "" : ` of ${where}`}`, DEPLOYMENT_CHARS),
    link: /^https:\/\/\S{1,490}$/.test(url) ? url : null,
    source: source.slice(0, 300),
  };
}
